import LifecycleCore
import Testing

@Suite("Sleep and the locked screen")
struct AbsenceTests {
    private func allowed(_ harness: Harness, since mark: Int = 0) -> Int {
        harness.effects(since: mark).count { $0 == .allowSleep }
    }

    @Test("L15: before the machine sleeps the app in the foreground goes to the background, and comes back after it")
    func sleep() {
        let harness = Harness("photos")
        harness.launch("photos")
        var mark = harness.mark
        harness.happens(.sleepRequested)
        #expect(harness.told("photos", since: mark) == [.willResignActive, .didEnterBackground])
        #expect(harness.state("photos") == .background)
        #expect(allowed(harness) == 1)
        #expect(!harness.view("photos").isForeground)
        mark = harness.mark
        harness.happens(.awoke)
        #expect(harness.told("photos", since: mark) == [.willEnterForeground, .didBecomeActive])
        #expect(harness.changes("photos", since: mark) == ["inactive: awoke", "active: awoke"])
    }

    @Test("L15: sleep waits until the app has answered, or its deadline has killed it", arguments: [true, false])
    func waits(answers: Bool) throws {
        let harness = Harness("photos")
        harness.behave("photos") { $0.entering = .isSilent }
        harness.launch("photos")
        harness.happens(.sleepRequested)
        harness.advance(.milliseconds(4900))
        #expect(allowed(harness) == 0)
        if answers {
            harness.happens(.run(harness.run("photos"), .backgroundEntered))
            #expect(allowed(harness) == 1)
        } else {
            harness.advance(.milliseconds(100))
            #expect(allowed(harness) == 1)
            #expect(try harness.receipt("photos").code == 0x8bad_f00d)
        }
    }

    @Test("L15: with nobody in the foreground sleep is allowed at once, and as often as it is asked for")
    func nobody() {
        let harness = Harness("photos", "mail")
        harness.suspend("mail")
        harness.happens(.sleepRequested)
        #expect(allowed(harness) == 1)
        // First to sleep, then to be switched off.
        harness.happens(.sleepRequested)
        #expect(allowed(harness) == 2)
        harness.happens(.awoke)
        harness.happens(.awoke)
        #expect(harness.state("mail") == .suspended)
    }

    @Test("L15: an app that was suspended meanwhile is woken for the return")
    func suspendedMeanwhile() {
        let harness = Harness("photos")
        harness.launch("photos")
        harness.happens(.locked)
        harness.advance(.seconds(60))
        #expect(harness.state("photos") == .suspended)
        harness.happens(.unlocked)
        #expect(harness.state("photos") == .active)
        #expect(harness.launches("photos").count == 1)
    }

    @Test("L15: an app that just launches is not waited for; it is held back when it is ready, until the user is back")
    func launching() {
        let harness = Harness("photos")
        harness.behave("photos") { $0.launching = .hangs }
        let request = harness.launch("photos")
        harness.happens(.sleepRequested)
        #expect(allowed(harness) == 1)
        harness.happens(.run(harness.run("photos"), .executed))
        #expect(harness.state("photos") == .background)
        #expect(!harness.isAnswered(request))
        harness.happens(.awoke)
        #expect(harness.answers[request] == .done(.active))
    }

    @Test(
        "L15: what is asked for while the machine goes to sleep is answered when it is awake", arguments: [true, false])
    func askedWhileAsleep(isSuspended: Bool) {
        let harness = Harness("photos")
        harness.launch("photos", .background)
        if isSuspended { harness.suspend("photos") }
        harness.happens(.sleepRequested)
        let mark = harness.mark
        let request = harness.activate("photos")
        #expect(!harness.isAnswered(request))
        #expect(harness.told("photos", since: mark).isEmpty)
        harness.happens(.awoke)
        #expect(harness.answers[request] == .done(.active))
    }

    @Test("L15: on a locked screen an app that is asked for comes forward; whom it displaces does not come back")
    func askedWhileLocked() {
        let harness = Harness("photos", "phone")
        harness.launch("photos")
        harness.happens(.locked)
        let request = harness.launch("phone")
        #expect(harness.answers[request] == .done(.active))
        harness.happens(.unlocked)
        #expect(harness.state("phone") == .active)
        #expect(harness.state("photos") != .active)
    }

    @Test("L15: who sleeps on a locked screen is back only when it is unlocked, too")
    func both() {
        let harness = Harness("photos")
        harness.launch("photos")
        harness.happens(.locked)
        harness.happens(.sleepRequested)
        harness.happens(.awoke)
        #expect(harness.state("photos") != .active)
        harness.happens(.unlocked)
        #expect(harness.state("photos") == .active)
    }

    @Test("L15: who is wished to the background or to its end meanwhile does not come back", arguments: [true, false])
    func wishedAway(isEnd: Bool) {
        let harness = Harness("photos")
        harness.launch("photos")
        harness.happens(.locked)
        if isEnd { harness.terminate("photos") } else { harness.background("photos") }
        harness.happens(.unlocked)
        #expect(harness.state("photos") == (isEnd ? .notRunning : .background))
        #expect(harness.launches("photos").count == 1)
    }

    @Test("L12, L15: several come back in the order in which they were activated")
    func several() {
        let harness = Harness("photos", "mail", "maps")
        harness.configure { $0.foregroundLimit = 2 }
        harness.launch("photos")
        harness.launch("mail")
        harness.happens(.sleepRequested)
        #expect(allowed(harness) == 1)
        harness.happens(.awoke)
        #expect(harness.state("photos") == .active && harness.state("mail") == .active)
        harness.launch("maps")
        #expect(harness.state("photos") == .background)
    }

    @Test("L12, L15: fewer may be in the foreground after than before: who was activated longest ago stays behind")
    func fewerAfter() {
        let harness = Harness("photos", "mail")
        harness.configure { $0.foregroundLimit = 2 }
        harness.launch("photos")
        harness.launch("mail")
        harness.happens(.locked)
        harness.advance(.seconds(5))
        harness.configure { $0.foregroundLimit = 1 }
        harness.happens(.unlocked)
        #expect(harness.state("photos") == .suspended)
        #expect(harness.state("mail") == .active)
    }

    @Test("L15: an app that ends meanwhile is gone, and its place with it")
    func endsMeanwhile() {
        let harness = Harness("photos", "mail")
        harness.launch("photos")
        harness.happens(.locked)
        harness.exit("photos")
        harness.happens(.unlocked)
        #expect(harness.state("photos") == .notRunning)
        harness.launch("mail")
        #expect(harness.state("mail") == .active)
    }

    @Test("L15: an app that is launched again by itself does not come in front of a locked screen")
    func relaunched() {
        let harness = Harness("photos") { $0.relaunch = .always }
        harness.launch("photos")
        harness.advance(.seconds(60))
        harness.happens(.locked)
        harness.crash("photos")
        #expect(harness.launches("photos").count == 2)
        #expect(harness.state("photos") == .background)
        harness.happens(.unlocked)
        #expect(harness.state("photos") == .active)
    }

    @Test("L15: an interruption of who is not in the foreground now is refused")
    func interrupt() {
        let harness = Harness("photos")
        harness.launch("photos")
        harness.happens(.locked)
        let request = harness.request("photos", .interrupt)
        #expect(harness.answers[request] == .refused(.notInForeground))
    }

    @Test("L38: who is held back stands with the background: it may be taken before an app that is in the foreground")
    func jetsam() {
        let harness = Harness("photos", "phone")
        harness.configure { $0.foregroundLimit = 2 }
        harness.launch("photos")
        harness.happens(.locked)
        harness.launch("phone")
        harness.simulate(.critical)
        #expect(harness.killed() == ["photos"])
    }

    @Test("when the harness shuts down in an absence, nobody comes back, and sleep is allowed")
    func shutdown() {
        let harness = Harness("photos")
        harness.behave("photos") { $0.entering = .isSilent }
        harness.launch("photos")
        harness.happens(.sleepRequested)
        harness.happens(.shutdownRequested(immediately: true))
        #expect(allowed(harness) == 1)
        harness.happens(.awoke)
        #expect(harness.effects.contains(.finish))
    }

    // MARK: Protected data

    private func data(_ payload: String) -> Notification { Notification(kind: "protectedData", payload: payload)! }

    @Test("L15: apps that use protected data learn that it goes away, before they leave the foreground, and comes back")
    func protectedData() throws {
        let harness = Harness("photos", "mail") { $0.usesProtectedData = true }
        harness.register("mail") { $0.usesProtectedData = false }
        harness.launch("mail", .background)
        harness.launch("photos")
        let mark = harness.mark
        harness.happens(.locked)
        #expect(harness.delivered("photos", since: mark) == [data("unavailable")])
        let effects = harness.effects(since: mark)
        let told = try #require(effects.firstIndex { if case .deliver = $0 { true } else { false } })
        let left = try #require(effects.firstIndex { if case .notify = $0 { true } else { false } })
        #expect(told < left)
        harness.happens(.unlocked)
        #expect(harness.delivered("photos", since: mark) == [data("unavailable"), data("available")])
        #expect(harness.delivered("mail").isEmpty)
    }

    @Test("L15, L31: sleep on a locked screen changes nothing about the data")
    func protectedDataOnce() {
        let harness = Harness("photos") { $0.usesProtectedData = true }
        harness.launch("photos")
        harness.happens(.locked)
        harness.happens(.sleepRequested)
        harness.happens(.awoke)
        #expect(harness.delivered("photos") == [data("unavailable")])
        harness.happens(.unlocked)
        #expect(harness.delivered("photos") == [data("unavailable"), data("available")])
    }

    @Test("L31: an app that was suspended all the while never hears of it")
    func protectedDataSuspended() {
        let harness = Harness("photos") { $0.usesProtectedData = true }
        harness.suspend("photos")
        harness.happens(.locked)
        harness.happens(.unlocked)
        harness.activate("photos")
        #expect(harness.state("photos") == .active)
        #expect(harness.delivered("photos").isEmpty)
    }

    @Test("L15: an app that is launched while the data is away is told so")
    func protectedDataAtLaunch() {
        let harness = Harness("photos") { $0.usesProtectedData = true }
        harness.happens(.locked)
        harness.launch("photos", .background)
        #expect(harness.delivered("photos") == [data("unavailable")])
    }
}
