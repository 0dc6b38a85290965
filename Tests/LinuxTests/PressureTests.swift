import Glibc
import Linux
import Posix
import Testing

@Suite("Memory pressure and memory information")
struct PressureTests {
    static let isPossible = (try? PressureTrigger(.some, stall: .milliseconds(100), window: .seconds(2))) != nil

    @Test("a trigger is granted, if necessary with a longer window in the same proportion", .enabled(if: isPossible))
    func trigger() throws {
        let trigger = try PressureTrigger(.some, stall: .milliseconds(70), window: .seconds(1))
        #expect(
            trigger.window == .seconds(1) && trigger.stall == .milliseconds(70)
                || trigger.window == .seconds(2) && trigger.stall == .milliseconds(140))
        let plain = try PressureTrigger(.full, stall: .milliseconds(100), window: .seconds(4))
        #expect(plain.window == .seconds(4))
        #expect(plain.stall == .milliseconds(100))
        // A second trigger on the same descriptor would fail with EBUSY; each trigger has its own descriptor.
        #expect(trigger.descriptor.raw != plain.descriptor.raw)
    }

    @Test(
        "a cgroup's trigger reports the removal of the group", .enabled(if: isPossible && TestContainment.isPossible))
    func removed() throws {
        let test = try TestContainment("pressure")
        defer { test.end() }
        let enclosure = try test.containment.create(app: "a", run: 1)
        let path = try #require(enclosure.path) + "/memory.pressure"
        let trigger = try PressureTrigger(path: path, .some, stall: .milliseconds(100), window: .seconds(2))
        #expect(try enclosure.remove() == .removed)
        var entry = pollfd(fd: trigger.descriptor.raw, events: Int16(POLLPRI), revents: 0)
        #expect(poll(&entry, 1, 10_000) == 1)
        #expect(entry.revents & Int16(POLLERR) != 0)
    }

    @Test("an unavailable trigger is reported with its reason")
    func unavailable() throws {
        #expect(throws: PressureUnavailable(errno: ENOENT, path: "/no/pressure")) {
            _ = try PressureTrigger(path: "/no/pressure", .some, stall: .seconds(1), window: .seconds(2))
        }
        let missing = PressureUnavailable(errno: ENOENT, path: "/proc/pressure/memory").description
        #expect(missing == "/proc/pressure/memory does not exist: this kernel has no pressure stall information")
        #expect(PressureUnavailable(errno: EOPNOTSUPP, path: "x").description.contains("psi=1"))
        #expect(throws: PressureUnavailable.self) {
            _ = try PressureTrigger(.some, stall: .seconds(100), window: .seconds(1))
        }
    }

    @Test("/proc/meminfo is read in bytes, and this machine's values are plausible")
    func memoryInfo() throws {
        let text = "MemTotal:       2048 kB\nMemFree: 1 kB\nMemAvailable:   1024 kB\nSwapTotal: 10 kB\nSwapFree: 9 kB\n"
        #expect(
            MemoryInfo(parsing: Array(text.utf8))
                == MemoryInfo(total: 2 << 20, available: 1 << 20, swapTotal: 10240, swapFree: 9216))
        #expect(MemoryInfo(parsing: Array("MemTotal: 1 kB\n".utf8)) == nil)
        #expect(MemoryInfo(parsing: Array("MemTotal: 99999999999999999999 kB\nMemAvailable: 1 kB".utf8)) == nil)
        let reader = try MemoryInfoReader()
        let info = try reader.read()
        #expect(info.available > 0 && info.available <= info.total)
        #expect(try reader.read().total == info.total)
        #expect(try reader.perCPUPages() < info.total)
    }

    @Test("free pages on the per-CPU lists are summed over all zones")
    func perCPUPages() {
        let text = """
            Node 0, zone   Normal
              pages free     100
                    count    5
              pagesets
                cpu: 0
                          count:    10
                          high:     20
                cpu: 1
                          count:    32
                          batch:    7
            """
        #expect(MemoryInfo.perCPUPages(parsing: Array(text.utf8), pageSize: 4096) == 42 * 4096)
        #expect(MemoryInfo.perCPUPages(parsing: []) == 0)
    }
}
