import Glibc
import Linux
import Posix
import TestKit
import Testing

@Suite("Starting processes")
struct SpawnTests {
    @Test("a program gets its arguments and its environment, and inherits nothing else")
    func argumentsAndEnvironment() throws {
        let result = try run(
            SpawnRequest(
                executable: "/bin/sh", arguments: ["-c", "echo \"$0|$1|$2\"; env | sort", "zero", "", "two words"],
                environment: ["A=1", "B=x y"]))
        #expect(result.status == .exited(0))
        #expect(result.lines[0] == "zero||two words")
        #expect(
            result.lines.filter { !$0.hasPrefix("PWD") && !$0.hasPrefix("_=") && !$0.hasPrefix("SHLVL") }
                .dropFirst() == ["A=1", "B=x y"])
    }

    @Test("argv[0] is the executable unless the request sets it")
    func argumentZero() throws {
        #expect(try run("/bin/cat", "/proc/self/cmdline").output == "/bin/cat\0/proc/self/cmdline\0")
        let request = SpawnRequest(executable: "/bin/cat", arguments: ["/proc/self/cmdline"], argumentZero: "kitty")
        #expect(try run(request).output.hasPrefix("kitty\0"))
    }

    @Test("a child has only the descriptors 0, 1, 2 and the passed ones open", arguments: [false, true])
    func noLeakedDescriptors(copyingMemory: Bool) throws {
        // Without close-on-exec: the child itself must close them.
        let leaky = Descriptor(adopting: open("/dev/null", O_RDONLY))
        let high = SharedDescriptor(Descriptor(adopting: fcntl(leaky.raw, F_DUPFD, 300)))
        let request = SpawnRequest(
            executable: "/bin/ls", arguments: ["/proc/self/fd"],
            oomScoreAdjust: copyingMemory ? 500 : nil,
            passedDescriptors: [
                PassedDescriptor(high, name: "a"), PassedDescriptor(try standardInput(), name: "b"),
            ])
        // The next number is the folder that ls has open.
        #expect(try run(request).lines == ["0", "1", "2", "3", "4", "5"])
    }

    @Test("passed descriptors arrive in order, independent of their numbers, and may repeat")
    func passedDescriptors() throws {
        let scratch = try Scratch()
        let one = SharedDescriptor(try Descriptor.open(scratch.file("one", "1"), O_RDONLY))
        let two = SharedDescriptor(try Descriptor.open(scratch.file("two", "2"), O_RDONLY))
        let result = try run(
            SpawnRequest(
                executable: "/bin/sh",
                arguments: [
                    "-c",
                    "readlink /proc/self/fd/3 /proc/self/fd/4 /proc/self/fd/5; echo $$ $LISTEN_PID $LISTEN_FDS $LISTEN_FDNAMES",
                ],
                processIDVariables: ["WATCHDOG_PID"],
                passedDescriptors: [
                    PassedDescriptor(two, name: "zwei"), PassedDescriptor(one, name: "eins"),
                    PassedDescriptor(two, name: "zwei"),
                ]))
        #expect(result.lines[..<3] == ["\(scratch.path)/two", "\(scratch.path)/one", "\(scratch.path)/two"])
        let words = result.lines[3].split(separator: " ")
        #expect(words[0] == words[1])
        #expect(words[2...] == ["3", "zwei:eins:zwei"])
    }

    @Test("LISTEN_PID and other pid variables hold the process's own number", arguments: [false, true])
    func pidVariables(copyingMemory: Bool) throws {
        let result = try run(
            SpawnRequest(
                executable: "/bin/sh", arguments: ["-c", "echo $$ $WATCHDOG_PID $LISTEN_PID"],
                processIDVariables: ["WATCHDOG_PID"], oomScoreAdjust: copyingMemory ? 400 : nil,
                passedDescriptors: [PassedDescriptor(try standardInput(), name: "x")]))
        let words = result.lines[0].split(separator: " ")
        #expect(Set(words).count == 1)
        #expect(words.count == 3)
    }

    @Test("standard streams are the requested ones, or /dev/null")
    func standardStreams() throws {
        let scratch = try Scratch()
        let input = SharedDescriptor(try Descriptor.open(scratch.file("in", "hello\n"), O_RDONLY))
        let output = SharedDescriptor(try Descriptor.open(scratch.file("out"), O_WRONLY))
        let error = SharedDescriptor(try Descriptor.open(scratch.file("err"), O_WRONLY))
        // The numbers are swapped intentionally: the input has another number here than in the child.
        var starting = try startProcess(
            SpawnRequest(
                executable: "/bin/sh", arguments: ["-c", "cat; echo bad >&2"], standardInput: input,
                standardOutput: output, standardError: error))
        #expect(try starting.finalOutcome() == .executed)
        #expect(try starting.process.waitForEnd().status == .exited(0))
        #expect(try readFile(at: scratch.path + "/out", limit: 100) == Array("hello\n".utf8))
        #expect(try readFile(at: scratch.path + "/err", limit: 100) == Array("bad\n".utf8))
        #expect(try run("/bin/readlink", "/proc/self/fd/0", "/proc/self/fd/2").lines == ["/dev/null", "/dev/null"])
    }

    @Test("no signal is blocked, ignored or caught in the child")
    func signalsAreReset() throws {
        try inOwnProcess {
            signal(SIGUSR1, SIG_IGN)
            signal(SIGPIPE, SIG_IGN)
            signal(SIGUSR2) { _ in }
            var set = sigset_t()
            sigemptyset(&set)
            sigaddset(&set, SIGTERM)
            sigprocmask(SIG_BLOCK, &set, nil)
            for oomScore in [nil, 300] {
                let lines = try run(
                    SpawnRequest(executable: "/bin/cat", arguments: ["/proc/self/status"], oomScoreAdjust: oomScore)
                ).lines
                for name in ["SigBlk", "SigIgn", "SigCgt", "SigPnd", "ShdPnd"] {
                    #expect(lines.contains("\(name):\t0000000000000000"))
                }
            }
            sigprocmask(SIG_BLOCK, nil, &set)
            #expect(sigismember(&set, SIGTERM) == 1, "our own mask must be as it was")
        }
    }

    @Test("a child opens the files for its output itself (L56)")
    func outputFiles() throws {
        let scratch = try Scratch()
        let output = try scratch.file("output", "before\n", mode: 0o600)
        let error = try scratch.file("error", "before\n", mode: 0o600)
        for round in 1...2 {
            var request = SpawnRequest(executable: "/bin/sh", arguments: ["-c", "echo a\(round); echo b\(round) >&2"])
            request.outputFile = OutputFile(output, appends: true)
            request.errorFile = OutputFile(error, appends: false)
            _ = try run(request)
        }
        #expect(try readFile(at: output, limit: 100) == Array("before\na1\na2\n".utf8))
        #expect(try readFile(at: error, limit: 100) == Array("b2\nore\n".utf8))
        var request = SpawnRequest(executable: "/bin/sh", arguments: ["-c", "echo a; echo b >&2; umask"], umask: 0o027)
        request.outputFile = OutputFile(scratch.path + "/new", appends: false)
        request.errorIsOutput = true
        _ = try run(request)
        #expect(try readFile(at: scratch.path + "/new", limit: 100) == Array("a\nb\n0027\n".utf8))
    }

    @Test("a child that ignores SIGPIPE ignores no other signal")
    func brokenPipes() throws {
        var request = SpawnRequest(executable: "/bin/cat", arguments: ["/proc/self/status"])
        request.ignoresSIGPIPE = true
        // Bit 12 is signal 13.
        #expect(try run(request).lines.contains("SigIgn:\t0000000000001000"))
    }

    @Test("a child leads its own session and has its umask, limits and working directory")
    func surroundings() throws {
        let result = try run(
            SpawnRequest(
                executable: "/bin/sh",
                arguments: ["-c", "umask; ulimit -Sn; ulimit -Hn; pwd; cat /proc/self/status /proc/$$/stat"],
                workingDirectory: "/usr/bin", umask: 0o027,
                resourceLimits: [ResourceLimit(resource: Int32(RLIMIT_NOFILE.rawValue), soft: 123, hard: 456)],
                noNewPrivileges: true))
        #expect(result.lines[..<4] == ["0027", "123", "456", "/usr/bin"])
        #expect(result.lines.contains("NoNewPrivs:\t1"))
        let stat = try #require(ProcessStat(parsing: Array(result.lines.last!.utf8)))
        #expect(stat.session == stat.pid)
        #expect(stat.processGroup == stat.pid)
        #expect(stat.parent == getpid())
    }

    @Test("a small limit of open files does not limit the passed descriptors")
    func limitBelowDescriptors() throws {
        let request = SpawnRequest(
            executable: "/bin/true",
            resourceLimits: [ResourceLimit(resource: Int32(RLIMIT_NOFILE.rawValue), soft: 4, hard: 4)],
            passedDescriptors: try (0..<20).map { PassedDescriptor(try standardInput(), name: "n\($0)") })
        var starting = try startProcess(request)
        #expect(try starting.finalOutcome() == .executed)
        _ = try starting.process.waitForEnd()
    }

    @Test("its OOM score adjustment is set without changing the parent's")
    func oomScore() throws {
        let before = try readFile(at: "/proc/self/oom_score_adj", limit: 20)
        let request = SpawnRequest(executable: "/bin/cat", arguments: ["/proc/self/oom_score_adj"], oomScoreAdjust: 777)
        #expect(try run(request).lines == ["777"])
        #expect(try readFile(at: "/proc/self/oom_score_adj", limit: 20) == before)
    }

    @Test("all credentials are replaced", .enabled(if: geteuid() == 0, "needs root"))
    func credentials() throws {
        let lines = try run(
            SpawnRequest(
                executable: "/bin/cat", arguments: ["/proc/self/status"],
                credentials: Credentials(uid: 12345, gid: 23456, groups: [34567, 45678]))
        ).lines
        #expect(lines.contains("Uid:\t12345\t12345\t12345\t12345"))
        #expect(lines.contains("Gid:\t23456\t23456\t23456\t23456"))
        #expect(lines.contains { $0.hasPrefix("Groups:\t34567 45678") })
        for name in ["CapInh", "CapPrm", "CapEff", "CapAmb"] { #expect(lines.contains("\(name):\t0000000000000000")) }
        let none = Credentials(uid: 12345, gid: 23456, groups: [])
        let without = try run(
            SpawnRequest(executable: "/bin/cat", arguments: ["/proc/self/status"], credentials: none))
        #expect(without.lines.contains { $0.hasPrefix("Groups:") && !$0.contains { $0.isNumber } })
    }

    @Test("a child that is killed at once is reported as executed or as killed, and is reaped")
    func killedEarly() throws {
        for _ in 0..<50 {
            var starting = try startProcess(SpawnRequest(executable: "/bin/sleep", arguments: ["1000"]))
            try starting.process.signal(SIGKILL)
            let outcome = try starting.finalOutcome()
            #expect(outcome == .executed || outcome == .killedBeforeExec)
            #expect(try starting.process.waitForEnd().status == .signaled(SIGKILL, coreDumped: false))
            #expect(try starting.process.signal(SIGKILL) == .gone)
        }
    }

    @Test("starts, failures and reaping leave no descriptor open")
    func noDescriptorLeakHere() throws {
        try inOwnProcess {
            let before = try folderNames("/proc/self/fd")
            for path in ["/bin/true", "/no/such/file"] {
                for _ in 0..<20 {
                    var starting = try startProcess(SpawnRequest(executable: path))
                    _ = try starting.finalOutcome()
                    _ = try starting.process.waitForEnd()
                }
            }
            // The Swift runtime may open one or two meanwhile; a leak would be 40 or more.
            #expect(try folderNames("/proc/self/fd").count < before.count + 20)
        }
    }

    @Test("the memory of a start is released")
    func noMemoryLeakHere() throws {
        try inOwnProcess {
            func mappings() throws -> Int {
                try readFile(at: "/proc/self/maps", limit: 1 << 20).split(separator: 0x0a)
                    .filter { String(decoding: $0, as: UTF8.self).contains("/dev/zero (deleted)") }.count
            }
            for path in ["/bin/true", "/no/such/file"] {
                var starting = try startProcess(SpawnRequest(executable: path))
                #expect(try mappings() > 0)
                _ = try starting.finalOutcome()
                #expect(try mappings() == 0)
                _ = try starting.process.waitForEnd()
            }
        }
    }
}
