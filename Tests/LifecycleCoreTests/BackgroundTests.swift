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
        house.happens(.run(run, .thawed(attempt: 1)))
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
        house.happens(isWaking ? .run(run, .thawed(attempt: 1)) : .run(run, .backgroundEntered))
        #expect(house.view("photos").interruptions == 0)
        house.activate("photos")
        #expect(house.state("photos") == .active)
    }

    @Test("L3: willResignActive, then didEnterBackground; answered when the app has answered")
    func order() {
        let house = House("photos")
        house.behave("photos") { $0.entering = .isSilent }
        house.launch("photos")
        let mark = house.mark
        let request = house.background("photos")
        #expect(house.told("photos", since: mark) == [.willResignActive, .didEnterBackground])
        #expect(!house.isAnswered(request))
        house.happens(.run(house.run("photos"), .backgroundEntered))
        #expect(house.answers[request] == .done(.background))
    }

    @Test("L5: an activation in the middle of entering the background waits for the answer")
    func activateWhileEntering() {
        let house = House("photos")
        house.behave("photos") { $0.entering = .isSilent }
        house.launch("photos")
        let background = house.background("photos")
        let mark = house.mark
        let activate = house.activate("photos")
        #expect(house.answers[background] == .superseded(by: .active))
        #expect(house.told("photos", since: mark) == [])
        house.advance(.seconds(4))
        house.happens(.run(house.run("photos"), .backgroundEntered))
        #expect(house.told("photos", since: mark) == [.willEnterForeground, .didBecomeActive])
        #expect(house.answers[activate] == .done(.active))
        #expect(!house.effects.contains(.throttle(house.run("photos"))))
    }

    @Test("L5: of wishes while entering the latest wins, and the deadline counts on")
    func latestWishWins() throws {
        let house = House("photos")
        house.behave("photos") { $0.entering = .isSilent }
        house.launch("photos")
        house.background("photos")
        house.advance(.seconds(2))
        let terminate = house.terminate("photos")
        let activate = house.activate("photos")
        let background = house.background("photos")
        #expect(house.answers[terminate] == .superseded(by: .active))
        #expect(house.answers[activate] == .superseded(by: .background))
        house.advance(.seconds(3))
        #expect(try house.receipt("photos").deadline?.what == .background)
        #expect(house.answers[background] == .ended(try house.receipt("photos")))
    }

    @Test("L5: a request to end while entering is carried out after the answer")
    func terminateWhileEntering() throws {
        let house = House("photos")
        house.behave("photos") { $0.entering = .isSilent }
        house.launch("photos")
        house.background("photos")
        let request = house.terminate("photos")
        #expect(!house.told("photos").contains(.willTerminate))
        house.happens(.run(house.run("photos"), .backgroundEntered))
        #expect(house.told("photos").last == .willTerminate)
        #expect(house.answers[request] == .ended(try house.receipt("photos")))
    }

    // MARK: L16

    @Test("L16: who has not answered after 5 s is killed, 0x8badf00d, whatever tasks are open")
    func deadline() throws {
        let house = House("photos")
        house.behave("photos") {
            $0.entering = .isSilent; $0.cpu = .seconds(7)
        }
        house.launch("photos")
        house.task("photos", "upload")
        house.background("photos")
        house.behave("photos") { $0.cpu = .seconds(8) }
        house.advance(.milliseconds(4999))
        #expect(house.killed() == [])
        house.advance(.milliseconds(1))
        let receipt = try house.receipt("photos")
        #expect(receipt.namespace == .watchdog)
        #expect(receipt.code == 0x8bad_f00d)
        #expect(receipt.state == .background)
        // Of the processor's time only what was used since it was told.
        #expect(receipt.deadline == .init(what: .background, allowed: .seconds(5), wall: .seconds(5), cpu: .seconds(1)))
        #expect(receipt.explanation.hasPrefix("did not answer that it had entered the background within 5 s"))
    }

    @Test(
        "L16: an answer just before, at the very instant, or while the app is looked into is in time",
        arguments: [0, 1, 2])
    func answerInTime(how: Int) {
        let house = House("photos")
        house.behave("photos") {
            $0.entering = .isSilent; $0.isInspected = false
        }
        house.launch("photos")
        house.background("photos")
        let run = house.run("photos")
        if how == 0 { house.advance(.milliseconds(4999)) }
        if how == 1 { house.delay(.seconds(5)) }
        if how == 2 { house.advance(.seconds(5)) }
        house.happens(.run(run, .backgroundEntered))
        if how == 2 { house.happens(.run(run, .inspected(Inspection(traced: false, cpu: .zero, memory: 0)))) }
        house.advance(.zero)
        #expect(house.killed() == [])
        #expect(house.state("photos") == .background)
    }

    @Test(
        "L16: an exit races the deadline: before it, while the app is looked into, or after the kill was sent",
        arguments: [0, 1, 2, 3])
    func exitRacesDeadline(how: Int) throws {
        let house = House("photos")
        house.behave("photos") {
            $0.entering = .isSilent; $0.isInspected = how == 3; $0.dies = false
        }
        house.launch("photos")
        house.background("photos")
        let run = house.run("photos")
        house.advance(.milliseconds(4999))
        if how == 1 { house.delay(.milliseconds(1)) }
        if how >= 2 { house.advance(.milliseconds(1)) }
        #expect(house.killed() == (how == 3 ? ["photos"] : []))
        house.exit("photos", .exited(3))
        house.happens(.run(run, .inspected(Inspection(traced: false, cpu: .zero, memory: 0))))
        house.advance(.seconds(1))
        let receipt = try house.receipt("photos")
        #expect(receipt.namespace == .exit)
        #expect(receipt.exit == .exited(3))
        #expect(receipt.explanation == "exited by itself with status 3")
        #expect(receipt.state == .background)
        #expect(house.state("photos") == .notRunning)
    }

    @Test("L16: with BackgroundDeadlineSec=infinity the answer is awaited for ever")
    func noDeadline() {
        let house = House("photos") {
            $0.backgroundDeadline = nil; $0.backgroundTime = nil
        }
        house.behave("photos") { $0.entering = .isSilent }
        house.launch("photos")
        house.background("photos")
        house.advance(.seconds(10_000))
        #expect(house.state("photos") == .background)
        house.happens(.run(house.run("photos"), .backgroundEntered))
        house.advance(.seconds(1))
        #expect(house.state("photos") == .suspended)
    }

    // MARK: L17

    @Test(
        "L17: a program that can't be told has answered at once; one that stops itself has answered",
        arguments: [false, true])
    func otherAnswers(stops: Bool) {
        let house = House("photos")
        house.behave("photos") { $0.entering = stops ? .stops : .cannotBeTold }
        house.launch("photos")
        let request = house.background("photos")
        #expect(house.answers[request] == .done(.background))
        house.advance(.seconds(1))
        #expect(house.state("photos") == .suspended)
        house.activate("photos")
        #expect(house.effects.contains(.continueStopped(house.run("photos"))) == stops)
    }

    @Test("L17: who has stopped itself before it is told can say no more")
    func stoppedBefore() {
        let house = House("photos")
        house.behave("photos") { $0.entering = .isSilent }
        house.launch("photos")
        house.happens(.run(house.run("photos"), .stopped))
        let request = house.background("photos")
        #expect(house.answers[request] == .done(.background))
        house.happens(.run(house.run("photos"), .continued))
        #expect(house.state("photos") == .background)
    }

    @Test(
        "an answer that comes before the word that the app was told counts; the word changes nothing then",
        arguments: [false, true])
    func toldLate(isDelivered: Bool) {
        let house = House("photos")
        house.behave("photos") { $0.entering = .hangs }
        house.launch("photos")
        house.background("photos")
        let run = house.run("photos")
        house.happens(.run(run, .backgroundEntered))
        house.activate("photos")
        let mark = house.mark
        house.happens(.run(run, .notified(.didEnterBackground, delivered: isDelivered, cpu: .zero)))
        #expect(house.effects(since: mark) == [])
        #expect(house.state("photos") == .active)
    }

    @Test("an answer in any other stage means nothing", arguments: Stage.withProcess.filter { $0 != .entering })
    func answerOutOfPlace(stage: Stage) {
        let house = House("photos")
        house.bring("photos", into: stage)
        let mark = house.mark
        house.happens(.run(house.run("photos"), .backgroundEntered))
        #expect(house.effects(since: mark) == [])
        #expect(house.state("photos") == stage.state)
    }

    // MARK: L18 … L20

    @Test("L18: SuspendDelaySec= after the last assertion ended the app is suspended")
    func suspendDelay() {
        let house = House("photos")
        house.launch("photos")
        house.task("photos", "a")
        house.task("photos", "b")
        house.background("photos")
        house.advance(.seconds(3))
        house.endTask("photos", "a")
        house.advance(.seconds(3))
        house.endTask("photos", "b")
        house.advance(.milliseconds(999))
        #expect(house.state("photos") == .background)
        house.advance(.milliseconds(1))
        #expect(house.state("photos") == .suspended)
    }

    @Test("L18: a task within the delay calls the suspension off, and the delay begins anew")
    func delayBeginsAnew() {
        let house = House("photos")
        house.launch("photos", .background)
        house.advance(.milliseconds(900))
        house.task("photos", "a")
        house.advance(.seconds(2))
        house.endTask("photos", "a")
        house.advance(.milliseconds(999))
        #expect(house.state("photos") == .background)
        house.advance(.milliseconds(1))
        #expect(house.state("photos") == .suspended)
    }

    @Test("L19: an app in the background gets less once it has answered, and all of it back at once in the foreground")
    func throttled() {
        let house = House("photos")
        house.behave("photos") { $0.entering = .isSilent }
        house.launch("photos")
        let run = house.run("photos")
        house.background("photos")
        #expect(!house.effects.contains(.throttle(run)))
        house.happens(.run(run, .backgroundEntered))
        #expect(house.effects.contains(.throttle(run)))
        let mark = house.mark
        house.activate("photos")
        #expect(
            house.effects(since: mark).first { $0 == .unthrottle(run) || $0 == .notify(run, .willEnterForeground) }
                == .unthrottle(run))
    }

    @Test("L20: ExitsOnSuspend=yes: told to terminate instead of being suspended, and not launched again for it")
    func exitsOnSuspend() throws {
        let house = House("photos") {
            $0.exitsOnSuspend = true; $0.relaunch = .always
        }
        house.launch("photos")
        house.background("photos")
        house.advance(.seconds(1))
        #expect(house.told("photos").last == .willTerminate)
        let receipt = try house.receipt("photos")
        #expect(receipt.explanation == "ended instead of being suspended (ExitsOnSuspend=yes): exited with status 0")
        #expect(receipt.state == .background)
        house.advance(.seconds(600))
        #expect(house.state("photos") == .notRunning)
    }

    @Test("L20: it has 5 s to end")
    func exitsOnSuspendLate() throws {
        let house = House("photos") { $0.exitsOnSuspend = true }
        house.behave("photos") { $0.terminating = .ignores }
        house.launch("photos", .background)
        house.advance(.milliseconds(5999))
        #expect(house.killed() == [])
        house.advance(.milliseconds(1))
        #expect(try house.receipt("photos").code == 0x8bad_f00d)
    }
}
