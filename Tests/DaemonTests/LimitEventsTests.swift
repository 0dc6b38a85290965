import LifecycleCore
import Linux
import Manifest
import Systemd
import Testing

@testable import Daemon

@Suite("Events of a memory limit")
struct LimitEventsTests {
    private func events(_ text: String) -> MemoryEvents { MemoryEvents(parsing: Array(text.utf8)) }

    @Test("a limit that was reached is a reason to look; one that the kernel could not keep is a critical one")
    func levels() {
        let before = events("low 0\nhigh 5\nmax 7\noom 1\noom_kill 1\n")
        #expect(before.level(since: before) == nil)
        #expect(events("low 9\nhigh 5\nmax 7\noom 1\noom_kill 1\n").level(since: before) == nil)
        #expect(events("high 6\nmax 7\noom 1\noom_kill 1\n").level(since: before) == .warning)
        #expect(events("high 5\nmax 8\noom 1\noom_kill 1\n").level(since: before) == .warning)
        #expect(events("high 5\nmax 8\noom 2\noom_kill 1\n").level(since: before) == .critical)
        #expect(events("high 5\nmax 7\noom 1\noom_kill 2\n").level(since: before) == .critical)
        // A group of the same name was created again.
        #expect(events("").level(since: before) == nil)
    }

    @Test("a file that takes no PSI trigger is logged in one line, and again only if the reason changes")
    func withoutPSI() throws {
        let loop = try EventLoop()
        let log = try TestLog()
        let events = EventList()
        let triggers = StallTriggers("/no/pressure", loop, events, log.journal)
        let thresholds = ManagerConfiguration().pressureThresholds
        for _ in 0..<3 { triggers.set(thresholds) }
        #expect(log.lines.count == 1)
        #expect(log.text.contains("no PSI trigger of /no/pressure for the memory levels warning and critical"))
        #expect(log.text.contains("this kernel has no pressure stall information"))
        triggers.set([thresholds[1]])
        #expect(log.lines.count == 2 && log.text.contains("level critical"))
        triggers.set([])
        #expect(log.lines.count == 2)
    }

    @Test("a group without memory.events is not watched")
    func withoutEvents() throws {
        let log = try TestLog()
        #expect(LimitEvents("/no/group", try EventLoop(), EventList(), log.journal) == nil)
        #expect(log.text.isEmpty)
    }

    @Test("the reading for the core has the limit, its kills, swap, refaults and the totals of the stalls")
    func reading() {
        var numbers = MemoryNumbers()
        numbers.total = 100
        numbers.available = 50
        numbers.swapTotal = 30
        numbers.swapFree = 20
        numbers.counters.refaulted = 7
        #expect(numbers.reading([]).limit == nil && numbers.reading([]).stalls == nil)
        numbers.limit = MemoryLimit(
            group: "/a", folder: "/sys/fs/cgroup/a", file: "memory.max", total: 40, available: 10, kills: 2)
        numbers.stalls = PressureStalls(
            some: .init(recent: 1, total: .seconds(3)), full: .init(recent: 0, total: .seconds(2)))
        let reading = numbers.reading([])
        #expect(reading.limit == MemoryReading.Limit(group: "/a", total: 40, available: 10, kills: 2))
        #expect(reading.stalls == MemoryReading.Stalls(some: .seconds(3), full: .seconds(2)))
        #expect(reading.total == 100 && reading.available == 50)
        #expect(reading.swapTotal == 30 && reading.swapFree == 20 && reading.refaulted == 7)
    }
}
