import LifecycleCore
import Testing

@Suite("Timers and fetch (L30)")
struct TimerTests {
    private static let feed = id("feed")

    /// An app whose timers have begun.
    private func stage(_ policy: (inout AppPolicy) -> Void = { _ in }) -> Harness {
        let harness = Harness("feed") {
            $0.hasTimers = true
            $0.backgroundModes = .fetch
            policy(&$0)
        }
        harness.handle(.timer(Self.feed, .began(moment(0), last: nil)))
        return harness
    }

    private func moment(_ seconds: Int) -> TimerMoment {
        TimerMoment(realtime: seconds * 1_000_000, monotonic: seconds * 1_000_000, boottime: seconds * 1_000_000)
    }

    private func elapse(_ harness: Harness, _ purpose: TimerPurpose, at seconds: Int = 60) {
        harness.handle(.timer(Self.feed, .elapsed(purpose, moment(seconds))))
    }

    private func launches(_ harness: Harness) -> [Launch] {
        harness.effects.compactMap { if case .spawn(_, _, let launch) = $0 { launch } else { nil } }
    }

    private func wakes(_ harness: Harness) -> [LaunchReason] {
        harness.core.view(of: Self.feed, at: harness.now)?.wakes.map(\.reason) ?? []
    }

    @Test("a timer launches an app that does not run, and its time is the next base of calendars (L30)")
    func launches() {
        let harness = stage()
        elapse(harness, .timer)
        #expect(launches(harness).map(\.reason) == [.timer])
        #expect(launches(harness).map(\.state) == [.background])
        #expect(wakes(harness) == [.timer])
        let state = harness.core.timerState(of: Self.feed)
        #expect(state?.calendarBase == 60_000_000)
        #expect(state?.lastTimerRealtime == 60_000_000)
        #expect(state?.lastLaunch == 1_000_000_000)
        #expect(harness.effects.contains(.scheduleTimers(Self.feed)))
    }

    @Test("a timer and a fetch of one moment wake a suspended app once, and each has a wake (L30)")
    func wakesOnce() {
        let harness = stage()
        harness.suspend("feed")
        let mark = harness.mark
        elapse(harness, .timer)
        elapse(harness, .fetch)
        let thaws = harness.effects(since: mark).filter {
            if case .run(_, .suspension(.thaw)) = $0 { true } else { false }
        }
        #expect(thaws.count == 1)
        #expect(wakes(harness).sorted { $0.rawValue < $1.rawValue } == [.fetch, .timer])
    }

    @Test("a timer that elapses while a wake by it is open begins no second one (L30)")
    func merges() {
        let harness = stage()
        elapse(harness, .timer)
        elapse(harness, .timer, at: 70)
        #expect(wakes(harness) == [.timer])
        #expect(harness.core.timerState(of: Self.feed)?.calendarBase == 70_000_000)
    }

    @Test("a wake that L11 postpones comes when the app may be launched, and no later one is needed (L11, L30)")
    func waits() {
        let harness = stage { $0.readiness = .notified }
        harness.behave("feed") { $0.launching = .executes }
        elapse(harness, .timer)
        harness.exit("feed", .exited(1))
        let count = launches(harness).count
        elapse(harness, .timer, at: 61)
        #expect(launches(harness).count == count)
        #expect(harness.core.isTimerPostponed(Self.feed, .timer))
        harness.advance(.seconds(11))
        #expect(launches(harness).count == count + 1)
        #expect(!harness.core.isTimerPostponed(Self.feed, .timer))
    }

    @Test("a wake by a timer is no user's: it waits for background time, but that of a worker does not (L30, L53)")
    func unrequested() {
        for role in [AppPolicy.Role.app, .worker] {
            let harness = stage {
                $0.role = role
                $0.backgroundTimePerHour = .seconds(20)
            }
            elapse(harness, .timer)
            harness.advance(.seconds(40))
            harness.advance(.seconds(20))
            elapse(harness, .timer, at: 120)
            #expect(harness.core.isTimerPostponed(Self.feed, .timer) == (role == .app), "\(role)")
        }
    }

    @Test("fetches without data become rarer, up to four times, and one with data makes them what they were (L30)")
    func adapts() {
        let harness = stage()
        func complete(_ result: WakeResult) -> Int? {
            elapse(harness, .fetch)
            harness.handle(.run(harness.run("feed"), .wake(.completed(result))))
            return harness.core.timerState(of: Self.feed)?.fetchFactor
        }
        #expect(complete(.noData) == 2)
        #expect(complete(.failed) == 2)
        #expect(complete(.noData) == 4)
        #expect(complete(.noData) == 4)
        #expect(complete(.newData) == 1)
    }

    @Test("an app that does not complete a fetch in 30s is killed with 0x2182bad4 (L30)")
    func mustComplete() throws {
        let harness = stage()
        elapse(harness, .fetch)
        harness.advance(.seconds(31))
        #expect(try harness.receipt("feed").code == 0x2182_bad4)
    }

    @Test("what timers have done outlives the daemon, and a manifest that is read again begins nothing anew (L30)")
    func recovers() throws {
        let harness = stage()
        elapse(harness, .timer)
        elapse(harness, .fetch, at: 65)
        let recovered = LifecycleCore(recovering: try SavedCore(reading: harness.core.saved.bytes))
        #expect(recovered.timerState(of: Self.feed) == harness.core.timerState(of: Self.feed))
        harness.register("feed")
        harness.handle(.timer(Self.feed, .began(moment(90), last: nil)))
        #expect(harness.core.timerState(of: Self.feed)?.calendarBase == 60_000_000)
        harness.register("feed") { $0.hasTimers = false }
        #expect(harness.core.timerState(of: Self.feed) == nil)
        elapse(harness, .timer, at: 99)
        #expect(harness.core.timerState(of: Self.feed) == nil)
    }
}
