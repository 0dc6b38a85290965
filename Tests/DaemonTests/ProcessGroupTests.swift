import Glibc
import JSON
import Linux
import Systemd
import Testing

/// The daemon as an unprivileged user, which cannot write any cgroup.
@Suite("The daemon in process-group mode", .enabled(if: geteuid() == 0, "needs root to become another user"))
struct ProcessGroupTests {
    /// Three processes: the first, its child, and one that forked twice and left its session.
    private let family = """
        [App]
        StartupSec=0
        ExecStart=/bin/sh -c 'sleep 1000 & (setsid sleep 1000 &) ; exec sleep 1000'
        [Lifecycle]
        SuspendDelaySec=0

        """

    /// The three processes, after the shells that start them have ended.
    private func settled(_ daemon: TestDaemon) throws -> [Int32] {
        var processes: [Int32] = []
        try daemon.eventually("all three processes run") {
            processes = try daemon.processes(of: "family")
            return processes.count == 3 && processes.allSatisfy { TestDaemon.text(of: "/proc/\($0)/comm") == "sleep\n" }
        }
        return processes
    }

    @Test(
        "in process-group mode the daemon logs the mode, and suspends, wakes and ends all processes of an app (L1, L47)"
    )
    func life() throws {
        let daemon = try TestDaemon(["family": family], asUnprivilegedUser: true)
        #expect(TestDaemon.text(of: daemon.root + "/log").contains("by process group (SIGSTOP and /proc)"))
        try daemon.launch("family")
        let processes = try settled(daemon)
        #expect(try daemon.groupPath("family") == nil)
        try daemon.ask("Background", "family")
        try daemon.waitUntil("family", is: "suspended")
        #expect(try processes.allSatisfy { try ProcFS().stat(of: $0)?.isStopped == true })
        try daemon.ask("Activate", "family")
        #expect(try processes.allSatisfy { try ProcFS().stat(of: $0)?.isStopped == false })
        try daemon.terminate("family")
        #expect(processes.allSatisfy { !isAlive($0) })
        #expect(try daemon.state("family") == "notRunning")
    }

    @Test("in process-group mode memory is measured from /proc, and jetsam kills all processes of an app (L38)")
    func jetsam() throws {
        let daemon = try TestDaemon(["family": family], asUnprivilegedUser: true)
        try daemon.launch("family", background: true)
        try daemon.waitUntil("family", is: "suspended")
        let processes = try daemon.processes(of: "family")
        #expect(try daemon.status("family")["memoryBytes"]?.integerValue ?? 0 > 0)
        #expect(JSONText.of(try daemon.call("SimulatePressure", [.string("critical")]), "victim") == "family")
        try daemon.wait("family", "stateChanged", state: "notRunning")
        #expect(processes.allSatisfy { !isAlive($0) })
        #expect(try daemon.receipts("family").last?["namespace"]?.stringValue == "jetsam")
    }

    @Test(
        "in process-group mode no zombie of a killed app is left (L47)")
    func zombies() throws {
        let daemon = try TestDaemon(["family": family], asUnprivilegedUser: true)
        try daemon.launch("family")
        let processes = try settled(daemon)
        try daemon.terminate("family", remove: true)
        try daemon.eventually("all are reaped") { try processes.allSatisfy { try ProcFS().stat(of: $0) == nil } }
    }

    @Test("an unprivileged daemon refuses an app with another user, with a sentence")
    func otherUser() throws {
        let text = "[App]\nStartupSec=0\nExecStart=/bin/sleep 1000\nUser=root\n"
        let daemon = try TestDaemon(["other": text], asUnprivilegedUser: true)
        let answer = try daemon.launch("other")
        #expect(answer["state"]?.stringValue == "notRunning")
        #expect(
            answer["explanation"]?.stringValue?.contains("only root can run apps as another user") == true, "\(answer)")
    }

    @Test("in process-group mode a stop of the daemon leaves no process behind")
    func leavesNothing() throws {
        let daemon = try TestDaemon(["family": family], asUnprivilegedUser: true)
        try daemon.launch("family", background: true)
        try daemon.waitUntil("family", is: "suspended")
        let processes = try daemon.processes(of: "family")
        #expect(daemon.stop() == .exited(0))
        #expect(processes.allSatisfy { !isAlive($0) })
    }

    private let busy = """
        [App]
        StartupSec=0
        ExecStart=/bin/sh -c 'sleep 1000 & while :; do :; done'
        [Lifecycle]
        SuspendDelaySec=0

        """

    /// A daemon with a suspended app that would use all of a processor.
    private func daemonWithSuspendedLoop() throws -> TestDaemon {
        let daemon = try TestDaemon(["busy": busy], asUnprivilegedUser: true)
        try daemon.launch("busy")
        try daemon.eventually("both processes run") { try daemon.processes(of: "busy").count == 2 }
        try daemon.ask("Background", "busy")
        try daemon.waitUntil("busy", is: "suspended")
        return daemon
    }

    /// Waits until the daemon has noticed that a process was continued, and all are stopped again.
    private func expectStoppedAgain(_ daemon: TestDaemon, _ processes: [Int32]) throws {
        let event = try daemon.waitForEvent("continued") { $0["reason"]?.stringValue == "continued" }
        #expect(event["state"]?.stringValue == "background")
        try daemon.waitUntil("busy", is: "suspended")
        #expect(try processes.allSatisfy { try ProcFS().stat(of: $0)?.isStopped == true })
        #expect(TestDaemon.text(of: daemon.root + "/log").contains("has continued the suspended app (SIGCONT)"))
    }

    @Test("in process-group mode a suspended app that another process continues is stopped again (L1)")
    func continued() throws {
        let daemon = try daemonWithSuspendedLoop()
        let processes = try daemon.processes(of: "busy")
        kill(try daemon.pid("busy"), SIGCONT)
        try expectStoppedAgain(daemon, processes)
        #expect(try daemon.ask("Activate", "busy")["state"]?.stringValue == "active")
        #expect(try processes.allSatisfy { try ProcFS().stat(of: $0)?.isStopped == false })
    }

    @Test("in process-group mode an orphan of a suspended app that another process continues is stopped again (L1)")
    func continuedOrphan() throws {
        let daemon = try TestDaemon(["family": family], asUnprivilegedUser: true)
        try daemon.launch("family")
        let processes = try settled(daemon)
        try daemon.ask("Background", "family")
        try daemon.waitUntil("family", is: "suspended")
        let main = try daemon.pid("family")
        // The daemon is the subreaper of its apps.
        let orphan = try processes.first { try $0 != main && ProcFS().stat(of: $0)?.parent == daemon.process.pid }
        kill(try #require(orphan), SIGCONT)
        try daemon.waitForEvent("continued") { $0["reason"]?.stringValue == "continued" }
        try daemon.waitUntil("family", is: "suspended")
        #expect(try processes.allSatisfy { try ProcFS().stat(of: $0)?.isStopped == true })
    }

    @Test("in process-group mode a query notices that a process beside the main process was continued (L1)")
    func continuedChild() throws {
        let daemon = try daemonWithSuspendedLoop()
        let processes = try daemon.processes(of: "busy")
        let main = try daemon.pid("busy")
        kill(try #require(processes.first { $0 != main }), SIGCONT)
        _ = try daemon.call("List")
        try expectStoppedAgain(daemon, processes)
    }

    @Test(
        "in process-group mode a recovered app that is continued, with or without a daemon, is stopped again (L1)",
        arguments: [false, true])
    func continuedAfterRecovery(withoutDaemon: Bool) throws {
        let first = try daemonWithSuspendedLoop()
        let processes = try first.processes(of: "busy")
        let pid = try first.pid("busy")
        first.crash()
        if withoutDaemon { kill(pid, SIGCONT) }
        let daemon = try first.successor()
        if !withoutDaemon { kill(pid, SIGCONT) }
        // The new daemon is not the parent of the process.
        try daemon.eventually("all are stopped again") {
            try daemon.state("busy") == "suspended"
                && processes.allSatisfy { try ProcFS().stat(of: $0)?.isStopped == true }
        }
        #expect(TestDaemon.text(of: daemon.root + "/log").contains("has continued the suspended app (SIGCONT)"))
    }

    @Test(
        "in process-group mode a program that sends SIGCONT all the time does not keep the daemon from answering (L1)")
    func continuedAllTheTime() throws {
        let daemon = try daemonWithSuspendedLoop()
        let processes = try daemon.processes(of: "busy")
        let pid = try daemon.pid("busy")
        var starting = try startProcess(
            SpawnRequest(executable: "/bin/sh", arguments: ["-c", "while kill -CONT \(pid); do :; done"]))
        let storm = starting.process
        while try starting.outcome() == .pending { waitForReadable([starting.outcomeDescriptor]) }
        for _ in 0..<50 { _ = try daemon.call("Version") }
        try daemon.waitForEvent("continued") { $0["reason"]?.stringValue == "continued" }
        try storm.signal(SIGKILL)
        waitForReadable([storm.descriptor])
        _ = try storm.reap()
        try daemon.waitUntil("busy", is: "suspended")
        #expect(try processes.allSatisfy { try ProcFS().stat(of: $0)?.isStopped == true })
    }
}
