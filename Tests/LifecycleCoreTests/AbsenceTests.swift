import LifecycleCore
import Testing

@Suite("Sleep and the locked screen")
struct AbsenceTests {
    private func allowed(_ house: House, since mark: Int = 0) -> Int {
        house.effects(since: mark).count { $0 == .allowSleep }
    }

    @Test("L15: before the machine sleeps the app in the foreground goes to the background, and comes back after it")
    func sleep() {
        let house = House("photos")
        house.launch("photos")
        var mark = house.mark
        house.happens(.sleepRequested)
        #expect(house.told("photos", since: mark) == [.willResignActive, .didEnterBackground])
        #expect(house.state("photos") == .background)
        #expect(allowed(house) == 1)
        #expect(!house.view("photos").isForeground)
        mark = house.mark
        house.happens(.awoke)
        #expect(house.told("photos", since: mark) == [.willEnterForeground, .didBecomeActive])
        #expect(house.changes("photos", since: mark) == ["inactive: awoke", "active: awoke"])
    }

    @Test("L15: sleep waits until the app has answered, or its deadline has killed it", arguments: [true, false])
    func waits(answers: Bool) throws {
        let house = House("photos")
        house.behave("photos") { $0.entering = .isSilent }
        house.launch("photos")
        house.happens(.sleepRequested)
        house.advance(.milliseconds(4900))
        #expect(allowed(house) == 0)
        if answers {
            house.happens(.run(house.run("photos"), .backgroundEntered))
            #expect(allowed(house) == 1)
        } else {
            house.advance(.milliseconds(100))
            #expect(allowed(house) == 1)
            #expect(try house.receipt("photos").code == 0x8bad_f00d)
        }
    }

    @Test("L15: with nobody in the foreground sleep is allowed at once, and as often as it is asked for")
    func nobody() {
        let house = House("photos", "mail")
        house.suspend("mail")
        house.happens(.sleepRequested)
        #expect(allowed(house) == 1)
        // First to sleep, then to be switched off.
        house.happens(.sleepRequested)
        #expect(allowed(house) == 2)
        house.happens(.awoke)
        house.happens(.awoke)
        #expect(house.state("mail") == .suspended)
    }

    @Test("L15: an app that was suspended meanwhile is woken for the return")
    func suspendedMeanwhile() {
        let house = House("photos")
        house.launch("photos")
        house.happens(.locked)
        house.advance(.seconds(60))
        #expect(house.state("photos") == .suspended)
        house.happens(.unlocked)
        #expect(house.state("photos") == .active)
        #expect(house.launches("photos").count == 1)
    }

    @Test("L15: an app that just launches is not waited for; it is held back when it is ready, until the user is back")
    func launching() {
        let house = House("photos")
        house.behave("photos") { $0.launching = .hangs }
        let request = house.launch("photos")
        house.happens(.sleepRequested)
        #expect(allowed(house) == 1)
        house.happens(.run(house.run("photos"), .executed))
        #expect(house.state("photos") == .background)
        #expect(!house.isAnswered(request))
        house.happens(.awoke)
        #expect(house.answers[request] == .done(.active))
    }

    @Test(
        "L15: what is asked for while the machine goes to sleep is answered when it is awake", arguments: [true, false])
    func askedWhileAsleep(isSuspended: Bool) {
        let house = House("photos")
        house.launch("photos", .background)
        if isSuspended { house.suspend("photos") }
        house.happens(.sleepRequested)
        let mark = house.mark
        let request = house.activate("photos")
        #expect(!house.isAnswered(request))
        #expect(house.told("photos", since: mark).isEmpty)
        house.happens(.awoke)
        #expect(house.answers[request] == .done(.active))
    }

    @Test("L15: on a locked screen an app that is asked for comes forward; whom it displaces does not come back")
    func askedWhileLocked() {
        let house = House("photos", "phone")
        house.launch("photos")
        house.happens(.locked)
        let request = house.launch("phone")
        #expect(house.answers[request] == .done(.active))
        house.happens(.unlocked)
        #expect(house.state("phone") == .active)
        #expect(house.state("photos") != .active)
    }

    @Test("L15: who sleeps on a locked screen is back only when it is unlocked, too")
    func both() {
        let house = House("photos")
        house.launch("photos")
        house.happens(.locked)
        house.happens(.sleepRequested)
        house.happens(.awoke)
        #expect(house.state("photos") != .active)
        house.happens(.unlocked)
        #expect(house.state("photos") == .active)
    }

    @Test("L15: who is wished to the background or to its end meanwhile does not come back", arguments: [true, false])
    func wishedAway(isEnd: Bool) {
        let house = House("photos")
        house.launch("photos")
        house.happens(.locked)
        if isEnd { house.terminate("photos") } else { house.background("photos") }
        house.happens(.unlocked)
        #expect(house.state("photos") == (isEnd ? .notRunning : .background))
        #expect(house.launches("photos").count == 1)
    }

    @Test("L12, L15: several come back in the order in which they were activated")
    func several() {
        let house = House("photos", "mail", "maps")
        house.configure { $0.foregroundLimit = 2 }
        house.launch("photos")
        house.launch("mail")
        house.happens(.sleepRequested)
        #expect(allowed(house) == 1)
        house.happens(.awoke)
        #expect(house.state("photos") == .active && house.state("mail") == .active)
        house.launch("maps")
        #expect(house.state("photos") == .background)
    }

    @Test("L12, L15: fewer may be in the foreground after than before: who was activated longest ago stays behind")
    func fewerAfter() {
        let house = House("photos", "mail")
        house.configure { $0.foregroundLimit = 2 }
        house.launch("photos")
        house.launch("mail")
        house.happens(.locked)
        house.advance(.seconds(5))
        house.configure { $0.foregroundLimit = 1 }
        house.happens(.unlocked)
        #expect(house.state("photos") == .suspended)
        #expect(house.state("mail") == .active)
    }

    @Test("L15: an app that ends meanwhile is gone, and its place with it")
    func endsMeanwhile() {
        let house = House("photos", "mail")
        house.launch("photos")
        house.happens(.locked)
        house.exit("photos")
        house.happens(.unlocked)
        #expect(house.state("photos") == .notRunning)
        house.launch("mail")
        #expect(house.state("mail") == .active)
    }

    @Test("L15: an app that is launched again by itself does not come in front of a locked screen")
    func relaunched() {
        let house = House("photos") { $0.relaunch = .always }
        house.launch("photos")
        house.advance(.seconds(60))
        house.happens(.locked)
        house.crash("photos")
        #expect(house.launches("photos").count == 2)
        #expect(house.state("photos") == .background)
        house.happens(.unlocked)
        #expect(house.state("photos") == .active)
    }

    @Test("L15: an interruption of who is not in the foreground now is refused")
    func interrupt() {
        let house = House("photos")
        house.launch("photos")
        house.happens(.locked)
        let request = house.request("photos", .interrupt)
        #expect(house.answers[request] == .refused(.notInForeground))
    }

    @Test("L38: who is held back stands with the background: it may be taken before an app that is in the foreground")
    func jetsam() {
        let house = House("photos", "phone")
        house.configure { $0.foregroundLimit = 2 }
        house.launch("photos")
        house.happens(.locked)
        house.launch("phone")
        house.simulate(.critical)
        #expect(house.killed() == ["photos"])
    }

    @Test("when the house shuts down in an absence, nobody comes back, and sleep is allowed")
    func shutdown() {
        let house = House("photos")
        house.behave("photos") { $0.entering = .isSilent }
        house.launch("photos")
        house.happens(.sleepRequested)
        house.happens(.shutdownRequested(immediately: true))
        #expect(allowed(house) == 1)
        house.happens(.awoke)
        #expect(house.effects.contains(.finish))
    }

    // MARK: Protected data

    private func data(_ payload: String) -> Notification { Notification(kind: "protectedData", payload: payload)! }

    @Test("L15: apps that use protected data learn that it goes away, before they leave the foreground, and comes back")
    func protectedData() throws {
        let house = House("photos", "mail") { $0.usesProtectedData = true }
        house.register("mail") { $0.usesProtectedData = false }
        house.launch("mail", .background)
        house.launch("photos")
        let mark = house.mark
        house.happens(.locked)
        #expect(house.delivered("photos", since: mark) == [data("unavailable")])
        let effects = house.effects(since: mark)
        let told = try #require(effects.firstIndex { if case .deliver = $0 { true } else { false } })
        let left = try #require(effects.firstIndex { if case .notify = $0 { true } else { false } })
        #expect(told < left)
        house.happens(.unlocked)
        #expect(house.delivered("photos", since: mark) == [data("unavailable"), data("available")])
        #expect(house.delivered("mail").isEmpty)
    }

    @Test("L15, L31: sleep on a locked screen changes nothing about the data")
    func protectedDataOnce() {
        let house = House("photos") { $0.usesProtectedData = true }
        house.launch("photos")
        house.happens(.locked)
        house.happens(.sleepRequested)
        house.happens(.awoke)
        #expect(house.delivered("photos") == [data("unavailable")])
        house.happens(.unlocked)
        #expect(house.delivered("photos") == [data("unavailable"), data("available")])
    }

    @Test("L31: an app that was suspended all the while never hears of it")
    func protectedDataSuspended() {
        let house = House("photos") { $0.usesProtectedData = true }
        house.suspend("photos")
        house.happens(.locked)
        house.happens(.unlocked)
        house.activate("photos")
        #expect(house.state("photos") == .active)
        #expect(house.delivered("photos").isEmpty)
    }

    @Test("L15: an app that is launched while the data is away is told so")
    func protectedDataAtLaunch() {
        let house = House("photos") { $0.usesProtectedData = true }
        house.happens(.locked)
        house.launch("photos", .background)
        #expect(house.delivered("photos") == [data("unavailable")])
    }
}
