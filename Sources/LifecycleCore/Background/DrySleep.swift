/// An app that would be suspended now, if it were not for `Suspend=dry-run` (L58). Its processes run.
struct DrySleep: Hashable, Sendable {
    var since: Instant
    /// Processor time of the run at the last look; `nil`: there was none since then.
    var cpu: Duration?
    /// Processor time that it has used meanwhile.
    var used = Duration.zero
    /// The least processor time that it used in a second between two looks: what its ticks take. `nil`: there were no two looks.
    var tickUse: Duration?
    /// When a timer would have thawed it for a moment; `nil`: none would.
    var timerDue: Instant?
    /// How many times that was so.
    var moments = 0
    /// Input came that would not have woken it.
    var hasMissedInput = false
}

/// What an app with `Suspend=dry-run` did while it would have been suspended (L58).
package struct DryRunResult: Hashable, Sendable {
    package var slept: Duration
    /// Why it would not be suspended any more.
    package var reason: StateReason
    /// How many times a timer would have thawed it for a moment.
    package var moments: Int
    /// The processor time that it used. Suspended, it would have used next to none.
    package var used: Duration
    /// Input came that would not have woken it (`Traffic=no`): its clients would have waited.
    package var hasMissedInput: Bool

    package init(
        slept: Duration, reason: StateReason, moments: Int = 0, used: Duration = .zero, hasMissedInput: Bool = false
    ) {
        self.slept = slept
        self.reason = reason
        self.moments = moments
        self.used = used
        self.hasMissedInput = hasMissedInput
    }
}
