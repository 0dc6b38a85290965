/// Where everything lives (docs/HACKING.md has the table).
package struct Folders: Hashable, Sendable {
    /// Manifests of the distribution and of packages; the config folder wins over it.
    package var vendor: String
    package var config: String
    package var runtime: String
    package var state: String
    /// Below these an app's `StateDirectory=`, `CacheDirectory=` and `RuntimeDirectory=` are made, as systemd does.
    package var appState: String
    package var appCache: String
    package var appRuntime: String

    package enum Mode: Hashable, Sendable { case system, user }

    /// The greatest length of `runtime` in bytes: `sun_path` holds 108 with its NUL (unix(7)), and the longest name below it
    /// is `/notify/` with a run's number of up to twenty digits.
    package static let maximumRuntimeLength = 107 - "/notify/".utf8.count - 20

    /// The folders of a mode.
    ///
    /// - Parameter environment: looks up a variable; XDG's for `user`.
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
            // Without a session there is no XDG_RUNTIME_DIR; what is there then belongs to nobody else either.
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

    /// `--runtime DIR`: a daemon of one's own leaves the machine's folders alone, for its apps too.
    package mutating func moveRuntime(to folder: String) {
        runtime = folder
        appRuntime = folder + "/apps"
    }

    /// `--state DIR`.
    package mutating func moveState(to folder: String) {
        state = folder
        appState = folder + "/apps"
        appCache = folder + "/cache"
    }

    package var busSocket: String { runtime + "/bus" }
    package var lock: String { runtime + "/lock" }
    package var notifySockets: String { runtime + "/notify" }
    package var logbook: String { runtime + "/logbook" }
    package var storedFiles: String { runtime + "/stored" }
    package var inboxes: String { runtime + "/inbox" }
    package var receipts: String { state + "/receipts.jsonl" }
    package var restoration: String { state + "/restoration" }
    package var olderReceipts: String { receipts + ".1" }
    package var lastReceipts: String { runtime + "/last" }
    package var launches: String { state + "/launches" }
}
