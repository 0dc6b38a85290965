import LifecycleCore
import Testing

@Suite("Sleep and the lock screen")
struct AbsenceTests {
    private func allowed(_ harness: Harness, since mark: Int = 0) -> Int {
        harness.effects(since: mark).count { $0 == .allowSleep }
    }

    @Test("an app in the foreground enters the background before the machine sleeps and returns afterwards (L15)")
    func sleep() {
        let harness = Harness("photos")
        harness.launch("photos")
        var mark = harness.mark
        harness.handle(.absence(.sleepRequested))
        #expect(harness.notices("photos", since: mark) == [.willResignActive(.background), .didEnterBackground])
        #expect(harness.state("photos") == .background)
        #expect(allowed(harness) == 1)
        #expect(!harness.view("photos").isForeground)
        mark = harness.mark
        harness.handle(.absence(.awoke))
        #expect(harness.notices("photos", since: mark) == [.willEnterForeground, .didBecomeActive(.return)])
        #expect(harness.changes("photos", since: mark) == ["inactive: awoke", "active: awoke"])
    }

    @Test("sleep is allowed once the app has answered or was killed for its deadline (L15)", arguments: [true, false])
    func waits(answers: Bool) throws {
        let harness = Harness("photos")
        harness.behave("photos") { $0.entering = .isSilent }
        harness.launch("photos")
        harness.handle(.absence(.sleepRequested))
        harness.advance(.milliseconds(4900))
        #expect(allowed(harness) == 0)
        if answers {
            harness.handle(.run(harness.run("photos"), .transition(.backgroundEntered)))
            #expect(allowed(harness) == 1)
        } else {
            harness.advance(.milliseconds(100))
            #expect(allowed(harness) == 1)
            #expect(try harness.receipt("photos").code == 0x8bad_f00d)
        }
    }

    @Test("without an app in the foreground each request to sleep is allowed immediately (L15)")
    func emptyForeground() {
        let harness = Harness("photos", "mail")
        harness.suspend("mail")
        harness.handle(.absence(.sleepRequested))
        #expect(allowed(harness) == 1)
        // The machine is suspended, then powered off.
        harness.handle(.absence(.sleepRequested))
        #expect(allowed(harness) == 2)
        harness.handle(.absence(.awoke))
        harness.handle(.absence(.awoke))
        #expect(harness.state("mail") == .suspended)
    }

    @Test("an app that was suspended during the absence is woken to return (L15)")
    func suspendedDuringAbsence() {
        let harness = Harness("photos")
        harness.launch("photos")
        harness.handle(.absence(.locked))
        harness.advance(.seconds(60))
        #expect(harness.state("photos") == .suspended)
        harness.handle(.absence(.unlocked))
        #expect(harness.state("photos") == .active)
        #expect(harness.launches("photos").count == 1)
    }

    @Test("sleep does not wait for a launching app, which enters the foreground only after the absence (L15)")
    func launching() {
        let harness = Harness("photos")
        harness.behave("photos") { $0.launching = .hangs }
        let request = harness.launch("photos")
        harness.handle(.absence(.sleepRequested))
        #expect(allowed(harness) == 1)
        harness.handle(.run(harness.run("photos"), .process(.executed)))
        #expect(harness.state("photos") == .background)
        #expect(!harness.isAnswered(request))
        harness.handle(.absence(.awoke))
        #expect(harness.answers[request] == .done(.active))
    }

    @Test(
        "a request during sleep is answered when the machine is awake (L15)", arguments: [true, false])
    func askedWhileAsleep(isSuspended: Bool) {
        let harness = Harness("photos")
        harness.launch("photos", .background)
        if isSuspended { harness.suspend("photos") }
        harness.handle(.absence(.sleepRequested))
        let mark = harness.mark
        let request = harness.activate("photos")
        #expect(!harness.isAnswered(request))
        #expect(harness.notices("photos", since: mark).isEmpty)
        harness.handle(.absence(.awoke))
        #expect(harness.answers[request] == .done(.active))
    }

    @Test(
        "a requested app enters the foreground of a locked screen, and the app that it displaces does not return (L15)")
    func askedWhileLocked() {
        let harness = Harness("photos", "phone")
        harness.launch("photos")
        harness.handle(.absence(.locked))
        let request = harness.launch("phone")
        #expect(harness.answers[request] == .done(.active))
        harness.handle(.absence(.unlocked))
        #expect(harness.state("phone") == .active)
        #expect(harness.state("photos") != .active)
    }

    @Test("after sleep with a locked screen an app returns only when the screen is unlocked (L15)")
    func both() {
        let harness = Harness("photos")
        harness.launch("photos")
        harness.handle(.absence(.locked))
        harness.handle(.absence(.sleepRequested))
        harness.handle(.absence(.awoke))
        #expect(harness.state("photos") != .active)
        harness.handle(.absence(.unlocked))
        #expect(harness.state("photos") == .active)
    }

    @Test(
        "an app that is sent to the background or terminated during the absence does not return (L15)",
        arguments: [true, false])
    func movedAway(isEnd: Bool) {
        let harness = Harness("photos")
        harness.launch("photos")
        harness.handle(.absence(.locked))
        if isEnd { harness.terminate("photos") } else { harness.background("photos") }
        harness.handle(.absence(.unlocked))
        #expect(harness.state("photos") == (isEnd ? .notRunning : .background))
        #expect(harness.launches("photos").count == 1)
    }

    @Test("several apps return in the order of their activation (L12, L15)")
    func several() {
        let harness = Harness("photos", "mail", "maps")
        harness.configure { $0.foregroundLimit = 2 }
        harness.launch("photos")
        harness.launch("mail")
        harness.handle(.absence(.sleepRequested))
        #expect(allowed(harness) == 1)
        harness.handle(.absence(.awoke))
        #expect(harness.state("photos") == .active && harness.state("mail") == .active)
        harness.launch("maps")
        #expect(harness.state("photos") == .background)
    }

    @Test(
        "if the foreground limit was lowered during the absence, the app that was activated longest ago does not return (L12, L15)"
    )
    func fewerAfter() {
        let harness = Harness("photos", "mail")
        harness.configure { $0.foregroundLimit = 2 }
        harness.launch("photos")
        harness.launch("mail")
        harness.handle(.absence(.locked))
        harness.advance(.seconds(5))
        harness.configure { $0.foregroundLimit = 1 }
        harness.handle(.absence(.unlocked))
        #expect(harness.state("photos") == .suspended)
        #expect(harness.state("mail") == .active)
    }

    @Test("an app that ends during the absence loses its foreground slot (L15)")
    func endsDuringAbsence() {
        let harness = Harness("photos", "mail")
        harness.launch("photos")
        harness.handle(.absence(.locked))
        harness.exit("photos")
        harness.handle(.absence(.unlocked))
        #expect(harness.state("photos") == .notRunning)
        harness.launch("mail")
        #expect(harness.state("mail") == .active)
    }

    @Test("an app that is relaunched does not enter the foreground of a locked screen (L15)")
    func relaunched() {
        let harness = Harness("photos") { $0.relaunch = .always }
        harness.launch("photos")
        harness.advance(.seconds(60))
        harness.handle(.absence(.locked))
        harness.crash("photos")
        #expect(harness.launches("photos").count == 2)
        #expect(harness.state("photos") == .background)
        harness.handle(.absence(.unlocked))
        #expect(harness.state("photos") == .active)
    }

    @Test("an interruption of an app that left the foreground for the absence is refused (L15)")
    func interrupt() {
        let harness = Harness("photos")
        harness.launch("photos")
        harness.handle(.absence(.locked))
        let request = harness.request("photos", .interrupt)
        #expect(harness.answers[request] == .refused(.notInForeground))
    }

    @Test("an app that left the foreground for the absence counts as background for jetsam (L38)")
    func jetsam() {
        let harness = Harness("photos", "phone")
        harness.configure { $0.foregroundLimit = 2 }
        harness.launch("photos")
        harness.handle(.absence(.locked))
        harness.launch("phone")
        harness.simulate(.critical)
        #expect(harness.killed() == ["photos"])
    }

    @Test("no app returns during a shutdown, and sleep is allowed")
    func shutdown() {
        let harness = Harness("photos")
        harness.behave("photos") { $0.entering = .isSilent }
        harness.launch("photos")
        harness.handle(.absence(.sleepRequested))
        harness.handle(.shutdownRequested(immediately: true))
        #expect(allowed(harness) == 1)
        harness.handle(.absence(.awoke))
        #expect(harness.effects.contains(.finish))
    }

    // MARK: Protected data

    private func data(_ payload: String) -> Notification { Notification(kind: "protectedData", payload: payload)! }

    @Test("apps are notified before their protected data becomes unavailable, and when it is available again (L15)")
    func protectedData() throws {
        let harness = Harness("photos", "mail") { $0.usesProtectedData = true }
        harness.register("mail") { $0.usesProtectedData = false }
        harness.launch("mail", .background)
        harness.launch("photos")
        let mark = harness.mark
        harness.handle(.absence(.locked))
        #expect(harness.delivered("photos", since: mark) == [data("unavailable")])
        let effects = harness.effects(since: mark)
        let delivery = try #require(effects.firstIndex { if case .run(_, .deliver) = $0 { true } else { false } })
        let left = try #require(effects.firstIndex { if case .run(_, .notify) = $0 { true } else { false } })
        #expect(delivery < left)
        harness.handle(.absence(.unlocked))
        #expect(harness.delivered("photos", since: mark) == [data("unavailable"), data("available")])
        #expect(harness.delivered("mail").isEmpty)
    }

    @Test("sleep with a locked screen does not change the availability of protected data (L15, L31)")
    func protectedDataOnce() {
        let harness = Harness("photos") { $0.usesProtectedData = true }
        harness.launch("photos")
        harness.handle(.absence(.locked))
        harness.handle(.absence(.sleepRequested))
        harness.handle(.absence(.awoke))
        #expect(harness.delivered("photos") == [data("unavailable")])
        harness.handle(.absence(.unlocked))
        #expect(harness.delivered("photos") == [data("unavailable"), data("available")])
    }

    @Test("an app that stays suspended receives no notification of a change that was reverted (L31)")
    func protectedDataSuspended() {
        let harness = Harness("photos") { $0.usesProtectedData = true }
        harness.suspend("photos")
        harness.handle(.absence(.locked))
        harness.handle(.absence(.unlocked))
        harness.activate("photos")
        #expect(harness.state("photos") == .active)
        #expect(harness.delivered("photos").isEmpty)
    }

    @Test("an app that is launched while protected data is unavailable is notified (L15)")
    func protectedDataAtLaunch() {
        let harness = Harness("photos") { $0.usesProtectedData = true }
        harness.handle(.absence(.locked))
        harness.launch("photos", .background)
        #expect(harness.delivered("photos") == [data("unavailable")])
    }
}
