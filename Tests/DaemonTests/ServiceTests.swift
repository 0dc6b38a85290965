import Glibc
import JSON
import Testing

@testable import Linux

@Suite("The daemon as a service")
struct ServiceTests {
    @Test(
        "apps do not inherit the daemon's oom_score_adj",
        .enabled(if: mayLowerOOMScore, "lowering oom_score_adj needs CAP_SYS_RESOURCE"))
    func protection() throws {
        let daemon = try TestDaemon([
            "plain": TestDaemon.manifest(""), "chosen": TestDaemon.manifest("", app: "OOMScoreAdjust=300"),
        ])
        try writeControlFile("/proc/\(daemon.process.pid)/oom_score_adj", "-500")
        try daemon.launch("plain")
        #expect(TestDaemon.text(of: "/proc/\(try daemon.pid("plain"))/oom_score_adj") == "0\n")
        try daemon.launch("chosen")
        #expect(TestDaemon.text(of: "/proc/\(try daemon.pid("chosen"))/oom_score_adj") == "300\n")
    }
}

extension ServiceTests {
    @Test(
        "what the daemon uses of its memory stays resident, and its apps' memory does not",
        .enabled(if: mayLockMemory, "locking memory needs CAP_IPC_LOCK"))
    func lockedMemory() throws {
        let daemon = try TestDaemon(["plain": TestDaemon.manifest("")])
        #expect(lockedKibibytes(of: daemon.process.pid) ?? 0 > 1024)
        try daemon.launch("plain")
        #expect(lockedKibibytes(of: try daemon.pid("plain")) == 0)
    }

    /// `VmLck` in /proc/PID/status (proc_pid_status(5)).
    private func lockedKibibytes(of pid: Int32) -> Int? {
        let lines = TestDaemon.text(of: "/proc/\(pid)/status").split(separator: "\n")
        let words = lines.first { $0.hasPrefix("VmLck:") }?.split { $0 == " " || $0 == "\t" } ?? []
        return words.count > 1 ? Int(words[1]) : nil
    }
}

/// SIGTERM by systemd: the type of its job decides whether apps are terminated.
@Suite("Stop and restart of the service")
struct ServiceJobTests {
    private struct Stage {
        let daemon: TestDaemon
        let manager: FakeServiceManager
        let pids: [Int32]
    }
    private static let apps = ["back", "front"]

    private func start() throws -> Stage {
        let root = try TestDaemon.makeFolder()
        let manager = try FakeServiceManager(in: root)
        let daemon = try TestDaemon(
            [
                "front": TestDaemon.manifest("term=exit:3", trace: root + "/trace"),
                "back": TestDaemon.manifest("", "[Lifecycle]\nSuspendDelaySec=0"),
            ], root: root, manager: manager, userRuntime: root + "/xdg")
        try daemon.launch("back", background: true)
        try daemon.launch("front")
        try daemon.waitUntil("back", is: "suspended")
        try daemon.eventually("front is notified") { daemon.trace().last == "didBecomeActive" }
        return Stage(daemon: daemon, manager: manager, pids: try Self.apps.map(daemon.pid))
    }

    /// Sends SIGTERM while systemd has this job; systemd ends afterwards.
    private func terminate(_ stage: Stage, _ job: String?) throws {
        let systemd = try FakeSystemd(in: stage.daemon.root + "/xdg", jobType: job)
        try stage.daemon.process.signal(SIGTERM)
        try systemd.serve(until: stage.daemon)
        #expect(systemd.asked == [UInt32(stage.daemon.process.pid)])
    }

    private func checkEnded(_ stage: Stage, log: String = "shutting down; terminating all apps") throws {
        #expect(stage.daemon.waitForEnd() == .exited(0))
        #expect(!stage.pids.contains(where: isAlive))
        #expect(TestDaemon.text(of: stage.daemon.root + "/log").contains(log))
        #expect(stage.daemon.trace().last == "willTerminate")
        #expect(try stage.manager.allNames().isEmpty)
        let next = try stage.daemon.successor()
        for app in Self.apps {
            #expect(try next.state(app) == "notRunning")
            #expect(try next.receipts(app).count == 1)
        }
        #expect(try next.receipts("front").last?["exitStatus"]?.integerValue == 3)
    }

    @Test(
        "systemctl restart keeps all apps running under the next daemon",
        arguments: ["restart", "try-restart"])
    func restart(job: String) throws {
        let stage = try start()
        try terminate(stage, job)
        #expect(stage.daemon.waitForEnd() == .exited(0))
        #expect(stage.pids.allSatisfy(isAlive))
        #expect(try stage.manager.names().count == 6)
        #expect(try stage.manager.allNames().contains("control"))
        let next = try stage.daemon.successor()
        #expect(try Self.apps.map(next.pid) == stage.pids)
        #expect(try next.state("front") == "active" && next.state("back") == "suspended")
        #expect(try next.frozen("back") && Self.apps.allSatisfy { try next.receipts($0).isEmpty })
        #expect(next.trace() == ["willFinishLaunching", "didBecomeActive"])
        #expect(try next.ask("Background", "front")["state"]?.stringValue == "background")
    }

    @Test("systemctl stop, or a SIGTERM without a job, terminates all apps in order", arguments: ["stop", nil])
    func stop(job: String?) throws {
        let stage = try start()
        try terminate(stage, job)
        try checkEnded(stage)
    }

    @Test(
        "if systemd does not answer, SIGTERM terminates all apps in order, and the log says why",
        arguments: [true, false])
    func silence(isRunning: Bool) throws {
        let stage = try start()
        // It accepts the connection and does not answer.
        let systemd = isRunning ? try FakeSystemd(in: stage.daemon.root + "/xdg", jobType: "restart") : nil
        try stage.daemon.process.signal(SIGTERM)
        try checkEnded(stage, log: "cannot ask systemd whether this is a restart")
        withExtendedLifetime(systemd) {}
    }
}

/// Whether the process has CAP_SYS_RESOURCE (24), which root in a container rarely has.
private let mayLowerOOMScore = (try? ProcFS().status(of: getpid()))?.hasCapability(24) ?? false

/// Whether the process has CAP_IPC_LOCK (14).
private let mayLockMemory = (try? ProcFS().status(of: getpid()))?.hasCapability(14) ?? false
