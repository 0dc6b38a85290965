import Glibc
import Posix
import Testing

@testable import Linux

/// What a group has, in MiB.
struct FakeMemory: Hashable {
    var anonymous: Int
    /// Its anonymous memory was only read since it was pushed out before.
    var isInSwap = false
    /// The kernel pushes all out with one slice to a disk, and frees it with the next ones.
    var isFreedLater = false
    var files = 0
    /// In swap and not freed.
    var cached = 0
    var swapped = 100

    mutating func reclaim(_ size: Int) {
        var left = size
        func take(_ part: inout Int) {
            let taken = min(part, left)
            (part, left) = (part - taken, left - taken)
        }
        take(&files)
        take(&cached)
        let before = anonymous
        if isFreedLater { (cached, anonymous) = (cached + anonymous, 0) } else { take(&anonymous) }
        if !isInSwap { swapped += before - anonymous }
    }
}

/// A group with a memory controller: its files lie in an ordinary folder.
private struct FakeGroup {
    private let scratch: Scratch
    private let name = CgroupLeaf.Name(app: "app", run: 1)
    let enclosure: Enclosure

    init(events: String = "oom_kill 0\n", local: String? = nil) throws {
        scratch = try Scratch()
        try createDirectories(at: "\(scratch.path)/\(name.text)")
        for file in [
            "cgroup.events", "cgroup.procs", "memory.stat", "memory.current", "memory.swap.current", "memory.oom.group",
            "memory.max",
            "memory.low", "memory.reclaim",
        ] {
            _ = try scratch.file("\(name.text)/\(file)")
        }
        _ = try scratch.file("\(name.text)/memory.events", events)
        if let local { _ = try scratch.file("\(name.text)/memory.events.local", local) }
        let mounts = "36 35 0:1 / \(scratch.path) rw - cgroup2 cgroup2 rw\n"
        let mount = try #require(CgroupMount(selfCgroup: Array("0::/\n".utf8), mountInfo: Array(mounts.utf8)))
        let root = CgroupRoot(path: scratch.path, mount: mount, ownership: .own, controllers: ["memory"])
        let leaf = try CgroupLeaf(existing: name, root: root)
        enclosure = Enclosure(app: "app", run: 1, kind: .cgroup(leaf), proc: ProcFS())
    }

    var path: String { "\(scratch.path)/\(name.text)" }

    /// The files stay the same: the group has one of them open.
    func set(_ memory: FakeMemory) throws {
        let listed = (memory.anonymous + memory.cached) << 20
        try set("memory.stat", "anon \(memory.anonymous << 20)\ninactive_anon \(listed)\nactive_anon 0\n")
        try set("memory.current", "\(listed + memory.files << 20)\n")
        try set("memory.swap.current", "\(memory.swapped << 20)\n")
    }

    private func set(_ file: String, _ text: String) throws {
        #expect(truncate("\(path)/\(file)", 0) == 0)
        try writeControlFile("\(path)/\(file)", text)
    }

    func text(_ file: String) throws -> String {
        String(decoding: try readFile(at: "\(scratch.path)/\(name.text)/\(file)", limit: 64), as: UTF8.self)
    }
}

@Suite("Limits of the memory controller")
struct EnclosureMemoryTests {
    @Test(
        "the limits of an app are those of its group (L38, L41)", .enabled(if: access("/usr/bin/python3", X_OK) == 0))
    func limits() throws {
        let group = try FakeGroup()
        try group.enclosure.killAtOnce()
        try group.enclosure.limitMemory(64 << 20)
        try group.enclosure.protectMemory(1 << 20)
        #expect(try group.text("memory.oom.group") == "1")
        // Where the file system of the test has attributes.
        let script = """
            import os, sys
            try: os.setxattr(sys.argv[1], 'user.test', b'1')
            except OSError: sys.exit(9)
            print(os.getxattr(sys.argv[1], 'user.oomd_omit'))
            """
        let attribute = try run("/usr/bin/python3", "-c", script, group.path)
        #expect(attribute.output == "b'1'\n" || attribute.status == .exited(9), "\(attribute)")
        #expect(try group.text("memory.max") == "67108864")
        #expect(try group.text("memory.low") == "1048576")
    }

    /// Submits slices to the end, each of which changes the group.
    /// - Returns: how many there were, and what the app has in swap that it had not before.
    private func pushOut(_ group: FakeGroup, _ slice: () throws -> Void) throws -> (slices: Int, bytes: UInt64) {
        let thread = try HelperThread(name: "reclaim", .reports)
        let reclaim = try MemoryReclaim(group.enclosure, upTo: 1 << 30, thread: thread)
        var slices = 0
        while try reclaim.submit(token: 1) {
            try wait(for: try #require(thread.completions))
            let completions = try thread.collect()
            if try group.text("memory.reclaim") == "4194304 swappiness=200" {
                slices += 1
                try slice()
            }
            for completion in completions { reclaim.completed(completion) }
        }
        return (slices, try reclaim.result().bytes)
    }

    @Test(
        "a group is pushed out as long as slices make it smaller, or more of it is in swap (L37)",
        arguments: [
            FakeMemory(anonymous: 40): 10, FakeMemory(anonymous: 40, isInSwap: true): 10,
            FakeMemory(anonymous: 40, isInSwap: true, files: 20): 15,
            FakeMemory(anonymous: 40, isInSwap: true, cached: 20): 15,
            FakeMemory(anonymous: 40, isFreedLater: true): 11,
        ])
    func reclaim(memory: FakeMemory, slices: Int) throws {
        let group = try FakeGroup()
        var memory = memory
        try group.set(memory)
        let pushed = try pushOut(group) {
            memory.reclaim(4)
            try group.set(memory)
        }
        #expect(pushed.slices == slices && memory.anonymous + memory.cached == 0)
        #expect(pushed.bytes == (memory.isInSwap ? 0 : 40 << 20))
    }

    @Test("three slices of a group without effect are the end, and a full swap space is (L37)")
    func endOfReclaim() throws {
        let group = try FakeGroup()
        try group.set(FakeMemory(anonymous: 40, files: 10))
        #expect(try pushOut(group) {} == (3, 0))
        #expect(try pushOut(group) { try group.set(FakeMemory(anonymous: 40, swapped: 1124)) } == (1, 1 << 30))
    }

    @Test(
        "a kill by the OOM killer is recognized, and whether the app's own limit was the reason (L41, L45)",
        arguments: [
            ("low 0\noom 0\noom_kill 0\noom_group_kill 0\n", "oom 0\n", KernelKill.nothing),
            // The limit was reached, and the kernel found something to reclaim.
            ("max 9\noom 1\noom_kill 0\n", "max 9\noom 1\n", .nothing),
            ("max 9\noom 1\noom_kill 2\noom_group_kill 1\n", "max 9\noom 1\noom_kill 2\n", .ownLimit),
            ("oom 0\noom_kill 2\n", "oom 0\noom_kill 2\n", .elsewhere),
            // A limit that the app has set for a group of its own.
            ("oom 1\noom_kill 1\n", "oom 0\noom_kill 0\n", .elsewhere),
            ("max 9\noom 1\noom_kill 1\n", nil, .ownLimit),
        ] as [(String, String?, KernelKill)])
    func kernelKill(events: String, local: String?, expected: KernelKill) throws {
        let group = try FakeGroup(events: events, local: local)
        #expect(try group.enclosure.kernelKill() == expected)
        withExtendedLifetime(group) {}
    }
}

@Suite("The kernel's order of apps", .enabled(if: TestContainment.isPossible, "needs a writable cgroup v2 mount"))
struct OOMScoreTests {
    private func score(_ pid: Int32) throws -> Int? {
        try ProcFS().read("oom_score_adj", of: pid).flatMap {
            Int(String(decoding: $0, as: UTF8.self).filter { $0 != "\n" })
        }
    }

    @Test("oom_score_adj is set for all processes, and one that forks later inherits it (L38)")
    func inherited() throws {
        let test = try TestContainment("oom-score")
        defer { test.end() }
        let scratch = try Scratch()
        let enclosure = try test.containment.create(app: "a", run: 1)
        let script =
            "sleep 1000 & until test -e \(scratch.path)/go; do sleep 0.02; done; sleep 1000 & sleep 1000 & wait"
        let process = try test.shell(script, in: enclosure)
        try eventually("the processes") { try enclosure.pids().count >= 2 }
        let base = try #require(try score(process.pid))
        try enclosure.setOOMScore(900) { $0 == base }
        for pid in try enclosure.pids() { #expect(try score(pid) ?? 900 == 900) }
        _ = try scratch.file("go")
        try eventually("the processes that were forked later") { try enclosure.pids().count == 4 }
        for pid in try enclosure.pids() { #expect(try score(pid) ?? 900 == 900) }
        // An unprivileged process may lower it to where it was.
        try enclosure.setOOMScore(base) { $0 == 900 }
        for pid in try enclosure.pids() { #expect(try score(pid) == base) }
    }

    @Test("a higher value that a process has chosen itself is left, a lower one is raised (L38)")
    func chosen() throws {
        let test = try TestContainment("oom-chosen")
        defer { test.end() }
        let enclosure = try test.containment.create(app: "a", run: 1)
        let process = try test.shell("echo 700 > /proc/self/oom_score_adj; sleep 1000", in: enclosure)
        try eventually("it has chosen") { try score(process.pid) == 700 }
        try enclosure.setOOMScore(325) { [0, 325, 650].contains($0) }
        #expect(try score(process.pid) == 700)
        try enclosure.setOOMScore(975) { [0, 325, 650].contains($0) }
        #expect(try score(process.pid) == 975)
    }
}

@Suite("Weights of sessions")
struct AutogroupTests {
    @Test(
        "the kernel's text is read, and no other",
        arguments: [
            ("/autogroup-419 nice 0\n", Autogroup(number: 419, nice: 0)),
            ("/autogroup-1 nice -20", Autogroup(number: 1, nice: -20)),
            ("", nil), ("/autogroup-x nice 0", nil), ("/autogroup-1 nice 20", nil), ("/autogroup-1", nil),
            ("/autogroup-99999999999999999999 nice 0", nil), ("autogroup-1 nice 0", nil),
        ] as [(String, Autogroup?)])
    func parsing(text: String, expected: Autogroup?) { #expect(Autogroup(parsing: Array(text.utf8)) == expected) }

    @Test(
        "the sessions of an app are those that its processes began (L19)",
        .enabled(if: TestContainment.isPossible && ProcFS().hasAutogroups, "needs cgroups and sched_autogroup_enabled"))
    func sessions() throws {
        let test = try TestContainment("sessions")
        defer { test.end() }
        let one = try test.containment.create(app: "one", run: 1)
        let two = try test.containment.create(app: "two", run: 2)
        let process = try test.shell("setsid sleep 1000 & sleep 1000 & wait", in: one)
        try eventually("the processes") { try one.pids().count == 3 && one.ownAutogroups().count == 2 }
        let groups = try one.ownAutogroups()
        #expect(Set(groups.map(\.group.number)).count == 2)
        #expect(groups.allSatisfy { $0.group.nice == 0 })
        #expect(try ProcFS().setAutogroup(of: process.pid, nice: 7))
        #expect(try ProcFS().autogroup(of: process.pid)?.nice == 7)
        // A process in the session of a process that is not of the app.
        let session = try #require(try ProcFS().stat(of: process.pid)).session
        let child = try #require(
            try one.pids().first { try $0 != process.pid && ProcFS().stat(of: $0)?.session == session })
        let folder = try #require(two.path)
        try writeControlFile(folder + "/cgroup.procs", "\(child)")
        #expect(try two.pids() == [child])
        #expect(try two.ownAutogroups().isEmpty)
        // Nor the session of this process, which has no autogroup if no ancestor called setsid(2).
        let own = try ProcFS().autogroup(of: getpid())?.number
        #expect(try !one.ownAutogroups().contains { $0.group.number == own })
    }
}
