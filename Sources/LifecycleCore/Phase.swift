/// Where an app is in its life, with what only matters there. Each case names those that may follow. What is large and
/// rare is indirect, so that the others stay small.
enum Phase: Hashable, Sendable {
    /// → launching
    case notRunning(NotRunning)
    /// → foreground, entering, terminating, ending, notRunning (spawn failed)
    case launching(Launching)
    /// In the foreground, active or inactive. → entering, terminating, ending
    case foreground(Foreground)
    /// Told that it is in the background; has not answered. → running, foreground, terminating, ending
    case entering(Entering)
    /// In the background, running. → foreground, suspending, terminating, ending
    case running(Running)
    /// The freeze is under way. → suspended, waking, ending
    case suspending(Suspending)
    /// Frozen. → waking, ending
    case suspended(Suspended)
    /// The thaw is under way. → running, foreground, terminating, ending
    case waking(Waking)
    /// Told to terminate. → ending
    indirect case terminating(Terminating)
    /// Killed, or its main process has ended, and not all is gone yet. → notRunning, launching
    indirect case ending(Ending)

    /// As users see it.
    var state: AppState {
        switch self {
        case .notRunning: .notRunning
        case .launching: .launching
        case .foreground(let foreground): foreground.isActive ? .active : .inactive
        case .entering, .running, .suspending, .waking: .background
        case .suspended: .suspended
        case .terminating, .ending: .terminating
        }
    }
}

/// What was wished for in the middle of a transition (L5): the latest is carried out after it.
enum PendingRequest: CaseIterable, Hashable, Sendable {
    case foreground, background, terminate
}

struct NotRunning: Hashable, Sendable {
    struct Relaunch: Hashable, Sendable {
        var at: Instant
        var state: LaunchState
    }
    var relaunch: Relaunch?
}

struct Launching: Hashable, Sendable {
    var launch: Launch
    var deadline: Deadline?
    var wish: PendingRequest?
    /// What it is launched or was woken for, if that gives it time of its own (L26).
    var wake: LaunchReason?
}

struct Foreground: Hashable, Sendable {
    var isActive = false
    var watchdog: Deadline?
}

struct Entering: Hashable, Sendable {
    var deadline: Deadline?
    var wish: PendingRequest?
}

struct Running: Hashable, Sendable {
    /// Since when there has been no assertion; `nil`: there is one.
    var quietSince: Instant?
    /// After a freeze that timed out: how long to wait before the next.
    var retryDelay: Duration?
}

struct Suspending: Hashable, Sendable {
    var giveUpAt: Instant
    var retryDelay: Duration?
}

struct Suspended: Hashable, Sendable {
    var since: Instant
}

struct Waking: Hashable, Sendable {
    var deadline: Deadline?
    var wish: PendingRequest?
    /// What it is woken for, if that gives it time of its own (L26).
    var wake: LaunchReason?
    var retryDelay: Duration?
}

struct Terminating: Hashable, Sendable {
    var cause: TerminationCause
    var from: AppState
    var deadline: Deadline?
    var next: Launch?
}

struct Ending: Hashable, Sendable {
    var cause: KillCause?
    var from: AppState
    var start: Instant
    var isEmptied = false
    var wasKilled = false
    /// When to say that it takes long, and to send SIGKILL again.
    var complainAt: Instant
    /// Why it had been told to terminate, where all of it ended at once then.
    var termination: TerminationCause?
    /// Set once the process has ended (L45).
    var receipt: Receipt?
    /// It took so long that jetsam no longer waits for its memory.
    var isOverdue = false
    var relaunch: LaunchState?
    var next: Launch?
}

/// Why an app was told to terminate.
enum TerminationCause: Hashable, Sendable {
    case requested, exitsOnSuspend, shutdown
    /// The app said so itself (`STOPPING=1`).
    case selfInitiated
    case jetsam(MemoryCause, [Receipt.Candidate])
}

/// Why a run was sent SIGKILL.
enum KillCause: Hashable, Sendable {
    case missedDeadline(Receipt.DeadlineUse)
    case leakedTasks([String], Receipt.DeadlineUse)
    case wakeNotCompleted(LaunchReason, Receipt.DeadlineUse)
    case tooManyTasks(Int)
    case removed
    case terminatedWithoutNotice
    case shutdown
    case jetsam(MemoryCause, [Receipt.Candidate])
    /// A terminate deadline that was missed.
    case terminationIgnored(TerminationCause, Receipt.DeadlineUse)
}
