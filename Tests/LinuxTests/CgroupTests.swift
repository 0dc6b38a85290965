import Glibc
import Linux
import Posix
import Testing

/// A root cgroup for one test, if this machine allows one.
final class TestContainment {
    let containment: Containment
    let root: CgroupRoot

    static func mode(_ name: String) -> ContainmentMode {
        // Directly below the root of the hierarchy, so that the test runner's own group does not change.
        guard
            let mount = CgroupMount(
                selfCgroup: (try? readFile(at: "/proc/self/cgroup", limit: 65536)) ?? [],
                mountInfo: (try? readFile(at: "/proc/self/mountinfo", limit: 4 << 20)) ?? [])
        else { return .processGroup(reason: "no cgroup v2 is mounted") }
        return .detect(preferredRoot: mount.mountPoint, name: name)
    }

    /// Whether this machine allows a root cgroup; tried once.
    static let isPossible: Bool = {
        let name = "greenroom-test-\(getpid())-try"
        guard case .cgroup(let root) = mode(name) else { return false }
        return rmdir(root.path) == 0
    }()

    init(_ name: String) throws {
        let name = "greenroom-test-\(getpid())-\(name)"
        let mode = Self.mode(name)
        containment = try Containment(mode: mode, name: name)
        guard case .cgroup(let root) = mode else {
            throw SystemError(call: "detect", errno: ENOTSUP, path: mode.summary)
        }
        self.root = root
    }

    private var processes: [Process] = []

    func shell(_ script: String, in enclosure: Enclosure, _ arguments: String...) throws -> Process {
        let process = try startShell(script, in: enclosure, arguments)
        processes.append(process)
        return process
    }

    /// Removes all groups and reaps all children.
    func end() {
        do {
            try eventually("the test's groups are gone") {
                try containment.cleanUpOrphanedEnclosures() == 0 && containment.removeRoot() == .removed
            }
            for process in processes {
                try wait(for: process.descriptor)
                _ = try process.reap()
            }
        } catch {
            Issue.record(error)
        }
    }
}

/// Starts `/bin/sh -c script` in an enclosure and waits until it executes.
func startShell(_ script: String, in enclosure: Enclosure, _ arguments: [String] = []) throws -> Process {
    var starting = try startProcess(
        SpawnRequest(
            executable: "/bin/sh", arguments: ["-c", script, "sh"] + arguments,
            environment: ["PATH=/usr/bin:/bin"] + [enclosure.environmentMarker].compactMap { $0 },
            cgroup: enclosure.cgroupDescriptor))
    let process = starting.process
    try enclosure.started(process)
    let outcome = try starting.finalOutcome()
    if outcome != .executed { _ = try process.waitForEnd() }
    try #require(outcome == .executed)
    return process
}

@Suite("Cgroups", .enabled(if: TestContainment.isPossible, "needs a cgroup v2 mount that this user may write"))
struct CgroupTests {
    @Test("a process belongs to the app of its control group, however it forked")
    func owner() throws {
        let test = try TestContainment("owner")
        defer { test.end() }
        let enclosure = try test.containment.create(app: "org.example.App", run: 12)
        let process = try test.shell("(env -i setsid sleep 1000 &) ; while :; do sleep 1000; done", in: enclosure)
        // Three may also be those before the programs are executed, of which one ends.
        var pids: [Int32] = []
        try eventually("the processes") {
            pids = try enclosure.pids()
            let names = pids.map { (try? readFile(at: "/proc/\($0)/comm", limit: 64)) ?? [] }
            return pids.count == 3 && names.count { $0 == Array("sleep\n".utf8) } == 2
        }
        for pid in pids {
            #expect(try test.containment.owner(of: pid) == .app("org.example.App"))
        }
        #expect(try test.containment.owner(of: getpid()) == .other)
        #expect(try test.containment.owner(of: 1) == .other)
        try enclosure.killAll()
        try wait(for: process.descriptor)
        // A zombie still names its group.
        #expect(try test.containment.owner(of: process.pid) != .other)
    }

    @Test("a process is created in its enclosure, and its children stay in it")
    func created() throws {
        let test = try TestContainment("created")
        defer { test.end() }
        let enclosure = try test.containment.create(app: "org.example.app", run: 7)
        #expect(try !enclosure.isPopulated())
        let process = try test.shell("sleep 1000 & sleep 1000 & wait", in: enclosure)
        try eventually("three processes") { try enclosure.pids().count == 3 }
        #expect(try enclosure.contains(process.pid))
        #expect(try !enclosure.contains(getpid()))
        #expect(try enclosure.isPopulated())
        #expect(try enclosure.footprint().bytes > 0)
        try enclosure.killAll()
        #expect(try process.waitForEnd().status == .signaled(SIGKILL, coreDumped: false))
        try eventually("empty") { try !enclosure.isPopulated() }
        #expect(try enclosure.remove() == .removed)
        #expect(try enclosure.remove() == .removed)
        #expect(try enclosure.footprint().bytes == 0)
        #expect(try enclosure.pids() == [])
    }

    @Test("a signal to all reaches every process but the exception, stopped ones too, and no process outside (L46)")
    func signalAll() throws {
        let test = try TestContainment("signal-all")
        defer { test.end() }
        let enclosure = try test.containment.create(app: "all", run: 8)
        let main = try test.shell("setsid sh -c 'kill -STOP $$' & sleep 1000 & wait", in: enclosure)
        try eventually("one of three processes is stopped") {
            let stats = try enclosure.pids().compactMap { try ProcFS().stat(of: $0) }
            return stats.count == 3 && stats.contains(where: \.isStopped) && stats.contains { $0.comm == "sleep" }
        }
        #expect(try enclosure.remains(names: 3).count == 3)
        #expect(Set(try enclosure.remains(names: 3).names) == ["sh", "sleep"])
        let outside = try startShell("exec sleep 1000", in: try test.containment.create(app: "other", run: 9))
        #expect(try enclosure.signalAll(SIGTERM, except: main.pid) == 2)
        // The shell waits for both.
        #expect(try main.waitForEnd().status == .exited(0))
        #expect(!outside.isOver)
        try outside.signal(SIGKILL)
        _ = try outside.waitForEnd()
    }

    @Test("a signal to many processes is sent in steps of 32, and then to those that were created meanwhile (L46)")
    func signalInSteps() throws {
        let test = try TestContainment("signal-steps")
        defer { test.end() }
        let enclosure = try test.containment.create(app: "many", run: 8)
        let script = "trap 'sleep 1000 & wait' USR1; for i in $(seq 40); do sleep 1000 & done; wait; wait"
        let main = try test.shell(script, in: enclosure)
        func awaitSleeping(_ number: Int) throws {
            try eventually("\(number) processes sleep") {
                try enclosure.pids().count { try ProcFS().stat(of: $0)?.comm == "sleep" } == number
            }
        }
        try awaitSleeping(40)
        let signal = enclosure.beginSignal(SIGTERM, except: main.pid)
        #expect(try signal.advance())
        #expect(signal.sent == 0)
        #expect(try signal.advance())
        #expect(signal.sent == 32)
        // Those that were signaled are reaped by the shell, which only then creates another one.
        try awaitSleeping(8)
        try main.signal(SIGUSR1)
        try awaitSleeping(9)
        #expect(try signal.advance())
        #expect(signal.sent == 40)
        // The next search, its result, and a last search.
        #expect(try signal.advance())
        #expect(try signal.advance())
        #expect(signal.sent == 41)
        #expect(try !signal.advance())
    }

    @Test("a frozen busy loop is reported as frozen and uses no processor time; after the thaw it runs again")
    func freeze() throws {
        let test = try TestContainment("freeze")
        defer { test.end() }
        let enclosure = try test.containment.create(app: "busy", run: 1)
        let process = try test.shell("while :; do :; done", in: enclosure)
        try eventually("it runs") { try enclosure.cpuTime() > .milliseconds(5) }
        #expect(try !enclosure.isFrozen())
        try enclosure.freeze()
        try eventually("frozen") { try enclosure.isFrozen() }
        let used = try enclosure.cpuTime()
        for _ in 0..<20 { usleep(1000) }
        #expect(try enclosure.cpuTime() == used)
        try enclosure.thaw()
        try eventually("thawed") { try !enclosure.isFrozen() }
        try eventually("it runs again") { try enclosure.cpuTime() > used + .milliseconds(5) }
        // A frozen process can be killed without a thaw.
        try enclosure.freeze()
        try enclosure.killAll()
        #expect(try process.waitForEnd().status == .signaled(SIGKILL, coreDumped: false))
    }

    @Test("a child that forked twice and left its session is frozen and killed with the other processes")
    func escapee() throws {
        let test = try TestContainment("escapee")
        defer { test.end() }
        let enclosure = try test.containment.create(app: "a", run: 1)
        let process = try test.shell("(setsid sh -c 'sleep 1000; :' &) ; exit 3", in: enclosure)
        #expect(try process.waitForEnd().status == .exited(3))
        try eventually("the escapee and its sleep") { try enclosure.pids().count == 2 }
        try enclosure.freeze()
        try eventually("frozen") { try enclosure.isFrozen() }
        #expect(try enclosure.remove() == .busy)
        try enclosure.killAll()
        try eventually("empty") { try !enclosure.isPopulated() }
        #expect(try enclosure.remove() == .removed)
    }

    @Test("cgroups that an app creates are searched, killed and removed")
    func nested() throws {
        let test = try TestContainment("nested")
        defer { test.end() }
        let enclosure = try test.containment.create(app: "a", run: 1)
        let process = try test.shell(
            "mkdir -p $1/deep/deeper $1/other && echo $$ > $1/deep/deeper/cgroup.procs && exec sleep 1000",
            in: enclosure,
            enclosure.path!)
        try eventually("the process has moved to the nested group") {
            try readFileIfPresent(at: enclosure.path! + "/deep/deeper/cgroup.procs", limit: 100)
                == Array("\(process.pid)\n".utf8)
        }
        #expect(try enclosure.pids() == [process.pid])
        #expect(try enclosure.contains(process.pid))
        #expect(try enclosure.remove() == .busy)
        try enclosure.killAll()
        _ = try process.waitForEnd()
        try eventually("empty") { try !enclosure.isPopulated() }
        #expect(try enclosure.remove() == .removed)
    }

    @Test("all processes of a program that keeps forking are killed")
    func forkBomb() throws {
        let test = try TestContainment("bomb")
        defer { test.end() }
        let enclosure = try test.containment.create(app: "bomb", run: 1)
        let process = try test.shell(forkingScript, in: enclosure)
        try eventually("it has forked a while") { try enclosure.pids().count > 20 }
        try enclosure.killAll()
        _ = try process.waitForEnd()
        try eventually("empty") { try !enclosure.isPopulated() }
        #expect(try enclosure.pids() == [])
    }

    @Test("a start in a frozen enclosure does not block, and the program is executed after the thaw")
    func createdFrozen() throws {
        let test = try TestContainment("bornfrozen")
        defer { test.end() }
        let enclosure = try test.containment.create(app: "a", run: 1)
        try enclosure.freeze()
        var starting = try startProcess(SpawnRequest(executable: "/bin/true", cgroup: enclosure.cgroupDescriptor))
        #expect(try starting.outcome() == .pending)
        try enclosure.thaw()
        #expect(try starting.finalOutcome() == .executed)
        #expect(try starting.process.waitForEnd().status == .exited(0))
    }

    @Test("a process that is killed while it is frozen before exec is reported as killed before exec")
    func killedBeforeExec() throws {
        let test = try TestContainment("early")
        defer { test.end() }
        for run in 1...3 {
            let enclosure = try test.containment.create(app: "a", run: UInt64(run))
            try enclosure.freeze()
            var starting = try startProcess(SpawnRequest(executable: "/bin/true", cgroup: enclosure.cgroupDescriptor))
            try enclosure.killAll()
            #expect(try starting.finalOutcome() == .killedBeforeExec)
            #expect(try starting.process.waitForEnd().status == .signaled(SIGKILL, coreDumped: false))
            #expect(try enclosure.remove() == .removed)
        }
    }

    @Test("a process whose `StartingProcess` is dropped before its outcome is known is killed")
    func droppedStart() throws {
        let test = try TestContainment("dropped")
        defer { test.end() }
        let enclosure = try test.containment.create(app: "a", run: 1)
        try enclosure.freeze()
        let process: Process
        do {
            let starting = try startProcess(SpawnRequest(executable: "/bin/true", cgroup: enclosure.cgroupDescriptor))
            process = starting.process
        }
        #expect(try process.waitForEnd().status == .signaled(SIGKILL, coreDumped: false))
    }

    @Test("an enclosure is found again, and orphaned enclosures are removed except for the spared ones")
    func orphanedEnclosures() throws {
        let test = try TestContainment("orphaned")
        defer { test.end() }
        let first = try test.shell("exec sleep 1000", in: test.containment.create(app: "a.run1", run: 2))
        let second = try test.shell("exec sleep 1000", in: test.containment.create(app: "b", run: 3))
        let found = try test.containment.orphanedEnclosures()
        #expect(found.map { "\($0.app) \($0.run)" } == ["a.run1 2", "b 3"])
        let again = try #require(try test.containment.reopen(app: "b", run: 3))
        #expect(try again.pids() == [second.pid])
        #expect(try test.containment.reopen(app: "b", run: 4) == nil)
        _ = try test.containment.cleanUpOrphanedEnclosures { app, _ in app == "b" }
        #expect(try first.waitForEnd().status == .signaled(SIGKILL, coreDumped: false))
        #expect(try !second.hasEnded())
        #expect(try test.containment.removeRoot() == .busy)
        try again.killAll()
        _ = try second.waitForEnd()
        try eventually("the root group is removed") { try test.containment.removeRoot() == .removed }
        #expect(access(test.root.path, F_OK) != 0)
    }

    @Test("an enclosure gets another path if its name belongs to one that still contains processes")
    func sameName() throws {
        let test = try TestContainment("samename")
        defer { test.end() }
        let old = try test.containment.create(app: "a", run: 1)
        let new = try test.containment.create(app: "a", run: 1)
        #expect(old.path != new.path)
        #expect(try test.containment.reopen(app: "a", run: 1)?.path == new.path)
    }

    @Test("without a cpu controller the background weights are applied to the threads, and reset")
    func weights() throws {
        let test = try TestContainment("weights")
        defer { test.end() }
        let enclosure = try test.containment.create(app: "a", run: 1)
        let process = try test.shell("exec sleep 1000", in: enclosure)
        func slack() throws -> String {
            String(decoding: try readFile(at: "/proc/\(process.pid)/timerslack_ns", limit: 32), as: UTF8.self)
        }
        let means = try enclosure.setWeights(background: true, timerSlack: 40_000_000)
        if geteuid() == 0 { #expect(try slack() == "40000000\n") }
        switch means {
        case .cgroup:
            #expect(try readFile(at: enclosure.path! + "/cpu.idle", limit: 10) == Array("1\n".utf8))
        case .threads:
            #expect(sched_getscheduler(process.pid) == 5)  // SCHED_IDLE
        case .none:
            #expect(geteuid() != 0)
        }
        #expect(try enclosure.setWeights(background: false) == means)
        if geteuid() == 0 { #expect(try slack() == "50000\n") }
        #expect(sched_getscheduler(process.pid) == 0)
        try enclosure.killAll()
        _ = try process.waitForEnd()
    }
}

@Suite(
    "Processor time of a group",
    .enabled(if: TestContainment.isPossible, "needs a cgroup v2 mount that this user may write"))
struct ProcessorLimitTests {
    @Test("cpu.max limits the processor time of a group with a cpu controller, and is reset (L44)")
    func limit() throws {
        let test = try TestContainment("cpu-max")
        defer { test.end() }
        let enclosure = try test.containment.create(app: "a", run: 1)
        let process = try test.shell("exec sleep 1000", in: enclosure)
        func quota() throws -> String {
            String(decoding: try readFile(at: enclosure.path! + "/cpu.max", limit: 64), as: UTF8.self)
        }
        if try enclosure.limitProcessor(800) {
            #expect(try quota() == "80000 100000\n")
            try enclosure.limitProcessor(2500)
            #expect(try quota() == "250000 100000\n")
            // The kernel accepts no quota below 1 ms.
            try enclosure.limitProcessor(1)
            #expect(try quota() == "1000 100000\n")
            try enclosure.limitProcessor(nil)
            #expect(try quota() == "max 100000\n")
        } else {
            #expect(try !enclosure.limitProcessor(nil))
        }
        try enclosure.killAll()
        _ = try process.waitForEnd()
    }
}

/// Forks repeatedly, with at most 40 children at a time, and ends by itself after 20,000.
let forkingScript = """
    i=0
    while [ $i -lt 20000 ]; do
        i=$((i+1))
        n=$((i % 40))
        if [ $n -eq 0 ]; then sleep 0.01; fi
        if [ $i -lt 40 ]; then (sleep 1000 & sleep 1000) & else (:) & fi
    done
    sleep 1000
    """
