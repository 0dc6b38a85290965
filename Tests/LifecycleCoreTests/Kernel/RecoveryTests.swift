import LifecycleCore
import Testing

import enum LifecycleCore.ExitStatus

@Suite("Recovery by the next daemon")
struct RecoveryTests {
    @Test("an answer that may be lost counts as given at its deadline")
    func lostAnswers() {
        let harness = Harness("photos", "mail") { $0.readiness = .notified }
        harness.behave("photos") { $0.launching = .executes }
        harness.launch("photos")
        harness.handle(.recovered)
        harness.handle(.run(harness.run("photos"), .process(.reattached(messagesKept: false))))
        harness.advance(.seconds(6))
        #expect(harness.state("photos") == .active)
        #expect(harness.receipts.isEmpty)
    }

    @Test("if no message was lost, a deadline stays as it was before the recovery")
    func keptAnswers() {
        let harness = Harness("photos") { $0.readiness = .notified }
        harness.behave("photos") { $0.launching = .executes }
        harness.launch("photos")
        harness.advance(.seconds(3))
        harness.handle(.recovered)
        harness.handle(.run(harness.run("photos"), .process(.reattached(messagesKept: true))))
        harness.advance(.milliseconds(2100))
        #expect(harness.receipts.map(\.code) == [Receipt.Code.missedDeadline])
    }

    @Test("a deadline starts when the recovered daemon sends a delayed notice")
    func noticeDelayed() {
        for late in [true, false] {
            let harness = Harness("photos")
            harness.behave("photos") { $0.entering = .isSilent }
            harness.launch("photos")
            harness.request("photos", .background)
            // The daemon died before it sent the notice.
            harness.delay(.seconds(20))
            harness.handle(.recovered)
            harness.handle(.run(harness.run("photos"), .process(.reattached(messagesKept: true, noticesDelayed: late))))
            harness.advance(.milliseconds(4900))
            #expect(harness.receipts.count == (late ? 0 : 1))
            harness.advance(.milliseconds(200))
            #expect(harness.receipts.map(\.code) == [Receipt.Code.missedDeadline])
        }
    }

    @Test("an app whose budget ended while there was no daemon gets tasksExpiring and its notice time (L22)")
    func noticeAfterwards() {
        let harness = Harness("photos", "mail")
        for app in ["photos", "mail"] {
            harness.launch(app, .background)
            harness.task(app, "upload")
        }
        harness.delay(.seconds(60))
        harness.handle(.recovered)
        for app in ["photos", "mail"] {
            harness.handle(.run(harness.run(app), .process(.reattached(messagesKept: true))))
        }
        #expect(harness.receipts.isEmpty)
        harness.advance(.zero)
        let notices = harness.effects.count { if case .run(_, .notify(.tasksExpiring)) = $0 { true } else { false } }
        #expect(notices == 2)
        harness.advance(.milliseconds(4900))
        harness.handle(.run(harness.run("photos"), .task(.ended(name: "upload"))))
        harness.advance(.milliseconds(200))
        #expect(harness.receipts.map(\.app.name) == ["mail"])
        #expect(harness.receipts.map(\.code) == [Receipt.Code.leakedTask])
    }

    @Test("tasks that may have ended while there was no daemon do not count as leaked, later ones do (L23)")
    func tasks() {
        let harness = Harness("photos", "mail")
        for app in ["photos", "mail"] {
            harness.launch(app, .background)
            harness.task(app, "before")
        }
        harness.handle(.recovered)
        for app in ["photos", "mail"] {
            harness.handle(.run(harness.run(app), .process(.reattached(messagesKept: false))))
        }
        harness.task("mail", "after")
        harness.advance(.seconds(35))
        #expect(harness.state("photos") == .suspended)
        #expect(harness.receipts.map(\.app.name) == ["mail"])
        #expect(harness.receipts.first?.explanation.contains("'after'") == true)
        #expect(harness.receipts.first?.explanation.contains("'before'") == false)
    }

    @Test(
        "the next daemon undoes the freeze of a worker if the dead one has not looked at its frozen threads (L51)",
        arguments: [false, true])
    func unverifiedFreeze(isComplete: Bool) {
        let harness = TrafficTests.worker()
        harness.launch("web")
        harness.isSlow = true
        harness.advance(harness.policies[id("web")]!.idleTime)
        while !harness.core.isSuspending(harness.run("web"), attempt: 1) { harness.release(0) }
        while isComplete, harness.state("web") != .suspended { harness.release(0) }
        harness.dropPending()
        harness.isSlow = false
        harness.handle(.recovered)
        harness.handle(.run(harness.run("web"), .process(.reattached(messagesKept: true))))
        #expect(harness.state("web") == .background)
        harness.advance(harness.policies[id("web")]!.idleTime)
        #expect(harness.state("web") == .suspended)
        // It was looked at.
        harness.handle(.recovered)
        harness.handle(.run(harness.run("web"), .process(.reattached(messagesKept: true))))
        #expect(harness.state("web") == .suspended)
    }

    @Test(
        "the end of a task does not count for one of the same name that may have ended while there was no daemon (L23)")
    func tasksOfOneName() {
        let harness = Harness("photos", "mail") { $0.backgroundTime = .seconds(30) }
        harness.register("mail") { $0.backgroundTime = nil }
        for app in ["photos", "mail"] {
            harness.launch(app, .background)
            harness.task(app, "sync")
        }
        // The app ends the task while there is no daemon.
        harness.handle(.recovered)
        for app in ["photos", "mail"] {
            harness.handle(.run(harness.run(app), .process(.reattached(messagesKept: false))))
            harness.task(app, "sync")
            harness.endTask(app, "sync")
        }
        harness.advance(.seconds(35))
        #expect(harness.state("photos") == .suspended)
        #expect(harness.state("mail") == .suspended)
        #expect(harness.receipts.isEmpty)
    }

    @Test(
        "a task that may have ended while there was no daemon ends, also if the background time becomes unlimited (L23)"
    )
    func budgetBecomesUnlimited() {
        let harness = Harness("photos")
        harness.launch("photos", .background)
        harness.task("photos", "upload")
        harness.handle(.recovered)
        harness.handle(.run(harness.run("photos"), .process(.reattached(messagesKept: false))))
        harness.register("photos") { $0.backgroundTime = nil }
        // The wake renews the background time, which is unlimited now.
        harness.advance(.seconds(1))
        harness.launch("photos", .background, .timer)
        harness.handle(.run(harness.run("photos"), .wake(.completed(.noData))))
        harness.advance(.seconds(29))
        #expect(harness.state("photos") == .background)
        harness.advance(.seconds(3))
        #expect(harness.state("photos") == .suspended)
    }

    /// Starts a deadline of a kind that a recovery starts again.
    private func harness(with kind: DeadlineKind) -> Harness {
        let harness = Harness("photos") {
            $0.readiness = .notified; $0.backgroundModes = .push; $0.watchdog = kind == .watchdog ? .seconds(10) : nil
        }
        switch kind {
        case .launch: harness.move("photos", to: .launching)
        case .background: harness.move("photos", to: .entering)
        case .terminate: harness.move("photos", to: .terminating)
        case .thaw: harness.move("photos", to: .waking)
        case .watchdog: harness.launch("photos")
        case .wake:
            harness.suspend("photos")
            harness.push("photos")
        case .backgroundTime:
            harness.launch("photos")
            harness.task("photos", "upload")
            harness.background("photos")
        }
        return harness
    }

    @Test(
        "a deadline that starts again after a recovery is deferred by daemonRestarted", arguments: DeadlineKind.allCases
    )
    func deferralCause(kind: DeadlineKind) {
        let harness = harness(with: kind)
        // The budget starts again only if less than the notice is left of it (L22).
        harness.delay(kind == .backgroundTime ? .seconds(28) : .seconds(1))
        let mark = harness.mark
        harness.handle(.recovered)
        harness.handle(
            .run(harness.run("photos"), .process(.reattached(messagesKept: kind != .watchdog, noticesDelayed: true))))
        let causes = harness.reports(since: mark).compactMap { report in
            if case .deadlineDeferred(id("photos"), kind, let cause, _) = report { cause } else { nil }
        }
        #expect(causes == [.daemonRestarted])
    }

    @Test("a freeze or thaw whose outcome was lost is repeated")
    func underWay() {
        let harness = Harness("photos")
        harness.launch("photos", .background)
        harness.isSlow = true
        harness.advance(.seconds(2))
        #expect(harness.effects.contains { if case .run(_, .suspension(.freeze)) = $0 { true } else { false } })
        harness.dropPending()
        harness.isSlow = false
        harness.handle(.recovered)
        harness.handle(.run(harness.run("photos"), .process(.reattached(messagesKept: true))))
        #expect(harness.state("photos") == .suspended)
    }

    @Test("after a recovery no earlier request is answered, and a shutdown is cancelled")
    func harness() {
        let harness = Harness("photos") { $0.terminateDeadline = nil }
        harness.behave("photos") { $0.terminating = .ignores }
        harness.launch("photos")
        let request = harness.request("photos", .terminate)
        harness.handle(.shutdownRequested(immediately: false))
        harness.handle(.recovered)
        #expect(!harness.core.isShuttingDown)
        harness.handle(.run(harness.run("photos"), .process(.exited(.unknown, cpu: .zero, memory: 0))))
        #expect(harness.answers[request] == nil)
        #expect(harness.core.saved.bytes.count < 400)
        #expect(harness.receipts.last?.explanation.contains("unknown status") == true)
    }

    @Test("an unknown exit status is attributed to the daemon's SIGKILL if it was sent")
    func unknownEnd() {
        let harness = Harness("photos")
        harness.launch("photos")
        harness.isSlow = true
        harness.request("photos", .remove)
        harness.dropPending()
        harness.handle(.run(harness.run("photos"), .process(.exited(.unknown, cpu: .zero, memory: 0))))
        #expect(harness.receipts.last?.code == Receipt.Code.removedByUser)
    }

    @Test("an app whose connection has to find the next daemon is not suspended before it had 3s for that (L21)")
    func connection() {
        for (kinds, suspended) in [(HandledNotices.didEnterBackground, Duration.seconds(3)), ([], .milliseconds(200))] {
            let harness = Harness()
            harness.register("photos") { $0.suspendDelay = .milliseconds(200) }
            harness.launch("photos")
            harness.handle(.run(harness.run("photos"), .connection(.attached(kinds))))
            harness.background("photos")
            harness.handle(.recovered)
            harness.handle(.run(harness.run("photos"), .process(.reattached(messagesKept: true))))
            harness.advance(suspended - .milliseconds(10))
            #expect(harness.state("photos") == .background)
            harness.advance(.milliseconds(20))
            #expect(harness.state("photos") == .suspended)
        }
    }
}
