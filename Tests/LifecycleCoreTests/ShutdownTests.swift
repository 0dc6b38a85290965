import LifecycleCore
import Testing

@Suite("The end of the house")
struct ShutdownTests {
    private func shutDown(_ house: House, immediately: Bool) {
        house.happens(.shutdownRequested(immediately: immediately))
    }

    @Test(
        "shutdown in each stage: running apps are told and have 5 s, suspended ones are killed",
        arguments: Stage.allCases)
    func gracefully(stage: Stage) throws {
        let house = House("photos")
        house.bring("photos", into: stage)
        house.behave("photos") {
            $0.terminating = .ignores; $0.dies = true
        }
        let mark = house.mark
        shutDown(house, immediately: false)
        let told = house.told("photos", since: mark)
        switch stage {
        case .notRunning:
            #expect(house.core.isFinished)
            return
        case .launching, .active, .inactive, .entering, .running, .waking: #expect(told == [.willTerminate])
        case .suspending, .suspended:
            #expect(told == [])
            #expect(try house.receipt("photos").explanation == "killed as Greenroom shuts down")
        case .terminating, .ending: #expect(told == [])
        }
        #expect(house.core.isFinished == [.suspending, .suspended].contains(stage))
        house.advance(.seconds(5))
        #expect(house.core.isFinished)
        #expect(house.effects.last == .finish)
        #expect(house.effects.filter { $0 == .finish }.count == 1)
        #expect(house.receipts.count == 1)
        #expect(house.unanswered.isEmpty)
    }

    @Test("immediate shutdown in each stage: SIGKILL, without a word", arguments: Stage.withProcess)
    func immediately(stage: Stage) throws {
        let house = House("photos")
        house.bring("photos", into: stage)
        house.behave("photos") { $0.dies = true }
        let mark = house.mark
        shutDown(house, immediately: true)
        #expect(house.told("photos", since: mark) == [])
        // Of what was killed already SIGKILL is on its way.
        if stage == .ending { house.advance(.seconds(5)) }
        #expect(house.core.isFinished)
        #expect(house.receipts.count == 1)
        #expect(house.unanswered.isEmpty)
    }

    @Test("whoever was told gracefully and takes long can be ended immediately")
    func impatient() throws {
        let house = House("photos", "mail")
        house.configure { $0.foregroundLimit = 2 }
        for app in ["photos", "mail"] {
            house.behave(app) { $0.terminating = .ignores }
            house.launch(app)
        }
        shutDown(house, immediately: false)
        house.advance(.seconds(2))
        #expect(!house.core.isFinished)
        shutDown(house, immediately: true)
        #expect(house.core.isFinished)
        #expect(house.receipts.map(\.explanation) == Array(repeating: "killed as Greenroom shuts down", count: 2))
        #expect(house.effects.filter { $0 == .finish }.count == 1)
        shutDown(house, immediately: true)
        #expect(house.effects.filter { $0 == .finish }.count == 1)
    }

    @Test("an end in time at shutdown says so in its receipt")
    func receipt() throws {
        let house = House("photos")
        house.launch("photos")
        shutDown(house, immediately: false)
        #expect(try house.receipt("photos").explanation == "terminated as Greenroom shuts down: exited with status 0")
    }

    @Test("once the house closes nothing is launched or asked any more, and nothing comes back by itself")
    func closed() {
        let house = House("photos", "mail") {
            $0.relaunch = .always; $0.backgroundModes = .push
        }
        house.behave("photos") {
            $0.terminating = .ignores; $0.dies = false
        }
        house.launch("photos")
        house.advance(.seconds(60))
        let activate = house.activate("photos")
        #expect(house.answers[activate] == .done(.active))
        shutDown(house, immediately: false)
        for request in PhaseTableTests.requests.values {
            let refused = [house.request("photos", request), house.request("mail", request)]
            for number in refused { #expect(house.answers[number] == .refused(.shuttingDown)) }
        }
        house.exit("photos", .exited(1))
        #expect(house.core.isFinished)
        house.advance(.seconds(1000))
        #expect(house.launches("photos").count == 1)
        #expect(house.core.nextDeadline == nil)
    }

    @Test("who waits when the house closes is answered")
    func waitersAreAnswered() {
        let house = House("photos", "mail", "music")
        house.bring("photos", into: .launching)
        let mail = house.view("mail").state
        #expect(mail == .notRunning)
        house.behave("mail") { $0.launching = .spawns }
        let launch = house.launch("mail", .background)
        let terminate = house.terminate("photos")
        house.bring("music", into: .terminating)
        let next = house.activate("music")
        shutDown(house, immediately: true)
        #expect(house.answers[launch] == .superseded(by: .terminating))
        #expect(house.answers[next] == .superseded(by: .terminating))
        #expect(house.answers[terminate] == .ended(house.receipts.first { $0.app == id("photos") }!))
        #expect(house.launches("music").count == 1)
    }
}
