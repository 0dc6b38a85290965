import LifecycleCore
import Linux
import Manifest

/// What an app finds in its environment (docs: «What an app is given»).
struct LaunchEnvironment {
    var manifest: AppManifest
    var launch: Launch
    /// `User=`, where it is another than the daemon's.
    var user: UserRecord?
    var notifySocket: String
    var inbox: String
    var lastReceipt: String?
    /// By which process-group mode knows the app's processes.
    var marker: String?
    /// What a user's own daemon passes on of its environment.
    var inherited: [String]

    /// As systemd sets it for its services (systemd.exec(5)).
    static let path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

    /// Names of ours, or that were meant for the daemon alone.
    private static let private_ = [
        "NOTIFY_SOCKET", "LISTEN_", "WATCHDOG_", "INVOCATION_ID", "JOURNAL_STREAM", "GREENROOM_", "MAINPID",
        "MANAGERPID",
        "SYSTEMD_EXEC_PID", "MEMORY_PRESSURE_", "STATE_DIRECTORY", "CACHE_DIRECTORY", "RUNTIME_DIRECTORY",
    ]

    static func passedOn(_ environment: [String]) -> [String] {
        environment.filter { entry in !private_.contains { entry.hasPrefix($0) } }
    }

    /// In the order in which later entries win.
    func entries(folders: Folders) -> [String] {
        var all = inherited.isEmpty ? [Self.path] : inherited
        if let user {
            all += ["HOME=\(user.home)", "LOGNAME=\(user.name)", "USER=\(user.name)", "SHELL=\(user.shell)"]
        }
        all += manifest.environment
        all.append("GREENROOM_APP=\(manifest.id)")
        if let marker { all.append(marker) }
        all.append("GREENROOM_LAUNCH_STATE=\(launch.state == .foreground ? "inactive" : "background")")
        all.append("GREENROOM_LAUNCH_REASON=\(launch.reason.rawValue)")
        if let url = launch.url { all.append("GREENROOM_LAUNCH_URL=\(url)") }
        if launch.isFirst { all.append("GREENROOM_FIRST_LAUNCH=1") }
        if let lastReceipt { all.append("GREENROOM_LAST_RECEIPT=\(lastReceipt)") }
        all.append("GREENROOM_INBOX=\(inbox)")
        all.append("NOTIFY_SOCKET=\(notifySocket)")
        if let watchdog = manifest.policy.watchdog { all.append("WATCHDOG_USEC=\(watchdog.microseconds)") }
        all += directory("STATE_DIRECTORY", manifest.stateDirectory, below: folders.appState)
        all += directory("CACHE_DIRECTORY", manifest.cacheDirectory, below: folders.appCache)
        all += directory("RUNTIME_DIRECTORY", manifest.runtimeDirectory, below: folders.appRuntime)
        return Self.lastWins(all)
    }

    private func directory(_ name: String, _ names: [String], below folder: String) -> [String] {
        names.isEmpty ? [] : [name + "=" + names.map { folder + "/" + $0 }.joined(separator: ":")]
    }

    /// One entry a name: programs differ in which of two they take. By bytes, as getenv(3) has it: to Swift “=” and a
    /// combining mark after it are one character, and no “=”.
    static func lastWins(_ entries: [String]) -> [String] {
        var places: [[UInt8]: Int] = [:]
        var kept: [String] = []
        for entry in entries {
            let name = Array(entry.utf8.prefix { $0 != UInt8(ascii: "=") })
            if let place = places[name] {
                kept[place] = entry
            } else {
                places[name] = kept.count
                kept.append(entry)
            }
        }
        return kept
    }
}

extension Duration {
    /// Whole microseconds, as systemd's `…_USEC` variables count.
    var microseconds: Int64 {
        let (seconds, attoseconds) = components
        return seconds * 1_000_000 + attoseconds / 1_000_000_000_000
    }
}
