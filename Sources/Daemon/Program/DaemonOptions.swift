import Glibc
package import Systemd

/// The options of greenroomd's command line.
package struct DaemonOptions: Hashable, Sendable {
    package var mode: Folders.Mode
    package var folders: Folders
    package var logLevel: LogLevel = .info
    /// Whether the configuration folder was named with `--config`.
    package var hasGivenConfig = false
    /// The cgroup below which apps' cgroups are created; `nil`: it is detected (`ContainmentMode.detect`).
    package var cgroup: String?
    /// The bus on which the daemon requests its name: the system bus, or the user's; `nil`: none.
    package var busAddress: String?
    /// The system bus, for logind.
    package var systemBusAddress: String

    package init(mode: Folders.Mode, folders: Folders, environment: (String) -> String?) {
        self.mode = mode
        self.folders = folders
        systemBusAddress = BusAddress.system(environment: environment)
        switch mode {
        case .system: busAddress = systemBusAddress
        case .user: busAddress = BusAddress.user(environment: environment)
        }
    }

    package enum Parsed: Hashable, Sendable {
        case run(DaemonOptions)
        /// Print this to standard output, and exit.
        case show(String)
        /// Print this error to standard error, and exit with status 2.
        case wrong(String)
    }

    package static let usage = """
        Usage: greenroomd [--system|--user] [--config DIR] [--runtime DIR] [--state DIR]
                          [--cgroup GROUP] [--log-level LEVEL]

        Manages the lifecycle of apps: launches them, notifies them of every change, enforces deadlines, freezes apps in
        the background, and kills suspended apps when memory is short.

          --system         Use /etc/greenroom, /run/greenroom, /var/lib/greenroom and the system bus (default for root)
          --user           Use the XDG folders and the user's bus (default for other users)
          --config DIR     Read apps/ID.app and greenroom.conf in DIR
          --runtime DIR    Create the bus socket and apps' RuntimeDirectory= in DIR
          --state DIR      Store receipts and apps' StateDirectory= and CacheDirectory= in DIR
          --cgroup GROUP   Create apps' cgroups below GROUP, relative to the daemon's own without a leading slash
          --log-level L    error, warning, notice, info (default) or debug
          --version        Print the version
          --help           Print this help

        """

    /// Parses the command line.
    /// - Parameters:
    ///   - arguments: the arguments without the program's name.
    ///   - environment: looks up a variable.
    ///   - workingDirectory: where relative folders start.
    package static func parse(
        _ arguments: [String], isRoot: Bool, version: String, environment: (String) -> String?,
        workingDirectory: String = currentFolder()
    ) -> Parsed {
        var mode: Folders.Mode = isRoot ? .system : .user
        var given: [(String, String)] = []
        var rest = arguments[...]
        while let argument = rest.popFirst() {
            let (name, inline) = split(argument)
            switch name {
            case "--help", "-h": return .show(usage)
            case "--version": return .show("greenroomd \(version)\n")
            case "--system": mode = .system
            case "--user": mode = .user
            case "--config", "--runtime", "--state", "--cgroup", "--log-level":
                guard let value = inline ?? rest.popFirst(), !value.isEmpty else {
                    return .wrong("\(name): missing value")
                }
                given.append((name, value))
            default: return .wrong("unknown argument '\(argument)'; see greenroomd --help")
            }
        }
        guard let folders = Folders(mode: mode, environment: environment) else {
            return .wrong("--user: HOME is not set to an absolute path")
        }
        return apply(
            given, to: DaemonOptions(mode: mode, folders: folders, environment: environment), workingDirectory)
    }

    private static func split(_ argument: String) -> (name: String, value: String?) {
        guard argument.hasPrefix("--"), let sign = argument.firstIndex(of: "=") else { return (argument, nil) }
        return (String(argument[..<sign]), String(argument[argument.index(after: sign)...]))
    }

    private static func apply(
        _ given: [(String, String)], to options: DaemonOptions, _ workingDirectory: String
    ) -> Parsed {
        var options = options
        for (name, value) in given {
            if name == "--log-level" {
                guard let level = value == "error" ? .error : LogLevel(name: value) else {
                    return .wrong(
                        "--log-level: invalid value '\(value)'; expected error, warning, notice, info or debug")
                }
                options.logLevel = level
                continue
            }
            if name == "--cgroup" {
                options.cgroup = value
                continue
            }
            let folder = absolutePath(value, in: workingDirectory)
            switch name {
            case "--config":
                options.folders.config = folder
                options.hasGivenConfig = true
            case "--runtime": options.folders.moveRuntime(to: folder)
            default: options.folders.moveState(to: folder)
            }
        }
        let length = options.folders.runtime.utf8.count
        guard length <= Folders.maximumRuntimeLength else {
            return .wrong(
                "--runtime: the path has \(length) bytes; the limit is \(Folders.maximumRuntimeLength), because the path "
                    + "of a socket has at most 107")
        }
        return .run(options)
    }
}

/// The working directory; `/` if it cannot be found, as after its removal.
package func currentFolder() -> String {
    var buffer = [CChar](repeating: 0, count: Int(PATH_MAX))
    guard getcwd(&buffer, buffer.count) != nil else { return "/" }
    return String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
}

/// A path without empty parts and `.`; a relative one starts at `folder`. `..` stays, because it may follow a symbolic link.
package func absolutePath(_ path: String, in folder: String) -> String {
    let whole = path.hasPrefix("/") ? path : folder + "/" + path
    return "/" + whole.split(separator: "/").filter { $0 != "." }.joined(separator: "/")
}
