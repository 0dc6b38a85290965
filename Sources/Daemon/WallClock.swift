import Control
import LifecycleCore

/// CLOCK_REALTIME, for timestamps that people read. No decision depends on it.
struct WallClock {
    private let read: () -> Timestamp

    init(read: @escaping () -> Timestamp = Timestamp.now) {
        self.read = read
    }

    func now() -> Timestamp { read() }
}

/// When each app entered its state, on CLOCK_REALTIME.
///
/// The core counts on CLOCK_MONOTONIC. An instant is converted once, when the state changes or when it is first asked for
/// after a start of the daemon, and is then fixed, like systemd's `StateChangeTimestamp`: two calls give the same `since`,
/// and neither a later change of the system clock nor a sleep of the machine moves it.
struct StateTimestamps {
    private struct Stamp {
        var instant: Instant
        var time: Timestamp
    }

    private var stamps: [AppID: Stamp] = [:]

    /// - Parameters:
    ///   - instant: when the app entered its state.
    ///   - now: the current time on both clocks.
    /// - Returns: the time in whole milliseconds. Reading two clocks is exact to less than that, so another daemon process
    ///   arrives at the same time.
    mutating func timestamp(
        of app: AppID, since instant: Instant, now: (instant: Instant, time: Timestamp)
    ) -> Timestamp {
        if let known = stamps[app], known.instant == instant { return known.time }
        let exact = now.time - (now.instant - instant)
        let time = Timestamp(microseconds: exact.microseconds / 1000 * 1000)
        stamps[app] = Stamp(instant: instant, time: time)
        return time
    }

    /// Removes an app that no longer exists.
    mutating func remove(_ app: AppID) { stamps[app] = nil }
}
