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

/// Processes beside the main process that are no longer in their app's control group.
@Suite("Processes outside their app's control group", .enabled(if: geteuid() == 0, "needs root to write cgroups"))
struct EscapedChildTests {
    /// A main process, its child, and one that forked twice and left its session.
    private static let text = """
        [App]
        ExecStart=/bin/sh -c 'sleep 1001 & (setsid sleep 1002 &) ; exec sleep 1000'
        [Lifecycle]
        SuspendDelaySec=0

        """

    private struct Escape {
        let daemon: TestDaemon
        /// The child, and the process that has left the session.
        let pids: [Int32]
        /// The cgroup of the app, and the one that the processes were moved to.
        let home: String
        let refuge: String

        var groups: [String?] { pids.map { (try? ProcFS().cgroup(of: $0))??.unified } }
        var log: String { TestDaemon.text(of: daemon.root + "/log") }

        func end() {
            daemon.stop()
            for pid in pids { kill(pid, SIGKILL) }
            for _ in 0..<1000 where rmdir(refuge) != 0 && errno == EBUSY { poll(nil, 0, 5) }
        }
    }

    /// Launches an app and moves two of its processes out of its cgroup. `nil`: this machine has no cgroups for it.
    private func escape(_ name: String) throws -> Escape? {
        let daemon = try TestDaemon(["app": Self.text])
        try daemon.launch("app")
        let main = try daemon.pid("app")
        guard let groups = daemon.groupRoot, let end = groups.lastIndex(of: "/") else { return nil }
        var pids: [Int32] = []
        try daemon.eventually("all three programs are executed") {
            let all = try daemon.processes(of: "app")
            pids = all.filter { $0 != main }
            return try all.count == 3 && all.allSatisfy { try ProcFS().stat(of: $0)?.comm == "sleep" }
        }
        let home = try #require(try ProcFS().cgroup(of: main)?.unified)
        let refuge = groups[..<end] + "/refuge-\(getpid())-child-\(name)"
        try #require(mkdir(String(refuge), 0o755) == 0)
        for pid in pids { try move(pid, to: String(refuge)) }
        return Escape(daemon: daemon, pids: pids, home: home, refuge: String(refuge))
    }

    private func move(_ pid: Int32, to group: String) throws {
        let file = try Descriptor.open(group + "/cgroup.procs", O_WRONLY)
        let text = Array("\(pid)".utf8)
        try #require(write(file.raw, text, text.count) == text.count)
    }

    @Test("processes that left their control group are brought back before the app is called suspended (L1)")
    func broughtBack() throws {
        guard let escape = try escape("children") else { return }
        defer { escape.end() }
        try escape.daemon.ask("Background", "app")
        try escape.daemon.waitUntil("app", is: "suspended")
        #expect(escape.groups == [escape.home, escape.home])
        #expect(try escape.daemon.frozen("app"))
        for pid in escape.pids {
            #expect(escape.log.contains("a process (PID \(pid), sleep) left the app's control group for /"))
        }
        #expect(escape.log.contains("it was moved back"))
        try escape.daemon.terminate("app", remove: true)
        #expect(escape.pids.allSatisfy { !isAlive($0) })
    }

    @Test("after a search that found none, those that leave the control group later are found, also new ones (L1)")
    func leavesLater() throws {
        let daemon = try TestDaemon([
            "app": """
            [App]
            ExecStart=/bin/sh -c 'trap "sleep 1002 & " USR1; sleep 1001 & while :; do wait; done'
            [Lifecycle]
            SuspendDelaySec=0

            """
        ])
        try daemon.launch("app")
        let main = try daemon.pid("app")
        guard let groups = daemon.groupRoot, let end = groups.lastIndex(of: "/") else { return }
        func sleeps() throws -> [Int32] {
            try daemon.processes(of: "app").filter { try ProcFS().stat(of: $0)?.comm == "sleep" }
        }
        try daemon.eventually("the child is executed") { try sleeps().count == 1 }
        try daemon.ask("Background", "app")
        try daemon.waitUntil("app", is: "suspended")
        try daemon.ask("Activate", "app")
        try daemon.waitUntil("app", is: "active")
        #expect(kill(main, SIGUSR1) == 0)
        try daemon.eventually("another child is executed") { try sleeps().count == 2 }
        let refuge = String(groups[..<end] + "/refuge-\(getpid())-later")
        try #require(mkdir(refuge, 0o755) == 0)
        let pids = try sleeps()
        let escape = Escape(
            daemon: daemon, pids: pids, home: try #require(try ProcFS().cgroup(of: main)?.unified), refuge: refuge)
        defer { escape.end() }
        for pid in pids { try move(pid, to: refuge) }
        try daemon.ask("Background", "app")
        try daemon.waitUntil("app", is: "suspended")
        #expect(escape.groups == [escape.home, escape.home])
        #expect(try daemon.frozen("app"))
    }

    @Test("processes outside their control group are killed at the end of the app (L47)", arguments: [false, true])
    func killed(afterRestart: Bool) throws {
        guard let escape = try escape("killed-\(afterRestart)") else { return }
        defer { escape.end() }
        var daemon = escape.daemon
        if afterRestart {
            daemon.crash()
            daemon = try daemon.successor()
        }
        try daemon.terminate("app")
        #expect(escape.pids.allSatisfy { !isAlive($0) })
        #expect(try daemon.state("app") == "notRunning")
        #expect(escape.log.contains("it was killed at the end of the app"))
    }

    @Test("a stop of the daemon ends processes outside their control group (L47)")
    func stop() throws {
        guard let escape = try escape("stop") else { return }
        defer { escape.end() }
        #expect(escape.daemon.stop() == .exited(0))
        #expect(escape.pids.allSatisfy { !isAlive($0) })
    }

    @Test(
        "if an administrator moves a process into the control group of an app, the rest of its session stays where it is"
    )
    func administrator() throws {
        guard let escape = try escape("administrator") else { return }
        defer { escape.end() }
        var starting = try startProcess(
            SpawnRequest(executable: "/bin/sh", arguments: ["-c", "sleep 1003 & exec sleep 1004"]))
        let shell = starting.process
        while try starting.outcome() == .pending { waitForReadable([starting.outcomeDescriptor]) }
        var child: Int32 = 0
        try escape.daemon.eventually("the child is started") {
            child = try ProcFS().pids().first { try ProcFS().stat(of: $0)?.parent == shell.pid } ?? 0
            return child != 0
        }
        defer {
            kill(shell.pid, SIGKILL)
            kill(child, SIGKILL)
            waitForReadable([shell.descriptor])
            _ = try? shell.reap()
        }
        let before = try ProcFS().cgroup(of: shell.pid)?.unified
        try move(child, to: try #require(try escape.daemon.groupPath("app")))
        try escape.daemon.ask("Background", "app")
        try escape.daemon.waitUntil("app", is: "suspended")
        #expect(try ProcFS().cgroup(of: shell.pid)?.unified == before)
        try escape.daemon.terminate("app", remove: true)
        #expect(isAlive(shell.pid) && !isAlive(child))
    }

    @Test("of many runs that are searched together, few have a search of their own: the others share one")
    func fewAtOnce() throws {
        try inOwnProcess {
            let loop = try EventLoop()
            let containment = try Containment(mode: .processGroup(reason: "a test"), name: "few-at-once")
            let search = EscapeSearch(loop: loop, containment: containment)
            var (begun, served) = (0, 0)
            func begin() -> ProcessScan? {
                begun += 1
                return containment.makeSearch()
            }
            func wait() { search.search(few: begin) { if $0 != nil { served += 1 } } }
            for _ in 0..<300 { wait() }
            #expect(begun == 2)
            let limit = loop.now() + .seconds(60)
            while served != 300, loop.now() < limit { try loop.runOnce(timeout: .seconds(1)) }
            #expect(served == 300 && search.count == 1)
            // They are over, so the next one has its own again.
            wait()
            #expect(begun == 3)
        }
    }

    @Test("one search of /proc serves all runs that wait when it begins, and the next one those that come later")
    func shared() throws {
        try inOwnProcess {
            let loop = try EventLoop()
            let containment = try Containment(mode: .processGroup(reason: "a test"), name: "shared")
            let search = EscapeSearch(loop: loop, containment: containment)
            // How many runs each search has served.
            var served: [Int: Int] = [:]
            func wait() { search.search { if $0 != nil { served[search.count, default: 0] += 1 } } }
            for _ in 0..<300 { wait() }
            while search.count == 0 { try loop.runOnce(timeout: .seconds(60)) }
            // These come during the search, which may have passed their processes.
            for _ in 0..<300 { wait() }
            let limit = loop.now() + .seconds(60)
            while served[2] != 300, loop.now() < limit { try loop.runOnce(timeout: .seconds(1)) }
            #expect(served == [1: 300, 2: 300])
        }
    }
}
