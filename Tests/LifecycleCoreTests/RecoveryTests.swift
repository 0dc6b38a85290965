import LifecycleCore
import Testing

import enum LifecycleCore.ExitStatus

@Suite("A daemon that follows another")
struct RecoveryTests {
    @Test("an answer that may have been lost counts as given when its time is over")
    func lostAnswers() {
        let harness = Harness("photos", "mail") { $0.readiness = .notified }
        harness.behave("photos") { $0.launching = .executes }
        harness.launch("photos")
        harness.happens(.recovered)
        harness.happens(.run(harness.run("photos"), .reattached(messagesKept: false)))
        harness.advance(.seconds(6))
        #expect(harness.state("photos") == .active)
        #expect(harness.receipts.isEmpty)
    }

    @Test("an answer that was kept, or never given, is still waited for no longer than before")
    func keptAnswers() {
        let harness = Harness("photos") { $0.readiness = .notified }
        harness.behave("photos") { $0.launching = .executes }
        harness.launch("photos")
        harness.advance(.seconds(3))
        harness.happens(.recovered)
        harness.happens(.run(harness.run("photos"), .reattached(messagesKept: true)))
        harness.advance(.milliseconds(2100))
        #expect(harness.receipts.map(\.code) == [Receipt.Code.missedDeadline])
    }

    @Test("nobody has to answer before he was asked: who is told late has all of his time")
    func toldLate() {
        for late in [true, false] {
            let harness = Harness("photos")
            harness.behave("photos") { $0.entering = .isSilent }
            harness.launch("photos")
            harness.request("photos", .background)
            // Decided, but the daemon died before it could say so.
            harness.delay(.seconds(20))
            harness.happens(.recovered)
            harness.happens(.run(harness.run("photos"), .reattached(messagesKept: true, noticesDelayed: late)))
            harness.advance(.milliseconds(4900))
            #expect(harness.receipts.count == (late ? 0 : 1))
            harness.advance(.milliseconds(200))
            #expect(harness.receipts.map(\.code) == [Receipt.Code.missedDeadline])
        }
    }

    @Test("L22: the end of the budget is announced, and waited for, also where it came while no daemon was there")
    func noticeAfterwards() {
        let harness = Harness("photos", "mail")
        for app in ["photos", "mail"] {
            harness.launch(app, .background)
            harness.task(app, "upload")
        }
        harness.delay(.seconds(60))
        harness.happens(.recovered)
        for app in ["photos", "mail"] { harness.happens(.run(harness.run(app), .reattached(messagesKept: true))) }
        #expect(harness.receipts.isEmpty)
        harness.advance(.zero)
        let told = harness.effects.count { if case .notify(_, .tasksExpiring) = $0 { true } else { false } }
        #expect(told == 2)
        harness.advance(.milliseconds(4900))
        harness.happens(.run(harness.run("photos"), .taskEnded(name: "upload")))
        harness.advance(.milliseconds(200))
        #expect(harness.receipts.map(\.app.name) == ["mail"])
        #expect(harness.receipts.map(\.code) == [Receipt.Code.leakedTask])
    }

    @Test("L23: tasks that may have ended unheard are not leaked, those begun since are")
    func tasks() {
        let harness = Harness("photos", "mail")
        for app in ["photos", "mail"] {
            harness.launch(app, .background)
            harness.task(app, "before")
        }
        harness.happens(.recovered)
        for app in ["photos", "mail"] { harness.happens(.run(harness.run(app), .reattached(messagesKept: false))) }
        harness.task("mail", "after")
        harness.advance(.seconds(35))
        #expect(harness.state("photos") == .suspended)
        #expect(harness.receipts.map(\.app.name) == ["mail"])
        #expect(harness.receipts.first?.explanation.contains("'after'") == true)
        #expect(harness.receipts.first?.explanation.contains("'before'") == false)
    }

    @Test("a freeze and a thaw whose outcome was lost are asked for again")
    func underWay() {
        let harness = Harness("photos")
        harness.launch("photos", .background)
        harness.isSlow = true
        harness.advance(.seconds(2))
        #expect(harness.effects.contains { if case .freeze = $0 { true } else { false } })
        harness.dropPending()
        harness.isSlow = false
        harness.happens(.recovered)
        harness.happens(.run(harness.run("photos"), .reattached(messagesKept: true)))
        #expect(harness.state("photos") == .suspended)
    }

    @Test("those who waited went with the daemon, and nobody is answered; a shutdown is off")
    func harness() {
        let harness = Harness("photos") { $0.terminateDeadline = nil }
        harness.behave("photos") { $0.terminating = .ignores }
        harness.launch("photos")
        let request = harness.request("photos", .terminate)
        harness.happens(.shutdownRequested(immediately: false))
        harness.happens(.recovered)
        #expect(!harness.core.isShuttingDown)
        harness.happens(.run(harness.run("photos"), .exited(.unknown, cpu: .zero, memory: 0)))
        #expect(harness.answers[request] == nil)
        #expect(harness.core.saved.bytes.count < 400)
        #expect(harness.receipts.last?.explanation.contains("unknown status") == true)
    }

    @Test("the end of which nobody knows how is ours if we had sent SIGKILL")
    func unknownEnd() {
        let harness = Harness("photos")
        harness.launch("photos")
        harness.isSlow = true
        harness.request("photos", .remove)
        harness.dropPending()
        harness.happens(.run(harness.run("photos"), .exited(.unknown, cpu: .zero, memory: 0)))
        #expect(harness.receipts.last?.code == Receipt.Code.removedByUser)
    }
}
