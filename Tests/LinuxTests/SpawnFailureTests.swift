import Glibc
import Linux
import Posix
import TestKit
import Testing

@Suite("Failed starts of processes")
struct SpawnFailureTests {
    /// Starts a process that must fail, and checks that its exit status is that of the failure. Repeats the start on
    /// ETXTBSY: a process that another test forked holds a copy of the descriptor with which the program was written,
    /// until it executes its own program.
    func failure(_ request: SpawnRequest) throws -> SpawnFailure {
        while true {
            let failure = try failureOnce(request)
            if failure.errno != ETXTBSY { return failure }
            usleep(1000)
        }
    }

    private func failureOnce(_ request: SpawnRequest) throws -> SpawnFailure {
        var starting = try startProcess(request)
        let outcome = try starting.finalOutcome()
        let end = try starting.process.waitForEnd()
        guard case .failed(let failure) = outcome else {
            throw SystemError(call: "this start should have failed", errno: 0)
        }
        #expect(end.status == .exited(failure.exitStatus))
        return failure
    }

    @Test("a missing program is reported")
    func missing() throws {
        let failure = try failure(SpawnRequest(executable: "/no/such/program"))
        #expect(failure == SpawnFailure(stage: .executable, errno: ENOENT, path: "/no/such/program"))
        #expect(failure.sentence == "cannot execute /no/such/program: No such file or directory")
        #expect(failure.exitStatus == 203)
    }

    @Test("a file for output that cannot be opened is named")
    func outputFile() throws {
        var request = SpawnRequest(executable: "/bin/true")
        request.outputFile = OutputFile("/no/such/file", appends: true)
        let failure = try failure(request)
        #expect(failure.sentence == "cannot open /no/such/file as standard output: No such file or directory")
        #expect(failure.exitStatus == 209)
    }

    @Test("a script with a missing interpreter reports its name")
    func missingInterpreter() throws {
        let scratch = try Scratch()
        let script = try scratch.file("script", "#! /no/such/interpreter -x\n", mode: 0o755)
        let failure = try failure(SpawnRequest(executable: script))
        #expect(failure.missingInterpreter == .script("/no/such/interpreter"))
        #expect(failure.sentence == "cannot execute \(script): its interpreter /no/such/interpreter does not exist")
    }

    @Test("a #! line that ends with CR LF is reported as such")
    func carriageReturn() throws {
        let scratch = try Scratch()
        let script = try scratch.file("script", "#!/bin/sh\r\necho hello\r\n", mode: 0o755)
        let failure = try failure(SpawnRequest(executable: script))
        #expect(failure.missingInterpreter == .script("/bin/sh\r"))
        #expect(failure.sentence.hasPrefix("cannot execute \(script): its #! line ends with a carriage return"))
    }

    @Test("a file that is no program, and one that is not executable, are reported")
    func notAProgram() throws {
        let scratch = try Scratch()
        let text = try failure(SpawnRequest(executable: scratch.file("text", "hello", mode: 0o755)))
        #expect(text.errno == ENOEXEC)
        #expect(text.sentence.hasSuffix("it is neither a program for this machine nor a script with a #! line"))
        let plain = try failure(SpawnRequest(executable: scratch.file("plain", "#!/bin/sh\n", mode: 0o644)))
        #expect(plain.errno == EACCES)
        let folder = try failure(SpawnRequest(executable: scratch.path))
        #expect(folder.errno == EACCES)
        #expect(folder.exitStatus == 203)
    }

    @Test("a missing working directory is reported", arguments: [nil, 100])
    func workingDirectory(oomScore: Int?) throws {
        let failure = try failure(
            SpawnRequest(executable: "/bin/true", workingDirectory: "/no/such/folder", oomScoreAdjust: oomScore))
        #expect(failure == SpawnFailure(stage: .workingDirectory, errno: ENOENT, path: "/no/such/folder"))
        #expect(failure.exitStatus == 200)
    }

    @Test("descriptors that are not open are reported")
    func descriptors() throws {
        let closed = SharedDescriptor.notOpen
        let passed = try failure(
            SpawnRequest(
                executable: "/bin/true",
                passedDescriptors: [
                    PassedDescriptor(try standardInput(), name: "good"), PassedDescriptor(closed, name: "bad"),
                ]))
        #expect(passed == SpawnFailure(stage: .descriptors, errno: EBADF, path: "bad"))
        #expect(passed.sentence == "cannot pass the descriptor \"bad\": Bad file descriptor")
        #expect(try failure(SpawnRequest(executable: "/bin/true", standardInput: closed)).exitStatus == 208)
        #expect(try failure(SpawnRequest(executable: "/bin/true", standardOutput: closed)).exitStatus == 209)
        #expect(try failure(SpawnRequest(executable: "/bin/true", standardError: closed)).exitStatus == 222)
    }

    @Test("a resource limit that is not valid is reported")
    func limits() throws {
        let failure = try failure(
            SpawnRequest(
                executable: "/bin/true",
                resourceLimits: [ResourceLimit(resource: Int32(RLIMIT_CORE.rawValue), soft: 2, hard: 1)]))
        #expect(failure == SpawnFailure(stage: .limits, errno: EINVAL, path: "RLIMIT_CORE"))
        #expect(failure.exitStatus == 205)
    }

    @Test(
        "credentials that the process may not set are reported",
        .enabled(if: geteuid() == 0, "needs root to become another user first"))
    func credentials() throws {
        try inOwnProcess {
            // Before the first start: the launcher has the user of that time.
            try #require(setuid(65534) == 0)
            var starting = try startProcess(
                SpawnRequest(executable: "/bin/true", credentials: Credentials(uid: 1, gid: 2, groups: [3, 4])))
            let outcome = try starting.finalOutcome()
            #expect(outcome == .failed(SpawnFailure(stage: .groups, errno: EPERM, path: "3 4")))
            _ = try starting.process.waitForEnd()
        }
    }

    @Test("more groups than the kernel accepts are reported")
    func tooManyGroups() throws {
        let many = Credentials(uid: 1, gid: 1, groups: [UInt32](repeating: 1, count: 65_537))
        let failure = try failure(SpawnRequest(executable: "/bin/true", credentials: many))
        #expect(failure.stage == .groups)
        #expect(failure.exitStatus == 216)
    }

    @Test("the number -1, which means \"unchanged\" to the kernel, is refused as a user: the app would run as root")
    func noUser() throws {
        for credentials in [
            Credentials(uid: .max, gid: 1, groups: []), Credentials(uid: 1, gid: .max, groups: []),
            Credentials(uid: 1, gid: 1, groups: [.max]),
        ] {
            let request = SpawnRequest(executable: "/bin/true", credentials: credentials)
            #expect(throws: SystemError(call: "setresuid", errno: EINVAL, path: "/bin/true")) {
                _ = try startProcess(request)
            }
        }
    }

    @Test("a program that the new user may not execute is reported", .enabled(if: geteuid() == 0, "needs root"))
    func forbiddenToUser() throws {
        let scratch = try Scratch()  // 0700
        let program = try scratch.file("program", "#!/bin/sh\n", mode: 0o755)
        let unprivileged = Credentials(uid: 65534, gid: 65534, groups: [])
        #expect(try failure(SpawnRequest(executable: program, credentials: unprivileged)).errno == EACCES)
        let folder = SpawnRequest(executable: "/bin/true", workingDirectory: scratch.path, credentials: unprivileged)
        #expect(try failure(folder).stage == .workingDirectory)
    }

    @Test("requests that are not valid are refused before a process is created")
    func refused() throws {
        func refusal(_ request: SpawnRequest) -> SystemError? {
            do {
                _ = try startProcess(request)
                return nil
            } catch {
                return error
            }
        }
        #expect(refusal(SpawnRequest(executable: "bin/true"))?.errno == EINVAL)
        #expect(refusal(SpawnRequest(executable: "/bin/true", arguments: ["a\0b"]))?.errno == EINVAL)
        #expect(refusal(SpawnRequest(executable: "/bin/true", oomScoreAdjust: 1001))?.errno == EINVAL)
        #expect(refusal(SpawnRequest(executable: "/bin/true", processIDVariables: ["A=B"]))?.errno == EINVAL)
        let colon = SpawnRequest(
            executable: "/bin/true", passedDescriptors: [PassedDescriptor(try standardInput(), name: "a:b")])
        #expect(refusal(colon)?.call == "LISTEN_FDNAMES")
        #expect(refusal(SpawnRequest(executable: "/bin/true", cgroup: .notOpen))?.errno == EBADF)
    }

    @Test("an argument list that is too long is reported as a failure to execute")
    func tooLong() throws {
        let failure = try failure(
            SpawnRequest(executable: "/bin/true", arguments: [String(repeating: "x", count: 200_000)]))
        #expect(failure.errno == E2BIG)
    }
}
