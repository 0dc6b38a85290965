import Testing

@testable import LifecycleCore

@Suite("EXTEND_TIMEOUT_USEC=")
struct ExtensionTests {
    private func extend(_ harness: Harness, by time: Duration) {
        harness.handle(.run(harness.run("photos"), .deadline(.extended(by: time))))
    }

    @Test("EXTEND_TIMEOUT_USEC= extends the launch deadline from the instant of the message (L25)")
    func launch() {
        let harness = Harness("photos")
        harness.move("photos", to: .launching)
        harness.advance(.seconds(4))
        extend(harness, by: .seconds(10))
        #expect(harness.view("photos").deadline == .init(what: .launch, remaining: .seconds(10)))
        #expect(harness.reports().last == .deadlineExtended(id("photos"), .launch, by: .seconds(10)))
        harness.advance(.milliseconds(9999))
        #expect(harness.state("photos") == .launching)
        harness.advance(.milliseconds(1))
        #expect(harness.killed() == ["photos"])
    }

    @Test("EXTEND_TIMEOUT_USEC= extends the terminate deadline (L25)")
    func terminate() throws {
        let harness = Harness("photos")
        harness.move("photos", to: .terminating)
        harness.advance(.seconds(4))
        extend(harness, by: .seconds(10))
        harness.advance(.milliseconds(9999))
        #expect(harness.killed() == [])
        harness.advance(.milliseconds(1))
        #expect(try harness.receipt("photos").deadline?.allowed == .seconds(14))
    }

    @Test("EXTEND_TIMEOUT_USEC= never shortens a deadline (L25)")
    func neverShortens() {
        let harness = Harness("photos")
        harness.move("photos", to: .launching)
        let mark = harness.mark
        extend(harness, by: .seconds(2))
        #expect(harness.effects(since: mark) == [])
        harness.advance(.seconds(4))
        #expect(harness.state("photos") == .launching)
    }

    @Test(
        "all extensions together end at the manifest's limit, counted from the start (L25)",
        arguments: [Stage.launching, .terminating])
    func cap(stage: Stage) {
        let harness = Harness("photos") { $0.extendedDeadlineMax = .seconds(20) }
        harness.move("photos", to: stage)
        for _ in 0..<19 {
            harness.advance(.seconds(1))
            extend(harness, by: .seconds(5))
        }
        extend(harness, by: .seconds(100_000_000))
        #expect(harness.view("photos").deadline?.remaining == .seconds(1))
        harness.advance(.milliseconds(999))
        #expect(harness.killed() == [])
        harness.advance(.milliseconds(1))
        #expect(harness.killed() == ["photos"])
    }

    @Test("a limit below the deadline does not shorten it, and an infinite limit is no limit (L25)")
    func oddCaps() {
        let low = Harness("photos") { $0.extendedDeadlineMax = .seconds(2) }
        low.move("photos", to: .launching)
        extend(low, by: .seconds(50))
        low.advance(.milliseconds(4999))
        #expect(low.state("photos") == .launching)
        low.advance(.milliseconds(1))
        #expect(low.killed() == ["photos"])

        let none = Harness("photos") { $0.extendedDeadlineMax = nil }
        none.move("photos", to: .launching)
        extend(none, by: .seconds(100_000))
        none.advance(.seconds(99_999))
        #expect(none.state("photos") == .launching)
    }

    @Test("a deadline cannot be extended once it has passed (L25)")
    func tooLate() {
        let harness = Harness("photos")
        harness.move("photos", to: .launching)
        harness.behave("photos") { $0.isInspected = false }
        harness.advance(.seconds(5))
        extend(harness, by: .seconds(50))
        harness.handle(
            .run(harness.run("photos"), .deadline(.inspected(Inspection(traced: false, cpu: .zero, memory: 0)))))
        #expect(harness.killed() == ["photos"])
    }

    @Test(
        "EXTEND_TIMEOUT_USEC= while entering the background begins a task and does not extend the background deadline (L16, L25)"
    )
    func entering() throws {
        let harness = Harness("photos")
        harness.move("photos", to: .entering)
        extend(harness, by: .seconds(60))
        harness.advance(.seconds(5))
        let receipt = try harness.receipt("photos")
        #expect(receipt.deadline?.what == .background)
        #expect(receipt.code == 0x8bad_f00d)
    }

    @Test(
        "the task of EXTEND_TIMEOUT_USEC= keeps the app awake until its time is over, and then ends without a kill (L25)"
    )
    func endsByItself() {
        let harness = Harness("photos")
        harness.move("photos", to: .entering)
        let run = harness.run("photos")
        extend(harness, by: .seconds(3))
        harness.advance(.seconds(1))
        // A second message moves the end of the same task.
        extend(harness, by: .seconds(10))
        #expect(harness.view("photos").tasks.count == 1)
        harness.handle(.run(run, .transition(.backgroundEntered)))
        harness.advance(.seconds(10))
        #expect(harness.reports().contains(.taskEnded(id("photos"), name: "EXTEND_TIMEOUT_USEC")))
        #expect(harness.state("photos") == .background)
        harness.advance(.seconds(1))
        #expect(harness.state("photos") == .suspended)
    }

    @Test(
        "the manifest's limit holds for the task of EXTEND_TIMEOUT_USEC= (L25)",
        arguments: [AppPolicy.Role.app, .worker])
    func limited(role: AppPolicy.Role) {
        let harness = Harness("photos") {
            $0.role = role
            $0.extendedDeadlineMax = .seconds(20)
        }
        harness.move("photos", to: .entering)
        extend(harness, by: .seconds(1000))
        harness.advance(.seconds(2))
        extend(harness, by: .seconds(1 << 40))
        #expect(harness.view("photos").tasks.map(\.remaining) == [.seconds(18)])
        harness.handle(.run(harness.run("photos"), .transition(.backgroundEntered)))
        harness.advance(.seconds(18))
        #expect(harness.view("photos").tasks.isEmpty)
        #expect(harness.state("photos") == .background)
    }

    @Test("the background budget limits the task of EXTEND_TIMEOUT_USEC= (L25)")
    func bounded() throws {
        let harness = Harness("photos")
        harness.move("photos", to: .entering)
        extend(harness, by: .seconds(1000))
        harness.handle(.run(harness.run("photos"), .transition(.backgroundEntered)))
        harness.advance(.seconds(30))
        #expect(try harness.receipt("photos").code == 0x2182_bad2)
    }

    @Test(
        "EXTEND_TIMEOUT_USEC= is ignored in any other stage (L25)",
        arguments: [
            Stage.active, .inactive, .running, .suspending, .suspended, .waking, .ending,
        ])
    func elsewhere(stage: Stage) {
        let harness = Harness("photos")
        harness.move("photos", to: stage)
        let mark = harness.mark
        let before = harness.view("photos")
        extend(harness, by: .seconds(50))
        #expect(harness.effects(since: mark) == [])
        #expect(harness.view("photos") == before)
    }
}
