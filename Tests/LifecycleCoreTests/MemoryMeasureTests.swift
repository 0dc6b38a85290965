import LifecycleCore
import Testing

@Suite("Memory: measurements")
struct MemoryMeasureTests {
    @Test("no measurement is scheduled while one is in progress")
    func noSpin() {
        let harness = Harness("photos", "mail")
        harness.kernel.measures = false
        harness.launch("photos")
        harness.advance(.seconds(1))
        // Another app is launched during the measurement.
        harness.launch("mail")
        harness.advance(.milliseconds(200))
        #expect(harness.core.nextDeadline.map { $0 > harness.now } ?? true)
        #expect(harness.effects.filter { $0 == .measureMemory }.count == 1)
        harness.kernel.measures = true
        harness.handle(.memoryMeasured(harness.kernel.reading))
        harness.advance(.seconds(20))
        #expect(harness.effects.filter { $0 == .measureMemory }.count > 1)
    }

    @Test("jetsam waits 5s for a victim that survives SIGKILL, then measures and chooses the next (L39)")
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
        let report = harness.effects.firstIndex(of: .report(.killTakesLong(id("photos"))))!
        let measure = harness.effects[report...].firstIndex(of: .measureMemory)!
        #expect(harness.effects[measure...].contains { if case .kill = $0 { true } else { false } })
    }

    @Test("an app that survives SIGKILL for long does not block jetsam for the budget")
    func othersAreNotBlocked() {
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
