import LifecycleCore
import Testing

@Suite("Memory: measuring")
struct MemoryMeasureTests {
    @Test("while a measure is awaited, the core does not ask for the time of the next one")
    func noSpin() {
        let harness = Harness("photos", "mail")
        harness.kernel.measures = false
        harness.launch("photos")
        harness.advance(.seconds(1))
        // Another app comes to life while the measure is under way.
        harness.launch("mail")
        harness.advance(.milliseconds(200))
        #expect(harness.core.nextDeadline.map { $0 > harness.now } ?? true)
        #expect(harness.effects.filter { $0 == .measureMemory }.count == 1)
        harness.kernel.measures = true
        harness.happens(.memoryMeasured(harness.kernel.reading))
        harness.advance(.seconds(20))
        #expect(harness.effects.filter { $0 == .measureMemory }.count > 1)
    }

    @Test("L39: a victim that can't be killed is waited for 5 s; then the next is chosen, after a measure")
    func overdue() {
        let harness = Harness("photos", "mail", "music")
        harness.behave("photos") {
            $0.memory = 30 * mebibyte; $0.dies = false
        }
        harness.behave("mail") { $0.memory = 20 * mebibyte }
        harness.suspend("photos")
        harness.suspend("mail")
        harness.suspend("music")
        harness.configure { $0.budget = 45 * mebibyte }
        #expect(harness.killed() == ["photos"])
        harness.advance(.milliseconds(4999))
        #expect(harness.killed() == ["photos"])
        harness.advance(.milliseconds(1))
        #expect(harness.reports().contains(.killTakesLong(id("photos"))))
        #expect(harness.killed() == ["photos", "photos", "mail"])
        let complaint = harness.effects.firstIndex(of: .report(.killTakesLong(id("photos"))))!
        let measure = harness.effects[complaint...].firstIndex(of: .measureMemory)!
        #expect(harness.effects[measure...].contains { if case .kill = $0 { true } else { false } })
    }

    @Test("an app that takes long to end no longer keeps another from being taken for the budget")
    func othersAreNotKept() {
        let harness = Harness("photos", "mail")
        harness.configure { $0.budget = 25 * mebibyte }
        harness.behave("photos") { $0.dies = false }
        harness.behave("mail") { $0.memory = 30 * mebibyte }
        harness.suspend("photos")
        harness.terminate("photos")
        harness.suspend("mail")
        #expect(harness.killed() == ["photos"])
        harness.advance(.seconds(5))
        #expect(harness.killed() == ["photos", "photos", "mail"])
    }
}
