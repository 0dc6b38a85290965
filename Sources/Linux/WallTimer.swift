import CLinux
import Glibc
package import Posix
package import Schedule

/// A timer on CLOCK_REALTIME that also says when that clock is set.
package struct WallTimer: ~Copyable {
    package enum Outcome { case elapsed, clockSet, nothing }

    /// Readable when the time has come, and when the clock was set.
    package let descriptor: SharedDescriptor

    package init() throws(SystemError) {
        descriptor = SharedDescriptor(Descriptor(adopting: try check(clinux_timer_create(), "timerfd_create")))
    }

    /// - Parameter time: in microseconds since 1970. One that has passed elapses at once.
    package func arm(at time: Int) throws(SystemError) {
        let result = clinux_timer_set(descriptor.raw, Int64(time))
        // The clock was set since the last look. The timer is armed nevertheless (timerfd_create(2)).
        if result != -ECANCELED { try check(result, "timerfd_settime") }
    }

    package static func read(_ descriptor: SharedDescriptor) -> Outcome {
        switch clinux_timer_read(descriptor.raw) {
        case 1: .elapsed
        case -ECANCELED: .clockSet
        default: .nothing
        }
    }
}

extension ClockReading {
    package static func now() -> ClockReading {
        var clocks: (Int64, Int64, Int64) = (0, 0, 0)
        withUnsafeMutableBytes(of: &clocks) { clinux_clocks($0.assumingMemoryBound(to: Int64.self).baseAddress) }
        return ClockReading(realtime: Int(clocks.0), monotonic: Int(clocks.1), boottime: Int(clocks.2))
    }
}
