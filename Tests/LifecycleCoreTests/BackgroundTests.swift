import LifecycleCore
import Testing

@Suite("Background")
struct BackgroundTests {
    @Test("L19: an app that was on its way to the foreground and is sent back before it runs is throttled again")
    func throttledAgain() {
        let harness = Harness("photos")
        harness.behave("photos") { $0.thaws = false }
        harness.suspend("photos")
        let run = harness.run("photos")
        harness.activate("photos")
        #expect(harness.effects.last { $0 == .throttle(run) || $0 == .unthrottle(run) } == .unthrottle(run))
        harness.background("photos")
        harness.happens(.run(run, .thawed(attempt: 1)))
        #expect(harness.effects.last { $0 == .throttle(run) || $0 == .unthrottle(run) } == .throttle(run))
        harness.advance(.seconds(1))
        #expect(harness.state("photos") == .suspended)
    }

    @Test("L13: interruptions do not outlive a way to the foreground that was given up", arguments: [false, true])
    func interruptionsAreForgotten(isWaking: Bool) {
        let harness = Harness("photos")
        harness.behave("photos") {
            $0.thaws = false; $0.entering = isWaking ? .answers : .isSilent
        }
        if isWaking { harness.suspend("photos") } else { harness.launch("photos"); harness.background("photos") }
        let run = harness.run("photos")
        harness.activate("photos")
        harness.request("photos", .interrupt)
        #expect(harness.view("photos").interruptions == 1)
        harness.background("photos")
        harness.happens(isWaking ? .run(run, .thawed(attempt: 1)) : .run(run, .backgroundEntered))
        #expect(harness.view("photos").interruptions == 0)
        harness.activate("photos")
        #expect(harness.state("photos") == .active)
    }

    @Test("L3: willResignActive, then didEnterBackground; answered when the app has answered")
    func order() {
        let harness = Harness("photos")
        harness.behave("photos") { $0.entering = .isSilent }
        harness.launch("photos")
        let mark = harness.mark
        let request = harness.background("photos")
        #expect(harness.told("photos", since: mark) == [.willResignActive, .didEnterBackground])
        #expect(!harness.isAnswered(request))
        harness.happens(.run(harness.run("photos"), .backgroundEntered))
        #expect(harness.answers[request] == .done(.background))
    }

    @Test("L5: an activation in the middle of entering the background waits for the answer")
    func activateWhileEntering() {
        let harness = Harness("photos")
        harness.behave("photos") { $0.entering = .isSilent }
        harness.launch("photos")
        let background = harness.background("photos")
        let mark = harness.mark
        let activate = harness.activate("photos")
        #expect(harness.answers[background] == .superseded(by: .active))
        #expect(harness.told("photos", since: mark) == [])
        harness.advance(.seconds(4))
        harness.happens(.run(harness.run("photos"), .backgroundEntered))
        #expect(harness.told("photos", since: mark) == [.willEnterForeground, .didBecomeActive])
        #expect(harness.answers[activate] == .done(.active))
        #expect(!harness.effects.contains(.throttle(harness.run("photos"))))
    }

    @Test("L5: of wishes while entering the latest wins, and the deadline counts on")
    func latestWishWins() throws {
        let harness = Harness("photos")
        harness.behave("photos") { $0.entering = .isSilent }
        harness.launch("photos")
        harness.background("photos")
        harness.advance(.seconds(2))
        let terminate = harness.terminate("photos")
        let activate = harness.activate("photos")
        let background = harness.background("photos")
        #expect(harness.answers[terminate] == .superseded(by: .active))
        #expect(harness.answers[activate] == .superseded(by: .background))
        harness.advance(.seconds(3))
        #expect(try harness.receipt("photos").deadline?.what == .background)
        #expect(harness.answers[background] == .ended(try harness.receipt("photos")))
    }

    @Test("L5: a request to end while entering is carried out after the answer")
    func terminateWhileEntering() throws {
        let harness = Harness("photos")
        harness.behave("photos") { $0.entering = .isSilent }
        harness.launch("photos")
        harness.background("photos")
        let request = harness.terminate("photos")
        #expect(!harness.told("photos").contains(.willTerminate))
        harness.happens(.run(harness.run("photos"), .backgroundEntered))
        #expect(harness.told("photos").last == .willTerminate)
        #expect(harness.answers[request] == .ended(try harness.receipt("photos")))
    }

    // MARK: L16

    @Test("L16: who has not answered after 5 s is killed, 0x8badf00d, whatever tasks are open")
    func deadline() throws {
        let harness = Harness("photos")
        harness.behave("photos") {
            $0.entering = .isSilent; $0.cpu = .seconds(7)
        }
        harness.launch("photos")
        harness.task("photos", "upload")
        harness.background("photos")
        harness.behave("photos") { $0.cpu = .seconds(8) }
        harness.advance(.milliseconds(4999))
        #expect(harness.killed() == [])
        harness.advance(.milliseconds(1))
        let receipt = try harness.receipt("photos")
        #expect(receipt.namespace == .watchdog)
        #expect(receipt.code == 0x8bad_f00d)
        #expect(receipt.state == .background)
        // Of the processor's time only what was used since it was told.
        #expect(receipt.deadline == .init(what: .background, allowed: .seconds(5), wall: .seconds(5), cpu: .seconds(1)))
        #expect(receipt.explanation.hasPrefix("Killed: exceeded its background deadline (5s)"))
    }

    @Test(
        "L16: an answer just before, at the very instant, or while the app is looked into is in time",
        arguments: [0, 1, 2])
    func answerInTime(how: Int) {
        let harness = Harness("photos")
        harness.behave("photos") {
            $0.entering = .isSilent; $0.isInspected = false
        }
        harness.launch("photos")
        harness.background("photos")
        let run = harness.run("photos")
        if how == 0 { harness.advance(.milliseconds(4999)) }
        if how == 1 { harness.delay(.seconds(5)) }
        if how == 2 { harness.advance(.seconds(5)) }
        harness.happens(.run(run, .backgroundEntered))
        if how == 2 { harness.happens(.run(run, .inspected(Inspection(traced: false, cpu: .zero, memory: 0)))) }
        harness.advance(.zero)
        #expect(harness.killed() == [])
        #expect(harness.state("photos") == .background)
    }

    @Test(
        "L16: an exit races the deadline: before it, while the app is looked into, or after the kill was sent",
        arguments: [0, 1, 2, 3])
    func exitRacesDeadline(how: Int) throws {
        let harness = Harness("photos")
        harness.behave("photos") {
            $0.entering = .isSilent; $0.isInspected = how == 3; $0.dies = false
        }
        harness.launch("photos")
        harness.background("photos")
        let run = harness.run("photos")
        harness.advance(.milliseconds(4999))
        if how == 1 { harness.delay(.milliseconds(1)) }
        if how >= 2 { harness.advance(.milliseconds(1)) }
        #expect(harness.killed() == (how == 3 ? ["photos"] : []))
        harness.exit("photos", .exited(3))
        harness.happens(.run(run, .inspected(Inspection(traced: false, cpu: .zero, memory: 0))))
        harness.advance(.seconds(1))
        let receipt = try harness.receipt("photos")
        #expect(receipt.namespace == .exit)
        #expect(receipt.exit == .exited(3))
        #expect(receipt.explanation == "Exited with status 3.")
        #expect(receipt.state == .background)
        #expect(harness.state("photos") == .notRunning)
    }

    @Test("L16: with BackgroundDeadlineSec=infinity the answer is awaited for ever")
    func noDeadline() {
        let harness = Harness("photos") {
            $0.backgroundDeadline = nil; $0.backgroundTime = nil
        }
        harness.behave("photos") { $0.entering = .isSilent }
        harness.launch("photos")
        harness.background("photos")
        harness.advance(.seconds(10_000))
        #expect(harness.state("photos") == .background)
        harness.happens(.run(harness.run("photos"), .backgroundEntered))
        harness.advance(.seconds(1))
        #expect(harness.state("photos") == .suspended)
    }

    // MARK: L17

    @Test(
        "L17: a program that can't be told has answered at once; one that stops itself has answered",
        arguments: [false, true])
    func otherAnswers(stops: Bool) {
        let harness = Harness("photos")
        harness.behave("photos") { $0.entering = stops ? .stops : .cannotBeTold }
        harness.launch("photos")
        let request = harness.background("photos")
        #expect(harness.answers[request] == .done(.background))
        harness.advance(.seconds(1))
        #expect(harness.state("photos") == .suspended)
        harness.activate("photos")
        #expect(harness.effects.contains(.continueStopped(harness.run("photos"))) == stops)
    }

    @Test("L17: who has stopped itself before it is told can say no more")
    func stoppedBefore() {
        let harness = Harness("photos")
        harness.behave("photos") { $0.entering = .isSilent }
        harness.launch("photos")
        harness.happens(.run(harness.run("photos"), .stopped))
        let request = harness.background("photos")
        #expect(harness.answers[request] == .done(.background))
        harness.happens(.run(harness.run("photos"), .continued))
        #expect(harness.state("photos") == .background)
    }

    @Test(
        "an answer that comes before the word that the app was told counts; the word changes nothing then",
        arguments: [false, true])
    func toldLate(isDelivered: Bool) {
        let harness = Harness("photos")
        harness.behave("photos") { $0.entering = .hangs }
        harness.launch("photos")
        harness.background("photos")
        let run = harness.run("photos")
        harness.happens(.run(run, .backgroundEntered))
        harness.activate("photos")
        let mark = harness.mark
        harness.happens(.run(run, .notified(.didEnterBackground, delivered: isDelivered, cpu: .zero)))
        #expect(harness.effects(since: mark) == [])
        #expect(harness.state("photos") == .active)
    }

    @Test("an answer in any other stage means nothing", arguments: Stage.withProcess.filter { $0 != .entering })
    func answerOutOfPlace(stage: Stage) {
        let harness = Harness("photos")
        harness.bring("photos", into: stage)
        let mark = harness.mark
        harness.happens(.run(harness.run("photos"), .backgroundEntered))
        #expect(harness.effects(since: mark) == [])
        #expect(harness.state("photos") == stage.state)
    }

    // MARK: L18 … L20

    @Test("L18: SuspendDelaySec= after the last assertion ended the app is suspended")
    func suspendDelay() {
        let harness = Harness("photos")
        harness.launch("photos")
        harness.task("photos", "a")
        harness.task("photos", "b")
        harness.background("photos")
        harness.advance(.seconds(3))
        harness.endTask("photos", "a")
        harness.advance(.seconds(3))
        harness.endTask("photos", "b")
        harness.advance(.milliseconds(999))
        #expect(harness.state("photos") == .background)
        harness.advance(.milliseconds(1))
        #expect(harness.state("photos") == .suspended)
    }

    @Test("L18: a task within the delay calls the suspension off, and the delay begins anew")
    func delayBeginsAnew() {
        let harness = Harness("photos")
        harness.launch("photos", .background)
        harness.advance(.milliseconds(900))
        harness.task("photos", "a")
        harness.advance(.seconds(2))
        harness.endTask("photos", "a")
        harness.advance(.milliseconds(999))
        #expect(harness.state("photos") == .background)
        harness.advance(.milliseconds(1))
        #expect(harness.state("photos") == .suspended)
    }

    @Test("L19: an app in the background gets less once it has answered, and all of it back at once in the foreground")
    func throttled() {
        let harness = Harness("photos")
        harness.behave("photos") { $0.entering = .isSilent }
        harness.launch("photos")
        let run = harness.run("photos")
        harness.background("photos")
        #expect(!harness.effects.contains(.throttle(run)))
        harness.happens(.run(run, .backgroundEntered))
        #expect(harness.effects.contains(.throttle(run)))
        let mark = harness.mark
        harness.activate("photos")
        #expect(
            harness.effects(since: mark).first { $0 == .unthrottle(run) || $0 == .notify(run, .willEnterForeground) }
                == .unthrottle(run))
    }

    @Test("L20: ExitsOnSuspend=yes: told to terminate instead of being suspended, and not launched again for it")
    func exitsOnSuspend() throws {
        let harness = Harness("photos") {
            $0.exitsOnSuspend = true; $0.relaunch = .always
        }
        harness.launch("photos")
        harness.background("photos")
        harness.advance(.seconds(1))
        #expect(harness.told("photos").last == .willTerminate)
        let receipt = try harness.receipt("photos")
        #expect(
            receipt.explanation == "Terminated instead of being suspended (ExitsOnSuspend=yes): exited with status 0.")
        #expect(receipt.state == .background)
        harness.advance(.seconds(600))
        #expect(harness.state("photos") == .notRunning)
    }

    @Test("L20: it has 5 s to end")
    func exitsOnSuspendLate() throws {
        let harness = Harness("photos") { $0.exitsOnSuspend = true }
        harness.behave("photos") { $0.terminating = .ignores }
        harness.launch("photos", .background)
        harness.advance(.milliseconds(5999))
        #expect(harness.killed() == [])
        harness.advance(.milliseconds(1))
        #expect(try harness.receipt("photos").code == 0x8bad_f00d)
    }
}
