import LifecycleCore
import Testing

@Suite("Background")
struct BackgroundTests {
    @Test("L19: an app that was on its way to the foreground and is sent back before it runs is throttled again")
    func throttledAgain() {
        let house = House("photos")
        house.behave("photos") { $0.thaws = false }
        house.suspend("photos")
        let run = house.run("photos")
        house.activate("photos")
        #expect(house.effects.last { $0 == .throttle(run) || $0 == .unthrottle(run) } == .unthrottle(run))
        house.background("photos")
        house.happens(.thawed(run, attempt: 1))
        #expect(house.effects.last { $0 == .throttle(run) || $0 == .unthrottle(run) } == .throttle(run))
        house.advance(.seconds(1))
        #expect(house.state("photos") == .suspended)
    }

    @Test("L13: interruptions do not outlive a way to the foreground that was given up", arguments: [false, true])
    func interruptionsAreForgotten(isWaking: Bool) {
        let house = House("photos")
        house.behave("photos") {
            $0.thaws = false; $0.entering = isWaking ? .answers : .isSilent
        }
        if isWaking { house.suspend("photos") } else { house.launch("photos"); house.background("photos") }
        let run = house.run("photos")
        house.activate("photos")
        house.request("photos", .interrupt)
        #expect(house.view("photos").interruptions == 1)
        house.background("photos")
        house.happens(isWaking ? .thawed(run, attempt: 1) : .backgroundEntered(run))
        #expect(house.view("photos").interruptions == 0)
        house.activate("photos")
        #expect(house.state("photos") == .active)
    }
}
