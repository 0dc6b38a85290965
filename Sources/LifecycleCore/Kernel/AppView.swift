/// One app as `status` shows it. Remaining times are counted from the instant of asking.
package struct AppView: Hashable, Sendable {
    package struct Task: Hashable, Sendable {
        package var name: String
        package var age: Duration
        /// Until it is over; `nil`: unlimited (L24).
        package var remaining: Duration?
        /// The pid that began it; 0: the daemon began it for `EXTEND_TIMEOUT_USEC=`.
        package var owner: Int32
        /// What the app has reported of it; `nil`: nothing.
        package var progress: TaskProgress?
        /// It runs for as long as it advances (L21).
        package var isContinued = false
        /// A user has cancelled it.
        package var isCancelled = false
        /// The app was notified that it expires.
        package var isExpiring = false
    }
    /// An open wake (L26).
    package struct Wake: Hashable, Sendable {
        /// The number that names it; 0: it has none.
        package var id: UInt64
        package var reason: LaunchReason
        package var remaining: Duration
    }
    /// A reason to be awake.
    package struct Awake: Hashable, Sendable {
        package var reason: AwakeReason
        /// For `work`: which thread does what; empty: not known.
        package var detail = ""
        /// Since when; `nil`: not known.
        package var since: Instant?
    }
    /// A wake that waits until the app has background time again (L53).
    package struct DeferredWake: Hashable, Sendable {
        /// What wakes it; `nil`: not known.
        package var input: Input?
        package var remaining: Duration
    }
    /// A scene (L34).
    package struct Scene: Hashable, Sendable {
        package var id: SceneID
        package var role: SceneRole
        package var state: SceneState
    }
    package struct Deadline: Hashable, Sendable {
        package var what: DeadlineKind
        package var remaining: Duration
    }

    package var id: AppID
    package var state: AppState
    package var run: RunID?
    package var pid: Int32?
    /// When the state was entered.
    package var since: Instant
    /// The last known size in bytes.
    package var memory: UInt64
    package var tasks: [Task]
    /// The modes that it is in, because it asserts them or sources show them (L28).
    package var modes: BackgroundModes = []
    /// What sources show of it, whether its manifest declares that or not.
    package var shownModes: BackgroundModes = []
    /// What it asserts and does not use: these do not keep it awake.
    package var unusedModes: BackgroundModes = []
    /// What processes of it inhibit with logind, and why.
    package var inhibitor: String?
    package var deadline: Deadline?
    /// Those that outlived their process first, then the one activated last at the end. Empty: `main` alone, in the state of the app, or
    /// none (L34).
    package var ownScenes: [Scene] = []
    /// L24: what is left of the background budget; `nil`: unlimited.
    package var backgroundTimeRemaining: Duration?
    /// In the foreground, or on the way there.
    package var isForeground: Bool
    package var interruptions: Int
    package var launches: Int
    package var lastReceipt: UInt64?
    /// L11: until it may be launched again by other than a user.
    package var launchPostponed: Duration?
    /// L52: for how long its launch has waited for others; `nil`: no launch waits.
    package var launchWaiting: Duration?
    /// Until it is launched again without a request; `nil`: it is not, or waits for something else.
    package var relaunchesIn: Duration?
    /// After jetsam: how many bytes of memory it waits for to come back; `nil`: it does not wait.
    package var memoryAwaited: UInt64?
    /// L53: background time in the last hour that no user asked for.
    package var unrequestedTime: Duration
    /// L53: the limit of that time; `nil`: unlimited.
    package var unrequestedTimeLimit: Duration?
    /// Why it is awake; empty: it is not.
    package var awake: [Awake]
    /// The wakes that are open, oldest first.
    package var wakes: [Wake]
    /// L50: how often input woke this run.
    package var trafficWakes = 0
    /// L50: what woke it last, and when.
    package var lastInput: Input?
    package var lastInputAt: Instant?
    /// L50: while it is suspended: what is watched; of an app that is left awake because nothing can be watched: what cannot;
    /// `nil`: nothing.
    package var watch: InputWatch?
    /// L7: while it launches with `Type=listening`: the daemon cannot see whether it listens.
    package var hiddenSockets: HiddenSockets?
    /// L43: the file locks that it was suspended with, after they had kept it awake for their time.
    package var heldLocks: FileLocks?
    /// L53: while it is suspended: a wake that it has no background time for.
    package var deferredWake: DeferredWake?
    /// L51: when it is suspended unless it works, while it is idle.
    package var suspendsIn: Duration?
    /// L51: its threads wait in ticks, which pass unnoticed while it is suspended: the shortest.
    package var shortestWait: Duration?
    /// L51: until its next timer is due; `nil`: it has none, or it is not known.
    package var timerIn: Duration?
    /// L51: while it is suspended: until it runs for a moment because it has ticks.
    package var pulseIn: Duration?
    /// L51: while it is suspended: nothing but a request wakes it.
    package var onlyRequestsWake = false
    /// L51: that was so since its launch.
    package var hadNoWaker = false
    /// L44: it used so much processor time in the background that it gets less; `nil`: it gets what it needs.
    package var processorExcess: BackgroundUse?
    /// L44: since when it gets less.
    package var throttledSince: Instant?

    /// L58: while it would be suspended: what it has done since then; `nil`: it would not.
    package var dryRun: DryRunResult?

    /// L29: for how long connections have waited for a launch that L11 holds back; `nil`: none waits.
    package var connectionsWaiting: Duration?
    /// While it is suspended: until it is ended to give its memory back (`UnloadAfterSec=`); `nil`: it is not.
    package var unloadsIn: Duration?
    /// Why the app was notified that it terminates; `nil`: it was not.
    package var terminationReason: StateReason?
    /// It is an instance of a template without a file of its own.
    package var isTransient = false

    /// The scene that shows what the app is asked for; `nil`: it has `main` alone.
    package var mostActiveScene: Scene? {
        let windows = ownScenes.filter { $0.role == .window }
        return windows.last { $0.state >= .foregroundInactive } ?? windows.last { $0.state != .unattached }
            ?? windows.last ?? ownScenes.last
    }

    /// The scene `main` of an app that runs and has no other; `nil`: it does not run.
    package var mainScene: Scene? { state.sceneState.map { Scene(id: .main, role: .window, state: $0) } }

    /// Why it is awake; empty: it is not.
    package var awakeReasons: [AwakeReason] { awake.map(\.reason) }
}

/// Why an app is awake.
package enum AwakeReason: Hashable, Sendable {
    case launching, foreground
    /// It has not answered `didEnterBackground` yet.
    case enteringBackground
    case task(name: String)
    /// The app asserts a mode, or a source outside the program shows it (L28).
    case mode(BackgroundModes, isShown: Bool)
    /// A process of it holds an inhibitor of logind. What it inhibits, and why.
    case inhibitor(String)
    case wake(LaunchReason)
    /// A hook runs (L57).
    case hook(HookKind)
    /// It starts up: it neither listens nor is idle, and `StartupSec=` is not over.
    case startUp
    /// It has something to do (L51).
    case work(WorkReason)
    /// It was woken soon after each of its last suspensions.
    case wokenTooOften
    /// Its descriptors cannot be watched: suspended, nothing would reach it (L50).
    case notWatchable
    /// It holds a file lock (L43).
    case fileLock(String)
    /// It holds what its manifest says that it lets go of (L43).
    case resource(String)
    /// `SuspendDelaySec=` has not passed since its last assertion ended, or `IdleSec=` since it was last at work.
    case suspendDelay
    /// Its manifest says that it is not suspended.
    case neverSuspended
    /// It would be suspended (L58).
    case dryRun
    /// The freeze is under way.
    case suspending
    /// The thaw is under way.
    case waking
    case terminating
}

/// The memory state as `pressure` shows it, in bytes.
package struct MemoryView: Hashable, Sendable {
    package var level: MemoryLevel
    package var cause: MemoryCause?
    package var total: UInt64
    package var available: UInt64
    package var apps: UInt64
    package var budget: UInt64?
    /// The tightest limit that was read last; `nil`: none below the machine's memory.
    package var limit: MemoryReading.Limit?
    /// The available memory below which the level rises next, of the machine or, if that has less left, of the limit.
    package var threshold: UInt64 = 0
    /// The apps that jetsam would kill next, in its order, with what each gives back; at most `Receipt.maximumCandidates`.
    package var candidates: [Receipt.Candidate] = []
}
