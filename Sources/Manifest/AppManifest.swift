package import LifecycleCore
package import Schedule

/// The settings of one app, from its manifest and drop-ins.
///
/// Those of hundreds of apps are equal but for the name and the command: `share` keeps such values once.
@dynamicMemberLookup
package struct AppManifest: Hashable, Sendable {
    package var id: AppID
    /// The display name. The default is the ID.
    package var name: String
    /// The program's absolute path and its arguments.
    package var exec: [String] = []
    /// The words of `exec` in which variables are replaced, by their position. `exec` has them as they are written.
    package var commandWords: [Int: CommandWord] = [:]
    @Boxed package var policy = AppPolicy()
    @Boxed private var surroundings = Surroundings()

    package init(id: AppID) {
        self.id = id
        name = id.name
        policy.startUpTime = .seconds(30)
    }

    package subscript<Value>(dynamicMember path: WritableKeyPath<Surroundings, Value>) -> Value {
        get { surroundings[keyPath: path] }
        set { surroundings[keyPath: path] = newValue }
    }

    /// Keeps one copy of what both have.
    package mutating func share(with other: AppManifest) {
        _policy.share(with: other._policy)
        _surroundings.share(with: other._surroundings)
    }

    /// The settings that most apps leave at their defaults: how its processes are started, and what they are given.
    package struct Surroundings: Hashable, Sendable {
        /// The file that names the main process of an app with `Type=forking`: an absolute path.
        package var pidFile: String?
        package var user: String?
        package var group: String?
        package var supplementaryGroups: [String] = []
        /// An absolute path, or `~` for the user's home directory.
        package var workingDirectory: String?
        /// Assignments of the form `NAME=value`.
        package var environment: [String] = []
        package var environmentFiles: [EnvironmentFile] = []
        /// Directories relative to the base directories that systemd.exec(5) defines for these settings.
        package var stateDirectory: [String] = []
        package var cacheDirectory: [String] = []
        package var runtimeDirectory: [String] = []
        package var umask: UInt32 = 0o022
        package var limits: [ResourceLimitSetting] = []
        package var notifyAccess = NotifyAccess.all
        package var oomScoreAdjust: Int?
        package var noNewPrivileges = false
        /// The app cannot write in the folder of its program (L10).
        package var readOnlyProgram = false
        /// `sha256:HEX` or `fsverity-sha256:HEX`, in lower case: another file is not executed.
        package var programDigest: String?
        /// The default is that of systemd: a server does not end when a client leaves.
        package var ignoresSIGPIPE = true
        package var standardOutput = OutputTarget.journal
        package var standardError = OutputTarget.inherit
        /// The schemes of URLs that the app opens, in lower case (L8).
        package var urlSchemes: [String] = []
        /// The roles of scenes that the app may begin beside windows (L34): each has a foreground slot that is not a window's, and an app
        /// in it is in the foreground.
        package var sceneRoles: Set<SceneRole> = []
        package var signals = LifecycleSignals()
        /// The commands of the hooks (L57). `policy.hooks` has their kinds.
        package var hooks: [HookKind: [Command]] = [:]
        /// The sockets that the daemon holds for the app, in the order of the file (L29).
        package var sockets = SocketSettings()
        /// `Traffic=`; `nil`: the default of the role. `policy.wakesOnTraffic` has the result.
        package var traffic: Bool?
        /// When it is woken (L30). `policy.hasTimers` says whether it ever is.
        package var timers = TimerSettings()
        /// The devices that wake it when they are added, `WakeOnDevice=`.
        package var wakeDevices: [DeviceMatch] = []
        /// The distance in meters that the device has to move to wake it, `WakeOnLocation=`; `nil`: a move does not.
        package var wakeDistance: Int?
        /// Whether it is registered with the UnifiedPush distributor of its user, `UnifiedPush=`.
        package var unifiedPush = false
        /// The file of which the kind `settings` reports changes: a normalized absolute path (L33).
        package var settingsFile: String?
        /// Paths, with wildcards, and locks on files, as `Release.lockPrefix` and a path, that it lets go of before it is suspended.
        package var releases: [String] = []
        /// The snapshot is kept over a start of the machine (`SnapshotPersistent=`).
        package var keepsSnapshot = false
        /// How the notices of other apps are to be shown while this one is in front (L55). Programs that show notices read it.
        package var notices = NoticeStyle.banner
        /// The app ID of its windows on Wayland, their class on X11 (L55); `nil`: the app's ID. Programs that show windows read it.
        package var windowAppID: String?
        /// `BackgroundModes=` has a mode by its former name.
        var hasFormerMode = false
        /// `KeepAwake=`; `nil`: the default. `policy.keepAwake` has the result.
        package var keepAwake: AppPolicy.KeepAwake?
    }
}

/// Where the output of an app goes (`StandardOutput=`, `StandardError=`, systemd.exec(5)).
package enum OutputTarget: Hashable, Sendable {
    /// The journal; without one a file of the app with a bound.
    case journal
    /// Standard output: the standard error of the daemon. Standard error: where standard output goes.
    case inherit
    /// `/dev/null`
    case null
    /// A normalized absolute path. The output overwrites the file from its start.
    case file(String)
    /// A normalized absolute path. The output is added at the end of the file.
    case append(String)
}

/// The processes whose notify messages are read (`NotifyAccess=`, systemd.service(5)). Processes that are not of the app are
/// never among them.
package enum NotifyAccess: String, Hashable, Sendable, CaseIterable {
    case none, main, exec, all
}

extension AppManifest {
    /// Hard limits in bytes (L41). `nil`: no limit.
    package var memoryMax: UInt64? {
        get { policy.memoryMax }
        set { policy.memoryMax = newValue }
    }
    package var suspendedMemoryMax: UInt64? {
        get { policy.suspendedMemoryMax }
        set { policy.suspendedMemoryMax = newValue }
    }

    /// `NotifyAccess=` as it takes effect. With `Type=notify` the main process can always send READY=1, as in systemd. `exec` is
    /// `main`, because an app has no control processes.
    package var effectiveNotifyAccess: NotifyAccess {
        switch self.notifyAccess {
        case .none: policy.readiness == .notified ? .main : .none
        case .main, .exec: .main
        case .all: .all
        }
    }
}

/// The signals that are sent to an app at lifecycle transitions. `nil`: no signal is sent.
package struct LifecycleSignals: Hashable, Sendable {
    package var resignActive: Int32?
    package var becomeActive: Int32?
    package var enterBackground: Int32?
    package var enterForeground: Int32?
    package var memoryWarning: Int32?
    package var taskExpiring: Int32?
    /// Something new lies in the inbox.
    package var notification: Int32?
    /// The default is SIGTERM.
    package var terminate: Int32 = 15
}

/// A resource limit of setrlimit(2). `resource` is the number that Linux uses; `UInt64.max` means no limit.
package struct ResourceLimitSetting: Hashable, Sendable {
    package var resource: Int32
    package var soft: UInt64
    package var hard: UInt64
}

/// A threshold for memory pressure stall information (PSI): the share of time that tasks may stall.
package struct PressureThreshold: Hashable, Sendable {
    /// `some`: at least one task stalls. `full`: all tasks stall at once.
    package enum Kind: String, Hashable, Sendable { case some, full }
    package var kind: Kind
    /// 1 … 99 percent.
    package var percent: Int

    package init(_ kind: Kind, percent: Int) {
        self.kind = kind
        self.percent = percent
    }
}

/// `LaunchesAtOnce=`.
package enum LaunchLimit: Hashable, Sendable {
    /// As many as there are processors that the daemon may use.
    case processors
    case number(Int)
    case infinity
}

/// `Interruptions=`.
package struct InterruptionSources: OptionSet, Hashable, Sendable {
    package let rawValue: Int
    package init(rawValue: Int) { self.rawValue = rawValue }
    /// The calls of ModemManager.
    package static let calls = InterruptionSources(rawValue: 1)
    /// Notifications of the desktop that are critical.
    package static let notifications = InterruptionSources(rawValue: 2)

    static let named: [(name: String, source: InterruptionSources)] = [
        ("calls", .calls), ("notifications", .notifications),
    ]
}

/// The settings of `greenroom.conf`.
package struct ManagerConfiguration: Hashable, Sendable {
    package var policy = ManagerPolicy()
    /// L52.
    package var launchesAtOnce = LaunchLimit.processors
    /// `nil`: off. docs/decisions/memory.md explains the defaults.
    package var warningPressure: PressureThreshold? = PressureThreshold(.some, percent: 7)
    package var criticalPressure: PressureThreshold? = PressureThreshold(.full, percent: 10)
    /// L8: which app opens the URLs of a scheme that several apps open. Later ones take precedence.
    package var defaultHandlers: [DefaultHandler] = []
    /// The app that handles the calls of ModemManager (L28); `nil`: none.
    package var dialer: AppID?
    /// What interrupts the apps that are active (L13).
    package var interruptions: InterruptionSources = []
    /// The directory whose key is removed while the screen is locked, and the program that prints the key, with its arguments (L15).
    package var protectedDirectory: String?
    package var protectedKeyCommand: [String] = []
    /// Where greenroom-exporter serves metrics beside its Unix socket, which asks the daemon for it; `nil`: nowhere.
    package var metricsListen: HeldSocket.Address?
    /// The most bytes of the recording; 0: events are not kept. docs/decisions/recovery.md explains the default.
    package var traceSize: UInt64 = 16 << 20

    package init() {}

    /// What the core decides by, on a machine with this number of processors.
    package func policy(processors: Int) -> ManagerPolicy {
        var policy = policy
        switch launchesAtOnce {
        case .processors: policy.launchesAtOnce = processors
        case .number(let number): policy.launchesAtOnce = number
        case .infinity: policy.launchesAtOnce = nil
        }
        return policy
    }

    /// The thresholds that are not off, with the memory level that each one triggers.
    package var pressureThresholds: [(MemoryLevel, PressureThreshold)] {
        [(.warning, warningPressure), (.critical, criticalPressure)].compactMap { level, threshold in
            threshold.map { (level, $0) }
        }
    }
}

/// How notices of the app are shown, `Notices=`, in UIKit's words (L14, L55).
package enum NoticeStyle: String, CaseIterable, Sendable {
    /// Beside the apps in front: no interruption.
    case banner
    /// Over them: an interruption as long as it is shown.
    case alert
    /// Not at all.
    case none
}
