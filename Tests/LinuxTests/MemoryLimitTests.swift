import Glibc
import Linux
import Posix
import Testing

/// A simulated machine whose groups are ordinary folders.
private final class Groups {
    let scratch: Scratch
    var selfCgroup = "0::/\n"
    var mountInfo = "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
    /// The apps' group; `nil`: process-group mode.
    var apps: String?
    var machine = MemoryInfo(total: 8 << 30, available: 4 << 30, swapTotal: 0, swapFree: 0)

    init() throws { scratch = try Scratch() }

    func put(_ path: String, _ files: [String: String]) throws {
        try createDirectories(at: scratch.path + path)
        for (name, text) in files {
            try replaceFile(at: "\(scratch.path)\(path)/\(name)", with: Array((text + "\n").utf8))
        }
    }

    /// A group of cgroup v2, in MiB.
    func group(_ path: String, max: Int? = nil, high: Int? = nil, used: Int = 0, file: Int = 0) throws {
        func text(_ mebibytes: Int?) -> String { mebibytes.map { "\($0 << 20)" } ?? "max" }
        try put(
            path,
            [
                "memory.max": text(max), "memory.high": text(high), "memory.current": text(used),
                "memory.stat": "anon 1\nfile \(file << 20)\nactive_file \(file << 19)\ninactive_file \(file << 19)",
            ])
    }

    /// A group of the v1 memory controller, in MiB.
    func group1(_ path: String, limit: Int? = nil, used: Int = 0, file: Int = 0, more: String = "") throws {
        try put(
            path,
            [
                "memory.limit_in_bytes": limit.map { "\($0 << 20)" } ?? "9223372036854771712",
                "memory.usage_in_bytes": "\(used << 20)",
                "memory.stat": "cache 5\nactive_file 1\ntotal_inactive_file \(file << 20)\n" + more,
            ])
    }

    var path: MemoryPath? {
        let mount = CgroupMount(selfCgroup: Array(selfCgroup.utf8), mountInfo: Array(mountInfo.utf8))
        var root: CgroupRoot?
        if let apps, var mount {
            mount.mountPoint = scratch.path + mount.mountPoint
            root = CgroupRoot(path: mount.mountPoint + apps, mount: mount, ownership: .own)
        }
        return MemoryPath(
            apps: root, selfCgroup: Array(selfCgroup.utf8), mountInfo: Array(mountInfo.utf8), prefix: scratch.path)
    }

    func reader() throws -> MemoryLimitReader { MemoryLimitReader(try #require(path)) }

    func limits(_ reports: (String) -> Void = { Issue.record("\($0)") }) throws -> MemoryLimitReader.Limits {
        try reader().read(machine: machine, report: reports)
    }
}

@Suite("Memory limits of groups")
struct MemoryLimitTests {
    @Test("of the limits on the way to the root, the one counts below which least is available")
    func tightest() throws {
        let machine = try Groups()
        machine.apps = "/greenroom.slice/apps.service/greenroom"
        try machine.put("/sys/fs/cgroup", ["cgroup.procs": ""])
        try machine.group("/sys/fs/cgroup/greenroom.slice", max: 1000, used: 900, file: 50)
        try machine.group("/sys/fs/cgroup/greenroom.slice/apps.service", max: 400, used: 300, file: 100)
        try machine.group("/sys/fs/cgroup/greenroom.slice/apps.service/greenroom", used: 300)
        let limits = try machine.limits()
        #expect(limits.all.map(\.group) == ["/greenroom.slice/apps.service", "/greenroom.slice"])
        let limit = try #require(limits.tightest)
        #expect(limit.group == "/greenroom.slice")
        #expect(limit.file == "memory.max")
        #expect(limit.total == 1000 << 20)
        // 900 are used, 50 of them by pages of files.
        #expect(limit.available == 150 << 20)
        #expect(limit.pressurePath == machine.scratch.path + "/sys/fs/cgroup/greenroom.slice/memory.pressure")
        #expect(limit.hasEvents)
    }

    @Test("of two limits that are about equally tight, the group that is watched is kept")
    func watched() throws {
        let machine = try Groups()
        machine.apps = "/slice/apps"
        let (slice, apps) = (machine.scratch.path + "/sys/fs/cgroup/slice", "/slice/apps")
        func watched(_ used: Int, before folder: String?) throws -> String? {
            try machine.group("/sys/fs/cgroup/slice", max: 1600, used: used)
            return try machine.limits().watched(before: folder)?.group
        }
        try machine.group("/sys/fs/cgroup/slice/apps", max: 800, used: 700)
        #expect(try watched(1400, before: nil) == apps)
        #expect(try watched(1400, before: slice) == apps)
        // 150 and 100 MiB are available; a sixteenth is 50.
        #expect(try watched(1450, before: slice) == "/slice")
        #expect(try watched(1450, before: "/gone") == apps)
        #expect(try watched(1600, before: slice + "/apps") == apps)
        try machine.group("/sys/fs/cgroup/slice/apps", max: 800, used: 699)
        #expect(try watched(1600, before: slice + "/apps") == "/slice")
    }

    @Test("memory.high counts like memory.max, and limits above the machine's memory do not count")
    func high() throws {
        let machine = try Groups()
        machine.apps = "/apps"
        try machine.group("/sys/fs/cgroup/apps", max: 600, high: 500, used: 550)
        let limit = try #require(try machine.limits().tightest)
        #expect(limit.file == "memory.high" && limit.total == 500 << 20 && limit.available == 0)
        try machine.group("/sys/fs/cgroup/apps", max: 8 << 10 + 1, high: 9 << 10, used: 550)
        #expect(try machine.limits().all == [])
    }

    @Test("limits that are changed, and controllers that are enabled later, are found at the next reading")
    func changes() throws {
        let machine = try Groups()
        machine.apps = "/apps"
        try machine.put("/sys/fs/cgroup/apps", ["cgroup.procs": ""])
        let reader = try machine.reader()
        func read() -> MemoryLimit? {
            reader.read(machine: machine.machine, report: { Issue.record("\($0)") }).tightest
        }
        #expect(read() == nil)
        try machine.group("/sys/fs/cgroup/apps", used: 100)
        #expect(read() == nil)
        // An ordinary file is replaced by a new one: it is written in place, as the kernel's are.
        func write(_ text: String) throws {
            let file = try Descriptor.open(
                machine.scratch.path + "/sys/fs/cgroup/apps/memory.max", O_WRONLY | O_TRUNC)
            try writeAll(Array(text.utf8), to: file)
        }
        try write("\(300 << 20)\n")
        #expect(read()?.available == 200 << 20)
        try write("\(200 << 20)\n")
        #expect(read()?.available == 100 << 20)
        try write("max\n")
        #expect(read() == nil)
    }

    @Test("a group that cannot be read, or is gone, is skipped and reported once")
    func problems() throws {
        let machine = try Groups()
        machine.apps = "/slice/apps"
        try machine.group("/sys/fs/cgroup/slice", max: 500, used: 100)
        try machine.put("/sys/fs/cgroup/slice/apps", ["memory.max": "much", "memory.high": "max"])
        let reader = try machine.reader()
        var reports: [String] = []
        for _ in 0..<3 {
            let limits = reader.read(machine: machine.machine) { reports.append($0) }
            #expect(limits.tightest?.group == "/slice")
        }
        #expect(reports.count == 1)
        #expect(reports.first?.contains("/slice/apps") == true)
        machine.apps = "/slice/gone"
        reports = []
        let other = try machine.reader()
        for _ in 0..<3 { _ = other.read(machine: machine.machine) { reports.append($0) } }
        #expect(reports.count == 1)
    }

    @Test(
        "a file of a group that was removed is opened again when the group exists again",
        .enabled(if: TestContainment.isPossible))
    func reopened() throws {
        let test = try TestContainment("reopened")
        defer { test.end() }
        let folder = test.root.path + "/again"
        let file = ReopenedFile(folder + "/cgroup.events")
        #expect(try file.read() == nil && file.descriptor == nil)
        for _ in 0..<2 {
            #expect(mkdir(folder, 0o755) == 0)
            #expect(try file.read() != nil && file.descriptor != nil)
            #expect(rmdir(folder) == 0)
            #expect(try file.read() == nil && file.descriptor == nil)
        }
    }

    @Test("swap is what the machine has, and at most what the groups may use")
    func swap() throws {
        let machine = try Groups()
        machine.apps = "/slice/apps"
        machine.machine.swapTotal = 4 << 30
        machine.machine.swapFree = 3 << 30
        try machine.group("/sys/fs/cgroup/slice/apps", max: 500, used: 100)
        try machine.group("/sys/fs/cgroup/slice")
        #expect(try machine.limits().swapFree == 3 << 30)
        try machine.put(
            "/sys/fs/cgroup/slice", ["memory.swap.max": "\(1 << 30)", "memory.swap.current": "\(1 << 29)"])
        let limits = try machine.limits()
        #expect(limits.swapTotal == 1 << 30 && limits.swapFree == 1 << 29)
        try machine.put("/sys/fs/cgroup/slice/apps", ["memory.swap.max": "0", "memory.swap.current": "0"])
        #expect(try machine.limits().swapFree == 0 && machine.limits().swapTotal == 0)
    }

    @Test("a kill counts for the limit that caused it, not for a limit of an app below or for the machine")
    func kills() throws {
        let machine = try Groups()
        machine.apps = "/apps"
        try machine.group("/sys/fs/cgroup/apps", max: 500)
        func kills(_ events: String, _ local: String?) throws -> UInt64? {
            try machine.put("/sys/fs/cgroup/apps", ["memory.events": events])
            let path = machine.scratch.path + "/sys/fs/cgroup/apps/memory.events.local"
            if let local {
                try machine.put("/sys/fs/cgroup/apps", ["memory.events.local": local])
            } else {
                unlink(path)
            }
            return try machine.limits().tightest?.kills
        }
        #expect(try kills("low 0\nhigh 0\nmax 9\noom 3\noom_kill 3\noom_group_kill 0", nil) == 3)
        // Three apps exceeded limits of their own.
        #expect(try kills("max 9\noom 3\noom_kill 3", "max 0\noom 0\noom_kill 0") == 0)
        // Two processes waited for one kill.
        #expect(try kills("max 9\noom 2\noom_kill 1", "max 9\noom 2\noom_kill 0") == 1)
    }
}

@Suite("Memory limits with cgroup v1, in containers, and in damaged files")
struct MemoryLimitSurroundingsTests {
    private static let hybrid = """
        35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
        36 31 0:33 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids
        41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw

        """

    @Test("on a hybrid machine the daemon's own v1 group counts, and the stalls are those of the apps' v2 group")
    func version1() throws {
        let machine = try Groups()
        machine.selfCgroup = "9:name=systemd:/\n4:hugetlb,memory:/top/own:1\n3:cpuset:/\n0::/\n"
        machine.mountInfo = Self.hybrid
        machine.apps = "/greenroom"
        try machine.group1("/sys/fs/cgroup/memory", used: 4000)
        try machine.group1("/sys/fs/cgroup/memory/top", limit: 800, used: 500)
        try machine.group1("/sys/fs/cgroup/memory/top/own:1", limit: 300, used: 250, file: 100)
        try machine.put("/sys/fs/cgroup/memory/top/own:1", ["memory.oom_control": "under_oom 0\noom_kill 2"])
        let limits = try machine.limits()
        #expect(limits.all.map(\.group) == ["/top/own:1", "/top"])
        let limit = try #require(limits.tightest)
        #expect(limit.file == "memory.limit_in_bytes")
        #expect(limit.total == 300 << 20 && limit.available == 150 << 20)
        #expect(limit.kills == 2)
        #expect(!limit.hasEvents)
        let unified = machine.scratch.path + "/sys/fs/cgroup/unified"
        #expect(limit.pressurePath == unified + "/greenroom/memory.pressure")
        machine.apps = nil
        #expect(try machine.limits().tightest?.pressurePath == nil)
    }

    @Test("with v1, RAM and swap together may have a limit as well")
    func version1Swap() throws {
        let machine = try Groups()
        machine.selfCgroup = "4:memory:/a\n"
        machine.mountInfo = Self.hybrid
        machine.machine.swapTotal = 1 << 30
        machine.machine.swapFree = 1 << 30
        try machine.group1("/sys/fs/cgroup/memory/a", limit: 300, used: 250, more: "total_swap \(40 << 20)")
        try machine.group1("/sys/fs/cgroup/memory")
        #expect(try machine.limits().tightest?.available == 50 << 20)
        try machine.put(
            "/sys/fs/cgroup/memory/a",
            ["memory.memsw.limit_in_bytes": "\(320 << 20)", "memory.memsw.usage_in_bytes": "\(290 << 20)"])
        let limits = try machine.limits()
        #expect(limits.tightest?.available == 30 << 20)
        #expect(limits.swapTotal == 20 << 20 && limits.swapFree == 0)
    }

    @Test("a container's v1 mount begins at its group, and a limit above it is known by its number")
    func container() throws {
        let machine = try Groups()
        machine.selfCgroup = "4:memory:/docker/abc\n"
        machine.mountInfo = "35 31 0:32 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n"
        let folder = "/sys/fs/cgroup/memory"
        try machine.group1(folder, used: 250, file: 100, more: "hierarchical_memory_limit \(200 << 20)")
        let limits = try machine.limits()
        #expect(limits.all.count == 1)
        #expect(limits.tightest?.group == "/docker/abc" && limits.tightest?.file == "memory.stat")
        #expect(limits.tightest?.total == 200 << 20 && limits.tightest?.available == 50 << 20)
        // A limit that is visible is not added a second time.
        try machine.group1(
            folder, limit: 200, used: 250, file: 100, more: "hierarchical_memory_limit \(200 << 20)")
        #expect(try machine.limits().all.map(\.file) == ["memory.limit_in_bytes"])
    }

    @Test("the root of a cgroup namespace has the container's limit")
    func namespace() throws {
        let machine = try Groups()
        try machine.group("/sys/fs/cgroup", max: 256, used: 100)
        let limit = try #require(try machine.limits().tightest)
        #expect(limit.group == "/" && limit.available == 156 << 20)
    }

    @Test("without a mounted hierarchy that has the memory controller, no limit is known")
    func nowhere() throws {
        let machine = try Groups()
        machine.selfCgroup = "4:memory:/a\n0::/\n"
        // v2 is mounted, but does not have the controller.
        #expect(machine.path == nil)
        machine.selfCgroup = "0::/../outside\n"
        #expect(machine.path == nil)
        machine.selfCgroup = ""
        #expect(machine.path == nil)
    }

    @Test("a path of any depth is cut off")
    func deep() throws {
        let machine = try Groups()
        machine.selfCgroup = "0::" + String(repeating: "/a", count: 1000) + "\n"
        #expect(machine.path?.groups.count == MemoryPath.mostGroups)
    }

    @Test("numbers of any size give no negative and no wrapped result")
    func hostile() throws {
        #expect(parseLimit(Array("max\n".utf8)) == .some(nil))
        #expect(parseLimit(Array("4096\n".utf8)) == 4096)
        for text in ["", "\n", "-1", "+1", "1k", "18446744073709551616", "maximum"] {
            #expect(parseLimit(Array(text.utf8)) == nil, "\(text)")
        }
        #expect(availableMemory(below: 100, used: 150, reclaimable: 20) == 0)
        #expect(availableMemory(below: 100, used: 50, reclaimable: .max) == 100)
        #expect(availableMemory(below: .max, used: 0, reclaimable: .max) == .max)
        let huge = "active_file 18446744073709551615\ninactive_file 18446744073709551615\nslab_reclaimable x"
        #expect(MemoryLimitStat(parsing: Array(huge.utf8), .two).reclaimable == .max)
        let machine = try Groups()
        machine.apps = "/apps"
        try machine.put(
            "/sys/fs/cgroup/apps", ["memory.max": "0", "memory.current": "18446744073709551615", "memory.stat": huge])
        #expect(try machine.limits().tightest?.available == 0)
    }

    @Test("random bytes make no parser trap")
    func noise() {
        var generator = SystemRandomNumberGenerator()
        let words = [
            "max", "some", "full", "avg10=", "total=", "1.00", "18446744073709551615", "total_active_file", "\n", " ",
            ":", "memory", ",", "/", "-", "cgroup", "cgroup2", "workingset_refault_anon", "oom_kill",
            "hierarchical_memory_limit",
        ].map { Array($0.utf8) }
        for _ in 0..<3000 {
            let bytes = (0..<Int.random(in: 0..<40, using: &generator)).flatMap { _ in
                words.randomElement(using: &generator)!
            }
            _ = parseLimit(bytes)
            _ = MemoryLimitStat(parsing: bytes, .one)
            _ = MemoryLimitStat(parsing: bytes, .two)
            _ = MemoryEvents(parsing: bytes)
            _ = PressureStalls(parsing: bytes)
            _ = VMStatistics(parsing: bytes)
            _ = MemoryPath(apps: nil, selfCgroup: bytes, mountInfo: bytes)
        }
    }

    @Test("the lines of memory.pressure are shares of 10 s and totals")
    func stalls() throws {
        let text = """
            some avg10=12.34 avg60=0.00 avg300=0.00 total=1500000
            full avg10=100.00 avg60=0.00 avg300=0.00 total=7

            """
        let stalls = try #require(PressureStalls(parsing: Array(text.utf8)))
        #expect(stalls.some == PressureStalls.Line(recent: 1234, total: .milliseconds(1500)))
        #expect(stalls.full == PressureStalls.Line(recent: 10_000, total: .microseconds(7)))
        for other in [
            "", "some avg10=0.00 total=1", "some avg10=0.0 total=1\nfull avg10=0.00 total=1",
            "some avg10=0.00 total=-1\nfull avg10=0.00 total=1", "some total=1\nfull total=1",
        ] {
            #expect(PressureStalls(parsing: Array(other.utf8)) == nil, "\(other)")
        }
    }

    @Test(
        "refaults are summed over anonymous pages and pages of files, also with one line before Linux 5.9; kills are counted"
    )
    func refaults() throws {
        let text =
            "workingset_nodes 1\nworkingset_refault_anon 3\nworkingset_refault_file 4\nworkingset_activate_anon 9\noom_kill 2\noom_kill_x 8\n"
        #expect(VMStatistics(parsing: Array(text.utf8), pageSize: 4096).refaulted == 7 * 4096)
        #expect(VMStatistics(parsing: Array("workingset_refault 5\n".utf8), pageSize: 4096).refaulted == 5 * 4096)
        #expect(VMStatistics(parsing: []) == VMStatistics())
        let huge = "workingset_refault_anon 18446744073709551615\nworkingset_refault_file 2"
        _ = VMStatistics(parsing: Array(huge.utf8))
        let scratch = try Scratch()
        _ = try scratch.file("meminfo", "MemTotal: 9 kB\nMemAvailable: 8 kB\nSwapTotal: 7 kB\nSwapFree: 6 kB\n")
        let reader = try MemoryInfoReader(proc: ProcFS(root: scratch.path))
        #expect(reader.counters().refaulted == 0)
        _ = try scratch.file("vmstat", text)
        #expect(reader.counters().refaulted == 7 * ProcessMemory.pageSize)
        #expect(reader.counters().oomKills == 2)
        #expect(try reader.read().swapFree == 6 << 10)
    }
}
