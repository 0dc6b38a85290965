import LifecycleCore
import Linux
import Manifest

/// The environment of a new process (docs: “What an app is given”).
struct LaunchEnvironment {
    var manifest: AppManifest
    /// What the files of `EnvironmentFile=` contain.
    var files: [String] = []
    var launch: Launch
    /// The user of the app; `nil`: the daemon's.
    var user: UserRecord?
    var notifySocket: String
    /// The address of the app's own connections; `nil`: they have none.
    var busAddress: String?
    var inbox: String
    var lastReceipt: String?
    /// `GREENROOM_RUN=…`: identifies the app's processes in process-group mode.
    var marker: String?
    /// The part of the environment of a user's daemon that its apps inherit.
    var inherited: [String]
    /// The file of memory pressure that the app may watch (L37); `nil`: there is none.
    var pressureFile: String?
    /// How the device is held; `nil`: it is not known.
    var orientation: String?

    /// What the app writes to that file: `some 200000 2000000` and a null byte, in base64. It is systemd's default: a stall of 200 ms in
    /// 2 s (systemd.resource-control(5), MemoryPressureThresholdSec=).
    static let pressureTrigger = "c29tZSAyMDAwMDAgMjAwMDAwMAA="

    /// systemd's default for services (systemd.exec(5)).
    static let path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

    /// Variables that greenroomd sets for apps, or that systemd set for the daemon alone: names or their first
    /// characters.
    private static let daemonVariables = [
        "NOTIFY_SOCKET", "LISTEN_", "WATCHDOG_", "INVOCATION_ID", "JOURNAL_STREAM", "GREENROOM_", "MAINPID",
        "MANAGERPID",
        "SYSTEMD_EXEC_PID", "MEMORY_PRESSURE_", "STATE_DIRECTORY", "CACHE_DIRECTORY", "RUNTIME_DIRECTORY",
        "SWIFT_BACKTRACE=",
    ]

    /// Whether greenroomd sets a variable for apps, depending on what the manifest says.
    static func isOwn(_ name: String) -> Bool {
        let names = ["NOTIFY_SOCKET", "STATE_DIRECTORY", "CACHE_DIRECTORY", "RUNTIME_DIRECTORY"]
        let prefixes = ["GREENROOM_", "LISTEN_", "WATCHDOG_", "MEMORY_PRESSURE_"]
        return names.contains(name) || prefixes.contains { name.hasPrefix($0) }
    }

    /// What the apps of a user's daemon inherit from its environment.
    static func passedOn(_ environment: [String]) -> [String] {
        environment.filter { entry in !daemonVariables.contains { entry.hasPrefix($0) } }
    }

    /// `NAME=value` each, one for each name. The manifest overrides what is inherited, its files
    /// override its `Environment=`, the request that launches the app overrides
    /// the manifest, and greenroomd's own variables override both.
    func entries(folders: Folders) -> [String] {
        var all = common(launch.environment)
        all.append("GREENROOM_LAUNCH_STATE=\(launch.state == .foreground ? "inactive" : "background")")
        all.append("GREENROOM_LAUNCH_REASON=\(launch.reason.rawValue)")
        if let url = launch.url { all.append("GREENROOM_LAUNCH_URL=\(url)") }
        if let orientation { all.append("GREENROOM_ORIENTATION=\(orientation)") }
        if launch.isFirst { all.append("GREENROOM_FIRST_LAUNCH=1") }
        if let lastReceipt { all.append("GREENROOM_LAST_RECEIPT=\(lastReceipt)") }
        all.append("GREENROOM_INBOX=\(inbox)")
        if let busAddress { all.append("GREENROOM_BUS_ADDRESS=\(busAddress)") }
        if manifest.effectiveNotifyAccess != .none { all.append("NOTIFY_SOCKET=\(notifySocket)") }
        if let pressureFile {
            all.append("MEMORY_PRESSURE_WATCH=\(pressureFile)")
            all.append("MEMORY_PRESSURE_WRITE=\(Self.pressureTrigger)")
        }
        if let watchdog = manifest.policy.watchdog { all.append("WATCHDOG_USEC=\(watchdog.microseconds)") }
        return Self.lastWins(all + directories(folders))
    }

    /// The variables of a command of a hook (L57). It has no notify socket and no connection: what came from there would be what the
    /// app says.
    func entries(of hook: Hook, mainPID: Int32?, folders: Folders) -> [String] {
        var all = common([])
        all.append("GREENROOM_STATE=\(hook.state.rawValue)")
        all.append("GREENROOM_REASON=\(hook.reason.rawValue)")
        if let slept = hook.slept { all.append("GREENROOM_SLEPT_SEC=\(slept.components.seconds)") }
        if let mainPID { all.append("MAINPID=\(mainPID)") }
        return Self.lastWins(all + directories(folders))
    }

    private func common(_ requested: [String]) -> [String] {
        var all = inherited.isEmpty ? [Self.path] : inherited
        if let user {
            all += ["HOME=\(user.home)", "LOGNAME=\(user.name)", "USER=\(user.name)", "SHELL=\(user.shell)"]
        }
        all += manifest.environment + files + requested
        all.append("GREENROOM_APP=\(manifest.id)")
        if let marker { all.append(marker) }
        return all
    }

    private func directories(_ folders: Folders) -> [String] {
        directory("STATE_DIRECTORY", manifest.stateDirectory, below: folders.appState)
            + directory("CACHE_DIRECTORY", manifest.cacheDirectory, below: folders.appCache)
            + directory("RUNTIME_DIRECTORY", manifest.runtimeDirectory, below: folders.appRuntime)
    }

    private func directory(_ name: String, _ names: [String], below folder: String) -> [String] {
        names.isEmpty ? [] : [name + "=" + names.map { folder + "/" + $0 }.joined(separator: ":")]
    }

    /// Keeps the last entry of each name: programs differ in which of several they use. Names are compared as bytes, as
    /// in getenv(3). To Swift, “=” and a combining mark behind it are one character that is not “=”.
    static func lastWins(_ entries: [String]) -> [String] {
        var positions: [[UInt8]: Int] = [:]
        var kept: [String] = []
        for entry in entries {
            let name = Array(entry.utf8.prefix { $0 != UInt8(ascii: "=") })
            if let position = positions[name] {
                kept[position] = entry
            } else {
                positions[name] = kept.count
                kept.append(entry)
            }
        }
        return kept
    }
}

extension Duration {
    /// Whole microseconds, the unit of systemd's `…_USEC` variables.
    var microseconds: Int64 {
        let (seconds, attoseconds) = components
        return seconds * 1_000_000 + attoseconds / 1_000_000_000_000
    }
}
