/// What a manifest says about timers (L30). Times are in microseconds.
package struct TimerSettings: Hashable, Sendable {
    /// `OnCalendar=`
    package var calendar: [CalendarEvent] = []
    /// `OnUnitActiveSec=`: after the last launch, or the last time that a timer elapsed.
    package var sinceActive: [Int] = []
    /// `OnBootSec=`
    package var sinceBoot: [Int] = []
    /// `Persistent=`: a time of a calendar that passed without a daemon, also before the boot, elapses when it starts.
    package var isPersistent = false
    /// `AccuracySec=`
    package var accuracy = 60 * CalendarEvent.second
    /// `RandomizedDelaySec=`
    package var randomizedDelay = 0
    /// `FetchIntervalSec=`; `nil`: never.
    package var fetchInterval: Int?

    /// How many times one manifest may name.
    package static let maximumTimes = 64

    package init() {}

    package var hasTimers: Bool { count > 0 }
    package var count: Int { calendar.count + sinceActive.count + sinceBoot.count }
}

/// A moment on the clocks that timers count on, in microseconds.
package struct ClockReading: Hashable, Sendable {
    package var realtime: Int
    package var monotonic: Int
    package var boottime: Int

    package init(realtime: Int, monotonic: Int, boottime: Int) {
        self.realtime = realtime
        self.monotonic = monotonic
        self.boottime = boottime
    }
}

/// What the timers of an app have done.
package struct TimerHistory: Hashable, Sendable {
    package var began: ClockReading
    /// The next time of a calendar is the first one after this, on CLOCK_REALTIME.
    package var calendarBase: Int
    /// When a timer elapsed last, and when the app was launched last, on CLOCK_MONOTONIC.
    package var lastTimer: Int?
    package var lastLaunch: Int?
    /// The last fetch, on CLOCK_BOOTTIME.
    package var lastFetch: Int?
    /// By what the interval of fetches is multiplied.
    package var fetchFactor = 1

    package init(began: ClockReading, calendarBase: Int) {
        self.began = began
        self.calendarBase = calendarBase
    }
}

/// When an app is woken next, on CLOCK_REALTIME as it is now.
package struct TimerPlan: Hashable, Sendable {
    /// From `start` on, and until `latest` at the latest.
    package struct Window: Hashable, Sendable {
        package var start: Int
        package var latest: Int
    }

    package var timer: Window?
    package var fetch: Window?
    /// From this time on it fetches with other apps.
    package var earlyFetch = 0

    package init() {}

    package var isEmpty: Bool { timer == nil && fetch == nil }
}

extension TimerSettings {
    /// When they elapse next.
    /// - Parameters:
    ///   - seed: of the app: its random delays follow from it, so that the next daemon has the same ones.
    ///   - next: the first time of a calendar event after one, on CLOCK_REALTIME.
    package func plan(
        _ history: TimerHistory, now: ClockReading, seed: UInt64, next: (CalendarEvent, Int) -> Int?
    ) -> TimerPlan {
        var plan = TimerPlan()
        let times = [calendarTime(history, now, seed, next), monotonicTime(history, now, seed)].compactMap { $0 }
        plan.timer = times.min().map { TimerPlan.Window(start: $0, latest: Self.sum($0, max(1, accuracy))) }
        guard let interval = fetchInterval else { return plan }
        let offset = now.realtime - now.boottime
        let last = max(history.began.boottime, history.lastFetch ?? 0)
        let due = Self.sum(last, Self.product(interval, history.fetchFactor))
        // A quarter of the interval: fetches of several apps share one moment.
        let slack = max(accuracy, interval / 4)
        plan.fetch = TimerPlan.Window(start: Self.sum(due, offset), latest: Self.sum(due, offset + slack))
        plan.earlyFetch = max(Self.sum(last, interval), due - slack) + offset
        return plan
    }

    private func calendarTime(
        _ history: TimerHistory, _ now: ClockReading, _ seed: UInt64, _ next: (CalendarEvent, Int) -> Int?
    ) -> Int? {
        guard let found = calendar.compactMap({ next($0, history.calendarBase) }).min() else { return nil }
        // The delay of a time that has passed before counts from the beginning (systemd.timer(5)).
        let began = now.realtime - (now.boottime - history.began.boottime)
        return delayed(max(found, began), seed)
    }

    private func monotonicTime(_ history: TimerHistory, _ now: ClockReading, _ seed: UInt64) -> Int? {
        var times: [Int] = []
        // Each time since the boot elapses once, and those that have passed elapse together.
        times += sinceBoot.filter { time in history.lastTimer.map { time > $0 } ?? true }
        if let base = [history.lastTimer, history.lastLaunch].compactMap({ $0 }).max() {
            times += sinceActive.map { Self.sum(base, $0) }
        }
        return times.min().map { Self.sum(delayed($0, seed), now.realtime - now.monotonic) }
    }

    /// `RandomizedDelaySec=`: another delay each time.
    private func delayed(_ time: Int, _ seed: UInt64) -> Int {
        guard randomizedDelay > 0 else { return time }
        let number = Self.mix(seed ^ Self.mix(UInt64(bitPattern: Int64(time))))
        return Self.sum(time, Int(number % UInt64(randomizedDelay + 1)))
    }

    /// SplitMix64.
    package static func mix(_ value: UInt64) -> UInt64 {
        var mixed = value &+ 0x9e37_79b9_7f4a_7c15
        mixed = (mixed ^ mixed >> 30) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ mixed >> 27) &* 0x94d0_49bb_1331_11eb
        return mixed ^ mixed >> 31
    }

    /// Without an overflow: the far future is as good as never.
    private static func sum(_ a: Int, _ b: Int) -> Int {
        let (sum, overflows) = a.addingReportingOverflow(b)
        return overflows ? Int.max / 4 : min(sum, Int.max / 4)
    }

    private static func product(_ a: Int, _ b: Int) -> Int {
        let (product, overflows) = a.multipliedReportingOverflow(by: b)
        return overflows ? Int.max / 4 : min(product, Int.max / 4)
    }
}
