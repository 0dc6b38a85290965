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
}
