import Testing

@testable import Schedule

@Suite("When the timers of apps elapse (L30)")
struct TimerPlanTests {
    private static let second = CalendarEvent.second
    /// CLOCK_REALTIME when CLOCK_BOOTTIME and CLOCK_MONOTONIC were 0.
    private static let boot = 1_800_000_000 * second

    private func clock(_ seconds: Int, slept: Int = 0) -> ClockReading {
        ClockReading(
            realtime: Self.boot + seconds * Self.second, monotonic: (seconds - slept) * Self.second,
            boottime: seconds * Self.second)
    }

    private func history(_ change: (inout TimerHistory) -> Void = { _ in }) -> TimerHistory {
        var history = TimerHistory(began: clock(100), calendarBase: clock(100).realtime)
        change(&history)
        return history
    }

    /// The next elapse in seconds after the boot.
    private func next(
        _ history: TimerHistory, at now: ClockReading, _ settings: (inout TimerSettings) -> Void
    ) -> Int? {
        var value = TimerSettings()
        settings(&value)
        let plan = value.plan(history, now: now, seed: 7) { $0.next(after: $1, UTCClock()) }
        return (plan.timer ?? plan.fetch).map { ($0.start - Self.boot) / Self.second }
    }

    @Test("a time since the boot elapses once, also if it has passed before the daemon was started")
    func sinceBoot() {
        #expect(next(history(), at: clock(101)) { $0.sinceBoot = [60].map { $0 * Self.second } } == 60)
        #expect(
            next(history { $0.lastTimer = 101 * Self.second }, at: clock(102)) {
                $0.sinceBoot = [60, 300].map { $0 * Self.second }
            } == 300)
        #expect(
            next(history { $0.lastTimer = 301 * Self.second }, at: clock(302)) {
                $0.sinceBoot = [60, 300].map { $0 * Self.second }
            } == nil)
    }

    @Test("OnUnitActiveSec= counts from the last launch or the last elapse, the later one, and not before a launch")
    func sinceActive() {
        let settings: (inout TimerSettings) -> Void = { $0.sinceActive = [60 * Self.second] }
        #expect(next(history(), at: clock(101), settings) == nil)
        #expect(next(history { $0.lastLaunch = 110 * Self.second }, at: clock(111), settings) == 170)
        #expect(
            next(
                history {
                    $0.lastLaunch = 110 * Self.second
                    $0.lastTimer = 170 * Self.second
                }, at: clock(171), settings) == 230)
        // The sleep of the machine does not count.
        #expect(next(history { $0.lastLaunch = 110 * Self.second }, at: clock(1111, slept: 1000), settings) == 1170)
    }

    @Test("a calendar counts from its base, and one that has passed elapses now, with a delay from the beginning")
    func calendar() throws {
        let event = try #require(CalendarEvent("*:*:00 UTC"))
        #expect(next(history(), at: clock(101)) { $0.calendar = [event] } == 120)
        let missed = history { $0.calendarBase = self.clock(-500).realtime }
        #expect(next(missed, at: clock(101)) { $0.calendar = [event] } == 100)
        let delayed = next(missed, at: clock(101)) {
            $0.calendar = [event]
            $0.randomizedDelay = 50 * Self.second
        }
        #expect(delayed.map { (100...150).contains($0) } == true)
    }

    @Test("one moment wakes all that may be woken at it, at the same position in each minute of a machine")
    func coalesces() {
        var settings = TimerSettings()
        settings.calendar = [CalendarEvent("*:*:00 UTC")].compactMap { $0 }
        let batch = TimerBatch(seed: 5)
        func plan(_ base: Int) -> TimerPlan {
            settings.plan(history { $0.calendarBase = self.clock(base).realtime }, now: clock(base), seed: 1) {
                $0.next(after: $1, UTCClock())
            }
        }
        let moments = [101, 170, 230, 3000].compactMap { batch.moment(of: [plan($0)]) }
        #expect(Set(moments.map { $0 % (60 * Self.second) }).count == 1)
        // The first of two may be woken with the second, so it is.
        let (first, second) = (plan(101), plan(130))
        let moment = batch.moment(of: [first, second]) ?? 0
        #expect(moment == moments[0])
        #expect(TimerBatch.elapse(first, at: moment, isFetching: false).timer)
        settings.accuracy = 1
        #expect(batch.moment(of: [plan(101)]) == clock(120).realtime + 1)
        #expect(batch.moment(of: [TimerPlan()]) == nil)
    }

    @Test("a fetch comes with others once its own interval is over, even if it has become rarer")
    func fetches() {
        var settings = TimerSettings()
        settings.accuracy = Self.second
        settings.fetchInterval = 100 * Self.second
        func plan(_ factor: Int) -> TimerPlan {
            settings.plan(history { $0.fetchFactor = factor }, now: clock(101), seed: 1) { _, _ in nil }
        }
        func fetches(_ factor: Int, at seconds: Int, with others: Bool) -> Bool {
            TimerBatch.elapse(plan(factor), at: clock(seconds).realtime, isFetching: others).fetch
        }
        #expect(plan(1).fetch?.start == clock(200).realtime)
        #expect(!fetches(1, at: 199, with: true))
        #expect(fetches(1, at: 200, with: false))
        #expect(plan(4).fetch?.start == clock(500).realtime)
        #expect(!fetches(4, at: 480, with: false) && fetches(4, at: 480, with: true))
        #expect(!fetches(4, at: 470, with: true))
    }
}
