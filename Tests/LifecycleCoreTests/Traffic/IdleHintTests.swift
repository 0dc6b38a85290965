import Testing

@testable import LifecycleCore

/// `SetIdle` and `X_GREENROOM_IDLE=`: the app says itself that it has nothing to do until something arrives (L51).
@Suite("hints of idleness")
struct IdleHintTests {
    private func hint(_ harness: Harness, _ isIdle: Bool = true) {
        harness.handle(.run(harness.run("web"), .traffic(.idleHinted(isIdle))))
    }

    private func looks(_ harness: Harness) -> Int {
        harness.effects.count { if case .run(_, .traffic(.measureWork)) = $0 { true } else { false } }
    }

    /// A worker that has been awake for a second.
    private func worker(_ policy: (inout AppPolicy) -> Void = { _ in }) -> Harness {
        let harness = TrafficTests.worker(policy)
        harness.launch("web")
        harness.advance(.seconds(1))
        return harness
    }

    @Test("a worker that says that it has nothing to do is suspended without waiting for IdleSec= (L51)")
    func suspended() {
        let harness = worker()
        hint(harness)
        #expect(harness.state("web") == .suspended)
    }

    @Test("what only shows that a program may be at work does not count (L51)", arguments: 0..<5)
    func signs(number: Int) {
        let harness = worker()
        harness.behave("web") {
            $0.work?.isRunnable = number == 0
            $0.work?.hasNewProcesses = number == 1
            $0.work?.wait = number == 2 ? .short : nil
            if number >= 3 { $0.work?.tick = .seconds(1) }
            $0.work?.isIncomplete = number == 3
            $0.work?.traffic = number == 4 ? .seconds(2) : nil
        }
        harness.advance(.seconds(20))
        #expect(harness.state("web") == .background)
        hint(harness)
        #expect(harness.state("web") == .suspended)
        #expect(harness.effects.count { if case .run(_, .suspension(.thaw)) = $0 { true } else { false } } == 0)
    }

    @Test("input that it has not read, and a call that cannot be watched, keep it awake (L51)")
    func arrivals() {
        let harness = worker()
        harness.behave("web") {
            $0.work?.unread = 1
            $0.work?.isRunnable = true
        }
        hint(harness)
        #expect(harness.view("web").awakeReasons == [.work(.unreadInput)])
        // That ends the hint.
        harness.behave("web") { $0.work?.unread = 0 }
        harness.advance(.seconds(10))
        #expect(harness.view("web").awakeReasons == [.work(.cpu)])
        let blocked = worker()
        blocked.behave("web") { $0.work?.wait = .unwatchedCall }
        hint(blocked)
        #expect(blocked.view("web").awakeReasons == [.work(.unwatchedCall)])
    }

    @Test("KeepAwake=connections counts in spite of a hint: it is the setting of an administrator")
    func connections() {
        let harness = worker { $0.keepAwake.insert(.connections) }
        harness.behave("web") { $0.work?.connections = 1 }
        hint(harness)
        #expect(harness.view("web").awakeReasons == [.work(.connection)])
    }

    @Test("an app that says it again and again is not measured more than every 100ms")
    func often() {
        let harness = worker { $0.keepAwake.insert(.connections) }
        harness.behave("web") { $0.work?.connections = 1 }
        let before = looks(harness)
        for _ in 0..<1000 {
            hint(harness)
            hint(harness, false)
            harness.advance(.milliseconds(1))
        }
        #expect((2...11).contains(looks(harness) - before))
    }

    @Test("a hint is over when it is taken back, and when something arrives for the app")
    func isOver() {
        let ends: [(Harness) -> Void] = [
            { self.hint($0, false) },
            { $0.send("web", "battery", "50") },
            { $0.simulate(.warning) },
            {
                $0.task("web", "x")
                $0.endTask("web", "x")
            },
        ]
        for end in ends {
            let harness = worker { $0.keepAwake.insert(.connections) }
            harness.behave("web") { $0.work?.connections = 1 }
            hint(harness)
            end(harness)
            harness.behave("web") {
                $0.work?.connections = 0
                $0.work?.wait = .short
            }
            harness.advance(.seconds(12))
            #expect(harness.view("web").awakeReasons == [.work(.shortWait)])
        }
    }

    @Test(
        "a look that the dead daemon has not answered is made again, so a hint is not held up by it (L51)",
        arguments: [false, true])
    func recovered(isHintFirst: Bool) {
        let harness = TrafficTests.worker()
        var work: RunWork?
        harness.behave("web") { (work, $0.work) = ($0.work, nil) }
        harness.launch("web")
        harness.advance(.milliseconds(500))
        if isHintFirst { hint(harness) }
        harness.behave("web") { $0.work = work }
        harness.handle(.run(harness.run("web"), .process(.reattached(messagesKept: true))))
        if !isHintFirst { hint(harness) }
        harness.advance(LifecycleCore.shortestHintedLook)
        #expect(harness.state("web") == .suspended)
    }

    @Test("a hint is not judged by the processor time alone, so the app is measured again after 100ms (L51)")
    func brief() {
        let harness = TrafficTests.worker()
        var work: RunWork?
        harness.behave("web") { (work, $0.work) = ($0.work, nil) }
        harness.launch("web")
        hint(harness)
        var brief = RunWork(cpu: .zero)
        brief.isBrief = true
        harness.handle(.run(harness.run("web"), .traffic(.workMeasured(brief))))
        #expect(harness.state("web") == .background)
        harness.behave("web") { $0.work = work }
        harness.advance(LifecycleCore.shortestHintedLook)
        #expect(harness.state("web") == .suspended)
    }

    @Test("a hint is not refuted by what a look has found before it: the app is measured again after 100ms (L51)")
    func staleLook() {
        let harness = TrafficTests.worker()
        var work: RunWork?
        harness.behave("web") { (work, $0.work) = ($0.work, nil) }
        harness.launch("web")
        harness.handle(.run(harness.run("web"), .traffic(.workMeasured(RunWork(cpu: .zero)))))
        harness.advance(harness.policies[id("web")]!.idleTime)
        hint(harness)
        var found = RunWork(cpu: .zero)
        found.unread = 3
        harness.handle(.run(harness.run("web"), .traffic(.workMeasured(found))))
        #expect(harness.state("web") == .background)
        harness.behave("web") { $0.work = work }
        harness.advance(LifecycleCore.shortestHintedLook)
        #expect(harness.state("web") == .suspended)
    }

    @Test("what the look of the next daemon finds refutes a hint that came before that look (L51)")
    func lookOfNextDaemon() {
        let harness = TrafficTests.worker()
        harness.behave("web") { $0.work = nil }
        harness.launch("web")
        let run = harness.run("web")
        harness.handle(.run(run, .traffic(.workMeasured(RunWork(cpu: .zero)))))
        harness.advance(harness.policies[id("web")]!.idleTime)
        hint(harness)
        harness.handle(.recovered)
        harness.handle(.run(run, .process(.reattached(messagesKept: true, noticesDelayed: false))))
        var found = RunWork(cpu: .zero)
        found.unread = 3
        harness.handle(.run(run, .traffic(.workMeasured(found))))
        let mark = harness.mark
        harness.advance(LifecycleCore.shortestHintedLook)
        #expect(harness.effects(since: mark).isEmpty)
        #expect(harness.state("web") == .background)
    }

    @Test("the wake of an app that input has woken ends with its hint (L50, L51)")
    func wake() {
        let harness = Harness("web") { $0.wakesOnTraffic = true }
        harness.suspend("web")
        let run = harness.run("web")
        harness.handle(.run(run, .traffic(.inputArrived(attempt: 1, TrafficTests.request))))
        #expect(harness.view("web").awakeReasons == [.wake(.socket)])
        hint(harness)
        harness.advance(.seconds(2))
        #expect(harness.state("web") == .suspended)
    }

    @Test("a program that takes no part has started up when it says that it has nothing to do (L18)")
    func startUp() {
        let harness = Harness("web") { $0.startUpTime = .seconds(30) }
        harness.behave("web") { $0.entering = .cannotBeNotified }
        harness.launch("web", .background)
        #expect(harness.view("web").awakeReasons == [.startUp])
        hint(harness)
        harness.advance(.seconds(1))
        #expect(harness.state("web") == .suspended)
    }

    @Test("an app in the foreground, and one with a task, stay awake whatever they say")
    func elsewhere() {
        let harness = Harness("web")
        harness.launch("web")
        hint(harness)
        harness.advance(.seconds(60))
        #expect(harness.state("web") == .active)
        harness.task("web", "upload")
        harness.background("web")
        hint(harness)
        harness.advance(.seconds(5))
        #expect(harness.view("web").awakeReasons == [.task(name: "upload")])
    }
}
