import LifecycleCore
import Testing

import enum LifecycleCore.ExitStatus

@Suite("A daemon that follows another")
struct RecoveryTests {
    @Test("an answer that may have been lost counts as given when its time is over")
    func lostAnswers() {
        let house = House("photos", "mail") { $0.readiness = .notified }
        house.behave("photos") { $0.launching = .executes }
        house.launch("photos")
        house.happens(.recovered)
        house.happens(.run(house.run("photos"), .reattached(messagesKept: false)))
        house.advance(.seconds(6))
        #expect(house.state("photos") == .active)
        #expect(house.receipts.isEmpty)
    }

    @Test("an answer that was kept, or never given, is still waited for no longer than before")
    func keptAnswers() {
        let house = House("photos") { $0.readiness = .notified }
        house.behave("photos") { $0.launching = .executes }
        house.launch("photos")
        house.advance(.seconds(3))
        house.happens(.recovered)
        house.happens(.run(house.run("photos"), .reattached(messagesKept: true)))
        house.advance(.milliseconds(2100))
        #expect(house.receipts.map(\.code) == [Receipt.Code.missedDeadline])
    }

    @Test("nobody has to answer before he was asked: who is told late has all of his time")
    func toldLate() {
        for late in [true, false] {
            let house = House("photos")
            house.behave("photos") { $0.entering = .isSilent }
            house.launch("photos")
            house.request("photos", .background)
            // Decided, but the daemon died before it could say so.
            house.delay(.seconds(20))
            house.happens(.recovered)
            house.happens(.run(house.run("photos"), .reattached(messagesKept: true, noticesDelayed: late)))
            house.advance(.milliseconds(4900))
            #expect(house.receipts.count == (late ? 0 : 1))
            house.advance(.milliseconds(200))
            #expect(house.receipts.map(\.code) == [Receipt.Code.missedDeadline])
        }
    }

    @Test("L22: the end of the budget is announced, and waited for, also where it came while no daemon was there")
    func noticeAfterwards() {
        let house = House("photos", "mail")
        for app in ["photos", "mail"] {
            house.launch(app, .background)
            house.task(app, "upload")
        }
        house.delay(.seconds(60))
        house.happens(.recovered)
        for app in ["photos", "mail"] { house.happens(.run(house.run(app), .reattached(messagesKept: true))) }
        #expect(house.receipts.isEmpty)
        house.advance(.zero)
        let told = house.effects.count { if case .notify(_, .tasksExpiring) = $0 { true } else { false } }
        #expect(told == 2)
        house.advance(.milliseconds(4900))
        house.happens(.run(house.run("photos"), .taskEnded(name: "upload")))
        house.advance(.milliseconds(200))
        #expect(house.receipts.map(\.app.name) == ["mail"])
        #expect(house.receipts.map(\.code) == [Receipt.Code.leakedTask])
    }

    @Test("L23: tasks that may have ended unheard are not leaked, those begun since are")
    func tasks() {
        let house = House("photos", "mail")
        for app in ["photos", "mail"] {
            house.launch(app, .background)
            house.task(app, "before")
        }
        house.happens(.recovered)
        for app in ["photos", "mail"] { house.happens(.run(house.run(app), .reattached(messagesKept: false))) }
        house.task("mail", "after")
        house.advance(.seconds(35))
        #expect(house.state("photos") == .suspended)
        #expect(house.receipts.map(\.app.name) == ["mail"])
        #expect(house.receipts.first?.explanation.contains("“after”") == true)
        #expect(house.receipts.first?.explanation.contains("“before”") == false)
    }

    @Test("a freeze and a thaw whose outcome was lost are asked for again")
    func underWay() {
        let house = House("photos")
        house.launch("photos", .background)
        house.isSlow = true
        house.advance(.seconds(2))
        #expect(house.effects.contains { if case .freeze = $0 { true } else { false } })
        house.dropPending()
        house.isSlow = false
        house.happens(.recovered)
        house.happens(.run(house.run("photos"), .reattached(messagesKept: true)))
        #expect(house.state("photos") == .suspended)
    }

    @Test("those who waited went with the daemon, and nobody is answered; a shutdown is off")
    func house() {
        let house = House("photos") { $0.terminateDeadline = nil }
        house.behave("photos") { $0.terminating = .ignores }
        house.launch("photos")
        let request = house.request("photos", .terminate)
        house.happens(.shutdownRequested(immediately: false))
        house.happens(.recovered)
        #expect(!house.core.isShuttingDown)
        house.happens(.run(house.run("photos"), .exited(.unknown, cpu: .zero, memory: 0)))
        #expect(house.answers[request] == nil)
        #expect(house.core.saved.bytes.count < 400)
        #expect(house.receipts.last?.explanation.contains("how is not known") == true)
    }

    @Test("the end of which nobody knows how is ours if we had sent SIGKILL")
    func unknownEnd() {
        let house = House("photos")
        house.launch("photos")
        house.isSlow = true
        house.request("photos", .remove)
        house.dropPending()
        house.happens(.run(house.run("photos"), .exited(.unknown, cpu: .zero, memory: 0)))
        #expect(house.receipts.last?.code == Receipt.Code.removedByUser)
    }
}
