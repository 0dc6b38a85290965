import LifecycleCore
import Testing

@Suite("Foreground slots")
struct ForegroundSlotTests {
    @Test("an activated app displaces the other to the background and does not wait for it (L12)")
    func displaces() {
        let harness = Harness("photos", "mail")
        harness.launch("photos")
        harness.behave("photos") { $0.entering = .isSilent }
        let mark = harness.mark
        let request = harness.launch("mail")
        #expect(harness.answers[request] == .done(.active))
        #expect(harness.notices("photos", since: mark) == [.willResignActive(.background), .didEnterBackground])
        #expect(harness.changes("photos", since: mark) == ["inactive: displaced", "background: displaced"])
        #expect(harness.view("mail").isForeground)
        #expect(!harness.view("photos").isForeground)
    }

    @Test("an app is displaced when another is requested, not when that one is ready (L12)")
    func displacedAtOnce() {
        let harness = Harness("photos", "mail")
        harness.launch("photos")
        harness.behave("mail") { $0.launching = .spawns }
        harness.launch("mail")
        #expect(harness.state("mail") == .launching)
        #expect(harness.state("photos") == .background)
        #expect(harness.view("mail").isForeground)
    }

    @Test("an app that was activated longest ago on another seat is not displaced (L12)")
    func olderOnOtherSeat() {
        let harness = Harness("photos", "mail")
        harness.register("movie") { $0.seat = "seat1" }
        for app in ["movie", "photos", "mail"] { harness.launch(app) }
        #expect(harness.state("movie") == .active)
        #expect(harness.state("photos") == .background)
        #expect(harness.state("mail") == .active)
    }

    @Test("of two foreground apps the one that was activated longest ago is displaced (L12)")
    func limitOfTwo() {
        let harness = Harness("photos", "mail", "music")
        harness.configure { $0.foregroundLimit = 2 }
        harness.launch("photos")
        harness.launch("mail")
        #expect(harness.state("photos") == .active)
        #expect(harness.state("mail") == .active)
        // Photos is activated again: mail is now the one that was activated longest ago.
        harness.activate("photos")
        harness.launch("music")
        #expect(harness.state("photos") == .active)
        #expect(harness.state("mail") == .background)
        #expect(harness.state("music") == .active)
    }

    @Test("each seat has its own slots, and an app whose seat is another one takes one there (L12)")
    func seats() {
        let harness = Harness("photos", "mail", "movie")
        harness.register("movie") { $0.seat = "seat1" }
        for app in ["photos", "movie"] { harness.launch(app) }
        #expect(harness.state("photos") == .active)
        harness.launch("mail")
        #expect(harness.state("photos") == .background)
        #expect(harness.state("movie") == .active)
        harness.register("mail") { $0.seat = "seat1" }
        #expect(harness.state("movie") == .background)
        #expect(harness.state("mail") == .active)
        harness.launch("photos")
        #expect(harness.state("mail") == .active)
    }

    @Test("a lowered limit immediately displaces the apps that were activated longest ago (L12)")
    func loweredLimit() {
        let harness = Harness("photos", "mail", "music")
        harness.configure { $0.foregroundLimit = 3 }
        for app in ["photos", "mail", "music"] { harness.launch(app) }
        harness.configure { $0.foregroundLimit = 1 }
        #expect(harness.state("photos") == .background)
        #expect(harness.state("mail") == .background)
        #expect(harness.state("music") == .active)
    }

    @Test("an app that is displaced while it launches enters the background, and its request is answered (L12)")
    func displacedWhileLaunching() {
        let harness = Harness("photos", "mail") { $0.readiness = .notified }
        harness.behave("photos") { $0.launching = .executes }
        let photos = harness.launch("photos")
        harness.launch("mail")
        // The answer has the state that it is to have, not the one that it has.
        #expect(harness.answers[photos] == .superseded(by: .background))
        #expect(harness.state("photos") == .launching)
        harness.handle(.run(harness.run("photos"), .transition(.ready)))
        #expect(harness.notices("photos") == [.didEnterBackground])
        #expect(harness.state("mail") == .active)
    }

    @Test(
        "an app that is displaced on its way to the foreground stays in the background (L12)",
        arguments: [Stage.entering, .waking])
    func displacedOnTheWay(stage: Stage) {
        let harness = Harness("photos", "mail")
        harness.move("photos", to: stage)
        let run = harness.run("photos")
        let photos = harness.activate("photos")
        harness.launch("mail")
        #expect(harness.answers[photos] == .superseded(by: .background))
        harness.finish("photos", stage, run)
        #expect(harness.state("photos") == .background)
        #expect(!harness.notices("photos").contains(.willEnterForeground))
        #expect(harness.state("mail") == .active)
    }

    @Test(
        "an app that is displaced while it ends is relaunched into the background (L12)",
        arguments: [Stage.terminating, .ending])
    func displacedWhileEnding(stage: Stage) {
        let harness = Harness("photos", "mail")
        harness.move("photos", to: stage)
        let photos = harness.activate("photos")
        harness.launch("mail")
        #expect(harness.answers[photos] == .superseded(by: .background))
        harness.finish("photos", stage, harness.run("photos"))
        #expect(harness.launches("photos").map(\.state) == [.foreground, .background])
        #expect(harness.state("mail") == .active)
    }

    @Test(
        "an app that ends frees its foreground slot (L12)", arguments: ["terminate", "remove", "crash", "background"])
    func freed(how: String) {
        let harness = Harness("photos", "mail")
        harness.launch("photos")
        switch how {
        case "terminate": harness.terminate("photos")
        case "remove": harness.remove("photos")
        case "crash": harness.crash("photos")
        default: harness.background("photos")
        }
        #expect(!harness.view("photos").isForeground)
        let mark = harness.mark
        harness.launch("mail")
        #expect(harness.notices("photos", since: mark) == [])
    }

    @Test("two apps that are activated in turn displace each other (L12)")
    func inTurn() {
        let harness = Harness("photos", "mail")
        harness.launch("photos")
        harness.launch("mail")
        for _ in 0..<3 {
            harness.activate("photos")
            #expect(harness.state("photos") == .active)
            #expect(harness.state("mail") == .background)
            harness.activate("mail")
            #expect(harness.state("mail") == .active)
            #expect(harness.state("photos") == .background)
        }
    }

    @Test("a relaunched app displaces no other app (L12)")
    func relaunchTakesNoSlot() {
        let harness = Harness("photos", "mail") { $0.relaunch = .onFailure }
        harness.launch("photos")
        harness.advance(.seconds(20))
        harness.behave("photos") { $0.dies = false }
        let run = harness.run("photos")
        harness.handle(.run(run, .process(.exited(.signaled(11, coreDumped: true), cpu: .zero, memory: 0))))
        harness.launch("mail")
        harness.handle(.run(run, .process(.emptied)))
        #expect(harness.launches("photos").map(\.state) == [.foreground, .background])
        #expect(harness.state("mail") == .active)
    }

    @Test("a relaunched app that was in the foreground returns there if a slot is free (L12)")
    func relaunchTakesFreeSlot() {
        let harness = Harness("photos") { $0.relaunch = .onFailure }
        harness.launch("photos")
        harness.advance(.seconds(20))
        harness.crash("photos")
        #expect(harness.launches("photos").map(\.state) == [.foreground, .foreground])
        #expect(harness.launches("photos").last?.reason == .relaunch)
        #expect(harness.state("photos") == .active)
    }
}
