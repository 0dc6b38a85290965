import Testing

@testable import LifecycleCore

@Suite("Manifests that are read again while the app runs")
struct ReloadTests {
    private static func arrive(_ harness: Harness, _ input: Input = TrafficTests.request) {
        let run = harness.run("web")
        let attempt = harness.core.freezeAttempt(ofSuspended: run) ?? 0
        harness.handle(.run(run, .traffic(.inputArrived(attempt: attempt, input))))
    }

    @Test("another IdleSec= counts from the last look (L51)", arguments: [1, 60])
    func idleTime(seconds: Int) {
        let harness = TrafficTests.worker()
        harness.launch("web")
        harness.advance(.seconds(3))
        harness.register("web") { $0.idleTime = .seconds(seconds) }
        harness.advance(.milliseconds(1))
        #expect(harness.state("web") == (seconds == 1 ? .suspended : .background))
        harness.advance(.seconds(56))
        #expect(harness.state("web") == (seconds == 1 ? .suspended : .background))
        harness.advance(.seconds(1))
        #expect(harness.state("web") == .suspended)
    }

    @Test("another IdleSec= counts from the last look, also if the app is left awake for less than that (L50, L51)")
    func idleTimeLeftAwake() {
        let harness = TrafficTests.worker { $0.idleTime = .milliseconds(1500) }
        TrafficTests.rest(harness)
        for _ in 0..<2 {
            Self.arrive(harness)
            harness.advance(.milliseconds(1500))
            #expect(harness.state("web") == .suspended)
        }
        Self.arrive(harness)
        // It is left awake for 2 s: the second look would come 0.5 s after the first.
        harness.advance(.milliseconds(1600))
        harness.register("web") { $0.idleTime = .seconds(10) }
        harness.advance(.milliseconds(9800))
        #expect(harness.state("web") == .background)
        harness.advance(.milliseconds(100))
        #expect(harness.state("web") == .suspended)
    }

    @Test("an app that is no worker any more has a budget for its tasks (L21, L49)")
    func budget() {
        let harness = TrafficTests.worker()
        harness.launch("web")
        harness.task("web", "upload")
        harness.advance(.seconds(100))
        #expect(harness.view("web").backgroundTimeRemaining == nil)
        harness.register("web") { $0.role = .app }
        #expect(harness.view("web").backgroundTimeRemaining == .seconds(30))
        harness.advance(.seconds(29))
        #expect(harness.killed().isEmpty)
        harness.advance(.seconds(2))
        #expect(harness.killed() == ["web"])
    }

    @Test("a worker that becomes an app while it is thawed has a budget for its tasks (L21, L49)")
    func budgetWhileWaking() {
        let harness = TrafficTests.worker()
        TrafficTests.rest(harness)
        harness.behave("web") { $0.thaws = false }
        harness.task("web", "upload")
        harness.register("web") { $0.role = .app }
        harness.finish("web", .waking, harness.run("web"))
        #expect(harness.view("web").awakeReasons == [.task(name: "upload")])
        #expect(harness.view("web").backgroundTimeRemaining == .seconds(30))
    }

    @Test("an app that becomes a worker while it enters the background has no budget (L49)")
    func entering() {
        let harness = Harness("web") { $0.backgroundDeadline = .seconds(60) }
        harness.behave("web") { $0.entering = .isSilent }
        harness.launch("web")
        harness.task("web", "upload")
        harness.background("web")
        #expect(harness.view("web").backgroundTimeRemaining == .seconds(30))
        harness.register("web") { $0.role = .worker }
        #expect(harness.view("web").backgroundTimeRemaining == nil)
        harness.advance(.seconds(59))
        #expect(harness.killed().isEmpty)
    }

    @Test("a task that may have ended without a daemon does not keep an app awake that becomes a worker (L49)")
    func doubtfulTask() {
        let harness = Harness("web")
        harness.launch("web", .background)
        harness.task("web", "upload")
        harness.handle(.recovered)
        harness.handle(.run(harness.run("web"), .process(.reattached(messagesKept: false))))
        harness.register("web") { $0.role = .worker }
        #expect(harness.view("web").awakeReasons == [.task(name: "upload")])
        harness.advance(.seconds(60))
        #expect(harness.state("web") == .suspended)
    }

    @Test("a suspended worker that becomes an app has its budget when it is woken (L21, L49)")
    func budgetOfSuspended() {
        let harness = TrafficTests.worker()
        TrafficTests.rest(harness)
        harness.register("web") { $0.role = .app }
        #expect(harness.state("web") == .suspended)
        #expect(harness.view("web").backgroundTimeRemaining == .seconds(30))
        harness.task("web", "upload")
        #expect(harness.state("web") == .background)
        harness.advance(.seconds(31))
        #expect(harness.killed() == ["web"])
    }

    @Test("a relaunch that was planned for the foreground goes to the background if the app is a worker by then (L49)")
    func relaunch() {
        let harness = Harness("web") { $0.relaunch = .always }
        harness.launch("web")
        harness.crash("web")
        #expect(harness.state("web") == .notRunning)
        harness.register("web") { $0.role = .worker }
        harness.advance(.seconds(11))
        #expect(harness.launches("web").map(\.state) == [.foreground, .background])
        #expect(harness.state("web") == .background)
        #expect(harness.core.foregroundApps.isEmpty)
    }

    @Test("input that waits for background time is served when the manifest gives more (L50, L53)")
    func deferral() {
        let harness = Harness("web") { $0.backgroundTimePerHour = .seconds(2) }
        harness.suspend("web")
        let full = Input(kind: .stream, pid: 101, descriptor: 5, bytes: 150_000, isHalfFull: true)
        for _ in 0..<4 {
            Self.arrive(harness, full)
            harness.advance(.seconds(3))
        }
        #expect(harness.state("web") == .suspended)
        let wakes = harness.view("web").trafficWakes
        #expect(wakes == 2)
        harness.register("web") { $0.backgroundTimePerHour = .seconds(600) }
        harness.advance(.milliseconds(1))
        #expect(harness.state("web") == .background)
        #expect(harness.view("web").trafficWakes == wakes + 1)
    }

    @Test("a wake for another reason ends the row of quick wakes by input (L50)")
    func row() {
        let harness = TrafficTests.worker { $0.idleTime = .seconds(1) }
        TrafficTests.rest(harness)
        func rest() {
            harness.advance(.seconds(1))
            #expect(harness.state("web") == .suspended)
        }
        for _ in 0..<3 {
            for _ in 0..<2 {
                Self.arrive(harness)
                rest()
            }
            harness.activate("web")
            rest()
        }
        let reported = harness.reports().contains { if case .wokenTooOften = $0 { true } else { false } }
        #expect(!reported)
    }
}
