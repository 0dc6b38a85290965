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
        harness.handle(.memory(.measured(harness.kernel.reading)))
        harness.advance(.seconds(20))
        #expect(harness.effects.filter { $0 == .measureMemory }.count > 1)
    }

    @Test("memory is measured 100ms after a wake if no app was awake, otherwise with the next check")
    func wakes() {
        let harness = Harness("photos", "mail")
        harness.suspend("photos")
        harness.suspend("mail")
        var mark = harness.mark
        harness.activate("photos")
        harness.advance(.milliseconds(100))
        #expect(harness.effects(since: mark).count { $0 == .measureMemory } == 1)
        mark = harness.mark
        harness.activate("mail")
        harness.advance(.milliseconds(500))
        #expect(!harness.effects(since: mark).contains(.measureMemory))
        harness.advance(.seconds(10))
        #expect(harness.effects(since: mark).contains(.measureMemory))
    }

    @Test("a victim that survives SIGKILL is counted on for 100ms; the receipt of the next one names it (L39)")
    func overdue() throws {
        let harness = Harness("photos", "mail", "music")
        harness.behave("photos") {
            $0.memory = 30 * mebibyte; $0.dies = false
        }
        harness.behave("mail") { $0.memory = 20 * mebibyte }
        harness.suspend("photos")
        harness.suspend("mail")
        harness.suspend("music")
        harness.leave(mebibytes: 500)
        #expect(harness.killed() == ["photos"])
        harness.advance(.milliseconds(99))
        #expect(harness.killed() == ["photos"])
        let mark = harness.mark
        harness.advance(.milliseconds(1))
        #expect(harness.effects(since: mark).contains(.measureMemory))
        #expect(harness.killed() == ["photos", "mail"])
        #expect(
            try harness.receipt("mail").explanation
                == "Killed while suspended to free memory: the machine was low on available memory; photos, which was "
                + "killed before, had not freed its memory in time.")
        harness.advance(.seconds(5))
        #expect(harness.reports().contains(.killTakesLong(id("photos"))))
        #expect(harness.state("music") == .suspended)
    }

    @Test("what a large victim gives back is counted on for 100ms for each GiB (L39)")
    func largeVictim() {
        let harness = Harness("photos", "mail")
        harness.behave("photos") {
            $0.memory = 3 * gibibyte; $0.dies = false
        }
        harness.behave("mail") { $0.memory = 2 * gibibyte }
        harness.suspend("photos")
        harness.suspend("mail")
        harness.leave(mebibytes: 500)
        harness.advance(.milliseconds(299))
        #expect(harness.killed() == ["photos"])
        harness.advance(.milliseconds(1))
        #expect(harness.killed() == ["photos", "mail"])
    }

    @Test("the size of a suspended app counts only if it was measured after the freeze (L38)")
    func suspendedSizes() {
        let harness = Harness("photos", "mail")
        harness.launch("mail")
        harness.launch("photos", .background)
        harness.kernel.measures = false
        harness.handle(.memory(.pressureStalled(.warning)))
        let before = harness.kernel.reading
        harness.behave("photos") { $0.memory = 30 * mebibyte }
        harness.advance(.seconds(1))
        #expect(harness.state("photos") == .suspended)
        harness.handle(.memory(.measured(before)))
        #expect(harness.view("photos").memory == 30 * mebibyte)
        // Its pages were swapped, and some are not needed any more.
        harness.advance(.seconds(1))
        harness.kernel.measuredSuspended = [id("photos")]
        harness.behave("photos") { $0.memory = 12 * mebibyte }
        harness.handle(.memory(.pressureStalled(.warning)))
        harness.handle(.memory(.measured(harness.kernel.reading)))
        #expect(harness.view("photos").memory == 12 * mebibyte)
        #expect(harness.core.memory.apps == 22 * mebibyte)
    }

    @Test("the view names the next threshold, the limit, and who is killed next with what it gives back")
    func view() {
        let harness = Harness("photos", "mail")
        harness.behave("photos") { $0.memory = 30 * mebibyte }
        harness.suspend("mail")
        harness.suspend("photos")
        harness.kernel.limit = MemoryReading.Limit(group: "/a", total: 2 * gibibyte, available: gibibyte, kills: 3)
        harness.handle(.memory(.pressureStalled(.warning)))
        let view = harness.core.memoryView
        #expect(view.total == 16 * gibibyte)
        #expect(view.available == harness.kernel.reading.available)
        #expect(view.limit == harness.kernel.limit)
        #expect(view.threshold == 2 * gibibyte / 100 * 10)
        #expect(view.candidates.map { "\($0.app) \($0.memory >> 20)" } == ["photos 30", "mail 10"])
        harness.kernel.limit = nil
        harness.handle(.memory(.pressureStalled(.warning)))
        #expect(harness.core.memoryView.threshold == gibibyte)
    }

    @Test("an app that survives SIGKILL does not block jetsam for the budget")
    func othersAreNotBlocked() {
        let harness = Harness("photos", "mail", "music")
        harness.behave("photos") { $0.dies = false }
        harness.behave("mail") { $0.memory = 30 * mebibyte }
        harness.suspend("photos")
        harness.suspend("mail")
        harness.terminate("photos")
        #expect(harness.killed() == ["photos"])
        harness.configure { $0.budget = 25 * mebibyte }
        #expect(harness.killed() == ["photos", "mail"])
    }
}
