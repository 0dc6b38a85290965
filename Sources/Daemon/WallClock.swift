import Glibc
import LifecycleCore

/// The time of day, for people: nothing is decided by it.
struct WallClock {
    init() {}

    /// Now, in RFC 3339, UTC, to the millisecond.
    func now() -> String { format(secondsAgo: 0) }

    /// When something was that `since` ago was.
    func format(ago: Duration) -> String { format(secondsAgo: ago.seconds) }

    private func format(secondsAgo: Double) -> String {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        let milliseconds = Int(time.tv_sec) * 1000 + time.tv_nsec / 1_000_000 - Int(secondsAgo * 1000)
        var seconds = time_t(milliseconds / 1000)
        var parts = tm()
        gmtime_r(&seconds, &parts)
        func two(_ number: Int32) -> String { number < 10 ? "0\(number)" : "\(number)" }
        let fraction = String(milliseconds % 1000 + 1000).dropFirst()
        return "\(parts.tm_year + 1900)-\(two(parts.tm_mon + 1))-\(two(parts.tm_mday))"
            + "T\(two(parts.tm_hour)):\(two(parts.tm_min)):\(two(parts.tm_sec)).\(fraction)Z"
    }
}
