import LifecycleCore

/// An instant or a duration in virtual time, in microseconds. An integer, because the simulation only adds and compares
/// times.
package typealias Microseconds = Int64

extension Microseconds {
    static let millisecond: Microseconds = 1000
    static let second: Microseconds = 1_000_000

    var duration: Duration { .microseconds(self) }
}

extension Duration {
    /// Rounded up, so that a deadline is never early. Longer times than a simulation can have are limited, to avoid an
    /// overflow.
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
