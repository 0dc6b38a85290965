import Testing

@testable import LifecycleCore

/// Workers that would sleep until a user asks for them (L51).
@Suite("Workers that only a request wakes")
struct OnlyRequestsWakeTests {
    /// How often a worker is warned of that is suspended twice in one run.
    private static func warnings(_ watch: InputWatch, _ work: RunWork, _ policy: (inout AppPolicy) -> Void) -> Int {
        let harness = TrafficTests.worker(policy)
        harness.launch("web")
        harness.behave("web") {
            $0.watch = watch
            $0.work = work
        }
        let idle = harness.policies[id("web")]!.idleTime
        harness.advance(idle)
        harness.request("web", .activate)
        harness.advance(idle)
        #expect(harness.state("web") == .suspended)
        return harness.effects.count { $0 == .run(harness.run("web"), .warn(.onlyRequestsWake)) }
    }

    @Test(
        "a worker is warned of once in a run if neither input, nor a timer, nor a held socket wakes it (L51)",
        arguments: [0, 2])
    func warned(silent: Int) {
        let work = RunWork(cpu: .zero)
        let watch = InputWatch(watched: silent, silent: silent)
        #expect(Self.warnings(watch, work) { _ in } == 1)
        #expect(Self.warnings(InputWatch(watched: 3), work) { $0.wakesOnTraffic = false } == 1)
        let signalfd = InputWatch(unwatched: [.init(what: "signalfd", problem: .notSupported, count: 1)])
        #expect(Self.warnings(signalfd, work) { _ in } == 1)
        var ticks = work
        ticks.tick = .seconds(1)
        #expect(Self.warnings(watch, ticks) { $0.keepsTimers = false } == 1)
    }

    @Test("a worker that something wakes is not warned of (L51)")
    func unwarned() {
        let nothing = InputWatch()
        let work = RunWork(cpu: .zero)
        #expect(Self.warnings(InputWatch(watched: 3, silent: 2), work) { _ in } == 0)
        #expect(Self.warnings(nothing, work) { $0.holdsSockets = true } == 0)
        #expect(Self.warnings(nothing, work) { $0.backgroundModes = .push } == 0)
        var timed = work
        timed.tick = .seconds(1)
        #expect(Self.warnings(nothing, timed) { _ in } == 0)
        var signals = work
        signals.hasSignalTimers = true
        #expect(Self.warnings(nothing, signals) { _ in } == 0)
        #expect(Self.warnings(nothing, signals) { $0.keepsTimers = false } == 1)
        let harness = Harness("web") { $0.wakesOnTraffic = true }
        harness.behave("web") { $0.watch = nothing }
        harness.suspend("web")
        #expect(!harness.effects.contains { if case .run(_, .warn) = $0 { true } else { false } })
    }

    @Test("a manifest that is read again is judged at once, also of a worker that is suspended (L51)")
    func reloaded() {
        let harness = TrafficTests.worker { $0.wakesOnTraffic = false }
        TrafficTests.rest(harness)
        #expect(harness.view("web").hadNoWaker)
        harness.register("web") { $0.holdsSockets = true }
        #expect(!harness.view("web").hadNoWaker && !harness.view("web").onlyRequestsWake)
        let mark = harness.mark
        harness.register("web") { $0.holdsSockets = false }
        #expect(harness.effects(since: mark).contains(.run(harness.run("web"), .warn(.onlyRequestsWake))))
        #expect(harness.view("web").hadNoWaker)
        // What was watched for peers that wait says nothing about other input.
        harness.behave("web") { $0.watch = nil }
        harness.register("web") { $0.wakesOnTraffic = true }
        #expect(!harness.view("web").hadNoWaker && !harness.view("web").onlyRequestsWake)
    }

    @Test("what wakes a worker may be found by the look at its frozen threads, after its descriptors (L51)")
    func timerOfFrozenThread() {
        let harness = TrafficTests.worker()
        harness.launch("web")
        harness.behave("web") {
            $0.watch = InputWatch()
            $0.work?.due = harness.now + .seconds(60)
        }
        harness.advance(harness.policies[id("web")]!.idleTime)
        #expect(!harness.view("web").onlyRequestsWake)
        harness.behave("web") { $0.work?.due = nil }
        harness.advance(.seconds(60))
        #expect(harness.state("web") == .suspended)
        #expect(harness.view("web").onlyRequestsWake && harness.view("web").hadNoWaker)
    }
}
