/// A program that takes no part does not say when it has started up. It is not suspended before it listens, is idle, or
/// `StartupSec=` is over (L18).
struct StartUp: Hashable, Sendable {
    var began: Instant
    /// `nil`: `StartupSec=infinity`.
    var end: Instant?
    /// When to measure it next, if that matters.
    var checkAt: Instant
    /// The processor time that it had used, or had waited for, when it was measured last.
    var used = Duration.zero
    var measuredAt: Instant
    /// When it was last found to compute.
    var activeAt: Instant
    /// What the last measurement could not examine.
    var hiddenSockets: HiddenSockets?

    init(began: Instant, time: Duration?) {
        self.began = began
        end = time.map { began + $0 }
        checkAt = began + LifecycleCore.shortestStartUpCheck
        measuredAt = began
        activeAt = began
    }

    /// What is due next.
    var due: Instant { end.map { min($0, checkAt) } ?? checkAt }
}
