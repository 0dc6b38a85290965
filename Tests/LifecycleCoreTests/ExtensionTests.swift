import Testing

@testable import LifecycleCore

@Suite("EXTEND_TIMEOUT_USEC=")
struct ExtensionTests {
    private func extend(_ harness: Harness, by time: Duration) {
        harness.happens(.run(harness.run("photos"), .timeoutExtended(by: time)))
    }

    @Test("L25: it extends the launch deadline, counted from when it was said")
    func launch() {
        let harness = Harness("photos")
        harness.bring("photos", into: .launching)
        harness.advance(.seconds(4))
        extend(harness, by: .seconds(10))
        #expect(harness.view("photos").deadline == .init(what: .launch, remaining: .seconds(10)))
        #expect(harness.reports().last == .deadlineExtended(id("photos"), .launch, by: .seconds(10)))
        harness.advance(.milliseconds(9999))
        #expect(harness.state("photos") == .launching)
        harness.advance(.milliseconds(1))
        #expect(harness.killed() == ["photos"])
    }

    @Test("L25: it extends the terminate deadline")
    func terminate() throws {
        let harness = Harness("photos")
        harness.bring("photos", into: .terminating)
        harness.advance(.seconds(4))
        extend(harness, by: .seconds(10))
        harness.advance(.milliseconds(9999))
        #expect(harness.killed() == [])
        harness.advance(.milliseconds(1))
        #expect(try harness.receipt("photos").deadline?.allowed == .seconds(14))
    }

    @Test("L25: it never shortens a deadline")
    func neverShortens() {
        let harness = Harness("photos")
        harness.bring("photos", into: .launching)
        let mark = harness.mark
        extend(harness, by: .seconds(2))
        #expect(harness.effects(since: mark) == [])
        harness.advance(.seconds(4))
        #expect(harness.state("photos") == .launching)
    }

    @Test(
        "L25: all extensions together end at the manifest's cap, counted from the start",
        arguments: [Stage.launching, .terminating])
    func cap(stage: Stage) {
        let harness = Harness("photos") { $0.extendedDeadlineMax = .seconds(20) }
        harness.bring("photos", into: stage)
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

    @Test("L25: a cap below the deadline itself does not shorten it, and no cap is none")
    func oddCaps() {
        let low = Harness("photos") { $0.extendedDeadlineMax = .seconds(2) }
        low.bring("photos", into: .launching)
        extend(low, by: .seconds(50))
        low.advance(.milliseconds(4999))
        #expect(low.state("photos") == .launching)
        low.advance(.milliseconds(1))
        #expect(low.killed() == ["photos"])

        let none = Harness("photos") { $0.extendedDeadlineMax = nil }
        none.bring("photos", into: .launching)
        extend(none, by: .seconds(100_000))
        none.advance(.seconds(99_999))
        #expect(none.state("photos") == .launching)
    }

    @Test("L25: once the deadline has passed and the app is looked into, it is too late to extend it")
    func tooLate() {
        let harness = Harness("photos")
        harness.bring("photos", into: .launching)
        harness.behave("photos") { $0.isInspected = false }
        harness.advance(.seconds(5))
        extend(harness, by: .seconds(50))
        harness.happens(.run(harness.run("photos"), .inspected(Inspection(traced: false, cpu: .zero, memory: 0))))
        #expect(harness.killed() == ["photos"])
    }

    @Test("L25: while entering the background it opens a task for that long, and L16 holds")
    func entering() throws {
        let harness = Harness("photos")
        harness.bring("photos", into: .entering)
        extend(harness, by: .seconds(60))
        harness.advance(.seconds(5))
        let receipt = try harness.receipt("photos")
        #expect(receipt.deadline?.what == .background)
        #expect(receipt.code == 0x8bad_f00d)
    }

    @Test("L25: that task keeps the app awake after the answer until its time is over, and is then ended without blame")
    func endsByItself() {
        let harness = Harness("photos")
        harness.bring("photos", into: .entering)
        let run = harness.run("photos")
        extend(harness, by: .seconds(3))
        harness.advance(.seconds(1))
        // Asked again it moves its end: there is one.
        extend(harness, by: .seconds(10))
        #expect(harness.view("photos").tasks.count == 1)
        harness.happens(.run(run, .backgroundEntered))
        harness.advance(.seconds(10))
        #expect(harness.reports().contains(.taskEnded(id("photos"), name: "EXTEND_TIMEOUT_USEC")))
        #expect(harness.state("photos") == .background)
        harness.advance(.seconds(1))
        #expect(harness.state("photos") == .suspended)
    }

    @Test("L25: the budget bounds that task too")
    func bounded() throws {
        let harness = Harness("photos")
        harness.bring("photos", into: .entering)
        extend(harness, by: .seconds(1000))
        harness.happens(.run(harness.run("photos"), .backgroundEntered))
        harness.advance(.seconds(30))
        #expect(try harness.receipt("photos").code == 0x2182_bad2)
    }

    @Test(
        "L25: in any other stage it means nothing",
        arguments: [
            Stage.active, .inactive, .running, .suspending, .suspended, .waking, .ending,
        ])
    func elsewhere(stage: Stage) {
        let harness = Harness("photos")
        harness.bring("photos", into: stage)
        let mark = harness.mark
        let before = harness.view("photos")
        extend(harness, by: .seconds(50))
        #expect(harness.effects(since: mark) == [])
        #expect(harness.view("photos") == before)
    }
}
