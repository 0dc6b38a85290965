import LifecycleCore
import Testing

@Suite("Requests")
struct RequestTests {
    @Test(
        "L5: a launch into the background wins over an earlier activation, of an app that is on its way out",
        arguments: [false, true])
    func launchInBackgroundWins(isKilled: Bool) {
        let house = House("photos")
        house.behave("photos") {
            $0.terminating = .ignores; $0.dies = false
        }
        house.launch("photos")
        house.terminate("photos")
        if isKilled { house.advance(.seconds(5)) }
        let activate = house.activate("photos")
        let launch = house.launch("photos", .background)
        #expect(house.answers[activate] == .superseded(by: .background))
        house.exit("photos", .signaled(9, coreDumped: false))
        #expect(house.answers[launch] == .done(.background))
        #expect(house.launches("photos").map(\.state) == [.foreground, .background])
    }

    @Test(
        "L5: a launch into the background wins over an earlier request to end",
        arguments: ["launching", "entering", "waking"])
    func launchInBackgroundWinsOverEnd(phase: String) {
        let house = House("photos") { $0.readiness = .notified }
        house.behave("photos") { behaviour in
            behaviour.launching = phase == "launching" ? .executes : .becomesReady
            behaviour.entering = phase == "entering" ? .isSilent : .answers
            behaviour.thaws = phase != "waking"
        }
        house.launch("photos")
        if phase != "launching" { house.background("photos") }
        if phase == "waking" {
            house.advance(.seconds(1))
            house.activate("photos")
        }
        let run = house.run("photos")
        let terminate = house.terminate("photos")
        let launch = house.launch("photos", .background)
        #expect(house.answers[terminate] == .superseded(by: .background))
        #expect(!house.isAnswered(launch))
        house.behave("photos") { $0.entering = .answers }
        let answers: [String: Event] = [
            "launching": .ready(run), "entering": .backgroundEntered(run), "waking": .thawed(run, attempt: 1),
        ]
        house.happens(answers[phase]!)
        #expect(house.answers[launch] == .done(.background))
        #expect(house.receipts == [])
    }
}
