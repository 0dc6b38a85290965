/// What an app's manifest says about its lifecycle: the part that the core decides by. `nil` durations and sizes are
/// `infinity`.
package struct AppPolicy: Hashable, Sendable {
    /// When an app has finished launching.
    package enum Readiness: CaseIterable, Hashable, Sendable {
        /// Ready when executed (`Type=simple`, `Type=exec`).
        case executed
        /// Ready when it sends `READY=1` (`Type=notify`).
        case notified
        /// Ready when the first process has exited and the process that `PIDFile=` names is the main process
        /// (`Type=forking`).
        case forked
        /// Ready when a process of the run listens on a socket (`Type=listening`).
        case listening
    }

    /// What an app is for (L49).
    package enum Role: String, CaseIterable, Hashable, Sendable {
        case app
        /// It comes to the foreground when no other app is there.
        case home
        /// It never comes to the foreground: it is awake while it works, and suspended when it is idle.
        case worker
    }

    /// What keeps an app awake that measures idleness (L51).
    package struct KeepAwake: OptionSet, Hashable, Sendable {
        package let rawValue: UInt8
        package init(rawValue: UInt8) { self.rawValue = rawValue }
        /// It uses the processor.
        package static let cpu = Self(rawValue: 1)
        /// Requests without their answers, and waits that it does not do at rest.
        package static let requests = Self(rawValue: 2)
        /// A thread waits with a timeout of up to 60 s.
        package static let timers = Self(rawValue: 4)
        /// A client is connected.
        package static let connections = Self(rawValue: 8)

        package static let named: [(name: String, value: KeepAwake)] = [
            ("cpu", .cpu), ("requests", .requests), ("timers", .timers), ("connections", .connections),
        ]
    }

    /// How much input wakes a suspended app (L50).
    package struct WakeThreshold: Hashable, Sendable {
        /// So many bytes at one descriptor. A connection that waits counts as more.
        package var bytes: UInt64 = 1
        /// After this time anything that arrived wakes it; `nil`: never.
        package var time: Duration?

        package init(bytes: UInt64 = 1, time: Duration? = nil) {
            self.bytes = bytes
            self.time = time
        }
    }

    /// Whether an app is relaunched after its end (within the limits of L11).
    package enum Relaunch: CaseIterable, Hashable, Sendable { case no, onFailure, always }

    /// Which processes get the signal to terminate (systemd.kill(5)). At the end of the deadline, and when the main process
    /// has exited, all processes of the run get SIGKILL in any case (L47).
    package enum KillMode: String, CaseIterable, Hashable, Sendable {
        /// All. After the main process has exited in time, the others have the rest of the deadline.
        case controlGroup = "control-group"
        /// The main process.
        case mixed
        /// The main process. systemd leaves the others running; here it is the same as `mixed`.
        case process
    }

    /// How a suspended app is terminated, on request and in an orderly shutdown (L46).
    package enum TerminateSuspended: String, CaseIterable, Hashable, Sendable {
        /// Without notice, if the app was notified that it is in the background: it has saved what it has.
        case auto
        /// It is thawed, notified, and has its terminate deadline.
        case notify
        /// Without notice.
        case kill
    }

    /// `Suspend=`.
    package enum Suspension: String, CaseIterable, Hashable, Sendable {
        case yes, no
        /// L58: it is measured and reported when it would be suspended.
        case dryRun = "dry-run"
    }

    /// `ReclaimOnSuspend=`.
    package enum Reclaim: String, CaseIterable, Hashable, Sendable {
        /// Where less than half of the memory is available.
        case automatic = "auto"
        case yes
        /// Only while memory is short.
        case no
    }

    package var readiness: Readiness = .executed
    /// `LaunchAtStart=`; `nil`: no.
    package var launchAtStart: LaunchState?
    package var relaunch: Relaunch = .no
    package var role = Role.app

    /// L7: from process creation to ready.
    package var launchDeadline: Duration? = .seconds(5)
    /// L16: from the notice `didEnterBackground` to its answer.
    package var backgroundDeadline: Duration? = .seconds(5)
    /// L46: from SIGTERM to SIGKILL.
    package var terminateDeadline: Duration? = .seconds(5)
    /// L46.
    package var killMode = KillMode.controlGroup
    /// L46.
    package var terminateSuspended = TerminateSuspended.auto
    /// L25: how long all `EXTEND_TIMEOUT_USEC=` together may make a deadline, counted from its start.
    package var extendedDeadlineMax: Duration? = .seconds(60)
    /// L21: the app's budget for one stay in the background.
    package var backgroundTime: Duration? = .seconds(30)
    /// L21: for how long a continued task may make no progress; zero: no task is continued.
    package var taskProgressTime: Duration? = .seconds(30)
    /// L53: how much background time that no user asked for the app has in any hour.
    package var backgroundTimePerHour: Duration? = .seconds(600)
    /// L22: how long before the end of the budget the expiration handlers are called.
    package var expirationNotice: Duration = .seconds(5)
    /// L18: from the end of the last assertion to the suspension.
    package var suspendDelay: Duration = .seconds(1)
    /// L18: for how long a program that takes no part is not suspended while it starts up; zero: it is suspended like any
    /// other.
    package var startUpTime: Duration? = .zero
    /// Heartbeat in the foreground (`WATCHDOG=1`).
    package var watchdog: Duration?
    package var suspension = Suspension.yes
    /// Others depend on it while it runs, as the programs of a display do: it is not suspended, no shortage of memory kills it, and a
    /// shutdown ends it after the others (`Essential=`; L18, L38, L46).
    package var isEssential = false
    /// L20: ended instead of suspended.
    package var exitsOnSuspend = false
    /// L15: it is notified when data that it cannot read while the user is away becomes unavailable and available.
    package var usesProtectedData = false
    /// L18: no snapshot is asked for, and none is given to clients (`SnapshotPrivacy=hidden`).
    package var hidesSnapshot = false
    package var backgroundModes: BackgroundModes = []
    /// L43: an app that takes part and holds a file lock, or what `Releases=` names, stays awake for it, with a bound, and is not killed
    /// (`ReleasesAction=wait`).
    package var waitsForRelease = false
    /// L43: it is killed if it uses a GPU in the background (`BackgroundGPU=no`).
    package var forbidsBackgroundGPU = false
    /// L57: the hooks that have commands. They and their order are the daemon's.
    package var hooks: HookKinds = []

    /// L50: input wakes it while it is suspended (`Traffic=`). The manifest decides: by default that of workers does.
    package var wakesOnTraffic = false
    package var wakeThreshold = WakeThreshold()
    /// L51: for how long an app that measures idleness is idle before it is suspended (`IdleSec=`).
    package var idleTime: Duration = .seconds(10)
    package var keepAwake: KeepAwake = [.cpu, .requests]
    /// L51: for how long bytes over an open connection keep an app with ticks awake (`RequestSec=`).
    package var requestTime: Duration = .seconds(90)
    /// L51: how long an app with ticks sleeps at first until it runs for a moment (`PulseSec=`).
    package var pulseTime: Duration = .seconds(20)
    /// L51: a worker is thawed when a timer of 5 s or more is due (`Timers=`).
    package var keepsTimers = true
    /// L51: the share of one processor below which it is idle, in thousandths (`IdleCPU=`).
    package var idleProcessorShare = 10
    /// L44: `BackgroundCPU=`; `nil`: what follows from the role (`backgroundCPUAction`).
    package var backgroundCPU: BackgroundCPU?
    /// L44: how much processor time the app may use in the background, in thousandths of one processor
    /// (`BackgroundCPULimit=`), on average over `backgroundCPUTime` (`BackgroundCPUSec=`).
    package var backgroundCPULimit = 800
    package var backgroundCPUTime: Duration = .seconds(60)

    /// L29: the daemon holds listening sockets for it (`ListenStream=` and similar): a connection launches or wakes it.
    package var holdsSockets = false
    /// For how long a launch that L11 holds back keeps the clients of these sockets waiting (`ConnectionWaitSec=`). Then their
    /// connections are reset. `nil`: they wait until the launch.
    package var connectionWait: Duration? = .seconds(60)
    /// It has timers, or fetches at intervals (L30): the daemon says when they elapse.
    package var hasTimers = false
    /// L33: the kinds of notifications that it wants from the sources of the machine (`Notifications=`).
    package var notifications: NotificationKinds = []
    /// After so long in suspension it is ended, to give all its memory back (`UnloadAfterSec=`); `nil`: never.
    package var unloadAfter: Duration?
    /// It is an instance of a template that has no file of its own: a request has created it. It is removed once nothing is
    /// left of it.
    package var isTransient = false
    /// Its process exists before the launch: a command of `greenroomctl run`, whose caller waits (L54). The launch is admitted at
    /// once, and the end of its input wakes it at once.
    package var isAttached = false

    /// L37: whether what it has is pushed out to swap after it was suspended.
    package var reclaim = Reclaim.automatic
    /// L12: the seat whose foreground slots it uses, as logind names it (`Seat=`); `nil`: `seat0`.
    package var seat: String?
    /// L38: -1000 … 1000, lower goes first.
    package var jetsamPriority = 0
    /// Soft limit while it runs, in bytes: over it, first in L38's order.
    package var memoryHigh: UInt64?
    /// Soft limit while suspended, in bytes.
    package var suspendedMemoryHigh: UInt64?
    /// L41: hard limit while it runs, in bytes: measured over it, it is killed.
    package var memoryMax: UInt64?
    /// L41: hard limit while suspended, in bytes.
    package var suspendedMemoryMax: UInt64?

    package init() {}

    /// `Suspend=` as it takes effect.
    package var effectiveSuspension: Suspension {
        // Inlined: a call copies the policy.
        @inline(__always) get { isEssential ? .no : suspension }
    }

    /// Whether other programs are expected to send requests for it: as clients of its held sockets, or as pushes.
    package var expectsRequests: Bool { holdsSockets || !backgroundModes.isDisjoint(with: [.push, .fetch]) }

    /// Whether nothing but a request wakes it once it is suspended, whatever its program does (L51).
    package var onlyRequestsWake: Bool {
        role == .worker && !wakesOnTraffic && !keepsTimers && !hasTimers && !expectsRequests && !exitsOnSuspend
    }
}

/// The state an app is launched into (L6).
package enum LaunchState: CaseIterable, Hashable, Sendable { case foreground, background }

/// L28. Declared in the manifest.
package struct BackgroundModes: OptionSet, Hashable, Sendable {
    package let rawValue: UInt8
    package init(rawValue: UInt8) { self.rawValue = rawValue }
    package static let audio = Self(rawValue: 1)
    package static let location = Self(rawValue: 2)
    package static let call = Self(rawValue: 4)
    package static let accessory = Self(rawValue: 8)
    package static let fetch = Self(rawValue: 16)
    package static let push = Self(rawValue: 32)
    package static let processing = Self(rawValue: 64)
    package static let recording = Self(rawValue: 128)

    /// The modes by the names that manifests use.
    package static let named: [(name: String, mode: BackgroundModes)] = [
        ("audio", .audio), ("recording", .recording), ("call", .call), ("location", .location),
        ("accessory", .accessory),
        ("fetch", .fetch), ("push", .push), ("processing", .processing),
    ]
}

/// Why an app is launched or woken (L6), as in `GREENROOM_LAUNCH_REASON`.
package enum LaunchReason: String, CaseIterable, Hashable, Sendable {
    case user, url, push, fetch, socket, timer, accessory, location, relaunch
}

/// What `greenroom.conf` says: the part that the core decides by. `nil` is `infinity`, or off.
package struct ManagerPolicy: Hashable, Sendable {
    package enum JetsamOrder: CaseIterable, Hashable, Sendable { case largest, lru, balanced }

    /// L12.
    package var foregroundLimit = 1
    /// L52: how many launches compute at the same time; `nil`: no limit.
    package var launchesAtOnce: Int?
    /// L21: how many continued tasks of all apps run in the background; `nil`: no limit.
    package var continuedTasks: Int? = 4
    /// All apps together, in bytes.
    package var budget: UInt64?
    package var jetsamOrder: JetsamOrder = .largest
    /// L58: no app is suspended, and it is reported when each would be.
    package var isDryRun = false
    /// Available memory below which the level is `warning`; `nil`: a share of all memory, within bounds (`thresholds`).
    package var warningAvailable: MemoryAmount?
    /// Available memory below which the level is `critical`.
    package var criticalAvailable: MemoryAmount?

    package init() {}
}

/// A size in a setting: absolute, or relative to the machine's memory.
package enum MemoryAmount: Hashable, Sendable {
    case bytes(UInt64)
    /// 0 … 100, of all memory.
    case percent(Int)

    package func bytes(of total: UInt64) -> UInt64 {
        switch self {
        case .bytes(let bytes): bytes
        case .percent(let percent): total / 100 * UInt64(max(0, min(100, percent)))
        }
    }
}
