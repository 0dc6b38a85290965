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
}
