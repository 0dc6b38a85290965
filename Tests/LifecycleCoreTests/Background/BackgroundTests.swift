import LifecycleCore
import Testing

@Suite("Background")
struct BackgroundTests {
    @Test(
        "an app that is sent back to the background on its way to the foreground is throttled again with its task (L19)"
    )
    func throttledAgain() {
        let harness = Harness("photos")
        harness.behave("photos") { $0.thaws = false }
        harness.launch("photos", .background)
        harness.task("photos", "upload")
        harness.endTask("photos", "upload")
        harness.advance(.seconds(1))
        let run = harness.run("photos")
        harness.activate("photos")
        #expect(
            harness.effects.last { $0 == .run(run, .processor(.throttle)) || $0 == .run(run, .processor(.unthrottle)) }
                == .run(run, .processor(.unthrottle)))
        harness.background("photos")
        harness.handle(.run(run, .suspension(.thawed(attempt: 1))))
        #expect(
            harness.effects.last { $0 == .run(run, .processor(.throttle)) || $0 == .run(run, .processor(.unthrottle)) }
                == .run(run, .processor(.unthrottle)))
        harness.task("photos", "upload")
        #expect(
            harness.effects.last { $0 == .run(run, .processor(.throttle)) || $0 == .run(run, .processor(.unthrottle)) }
                == .run(run, .processor(.throttle)))
        harness.endTask("photos", "upload")
        harness.advance(.seconds(1))
        #expect(harness.state("photos") == .suspended)
    }

    @Test(
        "interruptions are removed when an app is sent back on its way to the foreground (L13)",
        arguments: [false, true])
    func interruptionsAreRemoved(isWaking: Bool) {
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
        harness.handle(
            isWaking ? .run(run, .suspension(.thawed(attempt: 1))) : .run(run, .transition(.backgroundEntered)))
        #expect(harness.view("photos").interruptions == 0)
        harness.activate("photos")
        #expect(harness.state("photos") == .active)
    }

    @Test("a background request sends willResignActive and didEnterBackground and is answered after the app (L3)")
    func order() {
        let harness = Harness("photos")
        harness.behave("photos") { $0.entering = .isSilent }
        harness.launch("photos")
        let mark = harness.mark
        let request = harness.background("photos")
        #expect(harness.notices("photos", since: mark) == [.willResignActive(.background), .didEnterBackground])
        #expect(!harness.isAnswered(request))
        harness.handle(.run(harness.run("photos"), .transition(.backgroundEntered)))
        #expect(harness.answers[request] == .done(.background))
    }

    @Test("an activation of an app that is entering the background waits for the app's answer (L5)")
    func activateWhileEntering() {
        let harness = Harness("photos")
        harness.behave("photos") { $0.entering = .isSilent }
        harness.launch("photos")
        let background = harness.background("photos")
        let mark = harness.mark
        let activate = harness.activate("photos")
        #expect(harness.answers[background] == .superseded(by: .active))
        #expect(harness.notices("photos", since: mark) == [])
        harness.advance(.seconds(4))
        harness.handle(.run(harness.run("photos"), .transition(.backgroundEntered)))
        #expect(harness.notices("photos", since: mark) == [.willEnterForeground, .didBecomeActive(.return)])
        #expect(harness.answers[activate] == .done(.active))
        #expect(!harness.effects.contains(.run(harness.run("photos"), .processor(.throttle))))
    }

    @Test("the latest request wins while an app enters the background, and its deadline stays (L5)")
    func latestRequestWins() throws {
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

    @Test("a terminate request while an app enters the background is carried out after its answer (L5)")
    func terminateWhileEntering() throws {
        let harness = Harness("photos")
        harness.behave("photos") { $0.entering = .isSilent }
        harness.launch("photos")
        harness.background("photos")
        let request = harness.terminate("photos")
        #expect(!harness.notices("photos").contains(.willTerminate))
        harness.handle(.run(harness.run("photos"), .transition(.backgroundEntered)))
        #expect(harness.notices("photos").last == .willTerminate)
        #expect(harness.answers[request] == .ended(try harness.receipt("photos")))
    }

    // MARK: L16

    @Test("an app that misses its background deadline is killed with 0x8badf00d, even with open tasks (L16)")
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
        // Only the processor time since the notice.
        let use = try #require(receipt.deadline)
        #expect(use.what == .background && use.allowed == .seconds(5) && use.wall == .seconds(5))
        #expect(use.cpu == .seconds(1))
        #expect(
            receipt.explanation.hasPrefix(
                "Killed: exceeded its background deadline (5s); it did not answer EnterBackground= with X_GREENROOM_BACKGROUND=1: "
            ))
    }

    @Test(
        "an answer just before the deadline, at its instant or during the inspection is in time (L16)",
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
        harness.handle(.run(run, .transition(.backgroundEntered)))
        if how == 2 {
            harness.handle(.run(run, .deadline(.inspected(Inspection(traced: false, cpu: .zero, memory: 0)))))
        }
        harness.advance(.zero)
        #expect(harness.killed() == [])
        #expect(harness.state("photos") == .background)
    }

    @Test(
        "an exit before the background deadline or during the inspection is the app's own, one after SIGKILL is not (L16)",
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
        harness.handle(.run(run, .deadline(.inspected(Inspection(traced: false, cpu: .zero, memory: 0)))))
        harness.advance(.seconds(1))
        let receipt = try harness.receipt("photos")
        #expect(receipt.namespace == .exit)
        #expect(receipt.exit == .exited(3))
        #expect(receipt.explanation == "Exited with status 3.")
        #expect(receipt.state == .background)
        #expect(harness.state("photos") == .notRunning)
    }

    @Test("with BackgroundDeadlineSec=infinity the app may answer at any time (L16)")
    func noDeadline() {
        let harness = Harness("photos") {
            $0.backgroundDeadline = nil; $0.backgroundTime = nil
        }
        harness.behave("photos") { $0.entering = .isSilent }
        harness.launch("photos")
        harness.background("photos")
        harness.advance(.seconds(10_000))
        #expect(harness.state("photos") == .background)
        harness.handle(.run(harness.run("photos"), .transition(.backgroundEntered)))
        harness.advance(.seconds(1))
        #expect(harness.state("photos") == .suspended)
    }

    // MARK: L17

    @Test(
        "a program that cannot be notified counts as answered, and so does one that stops itself (L2, L17)",
        arguments: [false, true])
    func otherAnswers(stops: Bool) {
        let harness = Harness("photos")
        harness.behave("photos") { $0.entering = stops ? .stops : .cannotBeNotified }
        harness.launch("photos")
        let request = harness.background("photos")
        #expect(harness.answers[request] == .done(.background))
        harness.advance(.seconds(1))
        #expect(harness.state("photos") == .suspended)
        harness.activate("photos")
        #expect(harness.effects.contains(.run(harness.run("photos"), .continueStopped)) == stops)
    }

    @Test("a program that stopped itself before didEnterBackground counts as answered (L17)")
    func stoppedBefore() {
        let harness = Harness("photos")
        harness.behave("photos") { $0.entering = .isSilent }
        harness.launch("photos")
        harness.handle(.run(harness.run("photos"), .process(.stopped)))
        let request = harness.background("photos")
        #expect(harness.answers[request] == .done(.background))
        harness.handle(.run(harness.run("photos"), .process(.continued)))
        #expect(harness.state("photos") == .background)
    }

    @Test(
        "an answer that arrives before `notified` counts, and `notified` then changes nothing",
        arguments: [false, true])
    func noticeDelayed(isDelivered: Bool) {
        let harness = Harness("photos")
        harness.behave("photos") { $0.entering = .hangs }
        harness.launch("photos")
        harness.background("photos")
        let run = harness.run("photos")
        harness.handle(.run(run, .transition(.backgroundEntered)))
        harness.activate("photos")
        let mark = harness.mark
        harness.handle(.run(run, .transition(.notified(.didEnterBackground, delivered: isDelivered, cpu: .zero))))
        #expect(harness.effects(since: mark) == [])
        #expect(harness.state("photos") == .active)
    }

    @Test("a background answer in any other stage is ignored", arguments: Stage.withProcess.filter { $0 != .entering })
    func unexpectedAnswer(stage: Stage) {
        let harness = Harness("photos")
        harness.move("photos", to: stage)
        let mark = harness.mark
        harness.handle(.run(harness.run("photos"), .transition(.backgroundEntered)))
        #expect(harness.effects(since: mark) == [])
        #expect(harness.state("photos") == stage.state)
    }

    // MARK: L18 … L20

    @Test("an app is suspended SuspendDelaySec= after its last assertion ended (L18)")
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

    @Test("a task within the suspend delay cancels the suspension, and the delay restarts (L18)")
    func delayRestarts() {
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

    @Test(
        "an app with a task is throttled once it has answered in the background, and unthrottled immediately in the foreground (L19)"
    )
    func throttled() {
        let harness = Harness("photos")
        harness.behave("photos") { $0.entering = .isSilent }
        harness.launch("photos")
        harness.task("photos", "upload")
        let run = harness.run("photos")
        harness.background("photos")
        #expect(!harness.effects.contains(.run(run, .processor(.throttle))))
        harness.handle(.run(run, .transition(.backgroundEntered)))
        #expect(harness.effects.contains(.run(run, .processor(.throttle))))
        let mark = harness.mark
        harness.activate("photos")
        #expect(
            harness.effects(since: mark).first {
                $0 == .run(run, .processor(.unthrottle)) || $0 == .run(run, .notify(.willEnterForeground))
            }
                == .run(run, .processor(.unthrottle)))
    }

    @Test("an app with ExitsOnSuspend=yes is terminated instead of suspended and not relaunched (L20)")
    func exitsOnSuspend() throws {
        let harness = Harness("photos") {
            $0.exitsOnSuspend = true; $0.relaunch = .always
        }
        harness.launch("photos")
        harness.background("photos")
        harness.advance(.seconds(1))
        #expect(harness.notices("photos").last == .willTerminate)
        let receipt = try harness.receipt("photos")
        #expect(
            receipt.explanation == "Terminated instead of being suspended (ExitsOnSuspend=yes): exited with status 0.")
        #expect(receipt.state == .background)
        harness.advance(.seconds(600))
        #expect(harness.state("photos") == .notRunning)
    }

    @Test("an app with ExitsOnSuspend=yes is killed when it misses its terminate deadline (L20)")
    func exitsOnSuspendDeadline() throws {
        let harness = Harness("photos") { $0.exitsOnSuspend = true }
        harness.behave("photos") { $0.terminating = .ignores }
        harness.launch("photos", .background)
        harness.advance(.milliseconds(5999))
        #expect(harness.killed() == [])
        harness.advance(.milliseconds(1))
        #expect(try harness.receipt("photos").code == 0x8bad_f00d)
    }
}
