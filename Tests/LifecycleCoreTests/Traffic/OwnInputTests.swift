import Testing

@testable import LifecycleCore

@Suite("Input that an app has sent to itself")
struct OwnInputTests {
    private static let own = Input(kind: .pipe, pid: 101, descriptor: 7, bytes: 1, source: .own)

    private static func arrive(_ harness: Harness, _ input: Input = own) {
        let run = harness.run("web")
        let attempt = harness.core.freezeAttempt(ofSuspended: run) ?? 0
        harness.handle(.run(run, .traffic(.inputArrived(attempt: attempt, input))))
    }

    /// A suspended worker, or an app that input wakes, which may use `limit` in an hour.
    private static func suspended(isWorker: Bool = true, limit: Duration = .seconds(60)) -> Harness {
        let harness = Harness("web") {
            $0.role = isWorker ? .worker : .app
            $0.wakesOnTraffic = true
            $0.backgroundTimePerHour = limit
        }
        if isWorker { TrafficTests.rest(harness) } else { harness.suspend("web") }
        return harness
    }

    /// Lets the app wake itself until it has no background time any more.
    private static func useUp(_ harness: Harness) {
        for _ in 0..<20 {
            arrive(harness)
            harness.advance(.seconds(45))
        }
        #expect(harness.state("web") == .suspended)
    }

    @Test(
        "what an app sends to itself wakes it, and that time is limited; traffic from outside is not (L53)",
        arguments: [true, false])
    func limited(isWorker: Bool) {
        let harness = Self.suspended(isWorker: isWorker)
        Self.arrive(harness)
        #expect(harness.state("web") == .background)
        #expect(harness.view("web").lastInput == Self.own)
        harness.advance(.seconds(5))
        #expect(harness.view("web").unrequestedTime >= .seconds(5))
        harness.advance(.seconds(40))
        Self.useUp(harness)
        #expect(harness.view("web").unrequestedTime >= .seconds(60))
        let before = harness.view("web").unrequestedTime
        Self.arrive(harness, TrafficTests.request)
        #expect(harness.state("web") == .background)
        harness.advance(.seconds(45))
        #expect(harness.view("web").unrequestedTime <= before + .seconds(1))
    }

    @Test("a wake that waits for background time is shown with its cause and the time left, and comes then (L53)")
    func deferred() throws {
        let harness = Self.suspended()
        #expect(harness.view("web").deferredWake == nil)
        Self.useUp(harness)
        let wake = try #require(harness.view("web").deferredWake)
        #expect(wake.input == Self.own && wake.remaining > .zero && wake.remaining <= .seconds(3660))
        let wakes = harness.view("web").trafficWakes
        harness.advance(.seconds(10))
        #expect(harness.view("web").deferredWake?.remaining == wake.remaining - .seconds(10))
        harness.advance(wake.remaining)
        #expect(harness.view("web").trafficWakes > wakes)
    }

    @Test("input from outside does not wait behind what the app has sent to itself (L50, L53)")
    func outsideFirst() {
        let harness = Self.suspended(limit: .seconds(11))
        Self.useUp(harness)
        harness.register("web") { $0.wakeThreshold = .init(bytes: 64, time: .seconds(30)) }
        // Less than the threshold: it waits.
        Self.arrive(harness, Input(kind: .stream, pid: 101, descriptor: 8, bytes: 3, source: .own))
        harness.advance(.seconds(10))
        Self.arrive(harness, Input(kind: .stream, pid: 101, descriptor: 5, bytes: 3))
        harness.advance(.seconds(19))
        #expect(harness.state("web") == .suspended)
        harness.advance(.seconds(1))
        #expect(harness.state("web") == .background)
        #expect(harness.view("web").lastInput?.source == .outside)
    }

    @Test("what a worker does for input that it has sent to itself is counted (L53)", arguments: [true, false])
    func unread(isOwn: Bool) {
        let harness = Self.suspended(limit: .seconds(600))
        harness.behave("web") {
            $0.work?.unread = 1
            $0.work?.isOwn = isOwn
        }
        Self.arrive(harness)
        harness.advance(.seconds(300))
        #expect(harness.state("web") == .background)
        let used = harness.view("web").unrequestedTime
        #expect(isOwn ? used >= .seconds(300) : used <= .seconds(10))
    }

    @Test("who has sent input, and a deferred wake, are saved")
    func saved() throws {
        var work = RunWork(cpu: .seconds(1))
        work.isOwn = true
        for what in [RunEvent.traffic(.inputArrived(attempt: 1, Self.own)), .traffic(.workMeasured(work))] {
            let event = Event.run(RunID(3), what)
            let bytes = LoggedEvent(event, at: Instant(sinceOrigin: .seconds(7))).savedBytes
            #expect(try LoggedEvent(reading: bytes).event == event)
        }
        let harness = Self.suspended()
        Self.useUp(harness)
        let new = LifecycleCore(recovering: try SavedCore(reading: harness.core.saved.bytes))
        #expect(new.difference(from: harness.core) == nil)
        #expect(new.view(of: id("web"), at: harness.now)?.deferredWake == harness.view("web").deferredWake)
    }
}
