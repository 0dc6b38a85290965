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
}
