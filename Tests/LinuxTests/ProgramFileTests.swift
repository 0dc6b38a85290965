import Glibc
import Linux
import Posix
import TestKit
import Testing

/// A program stays as it is (L10): its folder is read-only, and only a file with one digest is executed.
@Suite("Programs that stay as they are")
struct ProgramFileTests {
    private let scratch: Scratch

    init() throws { scratch = try Scratch() }

    /// A copy of a program in a folder of its own.
    private func copy(_ program: String) throws -> String {
        try createDirectories(at: "\(scratch.path)/bin")
        let path = "\(scratch.path)/bin/program"
        #expect(try run("/bin/cp", program, path).status == .exited(0))
        return path
    }

    private func failure(_ request: SpawnRequest) throws -> SpawnFailure? {
        var starting = try startProcess(request)
        let outcome = try starting.finalOutcome()
        let end = try starting.process.waitForEnd()
        guard case .failed(let failure) = outcome else { return nil }
        #expect(end.status == .exited(failure.exitStatus))
        return failure
    }

    // MARK: Digests

    @Test("a digest is that of sha256sum, whatever the length of the file (L10)")
    func digests() throws {
        for length in [0, 1, 55, 56, 57, 63, 64, 65, 119, 120, 127, 128, 8191, 8192, 8193, 100_003] {
            let text = String(repeating: "Greenroom", count: length / 9 + 1).prefix(length)
            let file = try scratch.file("file", String(text))
            let expected = try run("/usr/bin/sha256sum", file).output.prefix(64)
            #expect(try FileDigest(of: file, .sha256).description == "sha256:\(expected)", "\(length) bytes")
        }
        #expect(throws: SystemError.self) { try FileDigest(of: scratch.path, .sha256) }
    }

    @Test(
        "a program with the wanted digest is executed, also as a user who may not read it (L10)",
        arguments: [false, true])
    func wanted(asUser: Bool) throws {
        let program = try copy("/usr/bin/readlink")
        chmod(scratch.path, 0o711)
        chmod(program, 0o711)
        var request = SpawnRequest(executable: program, arguments: ["/proc/self/exe"])
        if asUser, geteuid() == 0 { request.credentials = Credentials(uid: 65534, gid: 65534, groups: []) }
        request.programDigest = try FileDigest(of: program, .sha256)
        #expect(try run(request).lines == [program])
    }

    @Test("a script with the wanted digest is executed by its path (L10)")
    func script() throws {
        let script = try scratch.file("script", "#!/bin/sh\necho \"$0\"\n", mode: 0o755)
        var request = SpawnRequest(executable: script)
        request.programDigest = try FileDigest(of: script, .sha256)
        #expect(try run(request).lines == [script])
    }

    @Test("a program with another digest is not executed: the sentence has both (L10)")
    func mismatch() throws {
        let program = try copy("/bin/true")
        let found = try FileDigest(of: program, .sha256)
        let zeroes = String(repeating: "0", count: 64)
        var request = SpawnRequest(executable: program)
        request.programDigest = FileDigest("sha256:\(zeroes)")
        let failure = try #require(try failure(request))
        #expect(failure.exitStatus == 203)
        #expect(
            failure.sentence
                == "cannot execute \(program): its digest is \(found); expected sha256:\(zeroes) (ProgramDigest=)")
    }

    @Test("files without a digest of fs-verity, and what is no file, are refused (L10)")
    func noDigest() throws {
        let zeroes = String(repeating: "0", count: 64)
        var request = SpawnRequest(executable: "/proc/self/exe")
        request.programDigest = FileDigest("fsverity-sha256:\(zeroes)")
        #expect(
            try failure(request)?.sentence
                == "cannot execute /proc/self/exe: it has no digest of fs-verity (ProgramDigest=)")
        request.executable = scratch.path
        #expect(try failure(request)?.errno == EACCES)
        request.executable = "/no/such/program"
        #expect(try failure(request) == SpawnFailure(stage: .executable, errno: ENOENT, path: "/no/such/program"))
    }

    // MARK: The folder

    /// What a shell in the folder of the program says when it writes a file there by `path`.
    private func write(_ path: String, _ change: (inout SpawnRequest) -> Void = { _ in }) throws -> [String] {
        let shell = try copy("/bin/sh")
        var request = SpawnRequest(
            executable: shell,
            arguments: ["-c", "if (: >\(path)) 2>/dev/null; then echo written; else echo refused; fi"],
            workingDirectory: "\(scratch.path)/bin")
        request.readOnlyProgram = shell
        change(&request)
        return try run(request).lines
    }

    @Test(
        "a process cannot write in the folder of its program, by any path and from its working directory (L10)",
        .enabled(if: mayMount(), "mounting is not permitted"))
    func readOnly() throws {
        let folder = "\(scratch.path)/bin"
        #expect(try write("\(folder)/new") == ["refused"])
        #expect(try write("new") == ["refused"])
        #expect(try write("new") { $0.readOnlyProgram = nil } == ["written"])
        #expect(try write("../beside") == ["written"])
        // A file for output there is opened before.
        #expect(try write("new") { $0.errorFile = OutputFile("\(folder)/log", appends: true) } == ["refused"])
        // Nothing of that is mounted here.
        #expect(try !run("/bin/cat", "/proc/self/mountinfo").output.contains(folder))
    }

    @Test(
        "a process whose working directory is that of its parent cannot write there either (L10)",
        .enabled(if: mayMount(), "mounting is not permitted"))
    func inheritedWorkingDirectory() throws {
        try inOwnProcess {
            try createDirectories(at: "\(scratch.path)/bin")
            #expect(chdir("\(scratch.path)/bin") == 0)
            #expect(try write("new") { $0.workingDirectory = nil } == ["refused"])
        }
    }

    @Test(
        "of a symbolic link the folder of its target is read-only, and of a mount below it, too (L10)",
        .enabled(if: mayMount(), "mounting is not permitted"))
    func links() throws {
        let folder = "\(scratch.path)/bin"
        symlink("\(folder)/program", "\(scratch.path)/link")
        for path in ["\(folder)/new", "\(folder)/sub/new"] {
            try createDirectories(at: "\(folder)/sub")
            #expect(mount("test", "\(folder)/sub", "tmpfs", 0, "size=64k") == 0)
            defer { detach("\(folder)/sub") }
            let said = try write(path) {
                $0.executable = "\(scratch.path)/link"
                $0.readOnlyProgram = "\(scratch.path)/link"
            }
            #expect(said == ["refused"])
        }
    }

    @Test(
        "what is mounted later appears for the process, too (L10)",
        .enabled(if: mayMount(), "mounting is not permitted"))
    func laterMounts() throws {
        let shell = try copy("/bin/sh")
        let later = "\(scratch.path)/later"
        try createDirectories(at: later)
        var request = SpawnRequest(executable: "/bin/sleep", arguments: ["1000"])
        request.readOnlyProgram = shell
        var starting = try startProcess(request)
        #expect(try starting.finalOutcome() == .executed)
        #expect(mount("test", later, "tmpfs", 0, "size=64k") == 0)
        let mounts = try readFile(at: "/proc/\(starting.pid)/mountinfo", limit: 1 << 20)
        detach(later)
        _ = try starting.process.signal(SIGKILL)
        _ = try starting.process.waitForEnd()
        // Without shared mounts on this machine there is nothing to pass on.
        let isShared = try run("/bin/cat", "/proc/self/mountinfo").output.contains("shared:")
        #expect(!isShared || String(decoding: mounts, as: UTF8.self).contains(later))
    }

    @Test("without CAP_SYS_ADMIN, and for a program in /, the start fails with a sentence (L10)")
    func refused() throws {
        try inOwnProcess {
            if geteuid() == 0 { #expect(setuid(65534) == 0) }
            var request = SpawnRequest(executable: "/bin/true")
            request.readOnlyProgram = "/bin/true"
            let failure = try #require(try failure(request))
            #expect(failure.exitStatus == 226)
            #expect(
                failure.sentence
                    == "cannot make the folder of /bin/true read-only: Operation not permitted "
                    + "(the daemon needs CAP_SYS_ADMIN for ReadOnlyProgram=)")
        }
    }

    @Test(
        "a program in / is refused: the whole machine would be read-only (L10)",
        .enabled(if: mayMount(), "mounting is not permitted"))
    func rootFolder() throws {
        var request = SpawnRequest(executable: "/bin/true")
        request.readOnlyProgram = "/proc"
        #expect(
            try failure(request)?.sentence
                == "cannot make the folder of /proc read-only: its folder is the root folder, or the root folder is no mount point"
        )
    }
}
