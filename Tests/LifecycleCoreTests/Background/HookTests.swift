import Testing

@testable import LifecycleCore

@Suite("Hooks (L57)")
struct HookTests {
    private func harness(_ kinds: HookKind..., change: (inout AppPolicy) -> Void = { _ in }) -> Harness {
        let harness = Harness()
        harness.register("llama") {
            for kind in kinds { $0.hooks.insert(HookKinds(kind)) }
            $0.wakesOnTraffic = true
            change(&$0)
        }
        harness.launch("llama")
        return harness
    }

    /// The hooks that were started.
    private func started(_ harness: Harness, since mark: Int = 0) -> [Hook] {
        harness.effects(since: mark).compactMap { if case .run(_, .hook(.run(let hook, _))) = $0 { hook } else { nil } }
    }

    private func killed(_ harness: Harness) -> [Int] {
        harness.effects.compactMap { if case .run(_, .hook(.kill(let number))) = $0 { number } else { nil } }
    }

    private func end(_ harness: Harness, _ outcome: HookOutcome = .ended(.exited(0))) {
        guard let number = harness.core.runningHook(of: harness.run("llama"))?.number else {
            Issue.record("no hook runs")
            return
        }
        harness.handle(.run(harness.run("llama"), .hookEnded(number: number, outcome)))
    }

    @Test("ExecEnterBackground= runs with didEnterBackground, and the transition waits for it and for the app (L57)")
    func enterBackground() {
        let harness = harness(.enterBackground)
        harness.behave("llama") { $0.hook = nil }
        let request = harness.background("llama")
        #expect(started(harness) == [Hook(.enterBackground, entering: .background, .requested)])
        #expect(!harness.isAnswered(request))
        #expect(harness.view("llama").awake.map(\.reason) == [.hook(.enterBackground)])
        harness.advance(.seconds(2))
        end(harness)
        #expect(harness.answers[request] == .done(.background))
        harness.advance(.seconds(1))
        #expect(harness.state("llama") == .suspended)
    }

    @Test(
        "a hook that is over before the app has answered ends no transition, and a silent app misses its deadline (L16)"
    )
    func silentApp() {
        let harness = harness(.enterBackground)
        harness.behave("llama") { $0.entering = .isSilent }
        let request = harness.background("llama")
        #expect(started(harness).count == 1 && !harness.isAnswered(request))
        harness.advance(.seconds(5))
        #expect(harness.killed() == ["llama"])
    }

    @Test(
        "an app that is not to be suspended any more once ExecBeforeSuspend= is over runs on (L57, L58)",
        arguments: [AppPolicy.Suspension.no, .dryRun])
    func reloadBeforeFreeze(_ suspension: AppPolicy.Suspension) {
        let harness = harness(.beforeSuspend, .afterResume)
        harness.background("llama")
        harness.advance(.milliseconds(1050))
        #expect(started(harness).map(\.kind) == [.beforeSuspend])
        harness.register("llama") {
            $0.hooks = [HookKinds(.beforeSuspend), HookKinds(.afterResume)]
            $0.suspension = suspension
        }
        harness.advance(.seconds(10))
        #expect(harness.state("llama") == .background)
        #expect(started(harness).map(\.kind) == [.beforeSuspend, .afterResume])
    }

    @Test("an app that has stopped itself as its answer runs for what it was woken for while its hook runs (L17, L57)")
    func wokenDuringHook() {
        let harness = harness(.enterBackground) { $0.backgroundModes = .push }
        harness.behave("llama") {
            $0.entering = .stops
            $0.hook = nil
        }
        harness.background("llama")
        #expect(!harness.effects.contains(.run(harness.run("llama"), .continueStopped)))
        harness.terminate("llama")
        harness.advance(.seconds(10))
        harness.push("llama")
        #expect(started(harness).count == 2)
        #expect(harness.effects.contains(.run(harness.run("llama"), .continueStopped)))
    }

    @Test("a hook that is not over at the background deadline is killed, and the app continues (L57)")
    func hangs() {
        let harness = harness(.enterBackground)
        harness.behave("llama") { $0.hook = nil }
        harness.background("llama")
        harness.advance(.seconds(5))
        #expect(killed(harness) == [1] && harness.killed().isEmpty)
        #expect(harness.reports().contains(.hookKilled(id("llama"), .enterBackground, after: .seconds(5))))
        #expect(harness.state("llama") == .background)
        // What it says after that is too late to matter.
        harness.handle(.run(harness.run("llama"), .hookEnded(number: 1, .ended(.signaled(9, coreDumped: false)))))
        harness.advance(.seconds(1))
        #expect(harness.state("llama") == .suspended)
        #expect(!harness.reports().contains { if case .hookFailed = $0 { true } else { false } })
    }

    @Test("with an infinite BackgroundDeadlineSec= a hook has a minute")
    func infinite() {
        let harness = harness(.enterBackground) { $0.backgroundDeadline = nil }
        harness.behave("llama") { $0.hook = nil }
        harness.background("llama")
        harness.advance(.seconds(59))
        #expect(killed(harness).isEmpty)
        harness.advance(.seconds(1))
        #expect(killed(harness) == [1] && harness.killed().isEmpty)
    }

    @Test("ExecBeforeSuspend= runs before the freeze, which follows its end after 0.1s, also if it fails (L57)")
    func beforeSuspend() {
        let harness = harness(.beforeSuspend)
        harness.behave("llama") { $0.hook = nil }
        harness.background("llama")
        harness.advance(.seconds(1))
        #expect(started(harness) == [Hook(.beforeSuspend, entering: .suspended, .idle)])
        harness.advance(.seconds(3))
        #expect(harness.state("llama") == .background)
        #expect(harness.view("llama").awake.map(\.reason) == [.hook(.beforeSuspend)])
        end(harness, .ended(.exited(1)))
        #expect(harness.state("llama") == .background)
        harness.advance(.milliseconds(100))
        #expect(harness.state("llama") == .suspended)
        #expect(harness.reports().contains(.hookFailed(id("llama"), .beforeSuspend, .ended(.exited(1)))))
    }

    @Test(
        "status 75 refuses a suspension once: the hook runs again after SuspendDelaySec=, and 75 counts no more (L57)")
    func refuses() {
        let harness = harness(.beforeSuspend, .afterResume)
        harness.behave("llama") { $0.hook = .refusal }
        harness.background("llama")
        harness.advance(.seconds(1))
        #expect(harness.state("llama") == .background)
        #expect(harness.reports().contains(.suspensionRefused(id("llama"))))
        #expect(!harness.reports().contains { if case .hookFailed = $0 { true } else { false } })
        harness.advance(.milliseconds(999))
        #expect(started(harness).count == 1)
        harness.advance(.milliseconds(101))
        #expect(started(harness).count == 2 && harness.state("llama") == .suspended)
        // The next suspension can be refused again.
        harness.push("llama")
        harness.handle(.run(harness.run("llama"), .wake(.completed(.newData))))
        harness.activate("llama")
        harness.background("llama")
        harness.advance(.seconds(1))
        #expect(harness.state("llama") == .background)
    }

    @Test("an activation does not wait for ExecBeforeSuspend=, and what that has shut is opened again (L57)")
    func activation() {
        let harness = harness(.beforeSuspend, .afterResume, .enterForeground)
        harness.behave("llama") { $0.hook = nil }
        harness.background("llama")
        harness.advance(.seconds(1))
        let mark = harness.mark
        let request = harness.activate("llama")
        #expect(harness.answers[request] == .done(.active))
        end(harness)
        end(harness)
        end(harness)
        #expect(
            started(harness, since: mark) == [
                Hook(.afterResume, entering: .inactive, .woken, slept: .zero),
                Hook(.enterForeground, entering: .inactive, .requested),
            ])
        #expect(harness.state("llama") == .active)
    }

    @Test("a task that begins while ExecBeforeSuspend= runs keeps the app awake (L57)")
    func task() {
        let harness = harness(.beforeSuspend)
        harness.behave("llama") { $0.hook = nil }
        harness.background("llama")
        harness.advance(.seconds(1))
        harness.task("llama", "upload")
        end(harness)
        harness.advance(.seconds(5))
        #expect(harness.state("llama") == .background && started(harness).count == 1)
        harness.endTask("llama", "upload")
        harness.advance(.seconds(1))
        #expect(started(harness).count == 2)
        end(harness)
        harness.advance(.milliseconds(100))
        #expect(harness.state("llama") == .suspended)
    }

    @Test("a task that begins and ends while ExecBeforeSuspend= runs begins SuspendDelaySec= anew (L18, L57)")
    func taskDuringHook() {
        let harness = harness(.beforeSuspend)
        harness.behave("llama") { $0.hook = nil }
        harness.background("llama")
        harness.advance(.milliseconds(1200))
        harness.task("llama", "upload")
        harness.endTask("llama", "upload")
        harness.advance(.milliseconds(500))
        end(harness)
        harness.advance(.milliseconds(499))
        #expect(harness.state("llama") == .background && started(harness).count == 1)
        harness.advance(.milliseconds(1))
        #expect(started(harness).count == 2)
        // Once: a task of the hook itself would keep the app awake for ever.
        harness.advance(.milliseconds(200))
        harness.task("llama", "flush")
        harness.endTask("llama", "flush")
        end(harness)
        harness.advance(.milliseconds(100))
        #expect(harness.state("llama") == .suspended)
    }

    @Test("a daemon that recovers between ExecBeforeSuspend= and the freeze gives connections their time (L47, L57)")
    func recoveryBeforeFreeze() {
        let harness = harness(.beforeSuspend)
        harness.handle(.run(harness.run("llama"), .connection(.attached([.didEnterBackground]))))
        harness.behave("llama") { $0.hook = nil }
        harness.background("llama")
        harness.advance(.seconds(1))
        end(harness)
        harness.handle(.run(harness.run("llama"), .process(.reattached(messagesKept: true))))
        harness.advance(.milliseconds(2999))
        #expect(harness.state("llama") == .background && started(harness).count == 1)
        harness.advance(.milliseconds(1))
        #expect(started(harness).count == 2)
    }

    @Test("ExecAfterResume= gets how long the app slept, is no part of the thaw, and keeps the app awake (L57)")
    func afterResume() {
        let harness = harness(.afterResume) { $0.backgroundModes = .push }
        harness.background("llama")
        harness.advance(.seconds(1))
        harness.advance(.seconds(100))
        harness.behave("llama") { $0.hook = nil }
        let request = harness.push("llama")
        #expect(harness.isAnswered(request) && harness.state("llama") == .background)
        #expect(started(harness) == [Hook(.afterResume, entering: .background, .woken, slept: .seconds(100))])
        harness.handle(.run(harness.run("llama"), .wake(.completed(.newData))))
        harness.advance(.seconds(4))
        #expect(harness.state("llama") == .background)
        harness.advance(.seconds(2))
        #expect(killed(harness) == [1] && harness.state("llama") == .suspended)
    }

    @Test("only one hook runs at a time; of the transitions that wait for it, only the last one has a hook (L57)")
    func order() {
        let harness = harness(.enterBackground, .enterForeground, .afterResume)
        harness.background("llama")
        harness.advance(.seconds(61))
        harness.behave("llama") { $0.hook = nil }
        let mark = harness.mark
        harness.activate("llama")
        harness.background("llama")
        #expect(started(harness, since: mark).map(\.kind) == [.afterResume])
        #expect(harness.view("llama").state == .background)
        end(harness)
        #expect(started(harness, since: mark).map(\.kind) == [.afterResume, .enterBackground])
        let request = harness.activate("llama")
        #expect(!harness.isAnswered(request))
        end(harness)
        #expect(harness.answers[request] == .done(.active))
        #expect(started(harness, since: mark).map(\.kind) == [.afterResume, .enterBackground, .enterForeground])
    }

    @Test("a hook that waits is not run if the manifest no longer has it")
    func reload() {
        let harness = harness(.enterBackground, .enterForeground)
        harness.behave("llama") { $0.hook = nil }
        harness.background("llama")
        harness.advance(.seconds(1))
        end(harness)
        harness.activate("llama")
        harness.background("llama")
        harness.register("llama") { $0.hooks = [] }
        end(harness)
        #expect(started(harness).map(\.kind) == [.enterBackground, .enterForeground])
        harness.advance(.seconds(1))
        #expect(harness.state("llama") == .suspended)
    }

    @Test("a timer of a worker runs no hook, and the time that it wakes the worker for is a part of the sleep (L57)")
    func timers() {
        let harness = Harness()
        var work = RunWork(cpu: .zero)
        work.due = harness.now + .seconds(60)
        harness.register("llama") {
            $0.role = .worker
            $0.wakesOnTraffic = true
            $0.hooks = [HookKinds(.beforeSuspend), HookKinds(.afterResume)]
        }
        harness.behave("llama") { $0.work = work }
        harness.launch("llama", .background)
        harness.advance(.seconds(20))
        #expect(harness.state("llama") == .suspended)
        #expect(started(harness).map(\.kind) == [.beforeSuspend])
        work.due = nil
        harness.behave("llama") { $0.work = work }
        harness.advance(.seconds(50))
        #expect(harness.changes("llama").contains("background: timer") && harness.state("llama") == .suspended)
        #expect(started(harness).count == 1)
        let input = Input(kind: .stream, pid: 7, descriptor: 5, bytes: 10)
        harness.handle(.run(harness.run("llama"), .traffic(.inputArrived(attempt: 2, input))))
        #expect(started(harness).map(\.kind) == [.beforeSuspend, .afterResume])
        #expect((started(harness).last?.slept ?? .zero) > .seconds(55))
    }

    @Test("an app that ends while a hook runs ends as before, and its next run has none (L47, L57)")
    func ends() {
        let harness = harness(.enterBackground)
        harness.behave("llama") { $0.hook = nil }
        harness.background("llama")
        harness.terminate("llama")
        #expect(harness.state("llama") == .background)
        harness.advance(.seconds(5))
        #expect(harness.state("llama") == .notRunning)
        harness.launch("llama")
        #expect(harness.core.runningHook(of: harness.run("llama")) == nil)
    }

    @Test("a recovered core knows the hook that runs, and its deadline (L57)")
    func recovery() throws {
        let harness = harness(.enterBackground)
        harness.behave("llama") { $0.hook = nil }
        harness.background("llama")
        harness.advance(.seconds(2))
        var core = LifecycleCore(recovering: try SavedCore(reading: harness.core.saved.bytes))
        #expect(core.difference(from: harness.core) == nil)
        #expect(core.nextDeadline == harness.core.nextDeadline)
        let now = harness.now + .seconds(3)
        #expect(core.handle(.deadlineReached, at: now).contains(.run(harness.run("llama"), .hook(.kill(number: 1)))))
    }
}
