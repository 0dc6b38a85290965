import Control
import Glibc
import JSON
import LifecycleCore
import Linux
import Posix
import Systemd
import TestKit
import Testing

@testable import Daemon

/// What the state of an app means for the kernel: `oom_score_adj`, the weights of sessions, timer slack.
@Suite("The kernel's order of real processes")
struct KernelOrderTests {
    private func score(_ pid: Int32) -> Int? {
        Int(TestDaemon.text(of: "/proc/\(pid)/oom_score_adj").filter { $0 != "\n" })
    }

    /// Waits until the processes of an app have a value.
    private func wait(_ daemon: TestDaemon, _ app: String, for expected: Int) throws {
        try daemon.eventually("\(app) has \(expected)") {
            try daemon.processes(of: app).allSatisfy { score($0) ?? expected == expected }
        }
    }

    @Test("oom_score_adj of all processes follows the state of the app (L38)")
    func states() throws {
        let idle = "[Lifecycle]\nSuspendDelaySec=0"
        let daemon = try TestDaemon([
            "front": TestDaemon.manifest("", "[Lifecycle]\nSuspendDelaySec=1min"),
            "idle": TestDaemon.manifest("fork 2", idle),
            "busy": TestDaemon.manifest("fork 1", "[Lifecycle]\nSuspendDelaySec=1min"),
            "first": TestDaemon.manifest("", idle + "\n[Memory]\nJetsamPriority=-1000"),
            "chosen": TestDaemon.manifest("", app: "OOMScoreAdjust=300", idle),
        ])
        let base = max(0, ownOOMScore())
        func value(_ offset: Int) -> Int { min(1000, base + offset) }
        for app in ["idle", "first", "chosen"] {
            try daemon.launch(app, background: true)
            try daemon.waitUntil(app, is: "suspended")
        }
        try daemon.launch("busy", background: true)
        try daemon.launch("front")
        try wait(daemon, "idle", for: value(975))
        #expect(try daemon.processes(of: "idle").count == 3)
        try wait(daemon, "first", for: value(1000))
        try wait(daemon, "chosen", for: 1000)
        try wait(daemon, "busy", for: value(650))
        try wait(daemon, "front", for: base)
        // The kernel's order is that of L38, and the daemon comes last.
        #expect(try score(daemon.pid("front")) ?? -1 >= score(daemon.process.pid) ?? 1001)
        try daemon.ask("Interrupt", "front")
        try wait(daemon, "front", for: value(325))
        try daemon.ask("Activate", "idle")
        try wait(daemon, "idle", for: base)
        try wait(daemon, "front", for: value(650))
        try daemon.ask("Activate", "chosen")
        try wait(daemon, "chosen", for: 300)
    }

    @Test("the next daemon sets oom_score_adj as the previous one did (L38)")
    func successor() throws {
        let daemon = try TestDaemon(["app": TestDaemon.manifest("", "[Lifecycle]\nSuspendDelaySec=1min")])
        let base = max(0, ownOOMScore())
        try daemon.launch("app", background: true)
        try wait(daemon, "app", for: min(1000, base + 650))
        let pid = try daemon.pid("app")
        try writeControlFile("/proc/\(pid)/oom_score_adj", String(base + 7))
        daemon.crash()
        let next = try daemon.successor()
        try wait(next, "app", for: min(1000, base + 650))
    }

    @Test(
        "an app in the background has wide timer slack; a push of a user restores it until the wake is completed (L19)",
        .enabled(if: geteuid() == 0, "needs root, to set other processes' timer slack"))
    func slack() throws {
        let daemon = try TestDaemon([
            "mail": TestDaemon.manifest("", "[Lifecycle]\nSuspendDelaySec=1min\nBackgroundModes=push")
        ])
        try daemon.launch("mail", background: true)
        let pid = try daemon.pid("mail")
        func slack() -> String { TestDaemon.text(of: "/proc/\(pid)/timerslack_ns") }
        try daemon.eventually("it is throttled") { slack() == "40000000\n" }
        _ = try daemon.call("Push", [.string("mail"), .string("you have mail")])
        try daemon.eventually("it runs at normal weight") { slack() == "50000\n" }
        #expect(try daemon.state("mail") == "background")
        try daemon.sendMessage("X_GREENROOM_WAKE_DONE=new-data")
        try daemon.eventually("it is throttled again") { slack() == "40000000\n" }
    }

    /// Whether the weights of sessions decide: no cpu controller, and autogroups.
    private static let hasAutogroups = ProcFS().hasAutogroups && !exists(at: "/sys/fs/cgroup/cgroup.controllers")

    @Test(
        "without a cpu controller the sessions of an app in the background have the least weight, those of the active app what they had (L19)",
        .enabled(if: hasAutogroups, "needs sched_autogroup_enabled and no cpu controller of cgroup v2"))
    func sessions() throws {
        let root = try TestDaemon.makeFolder()
        let spinning = """
            [App]
            ExecStart=/bin/sh -c 'setsid sh -c "while :; do :; done" & echo $$! > \(root)/child; while :; do :; done'
            [Lifecycle]
            SuspendDelaySec=1min
            StartupSec=0

            """
        let daemon = try TestDaemon(["spins": spinning, "front": TestDaemon.manifest("")], root: root)
        func nice(_ pid: Int32) throws -> Int? { try ProcFS().autogroup(of: pid)?.nice }
        try daemon.launch("spins")
        let pid = try daemon.pid("spins")
        func child() throws -> Int32? { Int32(TestDaemon.text(of: root + "/child").filter { $0 != "\n" }) }
        try daemon.eventually("it began a session") {
            try child().map { try ProcFS().stat(of: $0)?.session == $0 } ?? false
        }
        let other = try #require(try child())
        #expect(try nice(pid) == 0)
        try daemon.launch("front")
        try daemon.eventually("the background has the least weight") { try nice(pid) == 19 && nice(other) == 19 }
        #expect(try nice(daemon.pid("front")) == 0)
        let own = try #require(try nice(daemon.process.pid))
        #expect(own == 0)
        try daemon.ask("Activate", "spins")
        try daemon.eventually("the weights are restored") { try nice(pid) == 0 && nice(other) == 0 }
    }

    @Test(
        "changes that the kernel does not accept yet wait for their turn, those of the foreground first (L19)"
    )
    func queue() throws {
        let loop = try EventLoop()
        var written: [String] = []
        // The kernel accepts one change after each refusal.
        var mayWrite = true
        let queue = AutogroupQueue(loop: loop, journal: .quiet) { pid, nice in
            mayWrite.toggle()
            if mayWrite { return false }
            written.append("\(pid): \(nice)")
            return true
        }
        queue.set(1, of: 10, to: 19)
        #expect(written == ["10: 19"])
        queue.set(2, of: 20, to: 19)
        queue.set(3, of: 30, to: 19)
        queue.set(4, of: 40, to: 0)
        queue.set(2, of: 21, to: 19)
        #expect(written == ["10: 19"])
        while written.count < 4 { _ = try loop.runOnce(timeout: .seconds(10)) }
        #expect(written == ["10: 19", "40: 0", "30: 19", "21: 19"])
    }

    @Test("a SIGKILL is the kernel's if its counter of kills has risen, once for each (L45)")
    func counter() {
        var count: UInt64 = 5
        let kills = KernelKills { count }
        #expect(!kills.take())
        count = 6
        #expect(kills.take())
        #expect(!kills.take())
        // One whose memory takes a while, although memory is measured meanwhile.
        let start = Duration.seconds(100)
        kills.measured(count, at: start)
        count = 7
        for step in 1...9 { kills.measured(count, at: start + .milliseconds(100 * step)) }
        #expect(kills.take())
        // A kill of another program, long before.
        count = 8
        kills.measured(count, at: start + .seconds(6))
        kills.measured(count, at: start + .seconds(12))
        #expect(!kills.take())
        count = 9
        kills.measured(count, at: start + .seconds(18))
        #expect(kills.take())
    }

    /// The folder of a cgroup v1 memory controller; `nil`: none can be made.
    private static let memoryGroup: String? = {
        let path = "/sys/fs/cgroup/memory/greenroom-test-\(getpid())"
        guard exists(at: "/sys/fs/cgroup/memory/memory.limit_in_bytes"), mkdir(path, 0o755) == 0 else { return nil }
        return path
    }()

    @Test(
        "the receipt of an app that the kernel's OOM killer ended says so (L45)",
        .enabled(if: memoryGroup != nil, "needs a writable memory controller of cgroup v1"))
    func kernelKill() throws {
        let group = try #require(Self.memoryGroup)
        defer { rmdir(group) }
        try writeControlFile(group + "/memory.limit_in_bytes", "\(32 << 20)")
        let text = """
            [App]
            ExecStart=/bin/sh -c 'echo $$$$ > \(group)/cgroup.procs; exec tail /dev/zero'
            """
        let daemon = try TestDaemon(["eats": text + "\n", "killed": TestDaemon.manifest("")])
        _ = try daemon.begin("Launch", "eats")
        try daemon.eventually("it was killed") { try !daemon.receipts("eats").isEmpty }
        let receipt = try #require(try daemon.receipts("eats").last)
        #expect(receipt["namespace"]?.stringValue == "jetsam")
        #expect(receipt["explanation"]?.stringValue == "Killed by the kernel because memory was short.")
        // One kill explains one end.
        try daemon.launch("killed")
        kill(try daemon.pid("killed"), SIGKILL)
        try daemon.eventually("it ended") { try !daemon.receipts("killed").isEmpty }
        #expect(try daemon.receipts("killed").last?["namespace"]?.stringValue == "signal")
    }
}
