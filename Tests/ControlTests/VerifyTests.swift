import Glibc
import JSON
import Systemd
import TestKit
import Testing

@Suite("verify")
struct VerifyTests {
    private let folder = TemporaryFolder()
    private let good = "[App]\nExecStart=/bin/true\nUser=root\n"

    private func verify(_ arguments: String...) throws -> Outcome {
        try RunningProgram(["verify"] + arguments, environment: [], terminal: false).finish(in: EventLoop())
    }

    @Test("a valid manifest is OK, without a daemon")
    func fine() throws {
        let app = try folder.write("photos.app", good)
        let outcome = try verify(app)
        #expect(outcome.status == 0)
        #expect(outcome.output == "\(app): OK\n")
    }

    @Test("a file that does not exist is reported as such, whatever its name is", arguments: ["", ".app", ".conf"])
    func missing(suffix: String) throws {
        let file = folder.path + "/nowhere" + suffix
        let outcome = try verify(file)
        #expect(outcome.status == 1)
        #expect(outcome.output == "\(file): error: No such file or directory\n")
    }

    @Test("an error has its position and makes the exit status 1; the other files are checked, too")
    func error() throws {
        let bad = try folder.write("bad.app", "[App]\nExecStart=true\n")
        let app = try folder.write("photos.app", good)
        let outcome = try verify(bad, app)
        #expect(outcome.status == 1)
        #expect(outcome.output.hasPrefix("\(bad):2:11: error: ExecStart=: "))
        #expect(outcome.output.hasSuffix("\(app): OK\n"))
    }

    @Test("drop-ins are read in the order of their names, and diagnostics name them")
    func dropIns() throws {
        let app = try folder.write("photos.app", good)
        let dropIn = try folder.write("photos.app.d/20-user.conf", "[App]\nUserr=root\n")
        try folder.write("photos.app.d/notes.txt", "nonsense")
        try folder.write("photos.app.d/30-empty.conf", "")
        symlink("/dev/null", folder.path + "/photos.app.d/40-masked.conf")
        for file in [app, dropIn] {
            let outcome = try verify(file)
            #expect(outcome.status == 0)
            #expect(outcome.output.hasPrefix("\(dropIn):2:1: warning: "))
            #expect(outcome.output.split(separator: "\n").count == 1)
        }
    }

    @Test("a program, a user, a group and a folder that do not exist are warnings with the position of the key")
    func surroundings() throws {
        let plain = try folder.write("plain", "")
        let app = try folder.write(
            "photos.app",
            "[App]\nExecStart=\(plain)\nUser=nobody-here\nGroup=no-group-here\nWorkingDirectory=/not/there\n[Wake]\n"
                + "OnCalendar=daily Europe/Nowhere\n")
        let outcome = try verify(app)
        #expect(outcome.status == 0)
        #expect(
            outcome.output == """
                \(app):2:1: warning: ExecStart=: \(plain) is not executable
                \(app):7:1: warning: OnCalendar=: daily Europe/Nowhere never elapses: this machine does not have its time zone; \
                expected a name below /usr/share/zoneinfo such as Europe/Berlin
                \(app):3:1: warning: User=: there is no user nobody-here on this machine
                \(app):4:1: warning: Group=: there is no group no-group-here on this machine
                \(app):5:1: warning: WorkingDirectory=: /not/there: No such file or directory

                """)
    }

    @Test(
        "a manifest of the system's daemon without User= is a warning, because its processes can leave their control group"
    )
    func rootApp() throws {
        let app = try folder.write("photos.app", "[App]\nExecStart=/bin/true\n")
        let outcome = try verify(app, "--system")
        #expect(outcome.status == 0)
        #expect(outcome.output.hasPrefix("\(app): warning: User=: not set: the app runs as root"), "\(outcome.output)")
        #expect(try verify(app, "--user").output == "\(app): OK\n")
    }

    @Test("greenroom.conf and its drop-ins are recognized by their names")
    func configuration() throws {
        let file = try folder.write("greenroom.conf", "[Manager]\nForegroundLimit=none\n")
        let outcome = try verify(file)
        #expect(outcome.status == 1)
        #expect(outcome.output.hasPrefix("\(file):2:17: error: ForegroundLimit=: "))
        let dropIn = try folder.write("alone/greenroom.conf.d/a.conf", "[Memory]\nBudget=1G\n")
        #expect(try verify(dropIn).output == "\(dropIn): OK\n")
    }

    @Test("a ProtectedDirectory= that fscrypt cannot protect is an error at its line (L15)")
    func protectedDirectory() throws {
        for (directory, problem) in [
            ("/proc", "its file system, or the kernel, has no fscrypt"), ("/none", "No such file"),
        ] {
            let file = try folder.write(
                "greenroom.conf", "[Manager]\nProtectedKeyCommand=/bin/key\nProtectedDirectory=\(directory)\n")
            let outcome = try verify(file)
            #expect(outcome.status == 1)
            #expect(
                outcome.output.hasPrefix(
                    "\(file):3:1: error: ProtectedDirectory=: \(directory) cannot be protected: \(problem)"),
                "\(outcome.output)")
        }
    }

    @Test("a file that the daemon ignores or cannot read is an error")
    func unreadable() throws {
        let other = try folder.write("photos.service", good)
        #expect(try verify(other).output.hasPrefix("\(other): error: ignored because of its name"))
        #expect(
            try verify("\(folder.path)/no.app").output == "\(folder.path)/no.app: error: No such file or directory\n")
        mkdir(folder.path + "/folder.app", 0o700)
        let outcome = try verify("\(folder.path)/folder.app")
        #expect(outcome.output == "\(folder.path)/folder.app: error: not a regular file\n")
        #expect(outcome.status == 1)
    }

    @Test("--json is one array of diagnostics")
    func json() throws {
        let bad = try folder.write("bad.app", "[App]\nExecStart=true\n")
        let app = try folder.write("photos.app", good)
        let outcome = try verify(bad, app, "--json")
        #expect(outcome.status == 1)
        let found = try #require(try JSONValue.parse(outcome.output).arrayValue)
        #expect(found.count == 1)
        #expect(found.first?.objectValue?.map(\.0) == ["file", "severity", "line", "column", "message"])
        #expect(try verify(app, "--json").output == "[]\n")
    }

    @Test("a program that the user of the app can write is a warning, unless ReadOnlyProgram=yes (L10)")
    func writableProgram() throws {
        let program = try folder.write("bin/photos", "")
        chmod(program, 0o755)
        chmod(folder.path + "/bin", 0o777)
        let text = "[App]\nExecStart=\(program)\nUser=daemon\n"
        let app = try folder.write("photos.app", text)
        let outcome = try verify("--system", app)
        #expect(
            outcome.output
                == "\(app):2:1: warning: ExecStart=: daemon can write \(folder.path)/bin, and so change the program; expected files "
                + "of another user, or ReadOnlyProgram=yes\n")
        try folder.write("photos.app", text + "[Lifecycle]\nReadOnlyProgram=yes\n")
        #expect(try verify("--system", app).output == "\(app): OK\n")
        #expect(
            try verify("--user", app).output.hasPrefix(
                "\(app):5:1: warning: ReadOnlyProgram=: the app cannot be launched: "))
        try folder.write("photos.app", text)
        chmod(folder.path + "/bin", 0o1777)
        #expect(try verify("--system", app).output == "\(app): OK\n")
        chmod(folder.path + "/bin", 0o755)
        #expect(try verify("--system", app).output == "\(app): OK\n")
        chmod(program, 0o757)
        #expect(try verify("--system", app).output.contains("daemon can write \(program), "))
    }

    @Test("a program with another digest than that of the manifest is a warning (L10)")
    func digest() throws {
        let program = try folder.write("photos", "abc")
        chmod(program, 0o755)
        let zeroes = String(repeating: "0", count: 64)
        let app = try folder.write(
            "photos.app", good.replacing("/bin/true", with: program) + "ProgramDigest=sha256:\(zeroes)\n")
        // FIPS 180-2, "SHA-256 Example (One-Block Message)".
        let found = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        let outcome = try verify(app)
        #expect(outcome.status == 0)
        #expect(outcome.output == "\(app):4:1: warning: ProgramDigest=: the digest of \(program) is \(found)\n")
        try folder.write("photos.app", good.replacing("/bin/true", with: program) + "ProgramDigest=\(found)\n")
        #expect(try verify(app).output == "\(app): OK\n")
    }

    @Test(
        "ProgramDigest= of a program on a file system of a server is a warning (L10)",
        .enabled(if: access("/dev/fuse", R_OK | W_OK) == 0 && mayMount(), "only root can mount a file system of FUSE"))
    func fileOfServer() throws {
        let mountPoint = folder.path + "/mount"
        mkdir(mountPoint, 0o755)
        // A server that never answers. The kernel does not ask it for a process of another user than that of the mount.
        let server = open("/dev/fuse", O_RDWR | O_CLOEXEC)
        defer { close(server) }
        let options = "fd=\(server),rootmode=40000,user_id=65534,group_id=65534"
        try #require(mount("test", mountPoint, "fuse", 0, options) == 0)
        defer { detach(mountPoint) }
        let zeroes = String(repeating: "0", count: 64)
        let app = try folder.write(
            "photos.app", good.replacing("/bin/true", with: mountPoint) + "ProgramDigest=sha256:\(zeroes)\n")
        #expect(
            try verify(app).output.contains(
                "\(app):4:1: warning: ProgramDigest=: \(mountPoint) is on a file system of a server (fuse), which can change the "
                    + "program after its digest was compared; expected a file of a local file system\n"))
    }
}
