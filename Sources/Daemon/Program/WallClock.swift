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
        let time = Timestamp(of: instant, now: now)
        stamps[app] = Stamp(instant: instant, time: time)
        return time
    }

    /// Removes an app that no longer exists.
    mutating func remove(_ app: AppID) { stamps[app] = nil }
}

/// Since when each app is awake for each of its reasons, on CLOCK_REALTIME. A time is fixed when it is first asked for, and
/// removed when the app has no such reason any more: there are at most `AwakeStatus.maximum` for an app.
struct AwakeTimestamps {
    private var times: [AppID: [Instant: Timestamp]] = [:]

    /// - Parameters:
    ///   - instants: all that are shown of the app now; `nil`: not known.
    ///   - now: the current time on both clocks.
    mutating func timestamps(
        of app: AppID, since instants: [Instant?], now: (instant: Instant, time: Timestamp)
    ) -> [Timestamp?] {
        let known = times[app] ?? [:]
        var shown: [Instant: Timestamp] = [:]
        for case let instant? in instants { shown[instant] = known[instant] ?? Timestamp(of: instant, now: now) }
        times[app] = shown.isEmpty ? nil : shown
        return instants.map { instant in instant.flatMap { shown[$0] } }
    }

    /// Removes an app that no longer exists.
    mutating func remove(_ app: AppID) { times[app] = nil }
}

extension Timestamp {
    /// An instant on CLOCK_REALTIME, in whole milliseconds.
    fileprivate init(of instant: Instant, now: (instant: Instant, time: Timestamp)) {
        let exact = now.time - (now.instant - instant)
        self.init(microseconds: exact.microseconds / 1000 * 1000)
    }
}
