/// A point on the one clock that deadlines are counted on: the time since boot that does not run while the machine
/// sleeps (`CLOCK_MONOTONIC`; L48). The core never asks for it, every event brings it along.
package struct Instant: Comparable, Hashable, Sendable {
    /// The time since the clock's origin.
    package var sinceOrigin: Duration

    package init(sinceOrigin: Duration) {
        self.sinceOrigin = sinceOrigin
    }

    package static let origin = Instant(sinceOrigin: .zero)

    package static func < (a: Instant, b: Instant) -> Bool { a.sinceOrigin < b.sinceOrigin }
    package static func + (a: Instant, b: Duration) -> Instant { Instant(sinceOrigin: a.sinceOrigin + b) }
    package static func - (a: Instant, b: Instant) -> Duration { a.sinceOrigin - b.sinceOrigin }
}
