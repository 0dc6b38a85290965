import CSystemd
import Posix

/// One absolute deadline on CLOCK_MONOTONIC, which can be set repeatedly. The daemon uses a single timer with a heap of its
/// own: sd-event rearms its timerfd for each timer that expires, so that a thousand at once are up to 18 ms late.
package final class Timer {
    /// How late libsystemd may fire the timer to wake up less often. Its default (0) means 250 ms.
    static let accuracyMicroseconds: UInt64 = 1

    private let pointer: OpaquePointer
    private let source: EventSource

    /// `source` owns `pointer`.
    init(_ pointer: OpaquePointer, _ source: EventSource) {
        self.pointer = pointer
        self.source = source
    }

    /// Fires once at this time of CLOCK_MONOTONIC (`EventLoop.now`), rounded up to microseconds. A time in the past fires at
    /// once. `nil` disarms the timer; after firing it is disarmed.
    package func arm(at time: Duration?) {
        guard !source.isCancelled else { return }
        guard let time else {
            sd_event_source_set_enabled(pointer, Int32(SD_EVENT_OFF))
            return
        }
        let result = sd_event_source_set_time(pointer, time.wholeMicroseconds)
        precondition(result >= 0, "sd_event_source_set_time: \(SystemError.text(of: -result))")
        sd_event_source_set_enabled(pointer, Int32(SD_EVENT_ONESHOT))
    }

    package var isArmed: Bool { source.isEnabled }

    /// Stops the timer permanently and releases its handler.
    package func cancel() { source.cancel() }
}

extension Duration {
    /// Whole microseconds, rounded up; 0 for a negative duration, and at most 2^62 (146,000 years), which has no special
    /// meaning for libsystemd.
    var wholeMicroseconds: UInt64 {
        let (seconds, attoseconds) = components
        guard seconds >= 0, attoseconds >= 0 else { return 0 }
        guard seconds < 1 << 42 else { return 1 << 62 }
        let (quotient, rest) = attoseconds.quotientAndRemainder(dividingBy: 1_000_000_000_000)
        return UInt64(seconds) * 1_000_000 + UInt64(quotient) + (rest > 0 ? 1 : 0)
    }
}
