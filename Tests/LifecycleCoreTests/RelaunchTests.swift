import LifecycleCore
import Testing

@Suite("Relaunch")
struct RelaunchTests {
    @Test(
        "an app that somebody asked to end is not launched again, however its end then comes about",
        arguments: [
            "emptied before exited", "crash in the launch", "crash while entering the background", "crash while waking",
            "late in the launch", "on its way out by itself", "while it is being killed", "removed while being killed",
        ])
    func askedToEnd(_ how: String) {
        let house = House("photos") {
            $0.relaunch = .always; $0.readiness = .notified
        }
        house.behave("photos") {
            $0.dies = false; $0.terminating = .ignores
        }
        func launch() { house.launch("photos"); house.advance(.seconds(60)) }
        switch how {
        case "emptied before exited":
            launch()
            house.terminate("photos")
            house.happens(.emptied(house.run("photos")))
            house.happens(.exited(house.run("photos"), .exited(0), cpu: .zero, memory: 0))
        case "crash in the launch", "late in the launch":
            house.behave("photos") {
                $0.launching = .executes; $0.dies = true
            }
            house.launch("photos")
            house.terminate("photos")
            if how == "crash in the launch" { house.crash("photos") } else { house.advance(.seconds(5)) }
        case "crash while entering the background":
            house.behave("photos") { $0.entering = .isSilent }
            launch()
            house.background("photos")
            house.terminate("photos")
            house.crash("photos")
        case "crash while waking":
            house.behave("photos") { $0.thaws = false }
            house.suspend("photos")
            house.activate("photos")
            house.terminate("photos")
            house.crash("photos")
        case "on its way out by itself":
            launch()
            house.happens(.stopping(house.run("photos")))
            house.terminate("photos")
            house.exit("photos")
        default:
            house.behave("photos") { $0.entering = .isSilent }
            launch()
            house.background("photos")
            house.advance(.seconds(5))
            #expect(house.state("photos") == .terminating)
            if how == "while it is being killed" { house.terminate("photos") } else { house.remove("photos") }
            house.exit("photos", .signaled(9, coreDumped: false))
        }
        house.advance(.seconds(600))
        #expect(house.state("photos") == .notRunning)
        #expect(house.launches("photos").count == 1)
        #expect(house.unanswered.isEmpty)
    }

    @Test("an app that is removed is not launched again for a request that came before")
    func removedForgetsNext() {
        let house = House("photos")
        house.behave("photos") { $0.terminating = .ignores }
        house.launch("photos")
        house.terminate("photos")
        let activate = house.activate("photos")
        let remove = house.remove("photos")
        #expect(house.answers[activate] == .superseded(by: .terminating))
        #expect(house.state("photos") == .notRunning)
        #expect(house.answers[remove] == .ended(house.receipts[0]))
        #expect(house.receipts[0].code == 0xdead_fa11)
        house.advance(.seconds(600))
        #expect(house.launches("photos").count == 1)
    }

    @Test("a launch that is asked for after the request to end wins")
    func launchAfterTerminateWins() {
        let house = House("photos") {
            $0.relaunch = .no; $0.readiness = .notified
        }
        house.behave("photos") {
            $0.dies = false; $0.terminating = .ignores
        }
        house.launch("photos")
        house.terminate("photos")
        let launch = house.launch("photos")
        house.exit("photos")
        #expect(house.answers[launch] == .done(.active))
        #expect(house.launches("photos").count == 2)
    }

    @Test("L11: after two deaths in launch the restoration state is dropped, also where the user tries again each time")
    func stateDropped() {
        let house = House("photos") { $0.readiness = .notified }
        house.behave("photos") { $0.launching = .executes }
        house.launch("photos")
        house.crash("photos")
        #expect(!house.effects.contains(.dropRestorationState(id("photos"))))
        house.launch("photos")
        house.crash("photos")
        #expect(house.effects.contains(.dropRestorationState(id("photos"))))
    }

    @Test("L11: a launch that succeeds in between keeps the restoration state")
    func stateKept() {
        let house = House("photos") { $0.readiness = .notified }
        for launching in [Kernel.Behaviour.Launching.executes, .becomesReady, .executes] {
            house.behave("photos") { $0.launching = launching }
            house.launch("photos")
            house.crash("photos")
        }
        #expect(!house.effects.contains(.dropRestorationState(id("photos"))))
    }
}
