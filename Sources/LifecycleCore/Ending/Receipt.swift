/// Why a process ended (L45).
package struct Receipt: Hashable, Sendable {
    package enum Namespace: String, CaseIterable, Hashable, Sendable {
        case watchdog, lifecycle, user, resource, jetsam, signal, exit
    }

    /// What went wrong, if the app did not end as it should.
    package enum Failure: CaseIterable, Hashable, Sendable {
        /// It exited with a status other than 0, was ended by a signal, or was killed for what it did or failed to do.
        case failed
        /// It ended by a signal whose default action is to dump core.
        case crashed
        /// Its program could not be executed.
        case notLaunched
    }

    /// The codes of the table in docs/RULES.md.
    package enum Code {
        package static let exited: UInt32 = 0
        package static let jetsam: UInt32 = 1
        package static let signal: UInt32 = 2
        /// XNU's number for the jetsam reason `per-process-limit`.
        package static let perProcessLimit: UInt32 = 7
        package static let missedDeadline: UInt32 = 0x8bad_f00d
        package static let leakedTask: UInt32 = 0x2182_bad2
        package static let wakeNotCompleted: UInt32 = 0x2182_bad4
        package static let tooManyTasks: UInt32 = 0xbada_5e47
        package static let heldLock: UInt32 = 0xdead_10cc
        package static let removedByUser: UInt32 = 0xdead_fa11
        package static let backgroundCPU: UInt32 = 0xc51b_ad01
        package static let backgroundGPU: UInt32 = 0xbad6_9000
    }

    /// The deadline that counted at the end, and how much of it was used.
    package struct DeadlineUse: Hashable, Sendable {
        package var what: DeadlineKind
        package var allowed: Duration
        package var wall: Duration
        /// `nil`: it was not measured.
        package var cpu: Duration?
        /// The time without a processor that was added to it (L48).
        package var credited: Duration
        /// Of a launch with `Type=listening`: what could not be examined, so that the daemon may have missed that it listens.
        package var hiddenSockets: HiddenSockets?
        /// Of a launch or background deadline: what was awaited, as the end of a sentence.
        package var obstacle: String?

        package init(
            what: DeadlineKind, allowed: Duration, wall: Duration, cpu: Duration?, credited: Duration = .zero
        ) {
            self.what = what
            self.allowed = allowed
            self.wall = wall
            self.cpu = cpu
            self.credited = credited
        }
    }

    /// An app that jetsam could have killed.
    package struct Candidate: Hashable, Sendable {
        package var app: AppID
        package var state: AppState
        package var memory: UInt64

        package init(app: AppID, state: AppState, memory: UInt64) {
            self.app = app
            self.state = state
            self.memory = memory
        }
    }

    /// Counts up, also over restarts of the daemon.
    package var id: UInt64
    package var app: AppID
    package var run: RunID
    /// `nil`: no process was created.
    package var pid: Int32?
    /// The state that the app was in when its end began.
    package var state: AppState
    package var namespace: Namespace
    package var code: UInt32
    /// One sentence, the cause first.
    package var explanation: String
    package var deadline: DeadlineUse?
    /// In the order in which jetsam would have killed them, at most `maximumCandidates`.
    package var candidates: [Candidate] = []
    package var exit: ExitStatus
    /// From process creation to the end.
    package var wall: Duration
    package var cpu: Duration
    /// The size when the end began, in bytes.
    package var memory: UInt64
    /// The largest size that was measured, in bytes.
    package var peakMemory: UInt64 = 0
    /// The processes that outlived the main process and were killed (L47).
    package var remaining: RemainingProcesses?
    /// `nil`: it ended as it should, or as it was asked to, or for another's sake.
    package var failure: Failure?
    /// It slept, and was ended so that others have its memory: `run --protocol=mcp` may start the command again.
    package var mayReturn = false
    /// It was ended for the memory that it had: by jetsam, the kernel's OOM killer or a limit, or after `UnloadAfterSec=`.
    package var isForMemory = false

    package static let maximumCandidates = 5

    package init(
        id: UInt64, app: AppID, run: RunID, pid: Int32?, state: AppState, namespace: Namespace, code: UInt32,
        explanation: String, deadline: DeadlineUse? = nil, candidates: [Candidate] = [], exit: ExitStatus,
        wall: Duration, cpu: Duration, memory: UInt64
    ) {
        self.id = id
        self.app = app
        self.run = run
        self.pid = pid
        self.state = state
        self.namespace = namespace
        self.code = code
        self.explanation = explanation
        self.deadline = deadline
        self.candidates = candidates
        self.exit = exit
        self.wall = wall
        self.cpu = cpu
        self.memory = memory
    }
}
