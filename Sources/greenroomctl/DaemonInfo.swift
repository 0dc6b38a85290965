import Control
import Glibc
import Systemd

/// What the daemon says about itself: properties of `Manager1` (docs/DBUS.md). A property is `nil` if the daemon is older and has
/// none.
struct DaemonInfo: Equatable {
    /// Folders as paths that can be opened: they are not escaped.
    var config: String?
    var runtime: String?
    var state: String?
    var vendor: String?
    /// How the daemon contains apps, in words.
    var containment: String?
    /// Why manifests were ignored, and greenroom.conf was refused.
    var fileProblems: [String] = []
    /// When the daemon was started.
    var started: Timestamp?
    /// The same as a time of `EventLoop.now`, which changes of the system clock do not move.
    var startedMonotonic: Duration?

    init() {}

    /// - Parameter properties: the answer to `GetAll`.
    init(_ properties: Variant) {
        func text(_ name: String) -> String? { properties[name]?.unwrapped.stringValue }
        func number(_ name: String) -> UInt64? { properties[name]?.unwrapped.uintValue }
        config = text("ConfigFolder")
        runtime = text("RuntimeFolder")
        state = text("StateFolder")
        vendor = text("VendorFolder")
        containment = text("Containment")
        fileProblems = properties["FileProblems"]?.unwrapped.arrayValue?.compactMap(\.stringValue) ?? []
        started = number("StartTimestamp").map { Timestamp(microseconds: $0) }
        startedMonotonic = number("StartTimestampMonotonic").map { .microseconds($0) }
    }

    /// For how long the daemon has run, without the time in which the machine slept.
    func uptime(at now: Duration) -> Duration? {
        startedMonotonic.map { max(.zero, now - $0) }
    }
}

/// The folders of the daemon's manifests.
struct ManifestFolders {
    /// The folder `apps` of the configuration.
    var apps: String
    /// The folder `apps` of the distribution and of packages.
    var vendor: String
    /// A sentence if no daemon was asked: why this folder was taken.
    var note: String?
}

extension Session {
    /// The folders of the daemon that other verbs call: the daemon is asked for them. With `--config` that folder is taken. Without a
    /// daemon it is the default one, and `note` says so; a daemon that `--runtime` names may have any.
    func manifestFolders() throws(Failure) -> ManifestFolders {
        let vendor = "/usr/lib/greenroom\(isForRoot ? "" : "/user")/apps"
        if let given = invocation.options[.config] {
            return ManifestFolders(apps: environment.absolutePath(given) + "/apps", vendor: vendor)
        }
        let info: DaemonInfo
        do throws(Failure) {
            info = try connect().info()
        } catch {
            guard error.isOfNoServer, !invocation.has(.runtime) else {
                var failure = error
                failure.sentence += ", so the folder of its manifests is not known; use --config DIR"
                throw failure
            }
            let folder = try defaultConfiguration() + "/apps"
            return ManifestFolders(
                apps: folder, vendor: vendor,
                note: "No greenroomd answers, so the default folder is used: \(escaped(folder))")
        }
        guard let config = info.config else {
            return ManifestFolders(
                apps: try defaultConfiguration() + "/apps", vendor: vendor,
                note: "This greenroomd is too old to name its folder, so the default one is used.")
        }
        return ManifestFolders(apps: config + "/apps", vendor: info.vendor.map { $0 + "/apps" } ?? vendor)
    }

    /// The configuration folder of a daemon that was started without options (`Folders` of the daemon).
    private func defaultConfiguration() throws(Failure) -> String {
        if isForRoot { return "/etc/greenroom" }
        let parent = environment.folder("XDG_CONFIG_HOME") ?? environment.folder("HOME").map { $0 + "/.config" }
        guard let parent else {
            throw Failure("Neither XDG_CONFIG_HOME nor HOME is set; use --config DIR or --system.")
        }
        return parent + "/greenroom"
    }

    /// Prints the note of `manifestFolders`, except with --json.
    func show(note: String?) {
        guard let note, !wantsJSON else { return }
        let lines = screen.errorWidth.map { wrapped(note, to: $0) } ?? [note]
        try? write(lines.joined(separator: "\n") + "\n", to: STDERR_FILENO)
    }

    /// A command line for the same daemon, for a hint: with the options that select the daemon, as the user gave them.
    func command(_ words: String) -> String { "greenroomctl\(invocation.daemonOptions) \(words)" }
}

extension Invocation {
    /// The options that select the daemon, each after a space; quoted for a shell where it is necessary.
    var daemonOptions: String {
        var text = has(.system) ? " --system" : has(.user) ? " --user" : ""
        if let runtime = options[.runtime] { text += " --runtime \(escaped(shellQuoted(runtime)))" }
        return text
    }
}

/// A word for a POSIX shell: as it is, or in single quotes.
func shellQuoted(_ word: String) -> String {
    let plain = word.unicodeScalars.allSatisfy { scalar in
        (scalar.isASCII && (scalar.properties.isAlphabetic || ("0"..."9").contains(scalar)))
            || "+,-./:=@_%".unicodeScalars.contains(scalar)
    }
    if plain, !word.isEmpty { return word }
    return "'\(word.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "'\\''"))'"
}
