import LifecycleCore
import Testing

@Suite("Memory: measuring")
struct MemoryMeasureTests {
    @Test("while a measure is awaited, the core does not ask for the time of the next one")
    func noSpin() {
        let house = House("photos", "mail")
        house.kernel.measures = false
        house.launch("photos")
        house.advance(.seconds(1))
        // Another app comes to life while the measure is under way.
        house.launch("mail")
        house.advance(.milliseconds(200))
        #expect(house.core.nextDeadline.map { $0 > house.now } ?? true)
        #expect(house.effects.filter { $0 == .measureMemory }.count == 1)
        house.kernel.measures = true
        house.happens(.memoryMeasured(house.kernel.reading))
        house.advance(.seconds(20))
        #expect(house.effects.filter { $0 == .measureMemory }.count > 1)
    }

    @Test("L39: a victim that can't be killed is waited for 5 s; then the next is chosen, after a measure")
    func overdue() {
        let house = House("photos", "mail", "music")
        house.behave("photos") {
            $0.memory = 30 * mebibyte; $0.dies = false
        }
        house.behave("mail") { $0.memory = 20 * mebibyte }
        house.suspend("photos")
        house.suspend("mail")
        house.suspend("music")
        house.configure { $0.budget = 45 * mebibyte }
        #expect(house.killed() == ["photos"])
        house.advance(.milliseconds(4999))
        #expect(house.killed() == ["photos"])
        house.advance(.milliseconds(1))
        #expect(house.reports().contains(.killTakesLong(id("photos"))))
        #expect(house.killed() == ["photos", "photos", "mail"])
        let complaint = house.effects.firstIndex(of: .report(.killTakesLong(id("photos"))))!
        let measure = house.effects[complaint...].firstIndex(of: .measureMemory)!
        #expect(house.effects[measure...].contains { if case .kill = $0 { true } else { false } })
    }

    @Test("an app that takes long to end no longer keeps another from being taken for the budget")
    func othersAreNotKept() {
        let house = House("photos", "mail")
        house.configure { $0.budget = 25 * mebibyte }
        house.behave("photos") { $0.dies = false }
        house.behave("mail") { $0.memory = 30 * mebibyte }
        house.suspend("photos")
        house.terminate("photos")
        house.suspend("mail")
        #expect(house.killed() == ["photos"])
        house.advance(.seconds(5))
        #expect(house.killed() == ["photos", "photos", "mail"])
    }
}
