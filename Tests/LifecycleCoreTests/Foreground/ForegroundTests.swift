import LifecycleCore
import Testing

@Suite("Foreground and interruptions")
struct ForegroundTests {
    // MARK: L13

    @Test("an interruption makes an active app inactive, and its end makes it active again (L13)")
    func interruption() {
        let harness = Harness("photos")
        harness.launch("photos")
        let mark = harness.mark
        let interrupt = harness.request("photos", .interrupt)
        #expect(harness.answers[interrupt] == .done(.inactive))
        let resume = harness.request("photos", .endInterruption)
        #expect(harness.answers[resume] == .done(.active))
        #expect(
            harness.notices("photos", since: mark) == [
                .willResignActive(.interruption), .didBecomeActive(.interruptionEnded),
            ])
        #expect(harness.changes("photos", since: mark) == ["inactive: interrupted", "active: interruptionEnded"])
    }

    @Test("interruptions nest, and the app is active again when the last one has ended (L13)")
    func nested() {
        let harness = Harness("photos")
        harness.launch("photos")
        let mark = harness.mark
        for _ in 0..<3 { harness.request("photos", .interrupt) }
        #expect(harness.view("photos").interruptions == 3)
        for _ in 0..<2 { harness.request("photos", .endInterruption) }
        #expect(harness.state("photos") == .inactive)
        #expect(harness.notices("photos", since: mark) == [.willResignActive(.interruption)])
        harness.request("photos", .endInterruption)
        #expect(harness.state("photos") == .active)
        let more = harness.request("photos", .endInterruption)
        #expect(harness.answers[more] == .refused(.notInterrupted))
    }

    @Test("an interrupted app is neither frozen nor throttled, however long the interruption lasts (L13)")
    func keepsResources() {
        let harness = Harness("photos")
        harness.launch("photos")
        harness.request("photos", .interrupt)
        harness.advance(.seconds(3600))
        #expect(harness.state("photos") == .inactive)
        let taken = harness.effects.contains { effect in
            switch effect {
            case .run(_, .suspension(.freeze)), .run(_, .processor(.throttle)): true
            default: false
            }
        }
        #expect(!taken)
        #expect(harness.view("photos").backgroundTimeRemaining == nil)
    }

    @Test("an interruption that ends in the background is removed (L13)")
    func endsInBackground() {
        let harness = Harness("photos")
        harness.launch("photos")
        harness.request("photos", .interrupt)
        harness.background("photos")
        #expect(
            harness.notices("photos") == [
                .didBecomeActive(.launch), .willResignActive(.interruption), .didEnterBackground,
            ])
        harness.activate("photos")
        #expect(harness.state("photos") == .active)
    }

    @Test("an app that is interrupted while it launches becomes inactive (L13)")
    func interruptedWhileLaunching() {
        let harness = Harness("photos") { $0.readiness = .notified }
        harness.behave("photos") { $0.launching = .executes }
        let launch = harness.launch("photos")
        harness.request("photos", .interrupt)
        harness.handle(.run(harness.run("photos"), .transition(.ready)))
        #expect(harness.answers[launch] == .done(.inactive))
        #expect(harness.notices("photos") == [])
        harness.request("photos", .endInterruption)
        #expect(harness.notices("photos") == [.didBecomeActive(.interruptionEnded)])
    }

    @Test("an interruption that ended before the app was ready has no effect (L13)")
    func endedWhileLaunching() {
        let harness = Harness("photos") { $0.readiness = .notified }
        harness.behave("photos") { $0.launching = .executes }
        harness.launch("photos")
        harness.request("photos", .interrupt)
        let resume = harness.request("photos", .endInterruption)
        #expect(harness.answers[resume] == .done(.launching))
        harness.handle(.run(harness.run("photos"), .transition(.ready)))
        #expect(harness.state("photos") == .active)
    }

    @Test("at most 1000 interruptions nest (L13)")
    func bound() {
        let harness = Harness("photos")
        harness.launch("photos")
        for _ in 0..<1000 { harness.request("photos", .interrupt) }
        let more = harness.request("photos", .interrupt)
        #expect(harness.answers[more] == .refused(.tooMany("1000 interruptions have not ended")))
    }

    @Test("a notification is no interruption (L14)")
    func notice() {
        let harness = Harness("photos")
        harness.launch("photos")
        let mark = harness.mark
        harness.send("photos", "battery", "10")
        #expect(harness.state("photos") == .active)
        #expect(harness.notices("photos", since: mark) == [])
        #expect(harness.delivered("photos").count == 1)
    }

    // MARK: L3, L4

    @Test(
        "an app that returns to the foreground gets willEnterForeground, then didBecomeActive (L3)",
        arguments: [Stage.running, .suspended])
    func backAgain(stage: Stage) {
        let harness = Harness("photos")
        harness.move("photos", to: stage)
        let mark = harness.mark
        let request = harness.activate("photos")
        #expect(harness.notices("photos", since: mark) == [.willEnterForeground, .didBecomeActive(.return)])
        #expect(harness.answers[request] == .done(.active))
        #expect(harness.launches("photos").count == 1)
    }

    @Test("a suspended app is thawed before it gets a notice (L3)")
    func thawFirst() {
        let harness = Harness("photos")
        harness.launch("photos", .background)
        harness.task("photos", "upload")
        harness.endTask("photos", "upload")
        harness.advance(.seconds(1))
        let mark = harness.mark
        harness.activate("photos")
        let order = harness.effects(since: mark).filter { effect in
            switch effect {
            case .run(_, .processor(.unthrottle)), .run(_, .suspension(.thaw)), .run(_, .notify): true
            default: false
            }
        }
        let run = harness.run("photos")
        #expect(
            order == [
                .run(run, .processor(.unthrottle)), .run(run, .suspension(.thaw(attempt: 1))),
                .run(run, .notify(.willEnterForeground)),
                .run(run, .notify(.didBecomeActive(.return))),
            ])
        // The request is not answered before the app runs.
        #expect(
            harness.effects(since: mark).prefix(3) == [
                .run(run, .traffic(.stopWatchingInput)), .run(run, .processor(.unthrottle)),
                .run(run, .suspension(.thaw(attempt: 1))),
            ])
    }

    @Test("an app that stopped itself in the foreground is continued by an activation")
    func continued() {
        let harness = Harness("photos")
        harness.launch("photos")
        let run = harness.run("photos")
        harness.handle(.run(run, .process(.stopped)))
        #expect(harness.reports().last == .stoppedItself(id("photos"), in: .active))
        harness.activate("photos")
        #expect(harness.effects.contains(.run(run, .continueStopped)))
    }

    // MARK: The watchdog

    @Test("an app in the foreground without heartbeats is killed after WatchdogSec=, one with heartbeats is not")
    func watchdog() throws {
        let harness = Harness("photos") { $0.watchdog = .seconds(10) }
        harness.launch("photos")
        for _ in 0..<5 {
            harness.advance(.milliseconds(9999))
            harness.handle(.run(harness.run("photos"), .watchdog(.heartbeat)))
        }
        #expect(harness.state("photos") == .active)
        harness.advance(.seconds(10))
        let receipt = try harness.receipt("photos")
        #expect(receipt.code == 0x8bad_f00d)
        #expect(receipt.explanation.hasPrefix("Killed: sent no heartbeat (WATCHDOG=1) for 10s"))
        #expect(receipt.deadline?.what == .watchdog)
    }

    @Test("a heartbeat during the inspection is in time")
    func heartbeatInTime() {
        let harness = Harness("photos") { $0.watchdog = .seconds(10) }
        harness.behave("photos") { $0.isInspected = false }
        harness.launch("photos")
        harness.advance(.seconds(10))
        let run = harness.run("photos")
        #expect(harness.effects.contains(.run(run, .deadline(.inspect))))
        harness.handle(.run(run, .watchdog(.heartbeat)))
        harness.handle(.run(run, .deadline(.inspected(Inspection(traced: false, cpu: .zero, memory: 0)))))
        #expect(harness.state("photos") == .active)
        harness.advance(.milliseconds(9999))
        #expect(harness.state("photos") == .active)
    }

    @Test("the watchdog counts only in the foreground, interrupted or not")
    func watchdogInBackground() {
        let harness = Harness("photos") { $0.watchdog = .seconds(10) }
        harness.launch("photos")
        harness.background("photos")
        harness.advance(.seconds(100))
        #expect(harness.state("photos") == .suspended)
        harness.activate("photos")
        harness.request("photos", .interrupt)
        harness.advance(.seconds(10))
        #expect(harness.killed() == ["photos"])
    }

    @Test(
        "WATCHDOG=trigger counts as a missed heartbeat in every state, even without WatchdogSec=",
        arguments: [AppState.launching, .active, .background, .suspended], [nil, Duration.seconds(10)])
    func trigger(state: AppState, time: Duration?) throws {
        let harness = Harness("photos") {
            $0.watchdog = time
            if state == .launching { $0.readiness = .notified }
        }
        if state == .launching { harness.behave("photos") { $0.launching = .executes } }
        harness.request("photos", .launch(.foreground, reason: .user, url: nil))
        if state == .background || state == .suspended { harness.background("photos") }
        if state == .suspended { harness.suspend("photos") }
        #expect(harness.state("photos") == state)
        harness.handle(.run(harness.run("photos"), .watchdog(.triggered)))
        let receipt = try harness.receipt("photos")
        #expect(receipt.code == 0x8bad_f00d)
        #expect(receipt.explanation == "Killed: reported an internal error (WATCHDOG=trigger).")
    }

    @Test(
        "WATCHDOG_USEC= counts instead of WatchdogSec= for the rest of the run, from the message on",
        arguments: [nil, 10])
    func watchdogChanged(configured: Int?) throws {
        let harness = Harness("photos") { $0.watchdog = configured.map { .seconds($0) } }
        harness.launch("photos")
        harness.advance(.seconds(9))
        harness.handle(.run(harness.run("photos"), .watchdog(.timeChanged(to: .seconds(20)))))
        harness.advance(.milliseconds(19_999))
        // The same again is a heartbeat.
        harness.handle(.run(harness.run("photos"), .watchdog(.timeChanged(to: .seconds(20)))))
        harness.advance(.milliseconds(19_999))
        #expect(harness.state("photos") == .active)
        harness.background("photos")
        harness.advance(.seconds(100))
        harness.activate("photos")
        harness.handle(.run(harness.run("photos"), .watchdog(.timeChanged(to: .zero))))
        harness.advance(.seconds(100))
        #expect(harness.state("photos") == .active)
        harness.background("photos")
        harness.handle(.run(harness.run("photos"), .watchdog(.timeChanged(to: .seconds(5)))))
        harness.activate("photos")
        harness.advance(.seconds(5))
        #expect(try harness.receipt("photos").explanation.hasPrefix("Killed: sent no heartbeat (WATCHDOG=1) for 5s"))
        // The next run has what the manifest says.
        harness.launch("photos")
        harness.advance(.milliseconds(9999))
        #expect(harness.state("photos") == .active)
        harness.advance(.milliseconds(1))
        #expect((harness.state("photos") == .active) == (configured == nil))
    }
}
