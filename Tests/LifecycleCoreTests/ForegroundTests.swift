import LifecycleCore
import Testing

@Suite("Foreground and interruptions")
struct ForegroundTests {
    // MARK: L13

    @Test("L13: an interruption makes an active app inactive, and its end makes it active again")
    func interruption() {
        let house = House("photos")
        house.launch("photos")
        let mark = house.mark
        let interrupt = house.request("photos", .interrupt)
        #expect(house.answers[interrupt] == .done(.inactive))
        let resume = house.request("photos", .resume)
        #expect(house.answers[resume] == .done(.active))
        #expect(house.told("photos", since: mark) == [.willResignActive, .didBecomeActive])
        #expect(house.changes("photos", since: mark) == ["inactive: interrupted", "active: interruptionEnded"])
    }

    @Test("L13: interruptions nest; the app is active again when the last one ended")
    func nested() {
        let house = House("photos")
        house.launch("photos")
        let mark = house.mark
        for _ in 0..<3 { house.request("photos", .interrupt) }
        #expect(house.view("photos").interruptions == 3)
        for _ in 0..<2 { house.request("photos", .resume) }
        #expect(house.state("photos") == .inactive)
        #expect(house.told("photos", since: mark) == [.willResignActive])
        house.request("photos", .resume)
        #expect(house.state("photos") == .active)
        let more = house.request("photos", .resume)
        #expect(house.answers[more] == .refused(.notInterrupted))
    }

    @Test("L13: an interrupted app keeps its resources: it is neither frozen nor throttled, however long it lasts")
    func keepsResources() {
        let house = House("photos")
        house.launch("photos")
        house.request("photos", .interrupt)
        house.advance(.seconds(3600))
        #expect(house.state("photos") == .inactive)
        let taken = house.effects.contains { effect in
            switch effect {
            case .freeze, .throttle: true
            default: false
            }
        }
        #expect(!taken)
        #expect(house.view("photos").backgroundTimeRemaining == nil)
    }

    @Test("L13: an interruption may end in the background, which forgets it")
    func endsInBackground() {
        let house = House("photos")
        house.launch("photos")
        house.request("photos", .interrupt)
        house.background("photos")
        #expect(house.told("photos") == [.didBecomeActive, .willResignActive, .didEnterBackground])
        house.activate("photos")
        #expect(house.state("photos") == .active)
    }

    @Test("L13: an app that is interrupted while it launches comes up inactive")
    func interruptedWhileLaunching() {
        let house = House("photos") { $0.readiness = .notified }
        house.behave("photos") { $0.launching = .executes }
        let launch = house.launch("photos")
        house.request("photos", .interrupt)
        house.happens(.run(house.run("photos"), .ready))
        #expect(house.answers[launch] == .done(.inactive))
        #expect(house.told("photos") == [])
        house.request("photos", .resume)
        #expect(house.told("photos") == [.didBecomeActive])
    }

    @Test("L13: an interruption that ended before the app was ready has not been")
    func endedWhileLaunching() {
        let house = House("photos") { $0.readiness = .notified }
        house.behave("photos") { $0.launching = .executes }
        house.launch("photos")
        house.request("photos", .interrupt)
        let resume = house.request("photos", .resume)
        #expect(house.answers[resume] == .done(.launching))
        house.happens(.run(house.run("photos"), .ready))
        #expect(house.state("photos") == .active)
    }

    @Test("L13: a thousand interruptions may nest, and no more")
    func bound() {
        let house = House("photos")
        house.launch("photos")
        for _ in 0..<1000 { house.request("photos", .interrupt) }
        let more = house.request("photos", .interrupt)
        #expect(house.answers[more] == .refused(.tooMany("1000 interruptions have not ended")))
    }

    @Test("L14: a notice is no interruption")
    func notice() {
        let house = House("photos")
        house.launch("photos")
        let mark = house.mark
        house.send("photos", "battery", "10")
        #expect(house.state("photos") == .active)
        #expect(house.told("photos", since: mark) == [])
        #expect(house.delivered("photos").count == 1)
    }

    // MARK: L3, L4

    @Test(
        "L3: back in the foreground: willEnterForeground, then didBecomeActive", arguments: [Stage.running, .suspended])
    func backAgain(stage: Stage) {
        let house = House("photos")
        house.bring("photos", into: stage)
        let mark = house.mark
        let request = house.activate("photos")
        #expect(house.told("photos", since: mark) == [.willEnterForeground, .didBecomeActive])
        #expect(house.answers[request] == .done(.active))
        #expect(house.launches("photos").count == 1)
    }

    @Test("L3: from suspension the thaw comes before anything is told")
    func thawFirst() {
        let house = House("photos")
        house.bring("photos", into: .suspended)
        let mark = house.mark
        house.activate("photos")
        let order = house.effects(since: mark).filter { effect in
            switch effect {
            case .unthrottle, .thaw, .notify: true
            default: false
            }
        }
        let run = house.run("photos")
        #expect(
            order == [
                .unthrottle(run), .thaw(run, attempt: 1), .notify(run, .willEnterForeground),
                .notify(run, .didBecomeActive),
            ])
        // Nor is anybody else: whoever activated it waits for it to run.
        #expect(house.effects(since: mark).prefix(2) == [.unthrottle(run), .thaw(run, attempt: 1)])
    }

    @Test("an app that stopped itself in the foreground is continued by an activation")
    func continued() {
        let house = House("photos")
        house.launch("photos")
        let run = house.run("photos")
        house.happens(.run(run, .stopped))
        #expect(house.reports().last == .stoppedItself(id("photos"), in: .active))
        house.activate("photos")
        #expect(house.effects.contains(.continueStopped(run)))
    }

    // MARK: The watchdog

    @Test("WatchdogSec=: an app in the foreground that gives no heartbeat is killed, one that does lives")
    func watchdog() throws {
        let house = House("photos") { $0.watchdog = .seconds(10) }
        house.launch("photos")
        for _ in 0..<5 {
            house.advance(.milliseconds(9999))
            house.happens(.run(house.run("photos"), .heartbeat))
        }
        #expect(house.state("photos") == .active)
        house.advance(.seconds(10))
        let receipt = try house.receipt("photos")
        #expect(receipt.code == 0x8bad_f00d)
        #expect(receipt.explanation.hasPrefix("gave no heartbeat (WATCHDOG=1) within 10 s"))
        #expect(receipt.deadline?.what == .watchdog)
    }

    @Test("a heartbeat while the app is looked into is in time")
    func heartbeatInTime() {
        let house = House("photos") { $0.watchdog = .seconds(10) }
        house.behave("photos") { $0.isInspected = false }
        house.launch("photos")
        house.advance(.seconds(10))
        let run = house.run("photos")
        #expect(house.effects.contains(.inspect(run)))
        house.happens(.run(run, .heartbeat))
        house.happens(.run(run, .inspected(Inspection(traced: false, cpu: .zero, memory: 0))))
        #expect(house.state("photos") == .active)
        house.advance(.milliseconds(9999))
        #expect(house.state("photos") == .active)
    }

    @Test("the heartbeat is for the foreground only, interrupted or not")
    func watchdogInBackground() {
        let house = House("photos") { $0.watchdog = .seconds(10) }
        house.launch("photos")
        house.background("photos")
        house.advance(.seconds(100))
        #expect(house.state("photos") == .suspended)
        house.activate("photos")
        house.request("photos", .interrupt)
        house.advance(.seconds(10))
        #expect(house.killed() == ["photos"])
    }

    @Test("WATCHDOG=trigger is taken for a missed heartbeat, also where none is asked for")
    func trigger() throws {
        let house = House("photos")
        house.launch("photos")
        house.happens(.run(house.run("photos"), .heartbeatGivenUp))
        #expect(try house.receipt("photos").code == 0x8bad_f00d)
    }
}
