import Glibc
import JSON
import Linux
import Posix
import TestKit
import Testing

/// A main process that is no longer in its app's control group, as after `su -l` or `systemd-run --scope`.
@Suite("Main processes outside their control group", .enabled(if: geteuid() == 0, "needs root to write cgroups"))
struct EscapeTests {
    private struct Escape {
        let daemon: TestDaemon
        let pid: Int32
        /// The cgroup of the app.
        let home: String
        /// The cgroup that the main process was moved to.
        let refuge: String

        func end() {
            daemon.stop()
            kill(pid, SIGKILL)
            for _ in 0..<1000 where rmdir(refuge) != 0 && errno == EBUSY { poll(nil, 0, 5) }
        }
    }

    /// Launches an app and moves its main process out of its cgroup. `nil`: this machine has no cgroups for it.
    private func escape(_ name: String, ignoresTerminate: Bool = false) throws -> Escape? {
        let trap = ignoresTerminate ? "trap '' TERM; " : ""
        let text = """
            [App]
            StartupSec=0
            ExecStart=/bin/sh -c "\(trap)exec sleep 1000"
            [Lifecycle]
            SuspendDelaySec=0
            TerminateDeadlineSec=300ms

            """
        let daemon = try TestDaemon(["app": text])
        try daemon.launch("app")
        let pid = try daemon.pid("app")
        try daemon.eventually("the program is executed") { try ProcFS().stat(of: pid)?.comm == "sleep" }
        guard let home = try daemon.groupPath("app"), let groups = daemon.groupRoot,
            let end = groups.lastIndex(of: "/")
        else { return nil }
        let refuge = groups[..<end] + "/refuge-\(getpid())-\(name)"
        try #require(mkdir(String(refuge), 0o755) == 0)
        try move(pid, to: String(refuge))
        return Escape(daemon: daemon, pid: pid, home: home, refuge: String(refuge))
    }

    private func move(_ pid: Int32, to group: String) throws {
        let file = try Descriptor.open(group + "/cgroup.procs", O_WRONLY)
        let text = Array("\(pid)".utf8)
        try #require(write(file.raw, text, text.count) == text.count)
    }

    @Test(
        "an app whose main process has left its control group is not suspended, and status says why and what helps (L1)"
    )
    func outside() throws {
        guard let escape = try escape("outside") else { return }
        defer { escape.end() }
        let daemon = escape.daemon
        try daemon.ask("Background", "app")
        try daemon.eventually("the problem is shown") { try daemon.status("app")["suspendProblem"] != nil }
        let problem = try daemon.status("app")["suspendProblem"]?.stringValue ?? ""
        #expect(problem.contains("(PID \(escape.pid)) left the app's control group for /"), "\(problem)")
        #expect(problem.contains("User= sets its user"), "\(problem)")
        #expect(TestDaemon.text(of: daemon.root + "/log").contains("cannot suspend: \(problem)"))
        #expect(try daemon.state("app") == "background")
        // Back in its group it is suspended like any other.
        try move(escape.pid, to: escape.home)
        try daemon.waitUntil("app", is: "suspended")
        #expect(try daemon.frozen("app"))
        #expect(try daemon.status("app")["suspendProblem"] == nil)
    }

    @Test("a main process outside its control group is terminated, and killed at its deadline (L46, L47)")
    func killed() throws {
        guard let escape = try escape("killed", ignoresTerminate: true) else { return }
        defer { escape.end() }
        let answer = try escape.daemon.terminate("app")
        #expect(answer["lastReceipt"]?["code"]?.stringValue == "0x8badf00d", "\(answer)")
        #expect(!isAlive(escape.pid))
    }

    @Test("a stop of the daemon ends a main process outside its control group (L47)")
    func stop() throws {
        guard let escape = try escape("stop", ignoresTerminate: true) else { return }
        defer { escape.end() }
        #expect(escape.daemon.stop() == .exited(0))
        #expect(!isAlive(escape.pid))
    }

    @Test("without cgroups a main process that leaves its session is suspended and killed like any other (L1, L47)")
    func session() throws {
        let text =
            "[App]\nStartupSec=0\nExecStart=/bin/sh -c 'exec setsid -w sleep 1000'\n[Lifecycle]\nSuspendDelaySec=0\n"
        let daemon = try TestDaemon(["app": text], asUnprivilegedUser: true)
        try daemon.launch("app")
        var all: [Int32] = []
        try daemon.eventually("the program is executed") {
            all = try daemon.processes(of: "app")
            return try all.contains { try ProcFS().stat(of: $0)?.comm == "sleep" }
        }
        try daemon.ask("Background", "app")
        try daemon.waitUntil("app", is: "suspended")
        #expect(try all.allSatisfy { try ProcFS().stat(of: $0)?.isStopped == true })
        try daemon.terminate("app", remove: true)
        #expect(all.allSatisfy { !isAlive($0) })
    }
}
