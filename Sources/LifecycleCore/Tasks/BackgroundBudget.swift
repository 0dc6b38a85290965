/// The background time of an app (L21). It belongs to the app, not to a task: more tasks buy no more time.
///
///             enters the background          suspended
///     idle ─────────────────────────▶ counting ◀────────▶ paused
///       ▲                                │      woken
///       │ foreground                     ▼ used up, no task open
///       └───────────────────────────── spent
///
/// iOS does not show its budget to apps as a state; `backgroundTimeRemaining` is `remaining` here. A budget that is used up
/// with a task open kills the app (L23).
enum BackgroundBudget: Hashable, Sendable {
    /// The app is not in the background, or its background time is unlimited.
    case idle
    /// The clock runs.
    indirect case counting(Counting)
    /// The app is suspended.
    case paused(Paused)
    /// Used up: a task that begins now is refused.
    case spent

    struct Counting: Hashable, Sendable {
        var deadline: Deadline
        /// `tasksExpiring` was sent (L22).
        var isNoticeGiven = false
    }

    struct Paused: Hashable, Sendable {
        var left: Duration
        var isNoticeGiven: Bool
    }

    /// The end of the budget while its clock runs. Setting it changes nothing in the other states.
    var deadline: Deadline? {
        get { if case .counting(let counting) = self { counting.deadline } else { nil } }
        set {
            guard case .counting(var counting) = self, let newValue else { return }
            counting.deadline = newValue
            self = .counting(counting)
        }
    }

    /// Whether `tasksExpiring` was sent, and the clock still runs.
    var isNoticeGiven: Bool { if case .counting(let counting) = self { counting.isNoticeGiven } else { false } }

    /// What is left at `now`; `nil`: unlimited (L24).
    func remaining(at now: Instant) -> Duration? {
        switch self {
        case .idle: nil
        case .counting(let counting): counting.deadline.remaining(at: now)
        case .paused(let paused): paused.left
        case .spent: .zero
        }
    }
}
