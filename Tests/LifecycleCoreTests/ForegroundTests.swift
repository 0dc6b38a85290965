import LifecycleCore
import Testing

@Suite("Foreground and interruptions")
struct ForegroundTests {
    // MARK: L13

    @Test("L13: an interruption makes an active app inactive, and its end makes it active again")
    func interruption() {
        let harness = Harness("photos")
        harness.launch("photos")
        let mark = harness.mark
        let interrupt = harness.request("photos", .interrupt)
        #expect(harness.answers[interrupt] == .done(.inactive))
        let resume = harness.request("photos", .endInterruption)
        #expect(harness.answers[resume] == .done(.active))
        #expect(harness.told("photos", since: mark) == [.willResignActive, .didBecomeActive])
        #expect(harness.changes("photos", since: mark) == ["inactive: interrupted", "active: interruptionEnded"])
    }

    @Test("L13: interruptions nest; the app is active again when the last one ended")
    func nested() {
        let harness = Harness("photos")
        harness.launch("photos")
        let mark = harness.mark
        for _ in 0..<3 { harness.request("photos", .interrupt) }
        #expect(harness.view("photos").interruptions == 3)
        for _ in 0..<2 { harness.request("photos", .endInterruption) }
        #expect(harness.state("photos") == .inactive)
        #expect(harness.told("photos", since: mark) == [.willResignActive])
        harness.request("photos", .endInterruption)
        #expect(harness.state("photos") == .active)
        let more = harness.request("photos", .endInterruption)
        #expect(harness.answers[more] == .refused(.notInterrupted))
    }

    @Test("L13: an interrupted app keeps its resources: it is neither frozen nor throttled, however long it lasts")
    func keepsResources() {
        let harness = Harness("photos")
        harness.launch("photos")
        harness.request("photos", .interrupt)
        harness.advance(.seconds(3600))
        #expect(harness.state("photos") == .inactive)
        let taken = harness.effects.contains { effect in
            switch effect {
            case .freeze, .throttle: true
            default: false
            }
        }
        #expect(!taken)
        #expect(harness.view("photos").backgroundTimeRemaining == nil)
    }

    @Test("L13: an interruption may end in the background, which forgets it")
    func endsInBackground() {
        let harness = Harness("photos")
        harness.launch("photos")
        harness.request("photos", .interrupt)
        harness.background("photos")
        #expect(harness.told("photos") == [.didBecomeActive, .willResignActive, .didEnterBackground])
        harness.activate("photos")
        #expect(harness.state("photos") == .active)
    }

    @Test("L13: an app that is interrupted while it launches comes up inactive")
    func interruptedWhileLaunching() {
        let harness = Harness("photos") { $0.readiness = .notified }
        harness.behave("photos") { $0.launching = .executes }
        let launch = harness.launch("photos")
        harness.request("photos", .interrupt)
        harness.happens(.run(harness.run("photos"), .ready))
        #expect(harness.answers[launch] == .done(.inactive))
        #expect(harness.told("photos") == [])
        harness.request("photos", .endInterruption)
        #expect(harness.told("photos") == [.didBecomeActive])
    }

    @Test("L13: an interruption that ended before the app was ready has not been")
    func endedWhileLaunching() {
        let harness = Harness("photos") { $0.readiness = .notified }
        harness.behave("photos") { $0.launching = .executes }
        harness.launch("photos")
        harness.request("photos", .interrupt)
        let resume = harness.request("photos", .endInterruption)
        #expect(harness.answers[resume] == .done(.launching))
        harness.happens(.run(harness.run("photos"), .ready))
        #expect(harness.state("photos") == .active)
    }

    @Test("L13: a thousand interruptions may nest, and no more")
    func bound() {
        let harness = Harness("photos")
        harness.launch("photos")
        for _ in 0..<1000 { harness.request("photos", .interrupt) }
        let more = harness.request("photos", .interrupt)
        #expect(harness.answers[more] == .refused(.tooMany("1000 interruptions have not ended")))
    }

    @Test("L14: a notice is no interruption")
    func notice() {
        let harness = Harness("photos")
        harness.launch("photos")
        let mark = harness.mark
        harness.send("photos", "battery", "10")
        #expect(harness.state("photos") == .active)
        #expect(harness.told("photos", since: mark) == [])
        #expect(harness.delivered("photos").count == 1)
    }

    // MARK: L3, L4

    @Test(
        "L3: back in the foreground: willEnterForeground, then didBecomeActive", arguments: [Stage.running, .suspended])
    func backAgain(stage: Stage) {
        let harness = Harness("photos")
        harness.bring("photos", into: stage)
        let mark = harness.mark
        let request = harness.activate("photos")
        #expect(harness.told("photos", since: mark) == [.willEnterForeground, .didBecomeActive])
        #expect(harness.answers[request] == .done(.active))
        #expect(harness.launches("photos").count == 1)
    }

    @Test("L3: from suspension the thaw comes before anything is told")
    func thawFirst() {
        let harness = Harness("photos")
        harness.bring("photos", into: .suspended)
        let mark = harness.mark
        harness.activate("photos")
        let order = harness.effects(since: mark).filter { effect in
            switch effect {
            case .unthrottle, .thaw, .notify: true
            default: false
            }
        }
        let run = harness.run("photos")
        #expect(
            order == [
                .unthrottle(run), .thaw(run, attempt: 1), .notify(run, .willEnterForeground),
                .notify(run, .didBecomeActive),
            ])
        // Nor is anybody else: whoever activated it waits for it to run.
        #expect(harness.effects(since: mark).prefix(2) == [.unthrottle(run), .thaw(run, attempt: 1)])
    }

    @Test("an app that stopped itself in the foreground is continued by an activation")
    func continued() {
        let harness = Harness("photos")
        harness.launch("photos")
        let run = harness.run("photos")
        harness.happens(.run(run, .stopped))
        #expect(harness.reports().last == .stoppedItself(id("photos"), in: .active))
        harness.activate("photos")
        #expect(harness.effects.contains(.continueStopped(run)))
    }

    // MARK: The watchdog

    @Test("WatchdogSec=: an app in the foreground that gives no heartbeat is killed, one that does lives")
    func watchdog() throws {
        let harness = Harness("photos") { $0.watchdog = .seconds(10) }
        harness.launch("photos")
        for _ in 0..<5 {
            harness.advance(.milliseconds(9999))
            harness.happens(.run(harness.run("photos"), .heartbeat))
        }
        #expect(harness.state("photos") == .active)
        harness.advance(.seconds(10))
        let receipt = try harness.receipt("photos")
        #expect(receipt.code == 0x8bad_f00d)
        #expect(receipt.explanation.hasPrefix("Killed: sent no heartbeat (WATCHDOG=1) for 10s"))
        #expect(receipt.deadline?.what == .watchdog)
    }

    @Test("a heartbeat while the app is looked into is in time")
    func heartbeatInTime() {
        let harness = Harness("photos") { $0.watchdog = .seconds(10) }
        harness.behave("photos") { $0.isInspected = false }
        harness.launch("photos")
        harness.advance(.seconds(10))
        let run = harness.run("photos")
        #expect(harness.effects.contains(.inspect(run)))
        harness.happens(.run(run, .heartbeat))
        harness.happens(.run(run, .inspected(Inspection(traced: false, cpu: .zero, memory: 0))))
        #expect(harness.state("photos") == .active)
        harness.advance(.milliseconds(9999))
        #expect(harness.state("photos") == .active)
    }

    @Test("the heartbeat is for the foreground only, interrupted or not")
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

    @Test("WATCHDOG=trigger is taken for a missed heartbeat, also where none is asked for")
    func trigger() throws {
        let harness = Harness("photos")
        harness.launch("photos")
        harness.happens(.run(harness.run("photos"), .heartbeatGivenUp))
        #expect(try harness.receipt("photos").code == 0x8bad_f00d)
    }
}
