import Control
import Glibc
import JSON
import Systemd
import Testing

@Suite("show, is-active and cat")
struct ShowTests {
    @Test("show prints KEY=VALUE lines, with the keys of a record after a dot")
    func all() throws {
        let daemon = try FakeDaemon()
        daemon.answer("Status", Records.photos)
        let lines = try daemon.run("show", "photos").output.split(separator: "\n").map(String.init)
        #expect(lines.starts(with: ["id=photos", "name=Photos", "state=background", "pid=4711"]))
        #expect(lines.contains("foreground=no"))
        #expect(lines.contains("deadline.what=background") && lines.contains("deadline.remainingSeconds=3.21"))
        #expect(lines.contains("lastReceipt.code=0x8badf00d"))
        #expect(lines.contains("statusText=busy\\nwith \\u202ethings"))
        #expect(lines.allSatisfy { $0.contains("=") })
    }

    @Test("show -p selects keys in upper and lower case; a key without a value has an empty one")
    func selected() throws {
        let daemon = try FakeDaemon()
        daemon.answer("Status", Records.photos)
        let outcome = try daemon.run("show", "-p", "State,PID", "-p", "deadline.what", "-p", "error", "photos")
        #expect(outcome.output == "state=background\npid=4711\ndeadline.what=background\nerror=\n")
        #expect(try daemon.run("show", "-p", "state", "--value", "photos").output == "background\n")
        #expect(try daemon.run("show", "-p", "needsReload", "photos").output == "needsReload=no\n")
        let json = try JSONValue.parse(try daemon.run("show", "-p", "state", "--json", "photos").output)
        #expect(json == .object([("state", .string("background"))]))
    }

    @Test("show without an app shows all, with an empty line between them")
    func allApps() throws {
        let daemon = try FakeDaemon()
        daemon.answer("List", [Records.mail, Records.photos])
        #expect(try daemon.run("show", "-p", "id").output == "id=org.example.Mail\n\nid=photos\n")
    }

    @Test("is-active prints states; it succeeds if one of the apps runs, and exits with 3 otherwise")
    func isActive() throws {
        let daemon = try FakeDaemon()
        daemon.on("Status") { call in
            let isPhotos = call.arguments.first?.stringValue == "photos"
            call.reply(isPhotos ? Records.photos : Records.mail)
        }
        let both = try daemon.run("is-active", "mail", "photos")
        #expect(both.status == 0)
        #expect(both.output == "notRunning\nbackground\n")
        let one = try daemon.run("is-active", "mail")
        #expect(one.status == 3)
        #expect(one.output == "notRunning\n" && one.errors.isEmpty)
    }

    @Test("is-active of an unknown app is an error")
    func unknown() throws {
        let daemon = try FakeDaemon()
        daemon.on("Status") { $0.fail(ControlNames.Failure.unknownApp.error("There is no app 'x'.")) }
        let outcome = try daemon.run("is-active", "x", "--json")
        #expect(outcome.status == 1)
        #expect(outcome.output == "[]\n")
        #expect(
            outcome.errors
                == "{\"error\":{\"name\":\"org.greenroom.Error.UnknownApp\",\"message\":\"There is no app 'x'.\"}}\n")
    }

    @Test("list, status and launch warn of a manifest that changed on disk, but not with --json")
    func changed() throws {
        let daemon = try FakeDaemon()
        let app = Records.make(Records.photos) { $0.needsReload = true }
        daemon.answer("List", [Records.mail, app])
        daemon.answer("Status", app)
        daemon.answer("Launch", Records.make(Records.done("active")) { $0.needsReload = true })
        let warning =
            "Warning: The manifest of 'photos' changed on disk. Run 'greenroomctl --runtime \(daemon.runtime) reload' to read it again.\n"
        #expect(try daemon.run("list").errors == warning)
        #expect(try daemon.run("status", "photos").errors == warning)
        #expect(try daemon.run("launch", "photos").errors == warning)
        daemon.answer("Status", Records.make(app) { $0.files = ["/etc/greenroom/apps/photos.app"] })
        #expect(
            try daemon.run("status", "photos").output.contains("\n   Manifest: /etc/greenroom/apps/photos.app\n"))
        let json = try daemon.run("list", "--json")
        #expect(json.errors.isEmpty)
        #expect(try JSONValue.parse(json.output).arrayValue?.last?["needsReload"]?.boolValue == true)
    }

    @Test("launch, status and idle say that nothing but a request wakes an app (L51)")
    func onlyRequestsWake() throws {
        let daemon = try FakeDaemon()
        let problem = "nothing but a request wakes it: it has no timer; Timers=yes can change that"
        daemon.answer("Launch", Records.make(Records.done("background")) { $0.warnings = [problem] })
        #expect(try daemon.run("launch", "worker1").errors == "Warning: worker1: \(problem)\n")
        #expect(try daemon.run("launch", "worker1", "--json").errors.isEmpty)
        daemon.answer(
            "Status",
            Records.make(Records.idleWorker) {
                $0.wakeProblem = problem
                $0.watch?.onlyPeers = true
                $0.watch?.unwatched = []
            })
        #expect(try daemon.run("status", "worker1").output.contains("Suspended: N\(problem.dropFirst()).\n"))
        #expect(try daemon.run("idle", "worker1").output.hasSuffix("  N\(problem.dropFirst()).\n"))
    }

    @Test("cat prints each file after its path, and says that one has changed")
    func cat() throws {
        let daemon = try FakeDaemon()
        let manifest = try daemon.folder.write("photos.app", "[App]\nExecStart=/bin/true")
        let dropIn = try daemon.folder.write("photos.app.d/name.conf", "[App]\nName=Photos\n")
        daemon.answer(
            "Status",
            Records.make(Records.photos) {
                $0.files = [manifest, dropIn]
                $0.needsReload = true
            })
        let outcome = try daemon.run("cat", "photos")
        #expect(outcome.status == 0)
        #expect(
            outcome.output
                == "# \(manifest)\n[App]\nExecStart=/bin/true\n\n# \(dropIn)\n[App]\nName=Photos\n")
        #expect(
            outcome.errors
                == "Warning: The manifest of 'photos' changed on disk. Run 'greenroomctl --runtime \(daemon.runtime) reload' to read it again.\n"
        )
        let json = try JSONValue.parse(try daemon.run("cat", "photos", "--json").output)
        #expect(json.arrayValue?.first?["path"]?.stringValue == manifest)
        unlink(manifest)
        let missing = try daemon.run("cat", "photos")
        #expect(missing.status == 1)
        #expect(missing.errors.hasPrefix("greenroomctl: \(manifest): No such file or directory\n"))
        #expect(
            missing.errors.hasSuffix(
                "The manifest of 'photos' was removed. Run 'greenroomctl --runtime \(daemon.runtime) reload' to read all manifests again.\n"
            ))
    }
}
