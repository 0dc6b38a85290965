/// A deadline that counts.
struct Deadline: Hashable, Sendable {
    var kind: DeadlineKind
    var start: Instant
    var allowed: Duration
    /// It has passed, and the run is inspected before it counts as missed: a debugger may be attached (L48).
    var isInspected = false
    /// For how long it did not count, because a debugger was attached (L48).
    var debugged = Duration.zero
    /// For how long the app got no processor: added to the deadline (L48).
    var credited = Duration.zero
    /// The app may have answered while there was no daemon: when it passes, it counts as met.
    var isDoubtful = false

    var end: Instant { start + allowed + credited }
    /// When it passes; `nil`: it has passed.
    var due: Instant? { isInspected ? nil : end }

    func used(at now: Instant) -> Duration { now - start }
    func remaining(at now: Instant) -> Duration { max(.zero, end - now) }

    /// Starts again at `start`.
    mutating func restart(at start: Instant) {
        self.start = start
        credited = .zero
        isInspected = false
    }

    /// L48: adds the time for which the app got no processor. It cannot have waited for longer than the deadline counts.
    /// - Parameter waited: all of that time, since the deadline started.
    /// - Returns: by how much the deadline is later now; `nil`: it is not.
    mutating func credit(_ waited: Duration, at now: Instant) -> Duration? {
        let time = min(waited, used(at: now), Self.longestCredit) - credited
        guard kind.isCredited, time >= Self.leastCredit else { return nil }
        credited += time
        isInspected = false
        return time
    }

    /// L48: how much time without a processor is added to a deadline in all.
    static let longestCredit = Duration.seconds(20)
    /// Less is not worth another inspection: each one would find a little more.
    static let leastCredit = Duration.milliseconds(10)

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
        if let limit { end = min(end, start + credited + max(limit, allowed)) }
        guard end > self.end, !isInspected else { return false }
        allowed = end - start - credited
        return true
    }
}

extension DeadlineKind {
    /// Whether time without a processor is added to it (L48). A task, a wake and a heartbeat are the app's own time.
    var isCredited: Bool {
        switch self {
        case .launch, .background, .terminate: true
        case .backgroundTime, .wake, .watchdog, .thaw: false
        }
    }
}
