/// Whether an app has a process. What only exists with a process is in `Run`, and what only exists while the process is not
/// ending is in `Execution`, so that neither can outlive the process.
///
///                    launch                exit, kill
///     notRunning ───────────────▶ running ────────────▶ ending
///         ▲                                                │
///         └──────────── no process of the run is left ─────┘
///
/// iOS has no `ending`: an app there is one process. Here the run is over when its cgroup is empty (L47).
enum ProcessLife: Hashable, Sendable {
    case notRunning(NotRunning)
    /// The process exists, or is about to be created.
    case running(Running)
    /// The run was killed, or its main process exited. Some of its processes may be left.
    indirect case ending(Ending)
}

/// The storage of a run on the heap, so that a life is small to copy and the run is changed in place as long as no copy shares
/// it. Callers reach the run through this reference: an accessor that yields a value of this size would allocate a frame at
/// each access.
class RunStorage: Hashable, @unchecked Sendable {
    // Sendable, because storage that is shared is never changed. For the same reason overlapping accesses to it need no check
    // at run time: the compiler checks those to the structs that own it.
    @exclusivity(unchecked) final var run: Run

    init(_ run: Run) { self.run = run }

    /// Whether something keeps the run awake in the background. Not of `Run`, whose computed properties get a copy of all of it.
    final var isHeldAwake: Bool {
        !run.assertions.isEmpty || run.startUp != nil || !run.modes.isEmpty || run.hooks?.holdAwake ?? false
    }

    /// Whether this estimate of the size is recorded already.
    final func hasEstimate(_ bytes: UInt64, doubt: UInt64) -> Bool {
        run.size.hasEstimate(bytes, doubt: doubt) && run.memory == run.size.bytes && run.peakMemory >= run.memory
    }

    static func == (a: RunStorage, b: RunStorage) -> Bool { a === b || a.run == b.run }
    func hash(into hasher: inout Hasher) { hasher.combine(run) }
}

/// A run and what it does. A value like any other.
struct Running: Hashable, Sendable {
    private final class Storage: RunStorage, @unchecked Sendable {
        @exclusivity(unchecked) var execution: Execution

        init(run: Run, execution: Execution) {
            self.execution = execution
            super.init(run)
        }
    }
    private var storage: Storage

    init(run: Run, execution: Execution) { storage = Storage(run: run, execution: execution) }

    var run: Run {
        @inline(__always) _read { yield storage.run }
        @inline(__always) _modify {
            copyIfShared()
            yield &storage.run
        }
    }

    var execution: Execution {
        @inline(__always) _read { yield storage.execution }
        _modify {
            copyIfShared()
            yield &storage.execution
        }
    }

    /// The storage of the run, which no other value shares.
    mutating func ownStorage() -> RunStorage {
        copyIfShared()
        return storage
    }

    /// The storage of the run, to read some of its parts without a copy of all.
    var sharedStorage: RunStorage { storage }

    private mutating func copyIfShared() {
        if isKnownUniquelyReferenced(&storage) { return }
        storage = Storage(run: storage.run, execution: storage.execution)
    }

    static func == (a: Running, b: Running) -> Bool {
        a.storage === b.storage || a.run == b.run && a.execution == b.execution
    }

    func hash(into hasher: inout Hasher) {
        hasher.combine(run)
        hasher.combine(execution)
    }
}

struct NotRunning: Hashable, Sendable {
    /// A launch that the daemon does by itself (`Relaunch=`, L11).
    struct Relaunch: Hashable, Sendable {
        var at: Instant
        var state: LaunchState
    }
    /// On the heap, so that a life is small to copy.
    private enum Waiting: Hashable, Sendable {
        case nothing
        indirect case launch(QueuedLaunch)
        indirect case memory(MemoryWait)
    }

    var relaunch: Relaunch?
    private var waiting = Waiting.nothing

    init(relaunch: Relaunch? = nil, queued: QueuedLaunch? = nil, memoryWait: MemoryWait? = nil) {
        self.relaunch = relaunch
        if let memoryWait { self.memoryWait = memoryWait } else { self.queued = queued }
    }

    /// The launch that waits for a slot (L52). Then no relaunch is scheduled.
    var queued: QueuedLaunch? {
        get { if case .launch(let queued) = waiting { queued } else { nil } }
        set { waiting = newValue.map { .launch($0) } ?? .nothing }
    }

    /// The wait for space after jetsam. Then no relaunch is scheduled, and no launch waits for a slot.
    var memoryWait: MemoryWait? {
        get { if case .memory(let wait) = waiting { wait } else { nil } }
        set { waiting = newValue.map { .memory($0) } ?? .nothing }
    }

    /// Whether the app is launched later without a further request.
    var isToLaunch: Bool { relaunch != nil || waiting != .nothing }
}

/// One run of an app, from the launch until its cgroup is empty.
struct Run: Hashable, Sendable {
    var id: RunID
    var created: Instant
    /// The main process.
    var pid: Int32?
    /// `execve` succeeded. Reported once, by this daemon or the previous one.
    var isExecuted = false
    /// The last known size in bytes: `size.bytes`.
    var memory: UInt64 = 0
    var size = SizeRecord()
    /// The largest size that was measured, in bytes.
    var peakMemory: UInt64 = 0
    /// The size when the app was notified of its end, in bytes: while it ends it becomes smaller. 0: it was not notified, or
    /// not measured.
    var memoryBeforeEnd: UInt64 = 0
    /// Why it may run in the background.
    var assertions = AssertionList()
    /// What it does in the background for as long as it lasts (L28).
    var modes: [HeldMode] = [] { didSet { modeSet = HeldMode.set(modes) } }
    /// The modes among them: they are asked for at each event.
    private(set) var modeSet: BackgroundModes = []
    /// What sources outside the program show of it, whether its manifest declares that or not.
    var shownModes: BackgroundModes = []
    /// What it asserts and does not use: these are not among `modes`.
    var unusedModes: BackgroundModes = []
    var budget = BackgroundBudget.idle
    /// Interruptions that have begun and not ended. They nest (L13).
    var interruptions = 0
    /// Those among them that end with the connection of their requester, oldest first.
    var tiedInterruptions: [RequestID] = []
    /// A user asked for its end, and for nothing else since. It is not relaunched.
    var isTerminationRequested = false
    /// The main process stopped itself and was not continued.
    var isStopped = false
    var isThrottled = false
    /// Counts freezes, so that a late outcome of an earlier freeze is recognized.
    var freezeAttempt = 0
    /// Processor time that the run had used at its last notice with a deadline.
    var cpuAtLastNotice: Duration = .zero
    /// It starts up, and is not suspended meanwhile.
    @Rare var startUp: StartUp? = nil
    /// It takes part: it was notified that it is in the background, or said so itself. So it saves what it has before it is
    /// suspended (L46).
    var takesPart = false
    /// What its connections handle.
    var handled: HandledNotices = []
    /// When its last freeze began, until it is thawed.
    var sleptSince: Instant?
    /// When the app said that it has nothing to do until something arrives; `nil`: it did not, or something has arrived.
    @Rare var idleHint: Instant? = nil
    /// `WATCHDOG_USEC=`: counts instead of `WatchdogSec=`; zero: no heartbeat is expected; `nil`: the app has said nothing.
    @Rare var heartbeatTime: Duration? = nil
    /// What the app does in the background now is not what a user asked for (L53). The next request of a user changes that.
    var isUnrequested = false
    /// Why the kernel killed it; `nil`: it did not.
    var outOfMemory: OutOfMemory?
    @OnDemand var traffic = Traffic()
    /// File locks keep it from being suspended, or did not keep it for longer (L43).
    @Rare var lockHold: LockHold? = nil
    var hasLockHold: Bool { _lockHold.isPresent }
    /// A snapshot was asked for: until then it is not suspended without it (L18).
    @Rare var snapshotDue: Instant? = nil
    /// The scenes that were asked for their snapshots (L34); `nil`: none was, or all have given them.
    @Rare var sceneSnapshots: SceneSnapshots? = nil
    /// It was asked to withdraw what it advertises (L43); `nil`: it was not, or has run again since.
    @Rare var withdrawal: Withdrawal? = nil
    /// What it uses of the processors in the background (L44).
    var processor = ProcessorWatch()
    /// It is watched whether it uses a GPU (L43).
    var isGPUWatched = false
    /// `nil`: none has run, and the app did not sleep, as its hooks see it (L57).
    @Rare var hooks: Hooks? = nil
    var hasHooks: Bool { _hooks.isPresent }
    /// Its scenes, the one activated last at the end; `nil`: `main` alone, in the state of the app (L34).
    @Rare var scenes: [Scene]? = nil
    var hasScenes: Bool { _scenes.isPresent }

    init(id: RunID, created: Instant) {
        self.id = id
        self.created = created
    }
}
