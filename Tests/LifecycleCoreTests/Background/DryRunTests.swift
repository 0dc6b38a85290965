import Testing

@testable import LifecycleCore

@Suite("Suspend=: dry runs, and apps that are never suspended (L58)")
struct DryRunTests {
    private func worker(_ change: (inout AppPolicy) -> Void = { _ in }) -> Harness {
        let harness = TrafficTests.worker {
            $0.suspension = .dryRun
            change(&$0)
        }
        harness.launch("web")
        return harness
    }

    private func app(_ change: (inout AppPolicy) -> Void = { _ in }) -> Harness {
        let harness = Harness()
        harness.register("notes") {
            $0.suspension = .dryRun
            change(&$0)
        }
        harness.launch("notes")
        harness.background("notes")
        return harness
    }

    private func results(_ harness: Harness) -> [DryRunResult] {
        harness.reports().compactMap { if case .wouldResume(_, let result) = $0 { result } else { nil } }
    }

    private func freezes(_ harness: Harness) -> Bool {
        harness.log.contains { if case .run(_, .suspension(.freeze)) = $0.effect { true } else { false } }
    }

    @Test(
        "an app is not frozen when its time in the background is over, and what it does until it is activated is reported (L58)"
    )
    func application() {
        let harness = app()
        harness.behave("notes") { $0.work = RunWork(cpu: .zero) }
        harness.advance(.milliseconds(999))
        #expect(!harness.reports().contains(.wouldSuspend(id("notes"))))
        harness.advance(.milliseconds(1))
        #expect(harness.reports().contains(.wouldSuspend(id("notes"))))
        #expect(harness.view("notes").awake.map(\.reason) == [.dryRun])
        harness.behave("notes") {
            $0.work?.cpu = .milliseconds(40)
            $0.work?.unread = 1
        }
        harness.advance(.seconds(60))
        #expect(harness.state("notes") == .background)
        harness.activate("notes")
        #expect(
            results(harness) == [
                DryRunResult(slept: .seconds(60), reason: .requested, used: .milliseconds(40), hasMissedInput: true)
            ])
        #expect(!freezes(harness))
    }

    @Test(
        "a dry run does not use up the time of tasks, is no time that no user asked for, and no limit of the processor counts in it (L58)"
    )
    func budgets() {
        let harness = app()
        harness.advance(.seconds(5))
        #expect(harness.view("notes").backgroundTimeRemaining == .seconds(29))
        #expect(harness.view("notes").unrequestedTime == .zero)
        harness.behave("notes") { $0.work = RunWork(cpu: .seconds(1000)) }
        harness.advance(.seconds(1000))
        #expect(harness.state("notes") == .background)
        harness.task("notes", "upload")
        #expect(results(harness).last?.reason == .taskBegan)
        #expect(harness.view("notes").backgroundTimeRemaining == .seconds(29))
        harness.advance(.seconds(10))
        #expect(harness.view("notes").backgroundTimeRemaining == .seconds(19))
    }

    @Test("a worker would sleep until something reaches it, and again once it was idle for IdleSec= (L58)")
    func input() {
        let harness = worker()
        harness.behave("web") { $0.work?.traffic = .seconds(100) }
        harness.advance(.seconds(10))
        #expect(harness.reports().contains(.wouldSuspend(id("web"))))
        harness.advance(.seconds(5))
        harness.behave("web") { $0.work?.traffic = .seconds(4) }
        harness.advance(.seconds(5))
        // By the age of the bytes it would have been woken before the look that found them.
        #expect(results(harness) == [DryRunResult(slept: .seconds(6), reason: .woken)])
        harness.behave("web") { $0.work?.traffic = .seconds(100) }
        harness.advance(.seconds(9))
        #expect(harness.view("web").awake.map(\.reason) == [.suspendDelay])
        harness.advance(.seconds(1))
        #expect(harness.view("web").awake.map(\.reason) == [.dryRun])
        #expect(!freezes(harness))
    }

    @Test("a timer would thaw a worker for a moment, and processor time without a timer would have woken it (L58)")
    func timers() {
        let harness = worker()
        let due = harness.now + .seconds(15)
        harness.behave("web") { $0.work?.due = due }
        harness.advance(.seconds(10))
        harness.behave("web") {
            $0.work?.due = nil
            $0.work?.cpu += .milliseconds(300)
        }
        harness.advance(.seconds(10))
        #expect(results(harness).isEmpty)
        harness.behave("web") { $0.work?.cpu += .milliseconds(2) }
        harness.advance(.seconds(10))
        #expect(
            results(harness) == [
                DryRunResult(slept: .seconds(20), reason: .woken, moments: 1, used: .milliseconds(302))
            ])
    }

    @Test("a timer that is due at a look, before it is served, has thawed a worker and does not wake it (L58)")
    func timerAtALook() {
        let harness = worker()
        let start = harness.now
        harness.behave("web") { $0.work?.due = start + .seconds(20) }
        harness.advance(.milliseconds(19999))
        // What is over counts as a short wait, and traffic is counted from a short wait on.
        harness.behave("web") {
            $0.work?.due = nil
            $0.work?.wait = .short
            $0.work?.traffic = .zero
        }
        harness.advance(.milliseconds(1))
        harness.behave("web") {
            $0.work?.due = start + .seconds(40)
            $0.work?.wait = nil
            $0.work?.traffic = nil
            $0.work?.cpu += .milliseconds(2)
        }
        harness.advance(.seconds(15))
        #expect(results(harness).isEmpty)
        #expect(harness.core.view(of: id("web"), at: harness.now)?.dryRun?.moments == 1)
    }

    @Test("what ticks take does not wake a worker, and several times as much does (L58)")
    func ticks() {
        let harness = worker()
        harness.behave("web") { $0.work?.tick = .milliseconds(500) }
        harness.advance(.seconds(10))
        for _ in 0..<5 {
            harness.behave("web") { $0.work?.cpu += .milliseconds(3) }
            harness.advance(.seconds(10))
        }
        #expect(results(harness).isEmpty)
        harness.behave("web") { $0.work?.cpu += .milliseconds(8) }
        harness.advance(.seconds(10))
        #expect(results(harness) == [DryRunResult(slept: .seconds(60), reason: .woken, used: .milliseconds(23))])
    }

    @Test("Suspend=no: nothing suspends an app, and nothing counts its time (L58)", arguments: [true, false])
    func never(isWorker: Bool) {
        let harness = isWorker ? worker { $0.suspension = .no } : app { $0.suspension = .no }
        let name = isWorker ? "web" : "notes"
        harness.advance(.seconds(7200))
        #expect(harness.state(name) == .background)
        #expect(harness.view(name).awake.map(\.reason) == [.neverSuspended])
        #expect(harness.view(name).unrequestedTime == .zero)
        #expect(!freezes(harness))
    }

    @Test(
        "the daemon's own setting makes a dry run of all apps but those that are never suspended, and its end suspends them (L58)"
    )
    func all() {
        let harness = Harness()
        var manager = ManagerPolicy()
        manager.isDryRun = true
        harness.handle(.configuration(.configured(manager)))
        harness.register("notes")
        harness.register("clock") { $0.suspension = .no }
        for name in ["notes", "clock"] {
            harness.launch(name)
            harness.background(name)
        }
        harness.advance(.seconds(10))
        #expect(harness.view("notes").awake.map(\.reason) == [.dryRun])
        #expect(harness.view("clock").awake.map(\.reason) == [.neverSuspended])
        manager.isDryRun = false
        harness.handle(.configuration(.configured(manager)))
        #expect(results(harness).map(\.reason) == [.requested])
        harness.advance(.zero)
        #expect(harness.state("notes") == .suspended)
        #expect(harness.state("clock") == .background)
        // A dry run freezes nothing: what is suspended runs again.
        manager.isDryRun = true
        harness.handle(.configuration(.configured(manager)))
        harness.advance(.seconds(2))
        #expect(harness.view("notes").awake.map(\.reason) == [.dryRun])
    }

    @Test("a reload that ends a dry run suspends the app, and a daemon that was killed continues it (L58)")
    func reload() throws {
        let harness = app()
        harness.advance(.seconds(2))
        let next = LifecycleCore(recovering: try SavedCore(reading: harness.core.saved.bytes))
        #expect(next.saved == harness.core.saved)
        #expect(next.view(of: id("notes"), at: harness.now)?.awake.map(\.reason) == [.dryRun])
        harness.register("notes") { $0.suspension = .yes }
        #expect(results(harness).map(\.reason) == [.requested])
        harness.advance(.zero)
        #expect(harness.state("notes") == .suspended)
    }
}
