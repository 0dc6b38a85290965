import Glibc
import Linux
import Posix
import Testing

@Suite("/proc")
struct ProcFSTests {
    func parsed(_ text: String) -> ProcessStat? { ProcessStat(parsing: Array(text.utf8)) }

    @Test("the name of a program can contain any bytes")
    func comm() throws {
        let tail = "S 7 8 9 0 -1 4194560 1 2 3 4 50 60 70 80 20 0 3 0 12345 1000 200 18446744073709551615 1 2"
        for name in ["sh", "a b", ") R 1 (", "((", "x) Z 0", ""] {
            let stat = try #require(parsed("42 (\(name)) \(tail)\n"))
            #expect(stat.comm == name)
            #expect(stat.pid == 42)
            #expect(stat.state == UInt8(ascii: "S"))
            #expect([stat.parent, stat.processGroup, stat.session] == [7, 8, 9])
            #expect(stat.ownTicks == 110)
            #expect(stat.childTicks == 150)
            #expect(stat.threads == 3)
            #expect(stat.startTime == 12345)
            #expect(stat.hasExecuted)
        }
        #expect(parsed("42 (x) S 7 8 9 0 -1 64 1 2 3 4 5 6 7 8 20 0 1 0 1 ")?.hasExecuted == false)
    }

    @Test("a zombie whose other threads run is not dead")
    func zombieLeader() throws {
        let dead = try #require(parsed("1 (x) Z 7 8 9 0 -1 0 1 2 3 4 5 6 7 8 20 0 1 0 1 "))
        #expect(dead.isDead)
        let leader = try #require(parsed("1 (x) Z 7 8 9 0 -1 0 1 2 3 4 5 6 7 8 20 0 2 0 1 "))
        #expect(!leader.isDead)
        #expect(leader.isZombie)
    }

    @Test(
        "text that is no stat file is read as nil",
        arguments: ["", "1", "1 (x", "1 x)", ")(", "1 (x) ", "x (x) S 1", "1 (x) SS 1 2 3", "1 (x) S 1 2 3 four"])
    func noStat(text: String) {
        #expect(parsed(text) == nil)
    }

    @Test("random bytes make no parser trap")
    func noise() {
        var generator = SystemRandomNumberGenerator()
        let alphabet = Array("0123456789 ()\n:-.SZkB=/\0\u{fe}".utf8)
        for _ in 0..<2000 {
            let bytes = (0..<Int.random(in: 0..<200, using: &generator)).map { _ in
                alphabet.randomElement(using: &generator)!
            }
            _ = ProcessStat(parsing: bytes)
            _ = ProcessStatus(parsing: bytes)
            _ = ProcessMemory(parsingStatus: bytes)
            _ = ProcessMemoryRollup(parsing: bytes)
            _ = CgroupMembership(parsing: bytes)
            _ = CgroupMount(selfCgroup: bytes, mountInfo: bytes)
            _ = MemoryInfo(parsing: bytes)
            _ = MemoryInfo.perCPUPages(parsing: bytes)
        }
    }

    @Test("status shows which signals a program handles, and its tracer")
    func status() throws {
        let text = """
            Name:\tx\\nUid:\\t0
            State:\tT (stopped)
            TracerPid:\t77
            Uid:\t1\t2\t3\t4
            SigIgn:\t0000000000000001
            SigCgt:\t8000000000004200

            """
        let status = try #require(ProcessStatus(parsing: Array(text.utf8)))
        #expect(status.state == UInt8(ascii: "T"))
        #expect(status.tracerPid == 77)
        #expect(status.uids == [1, 2, 3, 4])
        #expect(status.ignores(SIGHUP) && !status.ignores(SIGINT))
        #expect(status.catches(SIGUSR1) && status.catches(SIGTERM) && status.catches(64))
        #expect(!status.catches(SIGUSR2) && !status.catches(0) && !status.catches(65) && !status.catches(-5))
        #expect(ProcessStatus(parsing: Array("State:\tT\nTracerPid:\t0\nUid:\t1\n".utf8)) == nil)
    }

    @Test("a handler is shown in SigCgt once it is installed")
    func caught() throws {
        var starting = try startProcess(
            SpawnRequest(
                executable: "/bin/sh", arguments: ["-c", "trap 'exit 7' USR1; while :; do sleep 0.01; done"],
                environment: ["PATH=/usr/bin:/bin"]))
        _ = try starting.finalOutcome()
        try eventually("it catches SIGUSR1") { try ProcFS().status(of: starting.pid)?.catches(SIGUSR1) == true }
        try starting.process.signal(SIGUSR1)
        #expect(try starting.process.waitForEnd().status == .exited(7))
    }

    @Test("the memory in status and smaps_rollup is read in bytes")
    func memory() throws {
        let status = """
            Name:\tRssAnon: 9 kB
            VmRSS:\t  60 kB
            RssAnon:\t  30 kB
            RssFile:\t  20 kB
            RssShmem:\t  10 kB
            VmPTE:\t  8 kB
            VmSwap:\t  4 kB
            Threads:\t2
            """
        let memory = ProcessMemory(parsingStatus: Array(status.utf8))
        #expect(memory.anonymous == 30 << 10)
        #expect(memory.file == 20 << 10)
        #expect(memory.shared == 10 << 10)
        #expect(memory.swapped == 4 << 10)
        #expect(memory.kernel == (8 + 2 * 22) << 10)
        for text in ["", "RssAnon:", "RssAnon:\tx kB", "RssAnon:\t18446744073709551615 kB", "Threads"] {
            #expect(ProcessMemory(parsingStatus: Array(text.utf8)) == ProcessMemory(parsingStatus: []))
        }
        let rollup = Array("55-7f ---p 00000000 00:00 0 [rollup]\nRss: 9 kB\nPss:  3 kB\nSwapPss: 2 kB\n".utf8)
        #expect(ProcessMemoryRollup(parsing: rollup)?.pss == 3072)
        #expect(ProcessMemoryRollup(parsing: rollup)?.swapPss == 2048)
        let own = try #require(try ProcFS().memory(of: getpid()))
        #expect(own.anonymous > 0 && own.file > 0 && own.kernel > 0)
        #expect(try #require(try ProcFS().memoryRollup(of: getpid())).pss > 0)
    }

    @Test("the files of a process that has ended are read as nil")
    func gone() throws {
        var starting = try startProcess(SpawnRequest(executable: "/bin/true"))
        _ = try starting.finalOutcome()
        let pid = starting.pid
        _ = try starting.process.waitForEnd()
        let proc = ProcFS()
        #expect(try proc.stat(of: pid) == nil)
        #expect(try proc.status(of: pid) == nil)
        #expect(try proc.memory(of: pid) == nil)
        #expect(try proc.memoryRollup(of: pid) == nil)
        #expect(try proc.commandLine(of: pid) == nil)
        #expect(try proc.environment(of: pid) == nil)
        #expect(try proc.cgroup(of: pid) == nil)
        #expect(try proc.threads(of: pid) == [])
        #expect(try Process.open(pid) == nil)
        #expect(try Process.open(-1) == nil)
        #expect(try Process.open(0) == nil)
    }

    @Test("the exit status of a process with another parent is known until that reaps it")
    func zombie() throws {
        let scratch = try Scratch()
        // The parent of both executes another program, which reaps no children.
        let child = "while [ ! -e \(scratch.path)/go ]; do sleep 0.01; done;"
        let script =
            "sh -c '\(child) exit 7' & a=$!; sh -c '\(child) kill -TERM $$' & "
            + "printf '%s %s ' $a $! >\(scratch.path)/pids; exec sleep 1000"
        var starting = try startProcess(SpawnRequest(executable: "/bin/sh", arguments: ["-c", script]))
        _ = try starting.finalOutcome()
        defer { _ = try? starting.process.signal(SIGKILL) }
        try eventually("the parent executes its program") { try ProcFS().stat(of: starting.pid)?.comm == "sleep" }
        let pids = String(decoding: try readFile(at: scratch.path + "/pids", limit: 100), as: UTF8.self)
            .split(separator: " ").compactMap { Int32($0) }
        let children = try pids.map { try #require(try Process.open($0)) }
        try #require(children.count == 2)
        for child in children { #expect(try child.exitStatus() == nil) }
        _ = try scratch.file("go")
        for child in children { try wait(for: child.descriptor) }
        #expect(try children[0].exitStatus() == .exited(7))
        #expect(try children[1].exitStatus() == .signaled(SIGTERM, coreDumped: false))
        #expect(try children[0].reap() == nil)
    }

    @Test("a stat without the permission to read the exit status, and one that is cut off, have none")
    func hiddenZombie() throws {
        let scratch = try Scratch()
        let fields = "9 (x) Z 7 8 9 0 -1 0 1 2 3 4 5 6 7 8 20 0 1 0 1 " + String(repeating: "0 ", count: 29)
        try createDirectories(at: scratch.path + "/9")
        let proc = ProcFS(root: scratch.path)
        _ = try scratch.file("9/stat", fields + "256\n")
        #expect(try proc.exitStatus(ofZombie: 9) == .exited(1))
        _ = try scratch.file("9/stat", fields + "\n")
        #expect(try proc.exitStatus(ofZombie: 9) == nil)
        _ = try scratch.file("9/stat", fields.replacing(" Z ", with: " S ") + "256\n")
        #expect(try proc.exitStatus(ofZombie: 9) == nil)
        // Readable: it is no zombie any more.
        _ = try scratch.file("9/stat", fields + "256\n")
        #expect(symlink("/bin/true", scratch.path + "/9/exe") == 0)
        #expect(try proc.exitStatus(ofZombie: 9) == nil)
    }

    @Test("the command line and the environment are cut off at their limit")
    func bounded() throws {
        let scratch = try Scratch()
        try createDirectories(at: scratch.path + "/9")
        _ = try scratch.file("9/cmdline", "a\0\0b c\0")
        _ = try scratch.file("9/environ", "A=1\0B=2")
        let proc = ProcFS(root: scratch.path)
        #expect(try proc.commandLine(of: 9) == ["a", "", "b c"])
        #expect(try proc.commandLine(of: 9, limit: 4) == ["a", "", "b"])
        #expect(try proc.environment(of: 9)?.map(Array.init) == [Array("A=1".utf8), Array("B=2".utf8)])
        #expect(try proc.pids() == [9])
    }

    @Test("the exit report contains the processor time and the peak size")
    func rusage() throws {
        var starting = try startProcess(
            SpawnRequest(
                executable: "/bin/sh",
                arguments: ["-c", "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done; kill -6 $$"],
                resourceLimits: [ResourceLimit(resource: Int32(RLIMIT_CORE.rawValue), soft: 0, hard: 0)]))
        _ = try starting.finalOutcome()
        let report = try starting.process.waitForEnd()
        #expect(report.status == .signaled(SIGABRT, coreDumped: false))
        #expect(report.cpu > .milliseconds(1))
        #expect(report.maxRSS > 100_000 && report.maxRSS < 1 << 30)
    }
}
