import Control
import Glibc
import JSON
import Systemd
import Testing

@Suite("Instances of templates, and held sockets")
struct InstanceTests {
    private let folder = TemporaryFolder()

    private func daemon() throws -> FakeDaemon {
        let daemon = try FakeDaemon()
        daemon.answer("Reload", Records.make(ReloadResult()) { $0.apps = 1 })
        daemon.answer("Launch", Records.done("background"))
        daemon.answer("Terminate", Records.ended)
        daemon.answer("List", [Records.unloadedWorker])
        return daemon
    }

    private func target(_ name: String) -> String? {
        var buffer = [CChar](repeating: 0, count: 256)
        let count = readlink("\(folder.path)/apps/\(name)", &buffer, buffer.count)
        return count < 0 ? nil : String(decoding: buffer.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    @Test("enable makes links to the template and reloads, and is silent about links that exist")
    func enable() throws {
        let daemon = try daemon()
        try folder.write("apps/worker@.app", "[App]\nExecStart=/bin/true\n")
        let apps = folder.path + "/apps"
        let outcome = try daemon.run("enable", "worker@1", "worker@2.app", "--config", folder.path)
        #expect(outcome.status == 0, "\(outcome.errors)")
        #expect(
            outcome.output
                == "Created \(apps)/worker@1.app → worker@.app.\nCreated \(apps)/worker@2.app → worker@.app.\n")
        #expect(target("worker@1.app") == "worker@.app" && target("worker@2.app") == "worker@.app")
        #expect(daemon.calls.map(\.member) == ["Reload"])
        let again = try daemon.run("enable", "worker@1", "worker@3", "--config", folder.path, "--json")
        let links = try #require(try JSONValue.parse(again.output).arrayValue)
        #expect(links.map { $0["changed"]?.boolValue } == [false, true])
        #expect(links.last?["path"]?.stringValue == apps + "/worker@3.app")
        #expect(try daemon.run("enable", "worker@1", "--config", folder.path).output == "")
        #expect(daemon.count(of: "Reload") == 2)
    }

    @Test("enable --now launches the instances into the background")
    func enableNow() throws {
        let daemon = try daemon()
        try folder.write("apps/worker@.app", "[App]\nExecStart=/bin/true\n")
        let outcome = try daemon.run("enable", "--now", "worker@1", "--config", folder.path)
        #expect(outcome.status == 0, "\(outcome.errors)")
        #expect(outcome.output.hasSuffix("worker@1: background\n"))
        #expect(daemon.calls.map(\.member) == ["Reload", "Launch"])
        #expect(daemon.calls.last?.arguments.last?["background"] == .bool(true))
        let json = try daemon.run("enable", "--now", "worker@1", "--config", folder.path, "--json")
        #expect(try JSONValue.parse(json.output).arrayValue?.count == 1, "there is one document")
    }

    @Test("enable without a daemon makes the link, which the daemon finds when it starts; --now needs the daemon")
    func withoutDaemon() throws {
        try folder.write("apps/worker@.app", "[App]\nExecStart=/bin/true\n")
        func run(_ arguments: String...) throws -> Outcome {
            let line = ["enable", "--config", folder.path, "--runtime", folder.path] + arguments
            return try RunningProgram(line, environment: [], terminal: false).finish(in: EventLoop())
        }
        let outcome = try run("worker@1")
        #expect(outcome.status == 0 && outcome.errors.isEmpty)
        #expect(target("worker@1.app") == "worker@.app")
        #expect(try run("worker@2", "--now").status == 1)
        #expect(target("worker@2.app") == "worker@.app")
    }

    @Test(
        "enable and disable ask the daemon for its folder; a daemon without the property has the default one, and a note says so"
    )
    func folderOfDaemon() throws {
        let daemon = try daemon()
        try daemon.folder.write("config/apps/worker@.app", "[App]\nExecStart=/bin/true\n")
        let link = daemon.runtime + "/config/apps/worker@7.app"
        #expect(try daemon.run("enable", "worker@7").output == "Created \(link) → worker@.app.\n")
        #expect(try daemon.run("disable", "worker@7").output == "Removed \(link).\n")
        let old = try FakeDaemon(isOld: true)
        let outcome = try old.run("enable", "no-template@1", environment: ["HOME=\(folder.path)"])
        #expect(
            outcome.errors.hasPrefix("This greenroomd is too old to name its folder, so the default one is used.\n"))
    }

    @Test("enable refuses what is no instance, an unknown template, and to change a file; the others are enabled")
    func refused() throws {
        let daemon = try daemon()
        try folder.write("apps/worker@.app", "[App]\nExecStart=/bin/true\n")
        try folder.write("apps/worker@own.app", "[App]\nExecStart=/bin/true\n")
        let apps = folder.path + "/apps"
        let outcome = try daemon.run(
            "enable", "photos", "no-template@1", "worker@own", "worker@1", "--config", folder.path)
        #expect(outcome.status == 1)
        #expect(
            outcome.errors == """
                greenroomctl: enable: 'photos' is no instance of a template.
                To launch an app at each start of the daemon, set LaunchAtStart= in its manifest (greenroom.app(5)).
                greenroomctl: enable: there is no template 'no-template@': neither \(apps)/no-template@.app nor \
                /usr/lib/greenroom/\(geteuid() == 0 ? "" : "user/")apps/no-template@.app exists.
                greenroomctl: enable: \(apps)/worker@own.app is a file of its own; it is not changed.

                """)
        #expect(outcome.output == "Created \(apps)/worker@1.app → worker@.app.\n")
    }

    @Test("disable removes links, also those that a pattern matches, and no files")
    func disable() throws {
        let daemon = try daemon()
        try folder.write("apps/worker@.app", "[App]\nExecStart=/bin/true\n")
        let own = try folder.write("apps/worker@own.app", "[App]\nExecStart=/bin/true\n")
        let config = ["--config", folder.path]
        #expect(try daemon.run("enable", "worker@1", "worker@2", "worker@42", "--config", folder.path).status == 0)
        let outcome = try daemon.run("disable", "worker@[12]", "worker@7", config[0], config[1])
        #expect(outcome.status == 0, "\(outcome.errors)")
        #expect(
            outcome.output
                == "Removed \(folder.path)/apps/worker@1.app.\nRemoved \(folder.path)/apps/worker@2.app.\n")
        #expect(target("worker@1.app") == nil && target("worker@42.app") != nil)
        #expect(daemon.count(of: "Reload") == 2)
        let file = try daemon.run("disable", "worker@own", config[0], config[1])
        #expect(file.status == 1 && access(own, F_OK) == 0)
        #expect(file.errors == "greenroomctl: disable: \(own) is a file of its own; it is not removed.\n")
        let unmatched = try daemon.run("disable", "x@*", config[0], config[1])
        #expect(unmatched.status == 0 && unmatched.errors == "greenroomctl: no app matches 'x@*'.\n")
    }

    @Test("disable --now terminates the instances that the daemon still has, and removes those with held sockets")
    func disableNow() throws {
        let daemon = try daemon()
        try folder.write("apps/worker@.app", "[App]\nExecStart=/bin/true\n")
        #expect(try daemon.run("enable", "worker@1", "worker@42", "--config", folder.path).status == 0)
        let outcome = try daemon.run("disable", "--now", "worker@1", "worker@42", "--config", folder.path)
        #expect(outcome.status == 0, "\(outcome.errors)")
        #expect(daemon.calls.map(\.member) == ["Reload", "Reload", "List", "Terminate", "List", "Terminate"])
        let ends = daemon.calls.filter { $0.member == "Terminate" }.map(\.arguments)
        #expect(ends == [[.string("worker@42"), .bool(false)], [.string("worker@42"), .bool(true)]])
    }

    @Test("disable --now of an instance that is gone after its end asks for nothing more")
    func disableNowGone() throws {
        let daemon = try daemon()
        try folder.write("apps/worker@.app", "[App]\nExecStart=/bin/true\n")
        daemon.on("List") { [unowned daemon] call in
            call.reply(daemon.count(of: "Terminate") == 0 ? [Records.unloadedWorker] : [])
        }
        #expect(try daemon.run("enable", "worker@42", "--config", folder.path).status == 0)
        #expect(try daemon.run("disable", "--now", "worker@42", "--config", folder.path).status == 0)
        #expect(daemon.calls.map(\.member) == ["Reload", "Reload", "List", "Terminate", "List"])
    }

    @Test("an error in a manifest is printed after the reload, and the exit status is 1")
    func reloadErrors() throws {
        let daemon = try daemon()
        try folder.write("apps/worker@.app", "[App]\n")
        daemon.answer("Reload", Records.make(ReloadResult()) { $0.errors = ["a.app:1:1: error: missing key"] })
        let outcome = try daemon.run("enable", "worker@1", "--config", folder.path)
        #expect(outcome.status == 1)
        #expect(outcome.errors == "greenroomctl: a.app:1:1: error: missing key\n")
    }

    @Test("launch passes variables on, a name alone with the value that it has here")
    func variables() throws {
        let daemon = try daemon()
        let outcome = try daemon.run("launch", "worker@1", "-E", "A=1,2", "--setenv", "HERE", environment: ["HERE=x=y"])
        #expect(outcome.status == 0, "\(outcome.errors)")
        #expect(
            daemon.calls.last?.arguments.last?["environment"] == .array("s", [.string("A=1,2"), .string("HERE=x=y")]))
        #expect(try daemon.run("launch", "a").status == 0)
        #expect(daemon.calls.last?.arguments.last?["environment"] == nil)
        let unset = try daemon.run("launch", "a", "-E", "NOT_SET")
        #expect(unset.status == 2 && daemon.count(of: "Launch") == 2)
        #expect(
            unset.errors.hasPrefix("greenroomctl: --setenv: the variable NOT_SET is not set; expected NOT_SET=VALUE"))
    }

    @Test("list shows only the apps that its arguments match")
    func listPatterns() throws {
        let daemon = try daemon()
        daemon.answer("List", [Records.mail, Records.worker, Records.unloadedWorker])
        let outcome = try daemon.run("list", "worker@*", "x*")
        #expect(outcome.status == 0)
        #expect(
            outcome.output
                == "worker@42  notRunning  -  -  2025-11-21T07:12:03.250000Z  80 (stream): bind: Address already in "
                + "use, connections have waited for 12s, launch postponed for 20s\n", "\(outcome.output)")
        #expect(outcome.errors == "greenroomctl: no app matches 'x*'.\n")
        let one = try JSONValue.parse(try daemon.run("list", "worker1.app", "--json").output).arrayValue
        #expect(one?.map { $0["id"]?.stringValue } == ["worker1"])
        #expect(try daemon.run("list", "nothing").output == "")
    }

    @Test("status shows held sockets, connections that wait, the template, and when the app is unloaded (L11, L29)")
    func status() throws {
        let daemon = try daemon()
        daemon.answer("Status", Records.unloadedWorker)
        let unloaded = try daemon.run("status", "worker@42").output
        #expect(
            unloaded == """
                ○ worker@42
                      State: notRunning since 2025-11-21T07:12:03.250000Z
                   Template: worker@ (the instance has no file: it is removed when nothing of it is left)
                   Launches: 0
                    Sockets: 127.0.0.1:8042 (stream)
                             80 (stream): bind: Address already in use
                     Launch: It is not launched before all its sockets are bound.
                             Only a user can launch it for 20s, because it ended early.
                             Connections have waited for 12s.

                """, "\(unloaded)")
        daemon.answer("Status", Records.heldWorker)
        let held = try daemon.run("status", "worker1").output
        #expect(held.contains("\n    Sockets: 127.0.0.1:8080 (stream)\n             /run/worker1.sock (datagram)\n"))
        #expect(held.contains("\n             It is unloaded in 5min unless it is woken.\n"))
    }

    @Test("idle says what launches or wakes an app at held sockets (L29)")
    func idle() throws {
        let daemon = try daemon()
        func why(_ app: AppStatus) throws -> String? {
            daemon.answer("Status", app)
            let outcome = try daemon.run("idle", "--json", app.id)
            return try JSONValue.parse(outcome.output).arrayValue?.first?["why"]?.stringValue
        }
        #expect(
            try why(Records.unloadedWorker)
                == "It is not launched before all its sockets are bound. Only a user can launch it for 20s, because it "
                + "ended early. Connections have waited for 12s. 80 (stream): bind: Address already in use.")
        let complete = Records.make(Records.unloadedWorker) { $0.sockets.removeAll { $0.problem != nil } }
        #expect(try why(complete)?.hasPrefix("A connection to 127.0.0.1:8042 launches it. Only a user") == true)
        let quiet = Records.make(Records.heldWorker) {
            $0.watch = nil
            ($0.shortestWait, $0.timerIn, $0.pulseIn) = (nil, nil, nil)
        }
        #expect(
            try why(quiet)
                == "A connection to 127.0.0.1:8080, or a datagram at /run/worker1.sock wakes it. It is unloaded in "
                + "5min unless it is woken.")
        let peers = Records.make(quiet) {
            $0.unloadsIn = nil
            $0.watch = Records.make(WatchStatus()) { $0.onlyPeers = true }
            $0.sockets = (1...5).map { SocketStatus(type: "stream", address: "\($0)") }
        }
        #expect(
            try why(peers) == "A connection to 1 or 2 or 3 or 2 more wakes it.")
        #expect(try why(Records.mail) == "")
        let document = try JSONValue.parse(try daemon.run("idle", "--json", "x").output).arrayValue?.first
        #expect(document != nil)
    }

    @Test("input at a held socket names its address and no process (L29)")
    func input() {
        var input = Records.make(InputStatus()) {
            $0.kind = "listener"
            $0.peer = "127.0.0.1:8080"
            $0.descriptor = 3
        }
        #expect(input.phrase == "a connection at 127.0.0.1:8080")
        input.kind = "datagram"
        input.peer = "/run/app.sock"
        input.bytes = 2048
        #expect(input.phrase == "a datagram at /run/app.sock (2.0K)")
        input.pid = 7
        #expect(input.phrase == "a datagram from /run/app.sock (descriptor 3 of process 7, 2.0K)")
    }

    // MARK: verify and init

    private func run(_ arguments: String...) throws -> Outcome {
        try RunningProgram(arguments, environment: ["HOME=/tmp"], terminal: false).finish(in: EventLoop())
    }

    @Test("verify checks a template as a sample instance and says so, and instances with or without a file")
    func verify() throws {
        let template = try folder.write(
            "worker@.app", "[App]\nExecStart=/bin/true %i\nUser=root\n[Wake]\nListenStream=127.0.0.1:80%i\n")
        let outcome = try run("verify", "--system", template)
        #expect(outcome.status == 0)
        #expect(outcome.output == "\(template): OK (checked as the instance worker@1)\n")
        let instance = folder.path + "/worker@42.app"
        #expect(try run("verify", "--system", instance).output == "\(instance): OK\n")
        let bad = folder.path + "/worker@web.app"
        let refused = try run("verify", "--system", bad)
        #expect(refused.status == 1)
        #expect(
            refused.output.hasPrefix("\(template):5:14: error: ListenStream=: invalid value '127.0.0.1:80%i'; expected")
        )
        // The drop-ins of both, and the instance's instead of the template's of the same name.
        let both = try folder.write("worker@.app.d/10-both.conf", "[App]\nUserr=root\n")
        let second = try folder.write("worker@.app.d/20-more.conf", "[App]\nGruop=root\n")
        let own = try folder.write("worker@42.app.d/10-both.conf", "[App]\nNmae=x\n")
        for file in [instance, own] {
            let lines = try run("verify", "--system", file).output.split(separator: "\n").map(String.init)
            #expect(
                lines.count == 2 && lines[0].hasPrefix("\(own):2:1: warning") && lines[1].hasPrefix("\(second):2:1: "))
        }
        let sample = try run("verify", "--system", both).output.split(separator: "\n").map(String.init)
        #expect(sample.count == 3 && sample[0].hasPrefix("\(both):2:1: warning"))
        #expect(sample.last == "\(both): checked as the instance worker@1")
        let missing = folder.path + "/other@1.app"
        #expect(try run("verify", missing).output == "\(missing): error: No such file or directory\n")
    }

    @Test("init creates a template, and keeps specifiers in its command")
    func initialize() throws {
        let config = folder.path
        let outcome = try run("init", "web@", "--config", config, "--", "true", "--port", "80%i", "a %I")
        #expect(outcome.status == 0, "\(outcome.errors)")
        let path = config + "/apps/web@.app"
        #expect(outcome.output.hasPrefix("Created \(path).\n"))
        #expect(outcome.output.hasSuffix("'greenroomctl launch web@1'.\n"))
        let verified = try run("verify", "--user", path)
        #expect(verified.output == "\(path): OK (checked as the instance web@1)\n")
        let wrong = try run("init", "bad@", "--config", config, "--", "true", "%Q")
        #expect(wrong.status == 1 && wrong.errors.contains("%Q is no specifier that is supported"))
    }
}
