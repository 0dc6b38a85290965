import Glibc
import JSON
import Linux
import Posix
import Systemd
import TestKit
import Testing

/// Commands of `greenroomctl run`, as their callers see them.
@Suite("greenroomctl run", .enabled(if: geteuid() == 0, "needs control groups"))
struct RunTests {
    @Test("the exit status is that of the command, with a daemon, without one, and within another run (L54)")
    func exitStatus() throws {
        let daemon = try TestDaemon()
        let commands: [(command: String, status: Int32)] = [
            ("exit 0", 0), ("exit 3", 3), ("exit 255", 255), ("kill -TERM $$", 143), ("kill -KILL $$", 137),
            ("ulimit -c 0; kill -SEGV $$", 139), ("kill -INT $$", 130), ("exec /nosuch", 127),
            ("exec /etc/passwd", 126),
        ]
        for (command, status) in commands {
            let client = try RunClient(daemon, ["sh", "-c", command])
            #expect(try client.end() == .exited(status), "\(command)")
        }
        for options in [[], ["--quiet"]] {
            #expect(try RunClient(daemon, ["/nosuch"], options: options).end() == .exited(127))
            #expect(try RunClient(daemon, ["/etc/passwd"], options: options).end() == .exited(126))
            #expect(try RunClient(daemon, ["/nosuch"], options: options, runtime: "/nosuch").end() == .exited(127))
        }
        let inner = try RunClient(daemon, ["sh", "-c", "exit 4"], variables: ["GREENROOM_WITHIN_RUN=1"])
        #expect(try inner.end() == .exited(4))
        #expect(daemon.errors.contains("it runs within another 'greenroomctl run'"))
        let alone = try RunClient(daemon, ["sh", "-c", "exit 5"], options: ["--quiet"], runtime: "/nosuch")
        #expect(try alone.end() == .exited(5))
        let wrong = try RunClient(daemon, ["true"], options: ["-p", "IdleSec=soon"])
        #expect(try wrong.end() == .exited(125))
        #expect(daemon.errors.contains("not started: -p IdleSec=: invalid value 'soon'"))
        try daemon.eventually("nothing is left") { try daemon.listed().isEmpty }
        let receipts = try daemon.receipts("").compactMap { $0["exitStatus"]?.integerValue }
        #expect(receipts.contains(3) && receipts.contains(127), "\(receipts)")
    }

    @Test("a command sleeps while it has nothing to do, its input wakes it, and no byte is lost (L54, L51)")
    func sleeps() throws {
        let daemon = try TestDaemon()
        let client = try RunClient(daemon, ["cat"], options: RunClient.soon + ["--name", "echo"])
        try client.exchange("one")
        try daemon.waitUntilWatched("run@echo")
        #expect(try daemon.frozen("run@echo"))
        // More than a pipe holds: the command waits for its reader.
        let all = (0..<1 << 20).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }
        for start in stride(from: 0, to: all.count, by: all.count / 4) {
            let piece = Array(all[start..<start + all.count / 4])
            for part in stride(from: 0, to: piece.count, by: 32_768) {
                let bytes = Array(piece[part..<min(part + 32_768, piece.count)])
                try client.write(bytes)
                #expect(try client.bytes(bytes.count) == bytes)
            }
            if start < all.count / 2 { try daemon.waitUntil("run@echo", is: "suspended") }
        }
        try daemon.waitUntil("run@echo", is: "suspended")
        client.closeInput()
        #expect(try client.end() == .exited(0))
    }

    @Test("--keep creates a manifest of the command, with its directory and settings, and never replaces another one")
    func keeps() throws {
        let daemon = try TestDaemon()
        let options = ["-p", "IdleSec=7s", "--keep", "--name", "kept"]
        let command = ["sh", "-c", "echo 100% of $HOME"]
        for _ in 0..<2 {
            let client = try RunClient(daemon, command, options: options)
            #expect(try client.line() == "100% of /")
            #expect(try client.end() == .exited(0))
        }
        let path = daemon.config + "/apps/kept.app"
        let text = TestDaemon.text(of: path)
        let lines = text.split(separator: "\n")
        for expected in [
            "ExecStart=/usr/bin/sh -c \"echo 100%% of $$HOME\"", "Role=worker", "IdleSec=7s",
            "WorkingDirectory=\(String(cString: getcwd(nil, 0)))",
        ] {
            #expect(lines.contains { $0 == expected }, "\(text)")
        }
        #expect(daemon.errors.contains("Created \(path)"))
        // The daemon has read it.
        #expect(try daemon.state("kept") == "notRunning")
        let other = try RunClient(daemon, ["sh", "-c", "echo executed"], options: options)
        #expect(try other.end() == .exited(125))
        #expect(try other.bytes() == [])
        #expect(daemon.errors.contains("\(path) already exists."))
        #expect(TestDaemon.text(of: path) == text)
        let unnamed = try RunClient(daemon, ["./-"], options: ["--keep"])
        #expect(try unnamed.end() == .exited(125))
    }

    @Test("when the caller is killed, all processes of the command end, with and without SIGTERM (L54)")
    func callerKilled() throws {
        let daemon = try TestDaemon()
        let program = "trap '' TERM; setsid sleep 1000 & echo ready; while read line; do echo $line; done; sleep 1000"
        let options = RunClient.soon + ["-p", "TerminateDeadlineSec=100ms"]
        for command in [["sh", "-c", program], ["sh", "-c", "echo ready; exec cat"]] {
            let client = try RunClient(daemon, command, options: options + ["--name", "victim"])
            #expect(try client.line() == "ready")
            try daemon.waitUntil("run@victim", is: "suspended")
            try client.process.signal(SIGKILL)
            try daemon.eventually("nothing is left") { try daemon.listed().isEmpty }
            #expect(!daemon.isPopulated(command: "run@victim"))
        }
    }

    @Test(
        "--keep-children: what a command leaves behind continues in its caller's group; without it, it is ended (L54, L47)"
    )
    func keepsChildren() throws {
        let daemon = try TestDaemon()
        let program =
            "setsid sleep 1000 </dev/null >/dev/null & setsid sleep 1001 </dev/null >/dev/null & echo $!; exit 4"
        func group(of pid: Int32) -> String { TestDaemon.text(of: "/proc/\(pid)/cgroup") }
        for keeps in [true, false] {
            let client = try RunClient(
                daemon, ["sh", "-c", program], options: RunClient.soon + (keeps ? ["--keep-children"] : []))
            let left = try #require(Int32(try client.line()))
            #expect(try client.end() == .exited(4))
            try daemon.eventually("nothing is left of it for the daemon") { try daemon.listed().isEmpty }
            #expect(!daemon.isPopulated(command: "run@sh"))
            let isAlive = try ProcFS().stat(of: left).map { !$0.isDead } ?? false
            #expect(isAlive == keeps)
            guard keeps else { continue }
            #expect(group(of: left) == group(of: getpid()))
            for pid in [left, left - 1] where TestDaemon.text(of: "/proc/\(pid)/comm") == "sleep\n" {
                kill(pid, SIGKILL)
            }
        }
    }

    /// A client starts the command as its child, has the other ends of its streams, and is killed. It tells the pids of the two.
    private static let client = #"""
        import os, subprocess, sys
        child = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        ready = child.stdout.readline().decode().strip()
        print(ready, child.pid, flush=True)
        os.read(0, 1)

        """#

    @Test(
        "when the client that started the caller is killed, nothing is left of the command, whatever it ignores (L54)",
        .enabled(if: TrafficStage.hasPython, "needs python3"),
        arguments: [[], ["--protocol=jsonrpc"], ["--protocol=mcp"]])
    func clientKilled(options: [String]) throws {
        let daemon = try TestDaemon()
        try replaceFile(at: daemon.root + "/client.py", with: Array(Self.client.utf8))
        // It reads no end of its input, has a process in another session, and does not write, so it gets no SIGPIPE.
        let program = "trap '' TERM HUP PIPE; setsid sleep 1000 & echo ready; exec sleep 1000"
        for isSuspended in [true, false] {
            let more = options + ["--name", "victim", "-p", "TerminateDeadlineSec=100ms"]
            let client = try RunClient(
                daemon, ["sh", "-c", program], options: (isSuspended ? RunClient.soon : []) + more,
                by: [TrafficStage.python, daemon.root + "/client.py"])
            let words = try client.line().split(separator: " ")
            let relay = try #require(words.last.flatMap { Int32($0) })
            if isSuspended { try daemon.waitUntil("run@victim", is: "suspended") }
            try client.process.signal(SIGKILL)
            try daemon.eventually("nothing is left") {
                try daemon.listed().isEmpty && ProcFS().stat(of: relay)?.isDead ?? true
            }
            #expect(!daemon.isPopulated(command: "run@victim"))
        }
    }

    /// A client that has ended before what it starts begins, as one that is killed just then. What it starts has the client's session, or its
    /// own (`leader`).
    private static let earlyClient = #"""
        import os, sys
        try:
            os.setsid()
        except PermissionError:
            pass
        parent = os.getpid()
        if os.fork():
            os._exit(0)
        while os.getppid() == parent:
            os.sched_yield()
        if sys.argv[1] == "leader":
            os.setsid()
        os.execv(sys.argv[2], sys.argv[2:])

        """#

    private func earlyClient(_ daemon: TestDaemon, _ session: String) throws -> [String] {
        try replaceFile(at: daemon.root + "/client.py", with: Array(Self.earlyClient.utf8))
        return [TrafficStage.python, daemon.root + "/client.py", session]
    }

    @Test(
        "a command whose client was gone before it began ends when its streams have hung up, or the input and it sleeps (L54)",
        .enabled(if: TrafficStage.hasPython, "needs python3"),
        arguments: [[], ["--protocol=jsonrpc"]], [("member", false), ("member", true), ("leader", true)])
    func clientGoneEarly(options: [String], kind: (session: String, closesOutput: Bool)) throws {
        let daemon = try TestDaemon()
        let program = "trap '' TERM HUP PIPE; echo ready; exec sleep 1000"
        let more = options + ["--name", "victim", "-p", "TerminateDeadlineSec=100ms"]
        let client = try RunClient(
            daemon, ["sh", "-c", program], options: RunClient.soon + more, by: try earlyClient(daemon, kind.session))
        #expect(try client.line() == "ready")
        try daemon.waitUntil("run@victim", is: "suspended")
        client.closeInput()
        if kind.closesOutput { client.closeOutput() }
        try daemon.eventually("nothing is left") { try daemon.listed().isEmpty }
        #expect(!daemon.isPopulated(command: "run@victim"))
    }

    @Test(
        "what is left to read in a pipeline of a script that has ended is read (L54)",
        .enabled(if: TrafficStage.hasPython, "needs python3"), arguments: ["member", "leader"])
    func pipelineLeft(session: String) throws {
        let daemon = try TestDaemon()
        let result = daemon.root + "/result"
        // It works for longer than a command has after the end of its caller.
        let program = "echo ready; exec >\(result); n=0; while [ $n -lt 1000000 ]; do n=$((n + 1)); done; exec wc -c"
        let client = try RunClient(daemon, ["sh", "-c", program], options: [], by: try earlyClient(daemon, session))
        #expect(try client.line() == "ready")
        try client.write([UInt8](repeating: 1, count: 50_000))
        client.closeInput()
        try daemon.eventually("all is counted") { TestDaemon.text(of: result).contains("50000") }
    }

    @Test(
        "status names the process that started a command, and list --clients what each has (L54)",
        .enabled(if: TrafficStage.hasPython, "needs python3"))
    func clients() throws {
        let daemon = try TestDaemon()
        // Its name is its own choice.
        let program = "import ctypes\nctypes.CDLL(None).prctl(15, b'an agent\\x1b[2J')\n" + Self.client
        try replaceFile(at: daemon.root + "/client.py", with: Array(program.utf8))
        let server = ["sh", "-c", "echo ready; exec sleep 1000"]
        let client = try RunClient(
            daemon, server, options: RunClient.soon + ["--name", "server"],
            by: [TrafficStage.python, daemon.root + "/client.py"])
        _ = try client.line()
        let own = try RunClient(daemon, server, options: RunClient.soon + ["--name", "own"])
        _ = try own.line()
        for name in ["server", "own"] { try daemon.waitUntil("run@\(name)", is: "suspended") }
        let status = try #require(try daemon.status("run@server")["client"])
        #expect(status["pid"]?.integerValue == Int64(client.process.pid))
        #expect(status["name"]?.stringValue == "an agent\u{fffd}[2J")
        #expect(status["program"]?.stringValue?.hasPrefix("python3") == true)
        let path = daemon.root + "/list"
        let list = try startProcess(
            SpawnRequest(
                executable: TestDaemon.binaries + "/greenroomctl",
                arguments: ["--runtime", daemon.runtime, "list", "--clients", "--json"], environment: [],
                standardOutput: SharedDescriptor(try Descriptor.open(path, O_WRONLY | O_CREAT, mode: 0o600))))
        waitForReadable([list.process.descriptor])
        _ = try list.process.reap()
        let groups = try JSONValue.parse(Array(TestDaemon.text(of: path).utf8)).arrayValue ?? []
        func group(of pid: Int32) -> JSONValue? { groups.first { $0["client"]?["pid"]?.integerValue == Int64(pid) } }
        #expect(groups.count == 2)
        #expect(group(of: client.process.pid)?["apps"]?.arrayValue?.map(\.stringValue) == ["run@server"])
        #expect(group(of: getpid())?["suspended"]?.integerValue == 1)
    }

    @Test("SIGTERM to what the caller has started reaches the command, also while it sleeps (L54)")
    func signals() throws {
        let daemon = try TestDaemon()
        let program = "trap 'echo caught; exit 9' TERM; echo ready; while :; do read line; done"
        let client = try RunClient(daemon, ["bash", "-c", program])
        #expect(try client.line() == "ready")
        try daemon.waitUntil("run@bash", is: "suspended")
        try client.process.signal(SIGTERM)
        #expect(try client.line() == "caught")
        #expect(try client.end() == .exited(9))
    }

    @Test("the command has the caller's environment, closed streams and ignored signals (L54)")
    func context() throws {
        let daemon = try TestDaemon()
        let variables = ["A=1", "B=two words"]
        let client = try RunClient(daemon, ["env"], variables: variables)
        let lines = String(decoding: try client.bytes(), as: UTF8.self).split(separator: "\n").map(String.init).sorted()
        #expect(lines == (variables + ["GREENROOM_WITHIN_RUN=1", "HOME=/", "PATH=/usr/bin:/bin"]).sorted())
        let control = "\(TestDaemon.binaries)/greenroomctl --runtime \(daemon.runtime) run"
        for prefix in ["", control + " --quiet -- "] {
            let script =
                "\(prefix)sh -c 'test ! -e /proc/self/fd/0; echo $?' <&-; trap '' CHLD; "
                + "\(prefix)grep SigIgn /proc/self/status"
            let client = try RunClient(daemon, ["bash", "-c", script], options: ["--quiet"], runtime: "/nosuch")
            #expect(try client.line() == "0")
            // SIGCHLD is number 17.
            #expect(UInt64(try client.line().suffix(16), radix: 16).map { $0 & 1 << 16 != 0 } == true)
        }
    }

    @Test("a reload keeps the settings of a command, and names are not used twice (L54)")
    func reload() throws {
        let daemon = try TestDaemon()
        let first = try RunClient(daemon, ["cat"], options: RunClient.soon + ["--name", "mine"])
        let second = try RunClient(daemon, ["cat"], options: RunClient.soon + ["--name", "mine"])
        try first.exchange("a")
        try second.exchange("b")
        #expect(try daemon.listed().sorted() == ["run@mine", "run@mine-2"])
        #expect(try daemon.reload().isEmpty)
        try first.exchange("c")
        try daemon.waitUntil("run@mine", is: "suspended")
        #expect(try daemon.status("run@mine")["name"]?.stringValue == "cat")
        #expect(daemon.failure("Launch", [.string("run@other"), .dictionary([])]) == "UnknownApp")
    }
}
