import LifecycleCore
import Testing

@Suite("Places in the foreground")
struct PlacesTests {
    @Test("L12: the app that is activated sends the other to the background, and does not wait for it")
    func newcomer() {
        let house = House("photos", "mail")
        house.launch("photos")
        house.behave("photos") { $0.entering = .isSilent }
        let mark = house.mark
        let request = house.launch("mail")
        #expect(house.answers[request] == .done(.active))
        #expect(house.told("photos", since: mark) == [.willResignActive, .didEnterBackground])
        #expect(house.changes("photos", since: mark) == ["inactive: displaced", "background: displaced"])
        #expect(house.view("mail").isForeground)
        #expect(!house.view("photos").isForeground)
    }

    @Test("L12: room is made when the newcomer is asked for, not when it is ready")
    func roomAtOnce() {
        let house = House("photos", "mail")
        house.launch("photos")
        house.behave("mail") { $0.launching = .spawns }
        house.launch("mail")
        #expect(house.state("mail") == .launching)
        #expect(house.state("photos") == .background)
        #expect(house.view("mail").isForeground)
    }

    @Test("L12: of two places the one that was activated longest ago is given up")
    func limitOfTwo() {
        let house = House("photos", "mail", "music")
        house.configure { $0.foregroundLimit = 2 }
        house.launch("photos")
        house.launch("mail")
        #expect(house.state("photos") == .active)
        #expect(house.state("mail") == .active)
        // Activated again: now mail is the one of longest ago.
        house.activate("photos")
        house.launch("music")
        #expect(house.state("photos") == .active)
        #expect(house.state("mail") == .background)
        #expect(house.state("music") == .active)
    }

    @Test("L12: a limit that is lowered sends those of longest ago to the background at once")
    func lowered() {
        let house = House("photos", "mail", "music")
        house.configure { $0.foregroundLimit = 3 }
        for app in ["photos", "mail", "music"] { house.launch(app) }
        house.configure { $0.foregroundLimit = 1 }
        #expect(house.state("photos") == .background)
        #expect(house.state("mail") == .background)
        #expect(house.state("music") == .active)
    }

    @Test("L12: an app that is displaced while it launches comes up in the background, and who waits hears so")
    func displacedWhileLaunching() {
        let house = House("photos", "mail") { $0.readiness = .notified }
        house.behave("photos") { $0.launching = .executes }
        let photos = house.launch("photos")
        house.launch("mail")
        #expect(house.answers[photos] == .superseded(by: .background))
        house.happens(.run(house.run("photos"), .ready))
        #expect(house.told("photos") == [.didEnterBackground])
        #expect(house.state("mail") == .active)
    }

    @Test(
        "L12: an app that is displaced on its way back stays in the background", arguments: [Stage.entering, .waking])
    func displacedOnTheWay(stage: Stage) {
        let house = House("photos", "mail")
        house.bring("photos", into: stage)
        let run = house.run("photos")
        let photos = house.activate("photos")
        house.launch("mail")
        #expect(house.answers[photos] == .superseded(by: .background))
        house.finish("photos", stage, run)
        #expect(house.state("photos") == .background)
        #expect(!house.told("photos").contains(.willEnterForeground))
        #expect(house.state("mail") == .active)
    }

    @Test(
        "L12: an app that is displaced while it ends is launched again into the background",
        arguments: [Stage.terminating, .ending])
    func displacedWhileEnding(stage: Stage) {
        let house = House("photos", "mail")
        house.bring("photos", into: stage)
        let photos = house.activate("photos")
        house.launch("mail")
        #expect(house.answers[photos] == .superseded(by: .background))
        house.finish("photos", stage, house.run("photos"))
        #expect(house.launches("photos").map(\.state) == [.foreground, .background])
        #expect(house.state("mail") == .active)
    }

    @Test("L12: an app that ends gives its place up", arguments: ["terminate", "remove", "crash", "background"])
    func givenUp(how: String) {
        let house = House("photos", "mail")
        house.launch("photos")
        switch how {
        case "terminate": house.terminate("photos")
        case "remove": house.remove("photos")
        case "crash": house.crash("photos")
        default: house.background("photos")
        }
        #expect(!house.view("photos").isForeground)
        let mark = house.mark
        house.launch("mail")
        #expect(house.told("photos", since: mark) == [])
    }

    @Test("L12: two that are activated in turn change places each time")
    func inTurn() {
        let house = House("photos", "mail")
        house.launch("photos")
        house.launch("mail")
        for _ in 0..<3 {
            house.activate("photos")
            #expect(house.state("photos") == .active)
            #expect(house.state("mail") == .background)
            house.activate("mail")
            #expect(house.state("mail") == .active)
            #expect(house.state("photos") == .background)
        }
    }

    @Test("L12: an app that comes back by itself takes no place from another")
    func relaunchTakesNoPlace() {
        let house = House("photos", "mail") { $0.relaunch = .onFailure }
        house.launch("photos")
        house.advance(.seconds(20))
        house.behave("photos") { $0.dies = false }
        let run = house.run("photos")
        house.happens(.run(run, .exited(.signaled(11, coreDumped: true), cpu: .zero, memory: 0)))
        house.launch("mail")
        house.happens(.run(run, .emptied))
        #expect(house.launches("photos").map(\.state) == [.foreground, .background])
        #expect(house.state("mail") == .active)
    }

    @Test("L12: an app that comes back by itself and had the foreground takes it again if it is free")
    func relaunchTakesFreePlace() {
        let house = House("photos") { $0.relaunch = .onFailure }
        house.launch("photos")
        house.advance(.seconds(20))
        house.crash("photos")
        #expect(house.launches("photos").map(\.state) == [.foreground, .foreground])
        #expect(house.launches("photos").last?.reason == .relaunch)
        #expect(house.state("photos") == .active)
    }
}
