/// The end of a run, from SIGKILL or the exit of the main process until its cgroup is empty.
///
///     everything ──▶ processes ──▶ over        the main process exits, then the cgroup empties
///         └────────▶ exitStatus ──▶ over       the cgroup empties, then the exit status is reported
struct Ending: Hashable, Sendable {
    /// What is still to come.
    enum Remains: Hashable, Sendable {
        /// The exit of the main process, and the empty cgroup.
        case everything
        /// The main process exited. Other processes of the run are left.
        indirect case processes(Receipt)
        /// No process is left. How the main process exited is not reported yet.
        case exitStatus
    }

    private var storage: RunStorage
    /// Why it was killed; `nil`: it was not.
    var cause: KillCause?
    /// The state that users saw before.
    var from: AppState
    var start: Instant
    var remains = Remains.everything
    /// SIGKILL was sent.
    var isKilled = false
    /// When to log a warning that processes survive SIGKILL, and to send it again.
    var warnAt: Instant
    /// The cause of `willTerminate`, if that was sent before: the app may end by it before SIGKILL arrives.
    var termination: TerminationCause?
    /// The state to relaunch it into; `nil`: it is not relaunched.
    var relaunch: LaunchState?
    /// The launch that was requested for after the end.
    var next: Launch?

    init(_ run: Run, cause: KillCause?, from: AppState, start: Instant, warnAt: Instant) {
        storage = RunStorage(run)
        self.cause = cause
        self.from = from
        self.start = start
        self.warnAt = warnAt
    }

    var run: Run {
        @inline(__always) _read { yield storage.run }
        set { ownStorage().run = newValue }
    }

    /// The storage of the run, to read some of its parts without a copy of all.
    var sharedStorage: RunStorage { storage }

    /// The storage of the run, which no other value shares.
    mutating func ownStorage() -> RunStorage {
        if !isKnownUniquelyReferenced(&storage) { storage = RunStorage(storage.run) }
        return storage
    }

    /// Set once the main process exited (L45).
    var receipt: Receipt? {
        switch remains {
        case .processes(let receipt): receipt
        case .everything, .exitStatus: nil
        }
    }
}

/// Why an app got `willTerminate`.
enum TerminationCause: Hashable, Sendable {
    case requested, exitsOnSuspend, shutdown
    /// `UnloadAfterSec=`.
    case unloaded
    /// The app announced its end (`STOPPING=1`).
    case selfInitiated
    case jetsam(MemoryCause, [Receipt.Candidate])

    var isJetsam: Bool {
        switch self {
        case .jetsam: true
        case .requested, .exitsOnSuspend, .shutdown, .unloaded, .selfInitiated: false
        }
    }
}

/// Why a run was sent SIGKILL.
enum KillCause: Hashable, Sendable {
    case missedDeadline(Receipt.DeadlineUse)
    case leakedTasks([String], Receipt.DeadlineUse)
    case wakeNotCompleted(LaunchReason, Receipt.DeadlineUse)
    case tooManyTasks(Int)
    case removed
    /// It answered `willTerminate`: it had finished. `nil`: it had no deadline for it.
    case terminationAnswered(TerminationCause, Receipt.DeadlineUse?)
    /// On request, while it could not receive a notice.
    case terminatedWithoutNotice
    /// `UnloadAfterSec=`, of an app that has saved what it has (L46).
    case unloaded
    case shutdown
    case jetsam(MemoryCause, [Receipt.Candidate], JetsamContext)
    /// It missed its terminate deadline.
    case terminationIgnored(TerminationCause, Receipt.DeadlineUse)
    /// It was measured over `MemoryMax=`, or suspended over `SuspendedMemoryMax=` (L41). Sizes in bytes.
    case overMemoryLimit(limit: UInt64, size: UInt64)
    /// It takes part, and was about to be suspended with file locks (L43).
    case heldLocks(FileLocks)
    /// It used more processor time in the background than it may (L44).
    case overProcessorLimit(BackgroundUse)
    /// It used a GPU in the background, which its manifest forbids (L43); zero: it is not known for how long.
    case usedGPU(Duration)
}

/// Why jetsam did not wait.
struct JetsamContext: Hashable, Sendable {
    /// An app that was killed before and has not freed its memory in time.
    var survivor: AppID?
    /// Memory was filled so fast that running apps had no time to answer the warning.
    var hadNoTime = false
    /// It exceeded `Budget=` alone.
    var excess: Excess?

    /// In bytes.
    struct Excess: Hashable, Sendable {
        var size: UInt64
        var budget: UInt64
    }
}
