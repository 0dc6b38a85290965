import Glibc
import Linux
import Posix
import TestKit
import Testing

/// Each test runs in a process of its own, which becomes the subreaper of its orphans.
@Suite("Process-group mode")
struct ProcessFamilyTests {
    static func containment(_ name: String = "test") throws -> Containment {
        try Containment(mode: .processGroup(reason: "this is a test"), name: "\(name)-\(getpid())")
    }

    /// Kills all processes and reaps all orphans, until none is left.
    static func end(_ enclosure: Enclosure) throws {
        try enclosure.killAll()
        try eventually("no process is left") {
            _ = try Reaping.reapOrphans(sparing: { _ in false })
            return try !enclosure.isPopulated()
        }
        #expect(try enclosure.remove() == .removed)
    }

    @Test("a busy loop is stopped and continues")
    func freeze() throws {
        try inOwnProcess {
            let enclosure = try Self.containment().create(app: "busy", run: 1)
            let process = try startShell("while :; do :; done", in: enclosure)
            try eventually("it runs") { try enclosure.cpuTime() > .milliseconds(20) }
            #expect(try !enclosure.isFrozen())
            try enclosure.freeze()
            try eventually("frozen") { try enclosure.isFrozen() }
            let used = try #require(try ProcFS().stat(of: process.pid)).ownTicks
            for _ in 0..<30 { usleep(1000) }
            #expect(try ProcFS().stat(of: process.pid)?.ownTicks == used)
            try enclosure.thaw()
            #expect(try !enclosure.isFrozen())
            try eventually("it runs again") {
                try enclosure.cpuTime() > .milliseconds(40) + .milliseconds(10 * Int(used))
            }
            try enclosure.freeze()
            #expect(try enclosure.contains(process.pid))
            try Self.end(enclosure)
        }
    }

    @Test("without cgroups a process belongs to the app of its marker, its session or its ancestors")
    func owner() throws {
        try inOwnProcess {
            let containment = try Self.containment()
            let enclosure = try containment.create(app: "org.example.App", run: 1)
            // The first child has no marker, but the session; the second has the marker alone.
            let process = try startShell(
                "env -i sleep 1000 & (setsid sleep 1000 &) ; while :; do sleep 1000; done", in: enclosure)
            // Four may also be those before all programs are executed, of which one ends.
            var pids: [Int32] = []
            try eventually("the processes") {
                pids = try enclosure.pids()
                return try pids.count == 4 && pids.count { try ProcFS().stat(of: $0)?.comm == "sleep" } == 3
            }
            for pid in pids {
                try eventually("\(pid) has executed its program") {
                    try containment.owner(of: pid) == .app("org.example.App")
                }
            }
            #expect(try containment.owner(of: getpid()) == .other)
            #expect(try containment.owner(of: 1) == .other)
            #expect(try Self.containment("another").owner(of: process.pid) == .other)
            try Self.end(enclosure)
            #expect(try containment.owner(of: process.pid) == .ended)
        }
    }

    @Test("a child that forked twice and left its session is found by the marker, stopped, killed and reaped")
    func escapee() throws {
        try inOwnProcess {
            let enclosure = try Self.containment().create(app: "a", run: 1)
            // The first search is made after the first process has ended, so neither parent nor session leads to the
            // escapee.
            let process = try startShell("(setsid sh -c 'sleep 1000; :' &) ; exit 3", in: enclosure)
            #expect(try process.waitForEnd().status == .exited(3))
            try eventually("the escapee and its sleep") { try enclosure.pids().count == 2 }
            #expect(try enclosure.footprint().bytes > 0)
            try enclosure.freeze()
            try eventually("frozen") { try enclosure.isFrozen() }
            #expect(try enclosure.remove() == .busy)
            try enclosure.thaw()
            #expect(try !enclosure.isFrozen())
            try Self.end(enclosure)
        }
    }

    @Test("a child with an empty environment is found by its parent, and stays a member when its parent ends")
    func wipedEnvironment() throws {
        try inOwnProcess {
            let enclosure = try Self.containment().create(app: "a", run: 1)
            let process = try startShell("env -i setsid sleep 1000 & exec sleep 1000", in: enclosure)
            try eventually("both processes run") {
                try enclosure.pids().filter { try ProcFS().commandLine(of: $0)?.first == "sleep" }.count == 2
            }
            try process.signal(SIGKILL)
            _ = try process.waitForEnd()
            try eventually("one process is left") { try enclosure.pids().count == 1 }
            try Self.end(enclosure)
        }
    }

    @Test("descendants and sessions make a process a member, the daemon's own session does not")
    func kinship() throws {
        try inOwnProcess {
            let scratch = try Scratch()
            func put(_ pid: Int, parent: Int, session: Int, environment: String = "A=1", flags: Int = 0) throws {
                try createDirectories(at: "\(scratch.path)/\(pid)")
                let stat = "\(pid) (x) S \(parent) 1 \(session) 0 -1 \(flags) 0 0 0 0 1 1 1 1 20 0 1 0 \(pid)00 "
                _ = try scratch.file("\(pid)/stat", stat)
                _ = try scratch.file("\(pid)/environ", environment + "\0")
            }
            let containment = try Containment(
                mode: .processGroup(reason: "this is a test"), name: "n", proc: ProcFS(root: scratch.path))
            let enclosure = try containment.create(app: "a", run: 1)
            let marker = try #require(enclosure.environmentMarker)
            let own = Int(getsid(0))
            // A first process between clone and setsid, and another process in the daemon's session, which both share.
            try put(900_000, parent: Int(getpid()), session: own)
            try put(900_001, parent: 1, session: own)
            // A child with a session of its own, its child, and processes with only that session or the marker.
            try put(900_002, parent: 900_000, session: 900_002)
            try put(900_003, parent: 900_002, session: 900_003)
            try put(900_004, parent: 1, session: 900_003)
            try put(900_005, parent: 1, session: 900_005, environment: "B=2\0" + marker)
            // Not members: another run of the app, a process with a similar marker, a kernel thread, an orphan, process 1.
            try put(900_006, parent: 1, session: 900_006, environment: marker + "0")
            try put(900_007, parent: 1, session: 900_007, environment: "X" + marker)
            try put(900_008, parent: 900_000, session: 0, flags: 0x20_0000)
            try put(900_009, parent: 1, session: 0)
            try put(1, parent: 900_000, session: 900_002)
            try enclosure.started(Process(pid: 900_000, pidfd: Descriptor.open("/dev/null", O_RDONLY)))
            #expect(try enclosure.pids().sorted() == [900_000, 900_002, 900_003, 900_004, 900_005])
            // The same pid with another start time is another process; the other members stay.
            _ = try scratch.file("900000/stat", "900000 (x) S 1 1 \(own) 0 -1 0 0 0 0 0 1 1 1 1 20 0 1 0 5 ")
            #expect(try enclosure.pids().sorted() == [900_002, 900_003, 900_004, 900_005])
        }
    }

    @Test("a process that waits in vfork for a stopped child counts as stopped, one that waits for a disk does not")
    func vforkParent() throws {
        let scratch = try Scratch()
        func put(_ pid: Int, parent: Int, state: String) throws {
            try createDirectories(at: "\(scratch.path)/\(pid)")
            let stat = "\(pid) (x) \(state) \(parent) 1 900000 0 -1 0 0 0 0 0 1 1 1 1 20 0 1 0 \(pid)00 "
            _ = try scratch.file("\(pid)/stat", stat)
            _ = try scratch.file("\(pid)/environ", "A=1\0")
        }
        let containment = try Containment(
            mode: .processGroup(reason: "this is a test"), name: "n", proc: ProcFS(root: scratch.path))
        let enclosure = try containment.create(app: "a", run: 1)
        try put(900_000, parent: 1, state: "D")
        try put(900_001, parent: 900_000, state: "T")
        try enclosure.started(Process(pid: 900_000, pidfd: Descriptor.open("/dev/null", O_RDONLY)))
        #expect(try enclosure.isFrozen())
        try put(900_001, parent: 900_000, state: "D")
        #expect(try !enclosure.isFrozen())
        try put(900_001, parent: 900_000, state: "R")
        #expect(try !enclosure.isFrozen())
    }

    @Test("the processes of two apps are distinguished, and neither contains the test process")
    func apart() throws {
        try inOwnProcess {
            let containment = try Self.containment()
            let one = try containment.create(app: "one", run: 1)
            let two = try containment.create(app: "two", run: 1)
            let first = try startShell("exec sleep 1000", in: one)
            let second = try startShell("exec sleep 1000", in: two)
            #expect(try one.pids() == [first.pid])
            #expect(try two.pids() == [second.pid])
            try Self.end(one)
            #expect(try !second.hasEnded())
            try Self.end(two)
        }
    }

    @Test("all processes of a program that keeps forking are stopped, and killed")
    func forkBomb() throws {
        try inOwnProcess {
            let enclosure = try Self.containment().create(app: "bomb", run: 1)
            _ = try startShell(forkingScript, in: enclosure)
            try eventually("it has forked a while") { try enclosure.pids().count > 20 }
            try enclosure.freeze()
            try eventually("frozen") { try enclosure.isFrozen() }
            let frozen = try Set(enclosure.pids())
            for _ in 0..<20 { usleep(1000) }
            #expect(try Set(enclosure.pids()) == frozen)
            try enclosure.thaw()
            try Self.end(enclosure)
        }
    }

    @Test("an enclosure of a previous daemon is found by its name, and can be reopened or killed")
    func orphanedEnclosures() throws {
        try inOwnProcess {
            let before = try Self.containment("lost")
            let first = try before.create(app: "a.b", run: 4)
            let second = try before.create(app: "c", run: 5)
            let other = try Self.containment("lost2").create(app: "d", run: 6)
            for enclosure in [first, second, other] { _ = try startShell("exec sleep 1000", in: enclosure) }

            let after = try Self.containment("lost")
            // While a process executes its program it has no environment for a moment.
            try eventually("both are found") {
                try after.orphanedEnclosures().map { "\($0.app) \($0.run)" } == ["a.b 4", "c 5"]
            }
            let again = try #require(
                try after.reopen(app: "c", run: 5, environmentMarker: second.environmentMarker))
            #expect(try again.pids() == second.pids())
            #expect(try after.reopen(app: "c", run: 6, environmentMarker: second.environmentMarker) == nil)
            _ = try after.cleanUpOrphanedEnclosures { app, _ in app == "c" }
            try eventually("the processes of the first enclosure have ended") { try !first.isPopulated() }
            #expect(try second.isPopulated())
            #expect(try other.isPopulated())
            try Self.end(second)
            try Self.end(other)
        }
    }

    @Test("orphans are reaped, and the first process is left to the owner of its `Process`")
    func orphans() throws {
        try inOwnProcess {
            let enclosure = try Self.containment().create(app: "a", run: 1)
            let process = try startShell("(sh -c 'exit 9' &) ; exit 3", in: enclosure)
            try wait(for: process.descriptor)
            #expect(try Reaping.reapOrphans(sparing: { $0 == process.pid }).allSatisfy { $0.pid != process.pid })
            #expect(try process.waitForEnd().status == .exited(3))
            #expect(try process.reap() == nil)
        }
    }

    @Test("orphans behind a first process that has ended are reaped once its owner has reaped it")
    func hiddenOrphans() throws {
        try inOwnProcess {
            let enclosure = try Self.containment().create(app: "a", run: 1)
            let process = try startShell("(sh -c 'exit 9' &) ; exit 3", in: enclosure)
            try wait(for: process.descriptor)
            #expect(try process.waitForEnd().status == .exited(3))
            var reaped: [(pid: Int32, report: ExitReport)] = []
            try eventually("the orphan was reaped") {
                reaped += try Reaping.reapOrphans(sparing: { $0 == process.pid })
                return !reaped.isEmpty
            }
            #expect(reaped.map(\.report.status) == [.exited(9)])
        }
    }

    @Test("the stop and the continuation of a child are reported once each")
    func stops() throws {
        try inOwnProcess {
            var starting = try startProcess(
                SpawnRequest(executable: "/bin/sh", arguments: ["-c", "kill -STOP $$; exit 5"]))
            let process = starting.process
            #expect(try starting.finalOutcome() == .executed)
            var reports: [StopReport] = []
            try eventually("it stopped") {
                reports += try Reaping.reapStops()
                return !reports.isEmpty
            }
            #expect(reports == [StopReport(pid: process.pid, change: .stopped(signal: SIGSTOP))])
            try process.signal(SIGCONT)
            #expect(try process.waitForEnd().status == .exited(5))
            #expect(try Reaping.reapStops() == [])
        }
    }
}
