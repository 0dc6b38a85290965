import Glibc
import JSON
import Systemd
import Testing

@Suite("verify")
struct VerifyTests {
    private let folder = TemporaryFolder()
    private let good = "[App]\nExecStart=/bin/true\n"

    private func verify(_ arguments: String...) throws -> Outcome {
        try RunningProgram(["verify"] + arguments, environment: [], terminal: false).finish(in: EventLoop())
    }

    @Test("a manifest without fault is fine, and no daemon is asked")
    func fine() throws {
        let app = try folder.write("photos.app", good)
        let outcome = try verify(app)
        #expect(outcome.status == 0)
        #expect(outcome.output == "\(app): fine\n")
    }

    @Test("an error has its place and makes the exit status 1; the other files are checked all the same")
    func error() throws {
        let bad = try folder.write("bad.app", "[App]\nExecStart=true\n")
        let app = try folder.write("photos.app", good)
        let outcome = try verify(bad, app)
        #expect(outcome.status == 1)
        #expect(outcome.output.hasPrefix("\(bad):2:11: error: ExecStart=: "))
        #expect(outcome.output.hasSuffix("\(app): fine\n"))
    }

    @Test("drop-ins count, in the order of their names, and are named in what is said")
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

    @Test("a program, a user, a group and a folder that are not there are warned of, where they are named")
    func surroundings() throws {
        let plain = try folder.write("plain", "")
        let app = try folder.write(
            "photos.app",
            "[App]\nExecStart=\(plain)\nUser=nobody-here\nGroup=no-group-here\nWorkingDirectory=/not/there\n")
        let outcome = try verify(app)
        #expect(outcome.status == 0)
        #expect(
            outcome.output == """
                \(app):2:1: warning: ExecStart=: \(plain) is not executable
                \(app):3:1: warning: User=: there is no user nobody-here on this machine
                \(app):4:1: warning: Group=: there is no group no-group-here on this machine
                \(app):5:1: warning: WorkingDirectory=: /not/there: No such file or directory

                """)
    }

    @Test("the daemon's own file is known by its name")
    func configuration() throws {
        let file = try folder.write("greenroom.conf", "[Manager]\nForegroundLimit=none\n")
        let outcome = try verify(file)
        #expect(outcome.status == 1)
        #expect(outcome.output.hasPrefix("\(file):2:17: error: ForegroundLimit=: "))
        let dropIn = try folder.write("alone/greenroom.conf.d/a.conf", "[Memory]\nBudget=1G\n")
        #expect(try verify(dropIn).output == "\(dropIn): fine\n")
    }

    @Test("what the daemon would pass over or could not read is an error")
    func unreadable() throws {
        let other = try folder.write("photos.service", good)
        #expect(try verify(other).output.hasPrefix("\(other): error: is passed over by its name"))
        #expect(
            try verify("\(folder.path)/no.app").output == "\(folder.path)/no.app: error: No such file or directory\n")
        mkdir(folder.path + "/folder.app", 0o700)
        let outcome = try verify("\(folder.path)/folder.app")
        #expect(outcome.output == "\(folder.path)/folder.app: error: is no regular file\n")
        #expect(outcome.status == 1)
    }

    @Test("--json is one array of what was found")
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
}
