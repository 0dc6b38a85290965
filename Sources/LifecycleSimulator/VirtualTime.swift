import LifecycleCore

/// A point in virtual time, or a span of it, in microseconds: plain integers, as the simulation does nothing but add and
/// compare them.
typealias Microseconds = Int64

extension Microseconds {
    static let millisecond: Microseconds = 1000
    static let second: Microseconds = 1_000_000

    var duration: Duration { .microseconds(self) }
}

extension Duration {
    /// Rounded up, so that what is due has come. What is beyond all times that are played is cut off, so that nothing
    /// overflows.
    var microseconds: Microseconds {
        let (seconds, attoseconds) = components
        if seconds > 1 << 40 { return (1 << 40) * .second }
        let (whole, rest) = attoseconds.quotientAndRemainder(dividingBy: 1_000_000_000_000)
        return seconds * .second + whole + (rest > 0 ? 1 : 0)
    }
}

extension Instant {
    init(_ time: Microseconds) { self.init(sinceOrigin: .microseconds(time)) }
    /// Rounded up.
    var microseconds: Microseconds { sinceOrigin.microseconds }
}
