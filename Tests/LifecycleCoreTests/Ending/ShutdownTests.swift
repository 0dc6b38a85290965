import LifecycleCore
import Testing

@Suite("Shutdown")
struct ShutdownTests {
    private func shutDown(_ harness: Harness, immediately: Bool) {
        harness.handle(.shutdownRequested(immediately: immediately))
    }

    @Test(
        "an orderly shutdown notifies running apps, which have 5s, and kills suspended ones",
        arguments: Stage.allCases)
    func gracefully(stage: Stage) throws {
        let harness = Harness("photos")
        harness.move("photos", to: stage)
        harness.behave("photos") {
            $0.terminating = .ignores; $0.dies = true
        }
        let mark = harness.mark
        shutDown(harness, immediately: false)
        let notices = harness.notices("photos", since: mark)
        switch stage {
        case .notRunning:
            #expect(harness.core.isFinished)
            return
        case .launching, .active, .inactive, .entering, .running, .waking: #expect(notices == [.willTerminate])
        case .suspending, .suspended:
            #expect(notices == [])
            let how = stage == .suspended ? " while suspended" : ""
            #expect(try harness.receipt("photos").explanation == "Killed\(how): greenroomd shuts down.")
        case .terminating, .ending: #expect(notices == [])
        }
        #expect(harness.core.isFinished == [.suspending, .suspended].contains(stage))
        harness.advance(.seconds(5))
        #expect(harness.core.isFinished)
        #expect(harness.effects.last == .finish)
        #expect(harness.effects.filter { $0 == .finish }.count == 1)
        #expect(harness.receipts.count == 1)
        #expect(harness.unanswered.isEmpty)
    }

    @Test("an immediate shutdown sends SIGKILL in each stage, without notice", arguments: Stage.withProcess)
    func immediately(stage: Stage) throws {
        let harness = Harness("photos")
        harness.move("photos", to: stage)
        harness.behave("photos") { $0.dies = true }
        let mark = harness.mark
        shutDown(harness, immediately: true)
        #expect(harness.notices("photos", since: mark) == [])
        // SIGKILL was sent before.
        if stage == .ending { harness.advance(.seconds(5)) }
        #expect(harness.core.isFinished)
        #expect(harness.receipts.count == 1)
        #expect(harness.unanswered.isEmpty)
    }

    @Test("an immediate shutdown kills apps that an orderly one is waiting for")
    func immediatelyAfterOrderly() throws {
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

    @Test("the receipt of an end in time at shutdown names the shutdown")
    func receipt() throws {
        let harness = Harness("photos")
        harness.launch("photos")
        shutDown(harness, immediately: false)
        #expect(
            try harness.receipt("photos").explanation
                == "Terminated because greenroomd shuts down: exited with status 0.")
    }

    @Test("during a shutdown launches and requests are refused, and no app is relaunched")
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

    @Test("a push for the time after an end is refused if the app ends before the shutdown comes to it (L5)")
    func afterEnd() {
        let harness = Harness()
        for number in 0..<LifecycleCore.endedAtOnce {
            harness.register("a\(number)")
            harness.launch("a\(number)", .background)
        }
        harness.register("photos") { $0.backgroundModes = .push }
        harness.move("photos", to: .ending)
        let run = harness.run("photos")
        let push = harness.push("photos")
        shutDown(harness, immediately: false)
        #expect(!harness.isAnswered(push))
        harness.finish("photos", .ending, run)
        #expect(harness.answers[push] == .refused(.shuttingDown))
    }

    @Test("pending requests are answered at shutdown")
    func waitersAreAnswered() {
        let harness = Harness("photos", "mail", "music")
        harness.move("photos", to: .launching)
        let mail = harness.view("mail").state
        #expect(mail == .notRunning)
        harness.behave("mail") { $0.launching = .spawns }
        let launch = harness.launch("mail", .background)
        let terminate = harness.terminate("photos")
        harness.move("music", to: .terminating)
        let next = harness.activate("music")
        shutDown(harness, immediately: true)
        #expect(harness.answers[launch] == .superseded(by: .terminating))
        #expect(harness.answers[next] == .superseded(by: .terminating))
        #expect(harness.answers[terminate] == .ended(harness.receipts.first { $0.app == id("photos") }!))
        #expect(harness.launches("music").count == 1)
    }
}
