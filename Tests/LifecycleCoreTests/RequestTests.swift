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
            "launching": .run(run, .ready), "entering": .run(run, .backgroundEntered),
            "waking": .run(run, .thawed(attempt: 1)),
        ]
        house.happens(answers[phase]!)
        #expect(house.answers[launch] == .done(.background))
        #expect(house.receipts == [])
    }

    @Test("a request for an app that is not known is refused")
    func unknownApp() {
        let house = House("photos")
        for request in PhaseTableTests.requests.values {
            let number = house.request("mail", request)
            #expect(house.answers[number] == .refused(.unknownApp))
        }
    }

    @Test("64 requests may wait for an app; the next is refused")
    func bound() {
        let house = House("photos")
        house.bring("photos", into: .launching)
        let waiting = (1..<64).map { _ in house.activate("photos") }
        let more = house.activate("photos")
        #expect(house.answers[more] == .refused(.tooMany("64 requests wait for it already")))
        house.finish("photos", .launching, house.run("photos"))
        #expect(waiting.allSatisfy { house.answers[$0] == .done(.active) })
        let again = house.activate("photos")
        #expect(house.answers[again] == .done(.active))
    }

    @Test("what was asked for is carried out though nobody waits for it any more")
    func abandoned() {
        let house = House("photos")
        house.bring("photos", into: .launching)
        let request = house.background("photos")
        house.happens(.requestAbandoned(request))
        house.happens(.requestAbandoned(request))
        house.happens(.requestAbandoned(RequestID(999)))
        house.finish("photos", .launching, house.run("photos"))
        #expect(house.state("photos") == .background)
        #expect(!house.isAnswered(request))
    }

    @Test("several that wait for the same are all answered, in the order in which they asked")
    func together() {
        let house = House("photos")
        house.bring("photos", into: .entering)
        let asked = (0..<3).map { _ in house.activate("photos") }
        let mark = house.mark
        house.happens(.run(house.run("photos"), .backgroundEntered))
        let answered = house.effects(since: mark).compactMap {
            if case .answer(let request, _) = $0 { request } else { nil }
        }
        #expect(answered == asked)
    }

    @Test("L5: launched again after the end that was asked for: each is answered by what came of it")
    func endThenLaunch() throws {
        let house = House("photos")
        house.behave("photos") { $0.terminating = .ignores }
        house.launch("photos")
        let terminate = house.terminate("photos")
        let activate = house.activate("photos")
        house.exit("photos")
        #expect(house.answers[terminate] == .ended(try house.receipt("photos")))
        #expect(house.answers[activate] == .done(.active))
        #expect(house.launches("photos").map(\.reason) == [.user, .user])
    }

    @Test("L5: of launches that follow an end the last is carried out, once")
    func oneLaunchFollows() {
        let house = House("photos")
        house.bring("photos", into: .terminating)
        house.activate("photos")
        house.request("photos", .launch(.foreground, reason: .url, url: "photos://1"))
        house.request("photos", .launch(.foreground, reason: .url, url: "photos://2"))
        house.exit("photos")
        #expect(house.launches("photos").map(\.url) == [nil, "photos://2"])
        #expect(house.unanswered.isEmpty)
    }

    @Test("an end that is asked for after the launch that was to follow an end calls it off")
    func launchCalledOff() throws {
        let house = House("photos")
        house.bring("photos", into: .terminating)
        let activate = house.activate("photos")
        let terminate = house.terminate("photos")
        #expect(house.answers[activate] == .superseded(by: .terminating))
        house.exit("photos")
        #expect(house.answers[terminate] == .ended(try house.receipt("photos")))
        #expect(house.launches("photos").count == 1)
        #expect(!house.view("photos").isForeground)
    }

    @Test("a launch that follows an end and fails is answered by its own receipt")
    func followingLaunchFails() {
        let house = House("photos")
        house.bring("photos", into: .terminating)
        let activate = house.activate("photos")
        house.behave("photos") { $0.launching = .fails(SpawnProblem(sentence: "no", exitStatus: 203)) }
        house.exit("photos")
        #expect(house.receipts.count == 2)
        #expect(house.answers[activate] == .ended(house.receipts[1]))
    }

    @Test(
        "who asked for an app to be awake has it, wherever it comes to run: only its end is another answer",
        arguments: [
            Request.push(payload: "p"), .launch(.background, reason: .socket, url: nil),
            .launch(.background, reason: .user, url: nil),
        ])
    func awakeAnywhere(request: Request) {
        for stage in [Stage.launching, .waking] {
            // Activated, and then displaced, after it was asked.
            let house = House("photos", "mail") { $0.backgroundModes = .push }
            house.bring("photos", into: stage)
            let run = house.run("photos")
            let asked = house.request("photos", request)
            let activate = house.activate("photos")
            #expect(!house.isAnswered(asked))
            house.launch("mail")
            #expect(house.answers[activate] == .superseded(by: .background))
            #expect(!house.isAnswered(asked))
            house.finish("photos", stage, run)
            #expect(house.answers[asked] == .done(.background))

            let other = House("photos") { $0.backgroundModes = .push }
            other.bring("photos", into: stage)
            let again = other.request("photos", request)
            let terminate = other.terminate("photos")
            #expect(other.answers[again] == .superseded(by: .terminating))
            #expect(!other.isAnswered(terminate))
        }
    }
}
