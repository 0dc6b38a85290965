import LifecycleCore
import Testing

@Suite("The end of the harness")
struct ShutdownTests {
    private func shutDown(_ harness: Harness, immediately: Bool) {
        harness.happens(.shutdownRequested(immediately: immediately))
    }

    @Test(
        "shutdown in each stage: running apps are told and have 5 s, suspended ones are killed",
        arguments: Stage.allCases)
    func gracefully(stage: Stage) throws {
        let harness = Harness("photos")
        harness.bring("photos", into: stage)
        harness.behave("photos") {
            $0.terminating = .ignores; $0.dies = true
        }
        let mark = harness.mark
        shutDown(harness, immediately: false)
        let told = harness.told("photos", since: mark)
        switch stage {
        case .notRunning:
            #expect(harness.core.isFinished)
            return
        case .launching, .active, .inactive, .entering, .running, .waking: #expect(told == [.willTerminate])
        case .suspending, .suspended:
            #expect(told == [])
            let how = stage == .suspended ? " while suspended" : ""
            #expect(try harness.receipt("photos").explanation == "Killed\(how): greenroomd shuts down.")
        case .terminating, .ending: #expect(told == [])
        }
        #expect(harness.core.isFinished == [.suspending, .suspended].contains(stage))
        harness.advance(.seconds(5))
        #expect(harness.core.isFinished)
        #expect(harness.effects.last == .finish)
        #expect(harness.effects.filter { $0 == .finish }.count == 1)
        #expect(harness.receipts.count == 1)
        #expect(harness.unanswered.isEmpty)
    }

    @Test("immediate shutdown in each stage: SIGKILL, without a word", arguments: Stage.withProcess)
    func immediately(stage: Stage) throws {
        let harness = Harness("photos")
        harness.bring("photos", into: stage)
        harness.behave("photos") { $0.dies = true }
        let mark = harness.mark
        shutDown(harness, immediately: true)
        #expect(harness.told("photos", since: mark) == [])
        // Of what was killed already SIGKILL is on its way.
        if stage == .ending { harness.advance(.seconds(5)) }
        #expect(harness.core.isFinished)
        #expect(harness.receipts.count == 1)
        #expect(harness.unanswered.isEmpty)
    }

    @Test("whoever was told gracefully and takes long can be ended immediately")
    func impatient() throws {
        let harness = Harness("photos", "mail")
        harness.configure { $0.foregroundLimit = 2 }
        for app in ["photos", "mail"] {
            harness.behave(app) { $0.terminating = .ignores }
            harness.launch(app)
        }
        shutDown(harness, immediately: false)
        harness.advance(.seconds(2))
        #expect(!harness.core.isFinished)
        shutDown(harness, immediately: true)
        #expect(harness.core.isFinished)
        #expect(harness.receipts.map(\.explanation) == Array(repeating: "Killed: greenroomd shuts down.", count: 2))
        #expect(harness.effects.filter { $0 == .finish }.count == 1)
        shutDown(harness, immediately: true)
        #expect(harness.effects.filter { $0 == .finish }.count == 1)
    }

    @Test("an end in time at shutdown says so in its receipt")
    func receipt() throws {
        let harness = Harness("photos")
        harness.launch("photos")
        shutDown(harness, immediately: false)
        #expect(
            try harness.receipt("photos").explanation
                == "Terminated because greenroomd shuts down: exited with status 0.")
    }

    @Test("once the harness closes nothing is launched or asked any more, and nothing comes back by itself")
    func closed() {
        let harness = Harness("photos", "mail") {
            $0.relaunch = .always; $0.backgroundModes = .push
        }
        harness.behave("photos") {
            $0.terminating = .ignores; $0.dies = false
        }
        harness.launch("photos")
        harness.advance(.seconds(60))
        let activate = harness.activate("photos")
        #expect(harness.answers[activate] == .done(.active))
        shutDown(harness, immediately: false)
        for request in PhaseTableTests.requests.values {
            let refused = [harness.request("photos", request), harness.request("mail", request)]
            for number in refused { #expect(harness.answers[number] == .refused(.shuttingDown)) }
        }
        harness.exit("photos", .exited(1))
        #expect(harness.core.isFinished)
        harness.advance(.seconds(1000))
        #expect(harness.launches("photos").count == 1)
        #expect(harness.core.nextDeadline == nil)
    }

    @Test("who waits when the harness closes is answered")
    func waitersAreAnswered() {
        let harness = Harness("photos", "mail", "music")
        harness.bring("photos", into: .launching)
        let mail = harness.view("mail").state
        #expect(mail == .notRunning)
        harness.behave("mail") { $0.launching = .spawns }
        let launch = harness.launch("mail", .background)
        let terminate = harness.terminate("photos")
        harness.bring("music", into: .terminating)
        let next = harness.activate("music")
        shutDown(harness, immediately: true)
        #expect(harness.answers[launch] == .superseded(by: .terminating))
        #expect(harness.answers[next] == .superseded(by: .terminating))
        #expect(harness.answers[terminate] == .ended(harness.receipts.first { $0.app == id("photos") }!))
        #expect(harness.launches("music").count == 1)
    }
}
