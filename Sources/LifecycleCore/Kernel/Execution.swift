/// What a run does.
///
///     launching ──▶ foreground ◀──────────────┐
///         │          │      ▲                  │
///         │          ▼      │                  │
///         └──▶ enteringBackground ──▶ background ──▶ suspending ◀─▶ suspended
///                                         ▲              │              │
///                                         └─── waking ◀──┴──────────────┘
///
/// From every state but `suspending` and `suspended` a run can go to `terminating`; from every state it can end. `Phase`
/// has the table of legal transitions. iOS freezes without delay; here freezing and thawing take time and can fail, so
/// they are states of their own. To users `enteringBackground`, `suspending` and `waking` are the background.
indirect enum Execution: Hashable, Sendable {
    case launching(Launching)
    case foreground(Foreground)
    /// `didEnterBackground` was sent and not answered yet (L16).
    case enteringBackground(EnteringBackground)
    case background(Background)
    /// The freeze is under way.
    case suspending(Suspending)
    case suspended(Suspended)
    /// The thaw is under way.
    case waking(Waking)
    /// `willTerminate` was sent (L46).
    case terminating(Terminating)
}

/// A request that came in the middle of a transition (L5). The latest one is carried out after the transition.
enum PendingRequest: CaseIterable, Hashable, Sendable {
    case foreground, background, terminate
}

struct Launching: Hashable, Sendable {
    var launch: Launch
    /// What the manifest said when the process was created: the program was started as that type.
    var readiness: AppPolicy.Readiness
    var deadline: Deadline?
    var pending: PendingRequest?
    /// Why it was launched or woken, if that reason grants it time of its own (L26).
    var wake: LaunchReason?
}

struct Foreground: Hashable, Sendable {
    /// False: inactive. All scenes of the app that are in the foreground are the same (L13).
    var isActive = false
    /// `WatchdogSec=`: until the next heartbeat.
    var watchdog: Deadline?
}

struct EnteringBackground: Hashable, Sendable {
    var deadline: Deadline?
    var pending: PendingRequest?
    /// The app has answered. A hook has not ended (L57).
    var isAnswered = false
}

struct Background: Hashable, Sendable {
    /// Since when there has been no assertion; `nil`: there is one.
    var idleSince: Instant?
    /// What it has to do; `nil`: that does not decide when it is suspended.
    @Rare var look: WorkLook? = nil
    var isLookedAt: Bool { _look.isPresent }
}

struct Suspending: Hashable, Sendable {
    /// When to log a warning that a process does not freeze; `nil`: it was logged.
    var warnAt: Instant?
    /// The look that found a worker idle.
    @Rare var look: WorkLook? = nil
}

struct Waking: Hashable, Sendable {
    var deadline: Deadline?
    var pending: PendingRequest?
    /// Why it is woken, if that reason grants it time of its own (L26).
    var wake: LaunchReason?
    /// It is to run, although nothing holds it awake: input has woken it, or a user. A main process that has stopped itself is
    /// continued.
    var continuesStopped = false
    /// It is thawed to be ended, because it was suspended for `UnloadAfterSec=`. A request for anything else ends that.
    var isUnloading = false
}

struct Terminating: Hashable, Sendable {
    var cause: TerminationCause
    /// The state that users saw before.
    var from: AppState
    var deadline: Deadline?
    /// The launch that follows.
    var next: Launch?
    /// How the main process exited, if other processes of the run are left that received the signal too (L46).
    var exit: MainExit?
}

/// The exit of the main process, as it was reported.
struct MainExit: Hashable, Sendable {
    var status: ExitStatus
    /// Processor time of the whole run.
    var cpu: Duration
    /// The peak in bytes; 0: unknown.
    var peak: UInt64
    /// The processes that it left behind.
    var remaining: RemainingProcesses?
}

extension Execution {
    /// The state that users see.
    var state: AppState {
        switch self {
        case .launching: .launching
        case .foreground(let foreground): foreground.isActive ? .active : .inactive
        case .enteringBackground, .background, .suspending, .waking: .background
        case .suspended: .suspended
        case .terminating: .terminating
        }
    }

    /// The deadline of the transition that is under way, or of the next heartbeat.
    var deadline: Deadline? {
        get {
            switch self {
            case .launching(let launching): launching.deadline
            case .foreground(let foreground): foreground.watchdog
            case .enteringBackground(let entering): entering.deadline
            case .waking(let waking): waking.deadline
            case .terminating(let terminating): terminating.deadline
            case .background, .suspending, .suspended: nil
            }
        }
        set {
            switch self {
            case .launching(var launching):
                launching.deadline = newValue
                self = .launching(launching)
            case .foreground(var foreground):
                foreground.watchdog = newValue
                self = .foreground(foreground)
            case .enteringBackground(var entering):
                entering.deadline = newValue
                self = .enteringBackground(entering)
            case .waking(var waking):
                waking.deadline = newValue
                self = .waking(waking)
            case .terminating(var terminating):
                terminating.deadline = newValue
                self = .terminating(terminating)
            case .background, .suspending, .suspended: break
            }
        }
    }

    /// The daemon has duplicates of its descriptors, or is about to.
    var isWatched: Bool {
        if case .suspended(let suspended) = self { suspended.isWatching } else { false }
    }

    /// How the main process exited, if the run continues without it.
    var exit: MainExit? {
        switch self {
        case .terminating(let terminating): terminating.exit
        case .launching, .foreground, .enteringBackground, .background, .suspending, .suspended, .waking: nil
        }
    }

    /// The request that is carried out after the transition which is under way (L5).
    var pending: PendingRequest? {
        switch self {
        case .launching(let launching): launching.pending
        case .enteringBackground(let entering): entering.pending
        case .waking(let waking): waking.pending
        case .foreground, .background, .suspending, .suspended, .terminating: nil
        }
    }

    /// Replaces the pending request. Traps if no transition is under way.
    mutating func setPending(_ pending: PendingRequest) {
        switch self {
        case .launching(var launching):
            launching.pending = pending
            self = .launching(launching)
        case .enteringBackground(var entering):
            entering.pending = pending
            self = .enteringBackground(entering)
        case .waking(var waking):
            waking.pending = pending
            waking.isUnloading = false
            self = .waking(waking)
        case .foreground, .background, .suspending, .suspended, .terminating:
            preconditionFailure("no transition is under way in \(self)")
        }
    }

    /// The wake that begins once the transition is over (L26).
    var pendingWake: LaunchReason? {
        get {
            switch self {
            case .launching(let launching): launching.wake
            case .waking(let waking): waking.wake
            case .foreground, .enteringBackground, .background, .suspending, .suspended, .terminating: nil
            }
        }
        set {
            switch self {
            case .launching(var launching):
                launching.wake = newValue
                self = .launching(launching)
            case .waking(var waking):
                waking.wake = newValue
                self = .waking(waking)
            case .foreground, .enteringBackground, .background, .suspending, .suspended, .terminating:
                precondition(newValue == nil, "no transition is under way in \(self)")
            }
        }
    }
}
