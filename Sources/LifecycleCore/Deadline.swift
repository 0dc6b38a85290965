/// A deadline that counts.
struct Deadline: Hashable, Sendable {
    var kind: DeadlineKind
    var start: Instant
    var allowed: Duration
    /// It has passed, and is looked into before it counts as missed: a debugger may be attached (L48).
    var isInspected = false
    /// The app may have answered while nobody listened: it is not missed, but taken for answered.
    var isDoubtful = false

    var end: Instant { start + allowed }
    /// When there is something to do about it.
    var due: Instant? { isInspected ? nil : end }

    func used(at now: Instant) -> Duration { now - start }
    func remaining(at now: Instant) -> Duration { max(.zero, end - now) }

    /// L25: `EXTEND_TIMEOUT_USEC=` never shortens, and all of it together stays below `limit`.
    mutating func extend(by time: Duration, at now: Instant, limit: Duration?) -> Bool {
        var end = now + time
        if let limit { end = min(end, start + max(limit, allowed)) }
        guard end > self.end, !isInspected else { return false }
        allowed = end - start
        return true
    }
}
