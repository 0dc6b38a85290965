import LifecycleCore
import Testing

@Suite("Configuration")
struct ConfigurationTests {
    @Test(
        "an app whose manifest comes back while it ends is launched as was asked, and holds no place without a process")
    func comesBackWhileEnding() {
        let house = House("photos", "mail")
        house.behave("photos") {
            $0.dies = false; $0.terminating = .ignores
        }
        house.launch("photos")
        house.advance(.seconds(20))
        house.terminate("photos")
        house.advance(.seconds(5))
        #expect(house.killed() == ["photos"])
        let request = house.activate("photos")
        house.unregister("photos")
        house.register("photos")
        house.exit("photos", .signaled(9, coreDumped: false))
        #expect(house.answers[request] == .done(.active))
        house.launch("mail")
        #expect(house.state("mail") == .active)
        #expect(house.state("photos") == .background)
    }

    @Test("an app whose manifest is gone runs on, is forgotten at its end, and who waits for it hears so")
    func forgottenAtItsEnd() {
        let house = House("photos") { $0.relaunch = .always }
        house.behave("photos") {
            $0.dies = false; $0.terminating = .ignores
        }
        house.launch("photos")
        house.unregister("photos")
        #expect(house.state("photos") == .active)
        let terminate = house.terminate("photos")
        let activate = house.activate("photos")
        house.exit("photos")
        #expect(house.answers[activate] == .refused(.unknownApp))
        #expect(house.answers[terminate] == .ended(house.receipts[0]))
        #expect(house.core.appIDs == [])
        #expect(house.core.nextDeadline == nil)
        let launch = house.launch("photos")
        #expect(house.answers[launch] == .refused(.unknownApp))
    }

    @Test("LaunchAtStart= launches what it names at the start, and nothing once the house is closing")
    func launchAtStart() {
        let house = House()
        house.register("mail") { $0.launchAtStart = .background }
        house.register("photos") { $0.launchAtStart = .foreground }
        house.register("music")
        house.happens(.started)
        #expect(house.state("mail") == .background)
        #expect(house.state("photos") == .active)
        #expect(house.state("music") == .notRunning)
        #expect(
            house.launches("mail") == [
                {
                    var l = Launch(state: .background, reason: .user); l.isFirst = true; return l
                }()
            ])

        let closing = House()
        closing.register("mail") { $0.launchAtStart = .background }
        closing.happens(.shutdownRequested(immediately: false))
        closing.happens(.started)
        #expect(closing.launches("mail") == [])
    }

    @Test("L12: a limit of nothing is taken for one", arguments: [0, -1])
    func limitOfNothing(limit: Int) {
        let house = House("photos", "mail")
        house.configure { $0.foregroundLimit = limit }
        house.launch("photos")
        #expect(house.state("photos") == .active)
        house.background("photos")
        house.activate("photos")
        house.launch("mail")
        #expect(house.state("mail") == .active)
        #expect(house.state("photos") == .background)
    }

    @Test("apps are listed by name, and an app that was forgotten leaves its place to the next")
    func listed() {
        let house = House("photos", "mail")
        #expect(house.core.appIDs == [id("mail"), id("photos")])
        house.launch("mail")
        house.unregister("photos")
        house.register("music")
        #expect(house.core.appIDs == [id("mail"), id("music")])
        #expect(house.state("photos") == nil)
        #expect(house.core.view(of: id("photos"), at: house.now) == nil)
        #expect(house.state("mail") == .active)
        house.launch("music")
        #expect(house.state("music") == .active)
        house.advance(.seconds(1))
        #expect(house.state("mail") == .suspended)
    }

    @Test("a manifest that is unregistered twice, or never was there, does no harm")
    func unregisteredTwice() {
        let house = House("photos")
        house.unregister("photos")
        house.unregister("photos")
        house.unregister("mail")
        house.register("photos", launches: 4)
        #expect(house.view("photos").launches == 4)
    }

    @Test("a manifest that is read anew while the app runs changes what is decided from then on")
    func readAnew() {
        let house = House("photos")
        house.launch("photos")
        house.register("photos") {
            $0.suspendDelay = .seconds(20); $0.backgroundTime = .seconds(100)
        }
        house.background("photos")
        house.advance(.seconds(19))
        #expect(house.state("photos") == .background)
        // In flight: the delay that is under way is the new one.
        house.register("photos") { $0.suspendDelay = .seconds(25) }
        house.advance(.seconds(5))
        #expect(house.state("photos") == .background)
        house.advance(.seconds(1))
        #expect(house.state("photos") == .suspended)
        // The budget of a stay is fixed when it begins.
        house.register("photos") { $0.backgroundTime = .seconds(5) }
        #expect(house.view("photos").backgroundTimeRemaining == .seconds(75))
    }

    @Test(
        "a name of an app is bounded, and no path",
        arguments: [
            ("a", true), ("org.example.Photos_2-x", true), ("", false), (".hidden", false), ("a/b", false),
            ("a b", false),
            ("ä", false), ("a\u{0}", false), (String(repeating: "a", count: 128), true),
            (String(repeating: "a", count: 129), false),
            ("..", false), ("a..b", true), ("-rf", true),
        ])
    func names(name: String, isOne: Bool) {
        #expect((AppID(name) != nil) == isOne)
        if isOne { #expect(AppID(name)?.description == name) }
    }

    @Test("the modes are known by the names that manifests use")
    func modes() {
        #expect(
            BackgroundModes.named.map(\.name) == [
                "audio", "location", "voip", "accessory", "fetch", "push", "processing",
            ])
        #expect(Set(BackgroundModes.named.map(\.mode.rawValue)).count == 7)
    }

    @Test("a debugger's or a fork's main process is followed")
    func mainProcess() {
        let house = House("photos")
        house.launch("photos")
        house.happens(.run(house.run("photos"), .mainProcessChanged(pid: 4711)))
        #expect(house.view("photos").pid == 4711)
        house.crash("photos")
        #expect(house.receipts.first?.pid == 4711)
    }
}
