import Testing

@testable import LifecycleCore

/// Workers sleep between their timers, and are thawed for a moment when one is due (L51).
@Suite("Timers and ticks of workers")
struct WorkerTimerTests {
    /// A worker that is suspended, whose timer is due that long after its launch.
    private static func worker(
        due: Duration? = nil, tick: Duration? = nil, _ policy: (inout AppPolicy) -> Void = { _ in }
    ) -> Harness {
        let harness = TrafficTests.worker(policy)
        harness.launch("web")
        harness.behave("web") {
            $0.work?.due = due.map { harness.now + $0 }
            $0.work?.tick = tick
        }
        harness.advance(harness.policies[id("web")]!.idleTime)
        #expect(harness.state("web") == .suspended)
        return harness
    }

    private static func looks(_ harness: Harness, since mark: Int) -> [WorkLookKind] {
        harness.effects(since: mark).compactMap {
            if case .run(_, .traffic(.measureWork(let kind))) = $0 { kind } else { nil }
        }
    }

    /// When the worker was thawed by itself, since its launch.
    private static func thaws(_ harness: Harness) -> [Duration] {
        harness.log.compactMap { entry in
            guard case .report(.stateChanged(id("web"), .suspended, _, .timer)) = entry.effect else { return nil }
            return entry.at - Instant(sinceOrigin: .seconds(1000))
        }
    }

    @Test("a suspended worker is thawed when its timer is due, and frozen again when its processor time is unchanged")
    func served() {
        let harness = Self.worker(due: .milliseconds(30_500))
        let mark = harness.mark
        #expect(harness.view("web").timerIn == .milliseconds(20_500))
        harness.advance(.milliseconds(20_499))
        #expect(harness.state("web") == .suspended)
        harness.advance(.milliseconds(1))
        #expect(harness.state("web") == .background)
        #expect(harness.changes("web").last == "background: timer")
        // It computes for 30 ms.
        for step in 1...3 {
            harness.behave("web") { $0.work = RunWork(cpu: .milliseconds(9 * step)) }
            harness.advance(.milliseconds(10))
            #expect(harness.state("web") == .background)
        }
        harness.advance(.milliseconds(10))
        #expect(harness.state("web") == .suspended)
        #expect(Self.looks(harness, since: mark) == [.first, .brief, .brief, .brief, .brief, .moment, .full])
        #expect(harness.view("web").timerIn == nil)
        #expect(harness.view("web").unrequestedTime == .zero)
    }

    @Test("a worker that its timer gives work stays awake until it was idle for IdleSec=", arguments: [true, false])
    func work(isBusy: Bool) {
        let harness = Self.worker(due: .seconds(30))
        harness.advance(.seconds(20))
        var cpu = Duration.zero
        harness.behave("web") {
            $0.work?.due = nil
            $0.work?.unread = isBusy ? 0 : 1
        }
        // With a moment that does not end it is looked at as ever.
        for _ in 0..<100 {
            if isBusy { cpu += .milliseconds(9) }
            harness.behave("web") { $0.work?.cpu = cpu }
            harness.advance(.milliseconds(10))
        }
        #expect(harness.state("web") == .background)
        let mark = harness.mark
        harness.behave("web") { $0.work?.unread = 0 }
        harness.advance(.seconds(11))
        #expect(Self.looks(harness, since: mark) == [.full, .full])
        #expect(harness.state("web") == .suspended)
    }

    @Test("a worker that waits for the last milliseconds of its timer is looked at again in the same moment")
    func lastMilliseconds() {
        let harness = Self.worker(due: .seconds(30))
        harness.behave("web") {
            $0.work?.due = nil
            $0.work?.wait = .short
        }
        harness.advance(.seconds(20) + .milliseconds(50))
        #expect(harness.state("web") == .background)
        harness.behave("web") { $0.work?.wait = nil }
        harness.advance(.milliseconds(200))
        #expect(harness.state("web") == .suspended)
    }

    @Test("a timer that is due within 2s keeps a worker awake, and it is looked at 20ms after it")
    func soon() {
        let harness = TrafficTests.worker()
        harness.launch("web")
        harness.behave("web") { $0.work?.due = harness.now + .milliseconds(11_500) }
        harness.advance(.seconds(10))
        #expect(harness.view("web").awakeReasons == [.work(.timerSoon)])
        #expect(harness.view("web").timerIn == .milliseconds(1500))
        harness.behave("web") { $0.work?.due = nil }
        harness.advance(.milliseconds(1519))
        #expect(harness.state("web") == .background)
        harness.advance(.milliseconds(1))
        #expect(harness.state("web") == .suspended)
    }

    @Test("a timer that is due while the freeze is under way thaws the worker")
    func whileFreezing() {
        let harness = TrafficTests.worker()
        harness.behave("web") { $0.freezes = false }
        harness.launch("web")
        harness.behave("web") { $0.work?.due = harness.now + .milliseconds(12_500) }
        harness.advance(.milliseconds(12_499))
        #expect(harness.view("web").awakeReasons == [.suspending])
        let mark = harness.mark
        harness.advance(.milliseconds(1))
        #expect(harness.effects(since: mark).contains(.run(harness.run("web"), .suspension(.thaw(attempt: 1)))))
    }

    @Test("a timer that is found at the freeze counts, and one that was over then is served at once")
    func atTheFreeze() {
        let harness = TrafficTests.worker()
        harness.behave("web") { $0.freezes = false }
        harness.launch("web")
        harness.advance(.seconds(10))
        harness.behave("web") { $0.work?.due = harness.now + .seconds(7) }
        harness.handle(.run(harness.run("web"), .suspension(.frozen(attempt: 1, memory: mebibyte))))
        harness.advance(.seconds(7))
        #expect(Self.thaws(harness) == [.seconds(17)])
    }

    @Test("Timers=no, and apps that are no workers: nothing but input wakes them")
    func withoutTimers() {
        let harness = Self.worker(due: .seconds(30), tick: .seconds(1)) { $0.keepsTimers = false }
        #expect(harness.view("web").timerIn == nil && harness.view("web").pulseIn == nil)
        harness.advance(.seconds(3600))
        #expect(Self.thaws(harness) == [])
        let app = Harness("web") { $0.wakesOnTraffic = true }
        app.behave("web") { ($0.work!.due, $0.work!.tick) = (app.now + .seconds(30), .seconds(1)) }
        app.suspend("web")
        app.handle(.run(app.run("web"), .traffic(.inputArrived(attempt: 1, TrafficTests.request))))
        app.advance(.seconds(3600))
        #expect(app.state("web") == .suspended)
        #expect(Self.thaws(app) == [])
    }

    @Test("a manifest that is read again decides for a worker that is suspended already")
    func otherManifest() {
        let harness = Self.worker(due: .seconds(30))
        harness.register("web") { $0.keepsTimers = false }
        harness.advance(.seconds(60))
        #expect(harness.state("web") == .suspended)
        #expect(Self.thaws(harness) == [])
    }

    @Test(
        "with 16 suspended apps, timers of the same half of a second are served together, at its end",
        arguments: [15, 20])
    func grouped(count: Int) {
        let names = (0..<count).map { "web\($0)" }
        let harness = Harness()
        for name in names {
            harness.register(name) { ($0.role, $0.wakesOnTraffic) = (.worker, true) }
            harness.launch(name)
        }
        let start = harness.now
        let dues = (0..<count).map { Duration.milliseconds(30_100 + 10 * $0) }
        for (name, due) in zip(names, dues) { harness.behave(name) { $0.work?.due = start + due } }
        harness.advance(.seconds(30))
        // Each is over when it was served.
        for (name, due) in zip(names, dues) {
            if count < 16 { harness.advance(start + due - harness.now) }
            harness.behave(name) { $0.work?.due = nil }
        }
        harness.advance(.seconds(10))
        let thaws = harness.log.compactMap { entry -> Duration? in
            guard case .report(.stateChanged(_, .suspended, _, .timer)) = entry.effect else { return nil }
            return entry.at - start
        }
        #expect(thaws == (count < 16 ? dues : dues.map { _ in .milliseconds(30_500) }))
    }

    // MARK: Ticks

    @Test("a worker with ticks runs for a moment after PulseSec=, on a whole second, and rarer without effect")
    func pulses() {
        let harness = Self.worker(tick: .milliseconds(100)) { $0.idleTime = .milliseconds(10_300) }
        #expect(harness.view("web").pulseIn == .milliseconds(20_700))
        #expect(harness.view("web").shortestWait == .milliseconds(100))
        harness.advance(.seconds(500))
        // Suspended at 10.3 s; then each time 10 ms after the pulse.
        #expect(Self.thaws(harness) == [31, 72, 153, 274, 395].map { .seconds($0) })
        harness.behave("web") { $0.work?.unread = 1 }
        harness.advance(.seconds(10))
        #expect(harness.state("web") == .background)
        harness.behave("web") { $0.work?.unread = 0 }
        while harness.state("web") == .background { harness.advance(.milliseconds(100)) }
        #expect(harness.view("web").pulseIn.map { $0 <= .seconds(21) } == true)
    }

    @Test("while a client is connected the pulses of a worker with ticks do not become rarer")
    func pulsesForClient() {
        let harness = Self.worker(tick: .milliseconds(100))
        harness.behave("web") { $0.work?.connections = 1 }
        harness.advance(.seconds(150))
        let thaws = Self.thaws(harness)
        #expect(thaws.count > 4 && zip(thaws.dropFirst(), thaws).dropFirst().allSatisfy { $0 - $1 == .seconds(21) })
    }

    @Test("a worker that had stopped, and that a moment continues, is judged by all of its work")
    func continuedInMoment() {
        let harness = Self.worker(tick: .milliseconds(100))
        harness.behave("web") { $0.work?.traffic = .zero }
        harness.advance(.seconds(22))
        // The traffic of a moment alone is no work.
        #expect(Self.thaws(harness).count == 1 && harness.state("web") == .suspended)
        harness.handle(.run(harness.run("web"), .process(.stopped)))
        harness.advance(.seconds(120))
        #expect(harness.effects(since: 0).contains(.run(harness.run("web"), .continueStopped)))
        #expect(Self.thaws(harness).count == 2 && harness.state("web") == .background)
        #expect(harness.view("web").awake.map(\.reason) == [.work(.traffic)])
    }

    @Test("the pulses of many suspended workers are rarer: all together have one each 60 ms")
    func pulsesOfMany() {
        let harness = Harness()
        for number in 0..<100 {
            harness.register("web\(number)") {
                ($0.role, $0.wakesOnTraffic, $0.pulseTime) = (.worker, true, .seconds(1))
            }
            harness.launch("web\(number)")
            harness.behave("web\(number)") { $0.work?.tick = .milliseconds(500) }
        }
        harness.advance(.seconds(10))
        // On a whole second.
        #expect(harness.view("web99").pulseIn.map { $0 >= .seconds(6) && $0 < .seconds(7) } == true)
    }

    @Test("no pulse comes sooner than PulseSec=, however long that is")
    func rarePulses() {
        let harness = Self.worker(tick: .seconds(1)) { $0.pulseTime = .seconds(300) }
        harness.advance(.seconds(1000))
        #expect(Self.thaws(harness) == [.seconds(310), .seconds(611), .seconds(912)])
        let never = Self.worker(tick: .seconds(1)) { $0.pulseTime = .seconds(3_155_760_000) }
        never.advance(.seconds(100_000))
        #expect(Self.thaws(never) == [])
    }

    @Test("a wake by a timer, or by input, does not make the pulses rarer")
    func pulseAfterTimer() {
        let harness = Self.worker(due: .seconds(25), tick: .seconds(1))
        harness.advance(.seconds(15))
        harness.behave("web") { $0.work?.due = nil }
        harness.advance(.milliseconds(10))
        #expect(harness.state("web") == .suspended)
        #expect(harness.view("web").pulseIn.map { $0 <= .seconds(21) } == true)
    }

    @Test("when timers and pulses are due passes to the next daemon")
    func saved() throws {
        let harness = Self.worker(due: .seconds(60), tick: .seconds(1)) { $0.pulseTime = .seconds(30) }
        let saved = try SavedCore(reading: harness.core.saved.bytes)
        let new = LifecycleCore(recovering: saved)
        #expect(new.difference(from: harness.core) == nil)
        let (view, old) = (new.view(of: id("web"), at: harness.now), harness.view("web"))
        #expect(view?.timerIn == .seconds(50) && view?.pulseIn == .seconds(30))
        #expect(old.timerIn == .seconds(50) && old.pulseIn == .seconds(30))
        #expect(new.nextDeadline == harness.now + .seconds(30))
        // In a moment, too.
        harness.advance(.seconds(30))
        #expect(harness.state("web") == .background)
        let moment = LifecycleCore(recovering: try SavedCore(reading: harness.core.saved.bytes))
        #expect(moment.difference(from: harness.core) == nil)
    }

    @Test("timers thaw no worker in a shutdown")
    func shutdown() {
        let harness = Self.worker(due: .seconds(30)) { $0.terminateSuspended = .notify }
        harness.behave("web") { $0.thaws = false }
        harness.handle(.shutdownRequested(immediately: false))
        let mark = harness.mark
        harness.advance(.seconds(20))
        #expect(Self.looks(harness, since: mark) == [])
    }
}
