/// Which launches are under way, and which one comes next (L52).
struct Admission: Hashable, Sendable {
    /// A launch that occupies a slot, until it is complete or waits for something else than a processor.
    struct Slot: Hashable, Sendable {
        var run: RunID
        var since: Instant
        /// The processor time that the run had used, or had waited for, when it was measured last.
        var used = Duration.zero
        /// When the program was executed, or when the last measurement came.
        var measuredAt: Instant
        /// When the measurement that is under way was asked for.
        var askedAt: Instant?
        /// When it is measured next, if launches wait.
        var checkAt: Instant

        init(run: RunID, since: Instant) {
            self.run = run
            self.since = since
            measuredAt = since
            checkAt = since + LifecycleCore.shortestLaunchCheck
        }
    }

    /// In the order in which the launches began.
    var slots: [Slot] = []

    var nextCheck: Instant? { slots.map(\.checkAt).min() }
}

/// A launch into the background that waits for a slot (L52). To users the app is not running.
struct QueuedLaunch: Hashable, Sendable {
    var launch: Launch
    /// Why it is to be woken, if that reason grants it time of its own (L26).
    var wake: LaunchReason?
    var since: Instant
    /// A client waits for it, or did. Other launches come after those.
    var isRequested: Bool
}
