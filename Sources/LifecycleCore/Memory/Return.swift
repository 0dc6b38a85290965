/// An app that jetsam ended waits until there is space for it.
struct MemoryWait: Hashable, Sendable {
    var since: Instant
    /// The state to launch it into.
    var state: LaunchState
    /// A measurement has found no space, and that was reported.
    var isReported = false
}

/// The order in which apps come back after jetsam: the smallest rank first.
struct ReturnRank: Comparable, Hashable, Sendable {
    /// It was in the foreground, or is the home app.
    var isForForeground: Bool
    /// `JetsamPriority=`: what is killed last comes back first.
    var priority: Int
    var since: Instant

    static func < (a: ReturnRank, b: ReturnRank) -> Bool {
        if a.isForForeground != b.isForForeground { return a.isForForeground }
        if a.priority != b.priority { return a.priority > b.priority }
        return a.since < b.since
    }
}

/// What the core knows of all returns: of apps after jetsam, and of the home app to the foreground.
struct Returns: Hashable, Sendable {
    /// Runs that came back and may not have reached the last footprint of their app yet, the oldest first.
    var growing: [RunID] = []
    /// When to measure memory for the apps that wait; `nil`: none waits, or a measurement is under way.
    var checkAt: Instant?
    /// The time from one measurement to the next. Doubles while no app comes back.
    var interval = LifecycleCore.shortestReturnCheck
    /// At the end of the last event the memory level was above `normal`.
    var wasShort = false
    /// The home app comes to the foreground when no app is there: an app was there before, and no user has sent the home app
    /// away since.
    var isHomeWanted = false
}

/// How much memory apps can take before a threshold of a warning is reached. One part for each threshold, in bytes.
struct MemorySpace: Hashable, Sendable {
    struct Part: Hashable, Sendable {
        /// Negative: the threshold is exceeded already.
        var free: Int64
        /// What would be free if no app ran.
        var capacity: Int64
        /// The memory that all programs share; `nil`: apps alone.
        var total: Int64?

        /// What an app with this footprint needs. An app that does not fit even if no other app runs grew without bound, and
        /// would wait for ever: it needs three quarters of the space. If other programs use the memory too, they may be the
        /// cause: then it needs half of its footprint at least.
        func needed(_ footprint: UInt64) -> Int64 {
            let bytes = Int64(clamping: max(1, footprint))
            if bytes <= capacity { return bytes }
            return max(1, capacity / 4 * 3, total.map { min(bytes, $0) / 2 } ?? 0)
        }
    }
    var parts: [Part] = []
}
