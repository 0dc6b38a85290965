import Control
import Glibc
import JSON
import Linux
import Posix
import Systemd
import TestKit
import Testing

/// A group of the v1 memory controller below this process's own, for one daemon.
private final class LimitedGroup {
    let folder: String
    /// As /proc/self/cgroup names it.
    let name: String

    /// This process's own group; `nil`: the memory controller is not in a v1 hierarchy that is mounted here.
    private static let own = CgroupMount(
        memoryOf: (try? readFile(at: "/proc/self/cgroup", limit: 1 << 16)) ?? [],
        mountInfo: (try? readFile(at: "/proc/self/mountinfo", limit: 4 << 20)) ?? [])

    static let isPossible: Bool = {
        guard let group = try? LimitedGroup("try") else { return false }
        return access(group.folder + "/memory.limit_in_bytes", W_OK) == 0
    }()

    init(_ name: String) throws {
        let own = try #require(Self.own)
        folder = try #require(own.ownFolder) + "/greenroom-test-\(getpid())-\(name)"
        self.name = try #require(own.group(ofFolder: folder))
        try checkErrno(mkdir(folder, 0o755), "mkdir", folder)
    }

    deinit {
        // The processes of a test have ended, but the kernel may need a moment to take them out.
        while rmdir(folder) < 0, errno == EBUSY { poll(nil, 0, 1) }
    }

    func write(_ file: String, _ text: String) throws { try writeControlFile("\(folder)/\(file)", text) }

    /// In MiB; -1 for none.
    func limit(_ mebibytes: Int) throws {
        try write("memory.limit_in_bytes", "\(mebibytes < 0 ? -1 : mebibytes << 20)")
    }

    /// Also the daemon's launcher, from which apps have their groups.
    func add(_ daemon: TestDaemon) throws {
        let pid = daemon.process.pid
        let children = TestDaemon.text(of: "/proc/\(pid)/task/\(pid)/children").split(whereSeparator: \.isWhitespace)
        for process in ["\(pid)"] + children.map(String.init) { try write("cgroup.procs", process) }
    }
}

@Suite("Memory limits and real processes", .serialized)
struct MemoryLimitTests {
    private func pressure(_ daemon: TestDaemon) throws -> MemoryStatus {
        try MemoryStatus(variant: try #require(try daemon.call("Pressure").first))
    }

    @Test(
        "the limit of the apps' group is found, also when the group or the limit is changed at run time",
        .enabled(if: LimitedGroup.isPossible, "needs a writable v1 memory controller"))
    func changes() throws {
        let group = try LimitedGroup("changes")
        let daemon = try TestDaemon(["photos": TestDaemon.manifest("allocate \(40 << 20)")])
        let before = try pressure(daemon)
        #expect(before.limit?.group != group.name)
        try group.limit(300)
        try group.add(daemon)
        try daemon.launch("photos")
        let limited = try pressure(daemon)
        let limit = try #require(limited.limit)
        #expect(limit.group == group.name && limit.file == "memory.limit_in_bytes")
        #expect(limit.totalBytes == 300 << 20)
        // The app was created in the daemon's group.
        #expect(limit.availableBytes < 260 << 20 && limit.availableBytes > 100 << 20)
        #expect(limited.source == "limit" && limit.oomKills == 0)
        // Two triggers and the file itself, of the apps' group in the v2 hierarchy, if they have one.
        let isGroup = limited.containment.contains("cgroup v2")
        func watched() -> Int { daemon.openDescriptors().count { $0.hasSuffix("/memory.pressure") } }
        if isGroup && exists(at: "/proc/pressure/memory") { #expect(watched() == 3) }
        try group.limit(200)
        #expect(try pressure(daemon).limit?.totalBytes == 200 << 20)
        let log = TestDaemon.text(of: daemon.root + "/log")
        #expect(log.contains("limited to 300.0M by memory.limit_in_bytes of the group \(group.name)"))
        #expect(log.contains("limited to 200.0M"))
        try group.limit(-1)
        #expect(try pressure(daemon).limit?.group != group.name)
        #expect(watched() == 0)
        daemon.stop()
    }

    @Test(
        "below the limit of the apps' group the largest suspended app is killed, before the kernel kills one",
        .enabled(if: LimitedGroup.isPossible, "needs a writable v1 memory controller"))
    func kill() throws {
        let group = try LimitedGroup("kill")
        func idle(_ size: Int) -> String {
            TestDaemon.manifest("allocate \(size << 20)", "[Lifecycle]\nSuspendDelaySec=0")
        }
        let daemon = try TestDaemon(
            ["large": idle(90), "middle": idle(60), "small": idle(20), "last": idle(60)],
            configuration: "[Memory]\nWarningAvailable=120M\nCriticalAvailable=100M\n")
        try group.limit(320)
        try group.add(daemon)
        for app in ["large", "middle", "small"] {
            try daemon.launch(app, background: true)
            try daemon.waitUntil(app, is: "suspended")
        }
        #expect(try daemon.receipts("large").isEmpty)
        // 80 MiB are left after the launch, so the kernel kills none, and 170 after the kill.
        try daemon.launch("last")
        try daemon.wait("large", "stateChanged", state: "notRunning")
        let receipt = try #require(try daemon.receipts("large").last)
        #expect(receipt["namespace"]?.stringValue == "jetsam")
        #expect(receipt["state"]?.stringValue == "suspended")
        try daemon.eventually("the level is normal again") { try pressure(daemon).level == "normal" }
        #expect(try pressure(daemon).limit?.oomKills == 0)
        // For memory that a killed app has not freed within 100ms, the next one is killed.
        let isLate =
            try daemon.receipts("middle").last?["explanation"]?.stringValue?.contains(
                "had not freed its memory in time")
        #expect(try isLate ?? false || daemon.state("middle") == "suspended")
        #expect(try daemon.state("small") == "suspended")
        #expect(try daemon.state("last") == "active")
        daemon.stop()
    }

    @Test("pressure reports the numbers, the threshold and the apps that would be killed next")
    func report() throws {
        func idle(_ size: Int) -> String {
            TestDaemon.manifest("allocate \(size << 20)", "[Lifecycle]\nSuspendDelaySec=0")
        }
        let daemon = try TestDaemon(["large": idle(40), "small": idle(10), "front": TestDaemon.manifest("")])
        for app in ["small", "large"] {
            try daemon.launch(app, background: true)
            try daemon.waitUntil(app, is: "suspended")
        }
        try daemon.launch("front")
        try daemon.eventually("memory was measured") { try pressure(daemon).thresholdBytes != nil }
        let status = try pressure(daemon)
        #expect(status.totalBytes > 0 && status.availableBytes <= status.totalBytes)
        #expect(status.thresholdBytes ?? 0 > 0)
        #expect(status.refaultedBytes != nil && status.source != nil)
        #expect(status.candidates.map(\.app) == ["large", "small", "front"])
        #expect(status.candidates.map(\.state) == ["suspended", "suspended", "active"])
        #expect(status.candidates.first.map { $0.memoryBytes > 40 << 20 } == true)
        let stalls = exists(at: "/proc/pressure/memory")
        #expect((status.stalls != nil) == stalls)
    }
}
