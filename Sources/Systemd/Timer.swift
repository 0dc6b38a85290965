import CSystemd
import Posix

/// One absolute deadline on CLOCK_MONOTONIC, to be set again and again. The daemon needs a single one, behind a heap of
/// its own: sd-event rearms its timerfd for each that expires, so that a thousand at once end up 18 ms late.
package final class Timer {
    /// How late libsystemd may make it in order to wake up less often. Its default (0) would mean 250 ms.
    static let accuracyMicroseconds: UInt64 = 1

    private let pointer: OpaquePointer
    private let source: EventSource

    /// `source` owns `pointer`.
    init(_ pointer: OpaquePointer, _ source: EventSource) {
        self.pointer = pointer
        self.source = source
    }

    /// Fires once at this time of CLOCK_MONOTONIC (`EventLoop.now`), never earlier: nanoseconds are rounded up to
    /// libsystemd's microseconds. A time that has passed fires at once. `nil` disarms; so does having fired.
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

    /// Stops it for good and lets its handler go.
    package func cancel() { source.cancel() }
}

extension Duration {
    /// Microseconds, rounded up; 0 for anything negative, and at most 2^62, which is 146,000 years and no special value
    /// of libsystemd's.
    var wholeMicroseconds: UInt64 {
        let (seconds, attoseconds) = components
        guard seconds >= 0, attoseconds >= 0 else { return 0 }
        guard seconds < 1 << 42 else { return 1 << 62 }
        let (quotient, rest) = attoseconds.quotientAndRemainder(dividingBy: 1_000_000_000_000)
        return UInt64(seconds) * 1_000_000 + UInt64(quotient) + (rest > 0 ? 1 : 0)
    }
}
