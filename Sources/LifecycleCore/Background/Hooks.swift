/// A command of the manifest that runs at a transition, for programs that take no part (L57). The raw value is the key of the
/// setting.
package enum HookKind: String, CaseIterable, Hashable, Sendable {
    /// With the notice `didEnterBackground`. The transition waits for its end.
    case enterBackground = "ExecEnterBackground"
    /// With the notice `willEnterForeground`.
    case enterForeground = "ExecEnterForeground"
    /// Before the freeze, which waits for its end. It can refuse it, once.
    case beforeSuspend = "ExecBeforeSuspend"
    /// After the thaw.
    case afterResume = "ExecAfterResume"
}

/// The hooks that a manifest sets.
package struct HookKinds: OptionSet, Hashable, Sendable {
    package let rawValue: UInt8
    package init(rawValue: UInt8) { self.rawValue = rawValue }

    package init(_ kind: HookKind) {
        switch kind {
        case .enterBackground: self.init(rawValue: 1)
        case .enterForeground: self.init(rawValue: 2)
        case .beforeSuspend: self.init(rawValue: 4)
        case .afterResume: self.init(rawValue: 8)
        }
    }

    package func contains(_ kind: HookKind) -> Bool { contains(HookKinds(kind)) }
}

/// A hook, with what its commands get in their environment.
package struct Hook: Hashable, Sendable {
    package var kind: HookKind
    /// The state that the app enters.
    package var state: AppState
    package var reason: StateReason
    /// Only of `afterResume`: how long the app has slept, with the moments in which a timer woke it.
    package var slept: Duration?

    package init(_ kind: HookKind, entering state: AppState, _ reason: StateReason, slept: Duration? = nil) {
        self.kind = kind
        self.state = state
        self.reason = reason
        self.slept = slept
    }
}

/// How the commands of a hook ended.
package enum HookOutcome: Hashable, Sendable {
    /// The status of the last command that ran: the first that failed, or the last one.
    case ended(ExitStatus)
    /// A command could not be started. One sentence, without the full stop.
    case notStarted(String)

    /// EX_TEMPFAIL of sysexits.h: the suspension is refused.
    package static let refusal = HookOutcome.ended(.exited(75))

    var isFailure: Bool {
        switch self {
        case .ended(.exited(0)), .ended(.unknown), .ended(.lost): false
        case .ended(.exited), .ended(.signaled), .notStarted: true
        }
    }
}

/// The hooks of a run: at most one runs at a time.
struct Hooks: Hashable, Sendable {
    struct Running: Hashable, Sendable {
        var hook: Hook
        var began: Instant
        /// When it is killed.
        var due: Instant
    }
    /// Two can wait behind the one that runs: `afterResume`, and `enterBackground` or `enterForeground`.
    static let maximumWaiting = 2

    /// The number of the last hook that was started.
    var number = 0
    var running: Running?
    /// In their order.
    var waiting: [Hook] = []
    /// Since when the app sleeps, as its hooks see it: none runs for a moment in which a timer wakes it. `nil`: it is awake.
    var asleepSince: Instant?
    /// `ExecBeforeSuspend=` is over: when the app is frozen. `nil`: it was, or something has come in between.
    var freezeAt: Instant?
    /// While it is thawed: why, if that ends the sleep.
    var resumeReason: StateReason?
    /// `ExecBeforeSuspend=` has refused the suspension, or a task has put it off, and the app was not suspended since.
    var hasRefused = false

    /// Whether the app may not be suspended until they are over. `ExecBeforeSuspend=` is a part of the suspension.
    var holdAwake: Bool { running.map { $0.hook.kind != .beforeSuspend || !waiting.isEmpty } ?? false }
}

/// The commands of a hook.
package enum HookEffect: Hashable, Sendable {
    /// Runs them in the group of the run (L57). → `hookEnded`, unless it is killed.
    case run(Hook, number: Int)
    /// Sends SIGKILL to the hook with this number, and to no other process of the run.
    case kill(number: Int)
}
