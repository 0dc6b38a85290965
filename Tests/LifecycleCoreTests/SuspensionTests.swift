import LifecycleCore
import Testing

@Suite("Suspension")
struct SuspensionTests {
    @Test(
        "L26: an app that answered by stopping itself is continued for what wakes it",
        arguments: ["running", "entering"])
    func continuedForWake(phase: String) {
        let house = House("photos") { $0.backgroundModes = .push }
        house.behave("photos") { $0.entering = phase == "running" ? .stops : .isSilent }
        house.launch("photos")
        house.background("photos")
        let run = house.run("photos")
        house.push("photos")
        if phase == "entering" {
            #expect(!house.effects.contains(.continueStopped(run)))
            house.happens(.stopped(run))
        }
        #expect(house.effects.contains(.continueStopped(run)))
        #expect(house.state("photos") == .background)
        house.happens(.wakeCompleted(run, .newData))
        house.advance(.seconds(1))
        #expect(house.state("photos") == .suspended)
    }

    @Test("an app that answered by stopping itself stays stopped after a freeze that timed out")
    func staysStopped() {
        let house = House("photos")
        house.behave("photos") {
            $0.entering = .stops; $0.freezes = false
        }
        house.launch("photos")
        house.background("photos")
        house.advance(.seconds(3))
        #expect(house.reports().contains(.freezeTimedOut(id("photos"))))
        #expect(!house.effects.contains(.continueStopped(house.run("photos"))))
        house.behave("photos") { $0.freezes = true }
        house.advance(.seconds(1))
        #expect(house.state("photos") == .suspended)
        house.activate("photos")
        #expect(house.effects.contains(.continueStopped(house.run("photos"))))
    }
}
