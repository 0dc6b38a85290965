/// The folders of the daemon (table: docs/HACKING.md).
package struct Folders: Hashable, Sendable {
    /// Manifests of the distribution and of packages. The config folder takes precedence.
    package var vendor: String
    package var config: String
    package var runtime: String
    package var state: String
    /// The parents of the directories that apps name in `StateDirectory=`, `CacheDirectory=` and `RuntimeDirectory=`
    /// (systemd.exec(5)).
    package var appState: String
    package var appCache: String
    package var appRuntime: String

    package enum Mode: Hashable, Sendable { case system, user }

    /// The greatest length of `runtime` in bytes: `sun_path` has 108 bytes with the NUL (unix(7)), and the longest name
    /// below the folder is `/self/`, the number of a run, up to twenty digits, and `/bus`.
    package static let maximumRuntimeLength = 107 - "/self/".utf8.count - 20 - "/bus".utf8.count

    /// The default folders.
    /// - Parameter environment: looks up a variable. For the mode `user` those are HOME and the XDG variables.
    /// - Returns: `nil` if HOME is not an absolute path.
    package init?(mode: Mode, environment: (String) -> String?) {
        switch mode {
        case .system:
            self.init(
                vendor: "/usr/lib/greenroom", config: "/etc/greenroom", runtime: "/run/greenroom",
                state: "/var/lib/greenroom", appState: "/var/lib", appCache: "/var/cache", appRuntime: "/run")
        case .user:
            guard let home = environment("HOME"), home.hasPrefix("/") else { return nil }
            func xdg(_ name: String, _ fallback: String) -> String {
                guard let value = environment(name), value.hasPrefix("/") else { return fallback }
                return value
            }
            // Without a login session there is no XDG_RUNTIME_DIR. ~/.cache belongs to the user alone, too.
            let runtime = xdg("XDG_RUNTIME_DIR", home + "/.cache")
            self.init(
                vendor: "/usr/lib/greenroom/user", config: xdg("XDG_CONFIG_HOME", home + "/.config") + "/greenroom",
                runtime: runtime + "/greenroom", state: xdg("XDG_STATE_HOME", home + "/.local/state") + "/greenroom",
                appState: xdg("XDG_STATE_HOME", home + "/.local/state"),
                appCache: xdg("XDG_CACHE_HOME", home + "/.cache"), appRuntime: runtime)
        }
    }

    private init(
        vendor: String, config: String, runtime: String, state: String, appState: String, appCache: String,
        appRuntime: String
    ) {
        self.vendor = vendor
        self.config = config
        self.runtime = runtime
        self.state = state
        self.appState = appState
        self.appCache = appCache
        self.appRuntime = appRuntime
    }

    /// `--runtime DIR`: also moves the apps' runtime directories, so that a second daemon does not use the first one's.
    package mutating func moveRuntime(to folder: String) {
        runtime = folder
        appRuntime = folder + "/apps"
    }

    /// `--state DIR`: also moves the apps' state and cache directories.
    package mutating func moveState(to folder: String) {
        state = folder
        appState = folder + "/apps"
        appCache = folder + "/cache"
    }

    package var busSocket: String { runtime + "/bus" }
    /// Where the relays of `greenroomctl run` connect (L54).
    package var relaySocket: String { runtime + "/relay" }
    package var lock: String { runtime + "/lock" }
    package var notifySockets: String { runtime + "/notify" }
    package var connections: String { runtime + "/self" }
    package var logbook: String { runtime + "/logbook" }
    package var recording: String { runtime + "/recording" }
    package var storedFiles: String { runtime + "/stored" }
    package var inboxes: String { runtime + "/inbox" }
    package var receipts: String { state + "/receipts.jsonl" }
    package var output: String { state + "/output" }
    package var restoration: String { state + "/restoration" }
    package var olderReceipts: String { receipts + ".1" }
    package var lastReceipts: String { runtime + "/last" }
    package var summaries: String { state + "/summaries" }
    package var launches: String { state + "/launches" }
    package var timers: String { state + "/timers" }
}
