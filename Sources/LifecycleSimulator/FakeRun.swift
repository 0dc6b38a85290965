import LifecycleCore

/// The actual state of one run, which the core may not know yet.
struct FakeRun {
    enum Program {
        /// The process does not exist yet.
        case notCreated
        /// The process exists; `execve` is still to come.
        case created
        case running
        /// The main process has ended or was never created.
        case ended
    }

    enum Freezer { case thawed, freezing, frozen }

    /// Whether a process outside the daemon has continued the frozen run.
    enum FreezeLoss {
        case none
        /// The core does not know it yet.
        case undelivered
        /// The core knows it, and has not asked to freeze or thaw the run since.
        case delivered
    }

    /// The events of this run that the core has received.
    struct Delivered {
        var hasExited = false
        var isEmptied = false
        var hasFailed = false
        var isOver: Bool { hasFailed || (hasExited && isEmptied) }
        var isEnding: Bool { hasFailed || hasExited || isEmptied }
    }

    let id: RunID
    /// The index in `World.apps`.
    let app: Int
    let pid: Int32
    let launch: Launch
    let isAware: Bool
    /// How the program becomes ready: a manifest that changes later does not change it.
    let readiness: AppPolicy.Readiness

    var program = Program.notCreated
    /// The number of processes other than the main process.
    var children = 0
    /// Its processes, if the main process has ended.
    var remaining: RemainingProcesses? {
        children > 0 ? RemainingProcesses(count: children, names: ["child"]) : nil
    }
    var isEmpty = false
    var freezer = Freezer.thawed
    /// Whether the last `.freeze` was not followed by a `.thaw`.
    var isAskedToFreeze = false
    var attempt = 0
    /// Whether the freeze in progress never completes, because a process is in uninterruptible sleep. The others are frozen.
    var isFreezeStuck = false
    var freezeLoss = FreezeLoss.none
    /// SIGSTOP.
    var isStopped = false
    /// The end of an uninterruptible sleep, in which neither SIGKILL nor the freezer has an effect.
    var blockedUntil: Microseconds = 0
    var killedAt: Microseconds?
    /// Whether SIGTERM came before `execve`: no handler catches it.
    var isNotifiedBeforeExec = false
    var isThrottled = false
    /// The rank of its processes for the kernel's OOM killer.
    var oomClass = OOMClass.active
    /// The kernel's OOM killer ended it.
    var isKilledByKernel = false
    /// Whether the main process is the child of another process: the kernel does not report its exit status.
    var isMainProcessAdopted = false
    var memory: UInt64 = 0
    /// The estimate of its size at the last freeze; `nil`: it was exact.
    var estimate: UInt64?
    /// What it uses of the processors (L44).
    var processor = RunProcessor()
    var delivered = Delivered()

    /// The time for which it was frozen before `frozenSince`.
    var frozenTime: Microseconds = 0
    var frozenSince: Microseconds?

    // MARK: A launch that computes

    /// The processor time that it still needs, has used, and was ready to use and did not get.
    var workLeft: Microseconds = 0
    var used: Microseconds = 0
    var waited: Microseconds = 0

    // MARK: The state of the app

    var openTasks: [String] = []
    /// A daemon has died with messages of it that it had not handled.
    var hasLostMessages = false
    var tasksBegun = 0
    /// Tasks that it does not end by itself.
    var exports: [String] = []
    /// The numbers of pushes that it received and has not completed.
    var pushes: [UInt64] = []
    /// By the number of a wake that it has completed: when.
    var completed: [UInt64: Microseconds] = [:]
    /// The numbers of pushes that could not be written to its inbox.
    var unread: Set<UInt64> = []
    /// A push could not be written to its inbox.
    var hasUnread = false
    var isBackgroundAnswerDue = false
    var isTerminateAnswerDue = false
    var isReady = false
    var isInForeground = false
    /// Actions that wait until it runs again.
    var deferred: [AppAction] = []
    /// When the last message, stop or exit is reported. What the app did before an inspection is reported before it.
    var lastMessage: Microseconds = 0
    /// By kind of deadline: when the app last did what meets it, whenever that is reported.
    var answers = [Microseconds?](repeating: nil, count: DeadlineKind.allCases.count)
    /// When the outcome of the last inspection comes.
    var lastInspection: Microseconds = 0
    /// How many inspections have no outcome yet.
    var pendingInspections = 0
    /// The number of inspections that still find a debugger.
    var tracedInspectionsLeft = 0

    /// The number of the last hook that was started; 0: none was.
    var lastHook = 0

    var canRun: Bool { program == .running && !isFrozen && !isStopped }
    private var isFrozen: Bool { freezer == .frozen || (freezer == .freezing && isFreezeStuck) }

    /// The total time for which it has been frozen.
    func frozenTime(at now: Microseconds) -> Microseconds {
        frozenTime + (frozenSince.map { now - $0 } ?? 0)
    }
}

/// An action of an app.
enum AppAction {
    case ready
    case answerBackground
    case stop
    case end(ExitStatus)
    case exitOnTerminate
    case begin(Int)
    case endTask
    case endAllTasks
    case extend(Microseconds)
    case heartbeat
    case completeWake(WakeResult)
    case actSpontaneously
    case send(Event)
    case readInput
    case accept
    case answerRequests
    case unlockFile
    case beginMode(BackgroundModes, for: Microseconds)
    case endMode(BackgroundModes)

    /// Whether it follows from what peers do: its times come from their random stream.
    var isForPeers: Bool {
        switch self {
        case .readInput, .accept, .answerRequests, .unlockFile: true
        case .ready, .answerBackground, .stop, .end, .exitOnTerminate, .begin, .endTask, .endAllTasks, .extend,
            .heartbeat, .completeWake, .actSpontaneously, .send, .beginMode, .endMode:
            false
        }
    }
}

/// An action of the kernel on a run.
enum KernelAction {
    case create
    case exec
    case freezeCompletes(attempt: Int)
    /// A process outside the daemon sends SIGCONT.
    case continueByOthers(attempt: Int)
    case die(ExitStatus)
    /// SIGKILL by the kernel's OOM killer.
    case outOfMemory
    /// SIGKILL takes effect on the whole cgroup.
    case killArrives
    case childrenEnd
    /// Nothing more is pushed out of it (L37).
    case reclaimEnds(attempt: Int, bytes: UInt64)
    /// The daemon has the duplicates of its descriptors, and looks at them.
    case watchOpens(attempt: Int)
    /// The daemon looks at a descriptor again.
    case reportInput(attempt: Int, descriptor: Int32)
    case flood(left: Int)
    case pester(attempt: Int)
    case peerCloses
    /// A peer reads, and a blocked write can end.
    case peerReads(request: Int)
    /// The daemon looks at some more of many descriptors.
    case reportBurst(attempt: Int, next: Int32)
}
