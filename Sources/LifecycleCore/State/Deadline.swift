/// A deadline that counts.
struct Deadline: Hashable, Sendable {
    var kind: DeadlineKind
    var start: Instant
    var allowed: Duration
    /// It has passed, and the run is inspected before it counts as missed: a debugger may be attached (L48).
    var isInspected = false
    /// For how long it did not count, because a debugger was attached (L48).
    var debugged = Duration.zero
    /// The app may have answered while there was no daemon: when it passes, it counts as met.
    var isDoubtful = false

    var end: Instant { start + allowed }
    /// When it passes; `nil`: it has passed.
    var due: Instant? { isInspected ? nil : end }

    func used(at now: Instant) -> Duration { now - start }
    func remaining(at now: Instant) -> Duration { max(.zero, end - now) }

    /// Starts again at `start`.
    mutating func restart(at start: Instant) {
        self.start = start
        isInspected = false
    }

    /// Starts again at `now`, as a debugger is attached.
    /// - Returns: `false` if it has been for `limit` in all.
    mutating func restartForDebugger(at now: Instant, limit: Duration) -> Bool {
        guard debugged < limit else { return false }
        debugged += used(at: now)
        restart(at: now)
        return true
    }

    /// L25: `EXTEND_TIMEOUT_USEC=` never shortens a deadline, and all extensions together stay within `limit`.
    /// - Returns: whether the deadline is later now.
    mutating func extend(by time: Duration, at now: Instant, limit: Duration?) -> Bool {
        var end = now + time
        if let limit { end = min(end, start + max(limit, allowed)) }
        guard end > self.end, !isInspected else { return false }
        allowed = end - start
        return true
    }
}
