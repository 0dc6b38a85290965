package import Systemd

/// An event, as the signal `LifecycleEvent` and `greenroomctl watch` report it.
package struct LifecycleEvent: Record {
    /// The kinds of events. A daemon of another version may have more kinds, so `kind` is a string.
    package enum Kind: String, CaseIterable, Sendable {
        case stateChanged
        case deadlineStarted, deadlineExtended, deadlineMet, deadlineCancelled, deadlineMissed, deadlineDeferred
        case taskBegan, taskEnded, taskRefused, tasksExpiring, taskProgress
        case modeBegan, modeEnded, sceneChanged
        case freezeTakesLong, killTakesLong, stoppedItself, wakeCompleted, relaunchScheduled
        case backgroundTimeUsedUp, memoryAwaited
        case inputArrived, inputNotWatched, wokenTooOften, locksHeld
        case cpuUseHigh, cpuThrottled, cpuThrottleEnded
        case connectionsRejected
        case wouldSuspend, wouldResume
        case hookFailed, hookKilled, suspensionRefused
        case memoryLevelChanged, memoryReclaimed, ended
    }

    /// Its number; it increases until the machine is booted again, also over restarts of the daemon. `nil` from a daemon before 0.3.0.
    package var serial: UInt64?
    package var time = Timestamp(microseconds: 0)
    /// The same in microseconds of CLOCK_MONOTONIC, for the time between two events: a step of the system clock does not change it.
    /// `nil` from a daemon before 0.3.0.
    package var monotonic: UInt64?
    /// A `Kind`.
    package var kind = ""
    /// The sentence of the log.
    package var message = ""
    /// As in syslog(3): 4 is a warning, 7 is for debugging.
    package var priority: Int32 = 6
    package var app: String?
    /// The app's new state, or the one in which it ended.
    package var state: String?
    package var previousState: String?
    /// How long the step took that ended with this state: the freeze of a suspended app, or the end of an app that was killed, from
    /// SIGKILL until no process of it was left.
    package var took: Duration?
    /// Why the state or the memory level changed, a task expires, or one ended (`cancelled`): one word.
    package var reason: String?
    package var deadline: DeadlineStatus?
    /// Background tasks, with their names, and in `taskProgress` their progress.
    package var tasks: [TaskStatus] = []
    /// The background mode that began or ended (L28).
    package var mode: String?
    /// The scene that changed, and its new state: `unattached`, `background`, `foregroundInactive` or `foregroundActive` (L34).
    package var scene: String?
    package var sceneState: String?
    /// The number of the wake that was completed, or whose deadline it is.
    package var wake: UInt64?
    /// The input that woke the app (L50).
    package var input: InputStatus?
    /// What is watched, and what is not (L50).
    package var watch: WatchStatus?
    /// How long the app stays awake because it was woken too often.
    package var staysAwake: Duration?
    /// A file that the app holds a lock on (L43).
    package var file: String?
    /// How many locks it holds.
    package var locks: UInt64?
    /// The processor time that the app used in the background (L44).
    package var cpu: Duration?
    /// The time in which it used that. For an app with `Suspend=dry-run`: how long it would have slept (L58).
    package var within: Duration?
    /// The setting of the hook, without the equals sign.
    package var hook: String?
    /// The result of a wake: `new-data`, `no-data` or `failed`.
    package var result: String?
    /// Until the app is launched again.
    package var relaunch: Duration?
    /// Early ends in a row (L11).
    package var earlyEnds: UInt64?
    /// How much memory the app waits for, in bytes.
    package var memory: UInt64?
    /// The memory level: `normal`, `warning` or `critical`.
    package var level: String?
    package var namespace: String?
    package var code: String?
    package var receipt: UInt64?
    /// The exit status, of a main process or a hook that exited.
    package var exitStatus: Int32?
    /// The number of the signal, of a main process or a hook that a signal ended.
    package var signal: Int32?
    package var coreDumped: Bool?

    package init() {}

    package init(_ kind: Kind, app: String? = nil) {
        self.kind = kind.rawValue
        self.app = app
    }

    /// Whether a signal of the manager is an event.
    package static func isEvent(_ signal: BusSignal) -> Bool {
        signal.interface == ControlNames.managerInterface && signal.member == ControlNames.lifecycleEventSignal
    }

    package static let fields: [RecordField<LifecycleEvent>] = [
        .optional("serial", \.serial), .required("time", \.time), .optional("timeMonotonic", \.monotonic),
        .required("kind", \.kind),
        .required("message", \.message),
        .required("priority", \.priority), .optional("app", \.app), .optional("state", \.state),
        .optional("previousState", \.previousState), .optional("tookSeconds", \.took), .optional("reason", \.reason),
        .optional("deadline", \.deadline),
        .list("tasks", \.tasks), .optional("mode", \.mode), .optional("scene", \.scene),
        .optional("sceneState", \.sceneState), .optional("wakeId", \.wake), .optional("input", \.input),
        .optional("watch", \.watch), .optional("staysAwakeSeconds", \.staysAwake), .optional("file", \.file),
        .optional("locks", \.locks), .optional("cpuSeconds", \.cpu), .optional("withinSeconds", \.within),
        .optional("hook", \.hook), .optional("result", \.result),
        .optional("relaunchSeconds", \.relaunch),
        .optional("earlyEnds", \.earlyEnds), .optional("memoryBytes", \.memory), .optional("level", \.level),
        .optional("namespace", \.namespace),
        .optional("code", \.code), .optional("receipt", \.receipt),
        .optional("exitStatus", \.exitStatus), .optional("signal", \.signal), .optional("coreDumped", \.coreDumped),
    ]
}
