import CSystemd
import Glibc

/// Microseconds of CLOCK_REALTIME since 1970, systemd's unit of timestamps.
package func realtimeMicroseconds() -> UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return UInt64(max(0, time.tv_sec)) * 1_000_000 + UInt64(time.tv_nsec / 1000)
}
