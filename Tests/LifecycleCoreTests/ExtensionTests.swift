import Testing

@testable import LifecycleCore

@Suite("EXTEND_TIMEOUT_USEC=")
struct ExtensionTests {
    private func extend(_ house: House, by time: Duration) {
        house.happens(.run(house.run("photos"), .timeoutExtended(by: time)))
    }

    @Test("L25: it extends the launch deadline, counted from when it was said")
    func launch() {
        let house = House("photos")
        house.bring("photos", into: .launching)
        house.advance(.seconds(4))
        extend(house, by: .seconds(10))
        #expect(house.view("photos").deadline == .init(what: .launch, remaining: .seconds(10)))
        #expect(house.reports().last == .deadlineExtended(id("photos"), .launch, by: .seconds(10)))
        house.advance(.milliseconds(9999))
        #expect(house.state("photos") == .launching)
        house.advance(.milliseconds(1))
        #expect(house.killed() == ["photos"])
    }

    @Test("L25: it extends the terminate deadline")
    func terminate() throws {
        let house = House("photos")
        house.bring("photos", into: .terminating)
        house.advance(.seconds(4))
        extend(house, by: .seconds(10))
        house.advance(.milliseconds(9999))
        #expect(house.killed() == [])
        house.advance(.milliseconds(1))
        #expect(try house.receipt("photos").deadline?.allowed == .seconds(14))
    }

    @Test("L25: it never shortens a deadline")
    func neverShortens() {
        let house = House("photos")
        house.bring("photos", into: .launching)
        let mark = house.mark
        extend(house, by: .seconds(2))
        #expect(house.effects(since: mark) == [])
        house.advance(.seconds(4))
        #expect(house.state("photos") == .launching)
    }

    @Test(
        "L25: all extensions together end at the manifest's cap, counted from the start",
        arguments: [Stage.launching, .terminating])
    func cap(stage: Stage) {
        let house = House("photos") { $0.extendedDeadlineMax = .seconds(20) }
        house.bring("photos", into: stage)
        for _ in 0..<19 {
            house.advance(.seconds(1))
            extend(house, by: .seconds(5))
        }
        extend(house, by: .seconds(100_000_000))
        #expect(house.view("photos").deadline?.remaining == .seconds(1))
        house.advance(.milliseconds(999))
        #expect(house.killed() == [])
        house.advance(.milliseconds(1))
        #expect(house.killed() == ["photos"])
    }

    @Test("L25: a cap below the deadline itself does not shorten it, and no cap is none")
    func oddCaps() {
        let low = House("photos") { $0.extendedDeadlineMax = .seconds(2) }
        low.bring("photos", into: .launching)
        extend(low, by: .seconds(50))
        low.advance(.milliseconds(4999))
        #expect(low.state("photos") == .launching)
        low.advance(.milliseconds(1))
        #expect(low.killed() == ["photos"])

        let none = House("photos") { $0.extendedDeadlineMax = nil }
        none.bring("photos", into: .launching)
        extend(none, by: .seconds(100_000))
        none.advance(.seconds(99_999))
        #expect(none.state("photos") == .launching)
    }

    @Test("L25: once the deadline has passed and the app is looked into, it is too late to extend it")
    func tooLate() {
        let house = House("photos")
        house.bring("photos", into: .launching)
        house.behave("photos") { $0.isInspected = false }
        house.advance(.seconds(5))
        extend(house, by: .seconds(50))
        house.happens(.run(house.run("photos"), .inspected(Inspection(traced: false, cpu: .zero, memory: 0))))
        #expect(house.killed() == ["photos"])
    }

    @Test("L25: while entering the background it opens a task for that long, and L16 holds")
    func entering() throws {
        let house = House("photos")
        house.bring("photos", into: .entering)
        extend(house, by: .seconds(60))
        house.advance(.seconds(5))
        let receipt = try house.receipt("photos")
        #expect(receipt.deadline?.what == .background)
        #expect(receipt.code == 0x8bad_f00d)
    }

    @Test("L25: that task keeps the app awake after the answer until its time is over, and is then ended without blame")
    func endsByItself() {
        let house = House("photos")
        house.bring("photos", into: .entering)
        let run = house.run("photos")
        extend(house, by: .seconds(3))
        house.advance(.seconds(1))
        // Asked again it moves its end: there is one.
        extend(house, by: .seconds(10))
        #expect(house.view("photos").tasks.count == 1)
        house.happens(.run(run, .backgroundEntered))
        house.advance(.seconds(10))
        #expect(house.reports().contains(.taskEnded(id("photos"), name: "EXTEND_TIMEOUT_USEC")))
        #expect(house.state("photos") == .background)
        house.advance(.seconds(1))
        #expect(house.state("photos") == .suspended)
    }

    @Test("L25: the budget bounds that task too")
    func bounded() throws {
        let house = House("photos")
        house.bring("photos", into: .entering)
        extend(house, by: .seconds(1000))
        house.happens(.run(house.run("photos"), .backgroundEntered))
        house.advance(.seconds(30))
        #expect(try house.receipt("photos").code == 0x2182_bad2)
    }

    @Test(
        "L25: in any other stage it means nothing",
        arguments: [
            Stage.active, .inactive, .running, .suspending, .suspended, .waking, .ending,
        ])
    func elsewhere(stage: Stage) {
        let house = House("photos")
        house.bring("photos", into: stage)
        let mark = house.mark
        let before = house.view("photos")
        extend(house, by: .seconds(50))
        #expect(house.effects(since: mark) == [])
        #expect(house.view("photos") == before)
    }
}
