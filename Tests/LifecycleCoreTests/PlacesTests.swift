import LifecycleCore
import Testing

@Suite("Places in the foreground")
struct PlacesTests {
    @Test("L12: the app that is activated sends the other to the background, and does not wait for it")
    func newcomer() {
        let harness = Harness("photos", "mail")
        harness.launch("photos")
        harness.behave("photos") { $0.entering = .isSilent }
        let mark = harness.mark
        let request = harness.launch("mail")
        #expect(harness.answers[request] == .done(.active))
        #expect(harness.told("photos", since: mark) == [.willResignActive, .didEnterBackground])
        #expect(harness.changes("photos", since: mark) == ["inactive: displaced", "background: displaced"])
        #expect(harness.view("mail").isForeground)
        #expect(!harness.view("photos").isForeground)
    }

    @Test("L12: room is made when the newcomer is asked for, not when it is ready")
    func roomAtOnce() {
        let harness = Harness("photos", "mail")
        harness.launch("photos")
        harness.behave("mail") { $0.launching = .spawns }
        harness.launch("mail")
        #expect(harness.state("mail") == .launching)
        #expect(harness.state("photos") == .background)
        #expect(harness.view("mail").isForeground)
    }

    @Test("L12: of two places the one that was activated longest ago is given up")
    func limitOfTwo() {
        let harness = Harness("photos", "mail", "music")
        harness.configure { $0.foregroundLimit = 2 }
        harness.launch("photos")
        harness.launch("mail")
        #expect(harness.state("photos") == .active)
        #expect(harness.state("mail") == .active)
        // Activated again: now mail is the one of longest ago.
        harness.activate("photos")
        harness.launch("music")
        #expect(harness.state("photos") == .active)
        #expect(harness.state("mail") == .background)
        #expect(harness.state("music") == .active)
    }

    @Test("L12: a limit that is lowered sends those of longest ago to the background at once")
    func lowered() {
        let harness = Harness("photos", "mail", "music")
        harness.configure { $0.foregroundLimit = 3 }
        for app in ["photos", "mail", "music"] { harness.launch(app) }
        harness.configure { $0.foregroundLimit = 1 }
        #expect(harness.state("photos") == .background)
        #expect(harness.state("mail") == .background)
        #expect(harness.state("music") == .active)
    }

    @Test("L12: an app that is displaced while it launches comes up in the background, and who waits hears so")
    func displacedWhileLaunching() {
        let harness = Harness("photos", "mail") { $0.readiness = .notified }
        harness.behave("photos") { $0.launching = .executes }
        let photos = harness.launch("photos")
        harness.launch("mail")
        #expect(harness.answers[photos] == .superseded(by: .background))
        harness.happens(.run(harness.run("photos"), .ready))
        #expect(harness.told("photos") == [.didEnterBackground])
        #expect(harness.state("mail") == .active)
    }

    @Test(
        "L12: an app that is displaced on its way back stays in the background", arguments: [Stage.entering, .waking])
    func displacedOnTheWay(stage: Stage) {
        let harness = Harness("photos", "mail")
        harness.bring("photos", into: stage)
        let run = harness.run("photos")
        let photos = harness.activate("photos")
        harness.launch("mail")
        #expect(harness.answers[photos] == .superseded(by: .background))
        harness.finish("photos", stage, run)
        #expect(harness.state("photos") == .background)
        #expect(!harness.told("photos").contains(.willEnterForeground))
        #expect(harness.state("mail") == .active)
    }

    @Test(
        "L12: an app that is displaced while it ends is launched again into the background",
        arguments: [Stage.terminating, .ending])
    func displacedWhileEnding(stage: Stage) {
        let harness = Harness("photos", "mail")
        harness.bring("photos", into: stage)
        let photos = harness.activate("photos")
        harness.launch("mail")
        #expect(harness.answers[photos] == .superseded(by: .background))
        harness.finish("photos", stage, harness.run("photos"))
        #expect(harness.launches("photos").map(\.state) == [.foreground, .background])
        #expect(harness.state("mail") == .active)
    }

    @Test("L12: an app that ends gives its place up", arguments: ["terminate", "remove", "crash", "background"])
    func givenUp(how: String) {
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
        #expect(harness.told("photos", since: mark) == [])
    }

    @Test("L12: two that are activated in turn change places each time")
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

    @Test("L12: an app that comes back by itself takes no place from another")
    func relaunchTakesNoPlace() {
        let harness = Harness("photos", "mail") { $0.relaunch = .onFailure }
        harness.launch("photos")
        harness.advance(.seconds(20))
        harness.behave("photos") { $0.dies = false }
        let run = harness.run("photos")
        harness.happens(.run(run, .exited(.signaled(11, coreDumped: true), cpu: .zero, memory: 0)))
        harness.launch("mail")
        harness.happens(.run(run, .emptied))
        #expect(harness.launches("photos").map(\.state) == [.foreground, .background])
        #expect(harness.state("mail") == .active)
    }

    @Test("L12: an app that comes back by itself and had the foreground takes it again if it is free")
    func relaunchTakesFreePlace() {
        let harness = Harness("photos") { $0.relaunch = .onFailure }
        harness.launch("photos")
        harness.advance(.seconds(20))
        harness.crash("photos")
        #expect(harness.launches("photos").map(\.state) == [.foreground, .foreground])
        #expect(harness.launches("photos").last?.reason == .relaunch)
        #expect(harness.state("photos") == .active)
    }
}
