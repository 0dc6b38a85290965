/// The rules of timers and fetch (L30).
package enum TimerRule: String, CaseIterable, Sendable {
    case noneIsLost =
        "a time of a calendar that has come elapses while the daemon runs, within AccuracySec= and RandomizedDelaySec="
    case noneIsDoubled = "each time of a calendar elapses once"
    case fetchesKeepTheirInterval = "a fetch comes no earlier than FetchIntervalSec= after the last one"
    case fetchesCome = "a fetch comes after four times FetchIntervalSec= at the latest"
    case wakesOnce = "one moment wakes an app once"
    case elapsedIsCarriedOut = "what has elapsed wakes the app, or waits until it may"
    case recoveryIsExact = "a core that is recovered is the one that was lost"
}

/// A mistake of the daemon, to show that its rule finds it.
package enum TimerFault: String, CaseIterable, Sendable {
    /// A daemon that starts counts from its start, instead of from what the core knows.
    case losesBase
    /// The moment is reported twice.
    case reportsTwice
    /// A clock that is set back is not noticed.
    case missesSteps
    /// Fetches that come with others come at any time.
    case fetchesEarly

    package var rule: TimerRule {
        switch self {
        case .losesBase, .missesSteps: .noneIsLost
        case .reportsTwice: .noneIsDoubled
        case .fetchesEarly: .fetchesKeepTheirInterval
        }
    }
}
