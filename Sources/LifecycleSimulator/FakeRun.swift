import LifecycleCore

/// One run of one app as it really is, whatever the core has heard of it so far.
struct FakeRun {
    enum Program {
        /// Asked for; no process yet.
        case unborn
        /// A process that has not executed its program.
        case born
        case running
        /// The main process has ended, or never came to be.
        case ended
    }

    enum Freezer { case thawed, freezing, frozen }

    /// What the core was told of this run.
    struct Reported {
        var hasExited = false
        var isEmptied = false
        var hasFailed = false
        var isOver: Bool { hasFailed || (hasExited && isEmptied) }
        var isEnding: Bool { hasFailed || hasExited || isEmptied }
    }

    let id: RunID
    /// Its place in `World.apps`.
    let app: Int
    let pid: Int32
    let launch: Launch
    let isAware: Bool

    var program = Program.unborn
    /// Processes other than the main one.
    var children = 0
    var isEmpty = false
    var freezer = Freezer.thawed
    /// The core's latest `.freeze` was not followed by a `.thaw`.
    var isAskedToFreeze = false
    var attempt = 0
    /// The freeze under way will never be complete.
    var isFreezeStuck = false
    /// SIGSTOP.
    var isStopped = false
    /// Neither SIGKILL nor the freezer gets through before this (D state).
    var blockedUntil: Microseconds = 0
    var killedAt: Microseconds?
    /// SIGTERM came between the process and its program: nothing catches it.
    var isToldBeforeExec = false
    var isThrottled = false
    /// Its main process is another's child: how it ends nobody hears.
    var isMainAdopted = false
    var memory: UInt64 = 0
    var reported = Reported()

    /// For how long it has been frozen, up to `frozenSince`.
    var frozenTime: Microseconds = 0
    var frozenSince: Microseconds?

    // MARK: What goes on in its head

    var openTasks: [String] = []
    var tasksBegun = 0
    var owesBackground = false
    var owesTerminate = false
    var isReady = false
    var isInForeground = false
    /// What it will do as soon as it runs again.
    var deferred: [AppAct] = []
    /// Messages on one socket arrive in the order in which they were sent.
    var lastMessage: Microseconds = 0
    /// How many more looks will find a debugger.
    var tracesLeft = 0

    var canRun: Bool { program == .running && freezer != .frozen && !isStopped }

    /// For how long it has been frozen in all.
    func frozenTime(at now: Microseconds) -> Microseconds {
        frozenTime + (frozenSince.map { now - $0 } ?? 0)
    }
}

/// What an app does.
enum AppAct {
    case ready
    case answerBackground
    case stop
    case end(ExitStatus)
    case obeyTerminate
    case begin(Int)
    case endTask
    case endAllTasks
    case extend(Microseconds)
    case heartbeat
    case completeWake(WakeResult)
    case whim
    case say(Event)
}

/// What happens to a run in the kernel.
enum KernelAct {
    case birth
    case exec
    case freezeCompletes(attempt: Int)
    case die(ExitStatus)
    /// SIGKILL arrives at the whole group.
    case killArrives
    case childrenEnd
}
