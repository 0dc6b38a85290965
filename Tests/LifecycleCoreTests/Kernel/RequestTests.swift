import LifecycleCore
import Testing

@Suite("Requests")
struct RequestTests {
    @Test(
        "a launch into the background wins over an earlier activation of an ending app (L5)",
        arguments: [false, true])
    func launchInBackgroundWins(isKilled: Bool) {
        let harness = Harness("photos")
        harness.behave("photos") {
            $0.terminating = .ignores; $0.dies = false
        }
        harness.launch("photos")
        harness.terminate("photos")
        if isKilled { harness.advance(.seconds(5)) }
        let activate = harness.activate("photos")
        let launch = harness.launch("photos", .background)
        #expect(harness.answers[activate] == .superseded(by: .background))
        harness.exit("photos", .signaled(9, coreDumped: false))
        #expect(harness.answers[launch] == .done(.background))
        #expect(harness.launches("photos").map(\.state) == [.foreground, .background])
    }

    @Test(
        "a launch into the background wins over an earlier terminate request (L5)",
        arguments: ["launching", "entering", "waking"])
    func launchInBackgroundWinsOverEnd(phase: String) {
        let harness = Harness("photos") { $0.readiness = .notified }
        harness.behave("photos") { behaviour in
            behaviour.launching = phase == "launching" ? .executes : .becomesReady
            behaviour.entering = phase == "entering" ? .isSilent : .answers
            behaviour.thaws = phase != "waking"
        }
        harness.launch("photos")
        if phase != "launching" { harness.background("photos") }
        if phase == "waking" {
            harness.advance(.seconds(1))
            harness.activate("photos")
        }
        let run = harness.run("photos")
        let terminate = harness.terminate("photos")
        let launch = harness.launch("photos", .background)
        #expect(harness.answers[terminate] == .superseded(by: .background))
        #expect(!harness.isAnswered(launch))
        harness.behave("photos") { $0.entering = .answers }
        let answers: [String: Event] = [
            "launching": .run(run, .transition(.ready)), "entering": .run(run, .transition(.backgroundEntered)),
            "waking": .run(run, .suspension(.thawed(attempt: 1))),
        ]
        harness.handle(answers[phase]!)
        #expect(harness.answers[launch] == .done(.background))
        #expect(harness.receipts == [])
    }

    @Test("a request for an unknown app is refused")
    func unknownApp() {
        let harness = Harness("photos")
        for request in PhaseTableTests.requests.values {
            let number = harness.request("mail", request)
            #expect(harness.answers[number] == .refused(.unknownApp))
        }
    }

    @Test("at most 64 requests wait for an app, and the next is refused")
    func bound() {
        let harness = Harness("photos")
        harness.move("photos", to: .launching)
        let waiting = (1..<64).map { _ in harness.activate("photos") }
        let more = harness.activate("photos")
        #expect(harness.answers[more] == .refused(.tooMany("64 requests are pending")))
        harness.finish("photos", .launching, harness.run("photos"))
        #expect(waiting.allSatisfy { harness.answers[$0] == .done(.active) })
        let again = harness.activate("photos")
        #expect(harness.answers[again] == .done(.active))
    }

    @Test(
        "a request to end an app is carried out however many requests wait (L42, L46)",
        arguments: [Request.activate, .background, .terminate], [Request.terminate, .remove])
    func endIsNotRefused(waiting: Request, end: Request) {
        let harness = Harness("photos") { $0.readiness = .notified }
        harness.behave("photos") { $0.launching = .executes }
        harness.launch("photos")
        let run = harness.run("photos")
        let before = (0..<200).map { _ in harness.request("photos", waiting) }
        let number = harness.request("photos", end)
        #expect(before.allSatisfy { harness.answers[$0] != nil || waiting == .terminate })
        harness.handle(.run(run, .transition(.ready)))
        #expect(harness.state("photos") == .notRunning)
        switch harness.answers[number] {
        // Beyond the limit the answer does not wait for the end.
        case .done(.launching): #expect(waiting == .terminate && end == .terminate)
        case .done(.terminating): #expect(waiting == .terminate && end == .remove)
        case .ended: #expect(waiting != .terminate)
        case let answer: Issue.record("answered with \(String(describing: answer))")
        }
        #expect(harness.unanswered.isEmpty)
    }

    @Test("an abandoned request is carried out")
    func abandoned() {
        let harness = Harness("photos")
        harness.move("photos", to: .launching)
        let request = harness.background("photos")
        harness.handle(.requestAbandoned(request))
        harness.handle(.requestAbandoned(request))
        harness.handle(.requestAbandoned(RequestID(999)))
        harness.finish("photos", .launching, harness.run("photos"))
        #expect(harness.state("photos") == .background)
        #expect(!harness.isAnswered(request))
    }

    @Test("all requests with the same goal are answered, in their order")
    func sameGoal() {
        let harness = Harness("photos")
        harness.move("photos", to: .entering)
        let asked = (0..<3).map { _ in harness.activate("photos") }
        let mark = harness.mark
        harness.handle(.run(harness.run("photos"), .transition(.backgroundEntered)))
        let answered = harness.effects(since: mark).compactMap {
            if case .answer(let request, _) = $0 { request } else { nil }
        }
        #expect(answered == asked)
    }

    @Test("a terminate request and the launch that follows it are each answered with their outcome (L5)")
    func endThenLaunch() throws {
        let harness = Harness("photos")
        harness.behave("photos") { $0.terminating = .ignores }
        harness.launch("photos")
        let terminate = harness.terminate("photos")
        let activate = harness.activate("photos")
        harness.exit("photos")
        #expect(harness.answers[terminate] == .ended(try harness.receipt("photos")))
        #expect(harness.answers[activate] == .done(.active))
        #expect(harness.launches("photos").map(\.reason) == [.user, .user])
    }

    @Test("of several launches that follow an end the last is carried out (L5)")
    func oneLaunchFollows() {
        let harness = Harness("photos")
        harness.move("photos", to: .terminating)
        harness.activate("photos")
        harness.request("photos", .launch(.foreground, reason: .url, url: "photos://1"))
        harness.request("photos", .launch(.foreground, reason: .url, url: "photos://2"))
        harness.exit("photos")
        #expect(harness.launches("photos").map(\.url) == [nil, "photos://1"])
        #expect(harness.unanswered.isEmpty)
    }

    @Test("a terminate request cancels the launch that was to follow the end")
    func launchCancelled() throws {
        let harness = Harness("photos")
        harness.move("photos", to: .terminating)
        let activate = harness.activate("photos")
        let terminate = harness.terminate("photos")
        #expect(harness.answers[activate] == .superseded(by: .terminating))
        harness.exit("photos")
        #expect(harness.answers[terminate] == .ended(try harness.receipt("photos")))
        #expect(harness.launches("photos").count == 1)
        #expect(!harness.view("photos").isForeground)
    }

    @Test("a failed launch that follows an end is answered with its own receipt")
    func followingLaunchFails() {
        let harness = Harness("photos")
        harness.move("photos", to: .terminating)
        let activate = harness.activate("photos")
        harness.behave("photos") { $0.launching = .fails(SpawnProblem(sentence: "no", exitStatus: 203)) }
        harness.exit("photos")
        #expect(harness.receipts.count == 2)
        #expect(harness.answers[activate] == .ended(harness.receipts[1]))
    }

    @Test(
        "a request to wake an app is done in any state in which the app runs, and fails only with its end",
        arguments: [
            Request.push(payload: "p"), .launch(.background, reason: .socket, url: nil),
            .launch(.background, reason: .user, url: nil),
        ])
    func awakeAnywhere(request: Request) {
        for stage in [Stage.launching, .waking] {
            // After the request the app is activated and then displaced.
            let harness = Harness("photos", "mail") { $0.backgroundModes = .push }
            harness.move("photos", to: stage)
            let run = harness.run("photos")
            let asked = harness.request("photos", request)
            let activate = harness.activate("photos")
            #expect(!harness.isAnswered(asked))
            harness.launch("mail")
            #expect(harness.answers[activate] == .superseded(by: .background))
            #expect(!harness.isAnswered(asked))
            harness.finish("photos", stage, run)
            #expect(harness.answers[asked] == .done(.background))

            let other = Harness("photos") { $0.backgroundModes = .push }
            other.move("photos", to: stage)
            let again = other.request("photos", request)
            let terminate = other.terminate("photos")
            #expect(other.answers[again] == .superseded(by: .terminating))
            #expect(!other.isAnswered(terminate))
        }
    }
}
