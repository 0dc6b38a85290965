import Control
import Glibc
import JSON
import Linux
import Posix
import Systemd
import TestKit
import Testing

/// greenroomctl and greenroomd together.
@Suite("The command line with a daemon")
struct CommandLineTests {
    /// Runs greenroomctl until it ends.
    private func control(
        _ daemon: TestDaemon, _ arguments: [String], _ variables: String...
    ) throws -> (status: EndStatus?, output: String) {
        let path = daemon.root + "/output"
        let output = SharedDescriptor(try Descriptor.open(path, O_WRONLY | O_CREAT | O_TRUNC, mode: 0o600))
        let request = SpawnRequest(
            executable: TestDaemon.binaries + "/greenroomctl", arguments: ["--runtime", daemon.runtime] + arguments,
            environment: ["PATH=/usr/bin:/bin"] + variables, standardOutput: output, standardError: output)
        var starting = try startProcess(request)
        let process = starting.process
        while try starting.outcome() == .pending { waitForReadable([starting.outcomeDescriptor]) }
        waitForReadable([process.descriptor])
        return (try process.reap()?.status, TestDaemon.text(of: path))
    }

    @Test("list --scenes shows the scenes of apps that run, and activate and background --scene move one (L34)")
    func scenes() throws {
        let daemon = try TestDaemon(["editor": TestDaemon.manifest(""), "mail": TestDaemon.manifest("")])
        func run(_ arguments: String...) throws -> String {
            let (status, output) = try control(daemon, arguments)
            #expect(status == .exited(0), "\(output)")
            return output
        }
        _ = try run("launch", "editor")
        func scenes() throws -> [String] {
            try run("list", "--scenes").split(separator: "\n").map { $0.split(separator: " ").joined(separator: " ") }
        }
        #expect(try scenes() == ["editor main window foregroundActive -"])
        try daemon.sendMessage("X_GREENROOM_BEGIN_SCENE=report")
        try daemon.eventually("it has a scene") { try daemon.status("editor")["scenes"] != nil }
        #expect(try run("activate", "editor", "--scene", "main") == "editor: active\n")
        #expect(
            try scenes() == ["editor report window background -", "editor main window foregroundActive -"])
        #expect(try run("status", "editor").contains("report, window: background"))
        #expect(try run("background", "editor", "--scene", "report") == "editor: active\n")
        let refused = try control(daemon, ["activate", "editor", "--scene", "x"])
        #expect(refused.status == .exited(1))
        #expect(refused.output.contains("Cannot activate the scene of 'editor': it has no scene 'x'"))
        let invalid = try control(daemon, ["activate", "editor", "--scene", "a b"])
        #expect(invalid.output.contains("Invalid scene 'a b'; expected 1 to 64 of the characters"))
    }

    @Test(
        "switch lists what can be shown, the foreground first; on a terminal a number brings a window to the front, and -NUMBER closes it (L55)"
    )
    func switcher() throws {
        let daemon = try TestDaemon([
            "editor": TestDaemon.manifest(""), "mail": TestDaemon.manifest(""),
            "server": TestDaemon.manifest("", app: "Role=worker"), "other": TestDaemon.manifest(""),
        ])
        func lines() throws -> [String] {
            let (status, output) = try control(daemon, ["switch"])
            #expect(status == .exited(0))
            return output.split(separator: "\n").map { $0.split(separator: " ").joined(separator: " ") }
        }
        #expect(try lines() == ["No app runs that could be shown."])
        _ = try daemon.launch("editor")
        #expect(try lines() == ["1 editor active -"])
        try daemon.sendMessage("X_GREENROOM_BEGIN_SCENE=report")
        try daemon.eventually("it has a scene") { try daemon.status("editor")["scenes"] != nil }
        _ = try daemon.launch("server", background: true)
        _ = try daemon.launch("mail")
        #expect(try lines() == ["1 mail active -", "2 editor (report) background -", "3 editor (main) background -"])
        // A number that is none, the removal of the first, the end of a window, and the app that is left.
        let (number, path) = try openTerminal()
        let master = SharedDescriptor(Descriptor(adopting: number))
        let terminal = SharedDescriptor(try Descriptor.open(path, O_RDWR | O_NOCTTY))
        var starting = try startProcess(
            SpawnRequest(
                executable: TestDaemon.binaries + "/greenroomctl", arguments: ["--runtime", daemon.runtime, "switch"],
                environment: ["PATH=/usr/bin:/bin", "TERM=dumb"], standardInput: terminal, standardOutput: terminal,
                standardError: terminal))
        while try starting.outcome() == .pending { waitForReadable([starting.outcomeDescriptor]) }
        try writeAll(Array("9\n-1\n-1\n1\n".utf8), to: master.descriptor)
        waitForReadable([starting.process.descriptor])
        #expect(try starting.process.reap()?.status == .exited(0))
        let scenes = try daemon.status("editor")["scenes"]?.arrayValue ?? []
        #expect(scenes.allSatisfy { $0["id"]?.stringValue == "main" })
        #expect(try daemon.state("editor") == "active" && daemon.state("mail") == "notRunning")
    }

    @Test("apps that a pattern names are launched, restarted and terminated, and terminated again without an error")
    func several() throws {
        let daemon = try TestDaemon([
            "worker-1": TestDaemon.manifest(""), "worker-2": TestDaemon.manifest(""), "other": TestDaemon.manifest(""),
        ])
        let workers = ["worker-1", "worker-2"]
        func run(_ verb: String, _ option: String...) throws -> [Substring] {
            let (status, output) = try control(daemon, [verb, "worker-*"] + option)
            #expect(status == .exited(0), "\(output)")
            return output.split(separator: "\n").sorted()
        }
        #expect(try run("launch", "--background") == ["worker-1: background", "worker-2: background"])
        #expect(try daemon.state("other") == "notRunning")
        let before = try workers.map { try daemon.pid($0) }
        #expect(try run("restart", "--background") == ["worker-1: background", "worker-2: background"])
        let after = try workers.map { try daemon.pid($0) }
        #expect(Set(before).isDisjoint(with: after))
        #expect(try run("terminate").count == 2)
        #expect(try workers.map { try daemon.state($0) } == ["notRunning", "notRunning"])
        #expect(try run("terminate") == ["worker-1: not running", "worker-2: not running"])
        #expect(try control(daemon, ["is-active", "worker-1", "other"]).status == .exited(3))
    }

    @Test(
        "instances are launched, listed, enabled and disabled by name and by pattern; a disabled one holds no sockets")
    func instances() throws {
        let daemon = try TestDaemon([
            "worker@": TestDaemon.manifest("", app: "", "[Wake]\nListenStream=/tmp/greenroom-%i-\(getpid()).socket"),
            "plain@": TestDaemon.manifest("", app: "Environment=TENANT=red"),
        ])
        func run(_ arguments: String...) throws -> String {
            let (status, output) = try control(daemon, arguments)
            #expect(status == .exited(0), "\(arguments): \(output)")
            return output
        }
        #expect(try run("launch", "plain@42") == "plain@42: active\n")
        _ = try run("launch", "plain@43", "--setenv", "TENANT=blue")
        #expect(try daemon.variable("TENANT", of: "plain@42") == "red")
        #expect(try daemon.variable("TENANT", of: "plain@43") == "blue")
        let list = try run("list", "plain@*")
        #expect(list.contains("plain@42") && list.contains("plain@43") && !list.contains("worker@"), "\(list)")
        let config = ["--config", daemon.config]
        #expect(try control(daemon, ["enable", "plain@42", "worker@1", "worker@2"] + config).status == .exited(0))
        #expect(try daemon.listed() == ["plain@42", "plain@43", "worker@1", "worker@2"])
        let socket = "/tmp/greenroom-1-\(getpid()).socket"
        #expect(exists(at: socket))
        try daemon.launch("worker@1")
        let disabled = try control(daemon, ["disable", "worker@*", "plain@42", "--now"] + config)
        #expect(disabled.status == .exited(0), "\(disabled.output)")
        #expect(try daemon.listed() == ["plain@43"])
        try daemon.eventually("the socket is removed") { !exists(at: socket) }
    }

    @Test("init and enable write into the folder of the daemon that --runtime names, which says where it is")
    func folders() throws {
        let daemon = try TestDaemon(["worker@": TestDaemon.manifest("")])
        for (name, path) in [
            ("ConfigFolder", daemon.config), ("RuntimeFolder", daemon.runtime), ("StateFolder", daemon.state),
        ] {
            let value = try daemon.bus.property(
                path: ControlNames.managerPath, interface: ControlNames.managerInterface, name)
            #expect(value == .string(path))
        }
        #expect(try control(daemon, ["init", "web", "--", "/bin/sleep", "60"]).status == .exited(0))
        #expect(try control(daemon, ["enable", "worker@1"]).status == .exited(0))
        #expect(exists(at: daemon.config + "/apps/web.app"))
        #expect(try daemon.listed() == ["web", "worker@1"])
    }

    @Test("edit mends a manifest that was refused, and the daemon loads it; status without an app shows both")
    func edit() throws {
        let daemon = try TestDaemon(["photos": TestDaemon.manifest("", "[Lifecycle]\nSuspendDelaySec=x")])
        let before = try control(daemon, ["status"])
        #expect(before.output.contains("Problems: photos: "), "\(before.output)")
        let edited = try control(
            daemon, ["edit", "photos"], "EDITOR=sed -i s/=x/=3s/", "TMPDIR=\(daemon.root)")
        #expect(edited.status == .exited(0))
        #expect(edited.output.hasSuffix("Wrote \(daemon.config)/apps/photos.app.\nLoaded 1 app.\n"), "\(edited.output)")
        let after = try control(daemon, [])
        #expect(
            after.output.contains("Problems: none\n") && after.output.contains("Apps: 1: 1 not running\n"),
            "\(after.output)")
    }

    @Test(
        "a manifest that is ignored, and a configuration that is refused, are problems of status until they are mended")
    func ignoredFiles() throws {
        let daemon = try TestDaemon(["photos": TestDaemon.manifest("")])
        let (ignored, configuration) = (daemon.config + "/apps/my photos.app", daemon.config + "/greenroom.conf")
        func problems() throws -> [JSONValue] {
            try JSONValue.parse(try control(daemon, ["status", "--json"]).output)["problems"]?.arrayValue ?? []
        }
        #expect(try problems() == [])
        try replaceFile(at: ignored, with: Array("[App]\nExecStart=/bin/true\n".utf8))
        try replaceFile(at: configuration, with: Array("[Manager]\nForegroundLimit=none\n".utf8))
        _ = try daemon.call("Reload")
        let found = try problems().compactMap { $0["problem"]?.stringValue }
        try #require(found.count == 2, "\(found)")
        #expect(found[0].hasPrefix("\(ignored): ignored because of its name; expected ID.app "))
        #expect(found[1].hasPrefix("\(configuration):2:17: ") && found[1].contains("ForegroundLimit="), "\(found)")
        #expect(try control(daemon, []).output.contains("Problems: \(ignored): ignored because of its name; "))
        #expect(unlink(ignored) == 0 && unlink(configuration) == 0)
        _ = try daemon.call("Reload")
        #expect(try problems() == [])
    }

    @Test("launch --no-block exits before the app is active; a refusal is reported")
    func noBlock() throws {
        let daemon = try TestDaemon([
            "slow": TestDaemon.manifest("", "[Lifecycle]\nLaunchDeadlineSec=infinity", hangs: true)
        ])
        let (status, output) = try control(daemon, ["launch", "slow", "--no-block"])
        #expect(status == .exited(0))
        #expect(output == "slow: requested\n")
        #expect(try daemon.state("slow") == "launching")
        let refused = try control(daemon, ["launch", "nowhere", "--no-block"])
        #expect(refused.status == .exited(1))
        #expect(refused.output.hasPrefix("greenroomctl: There is no app 'nowhere' in \(daemon.config)/apps or "))
    }

    @Test("cat prints the files that the daemon has read; an app may be named with its suffix")
    func cat() throws {
        let text = TestDaemon.manifest("")
        let daemon = try TestDaemon(["photos": text])
        let (status, output) = try control(daemon, ["cat", "photos.app"])
        #expect(status == .exited(0))
        #expect(output == "# \(daemon.config)/apps/photos.app\n\(text)")
    }

    @Test(
        "reexec reports a program that cannot be executed, and the old one continues with all of its clients",
        .enabled(if: geteuid() == 0, "the daemon runs as another user"))
    func badProgram() throws {
        // Its program is a copy in the folder of the test.
        let daemon = try TestDaemon(asUnprivilegedUser: true)
        let client = try BusConnection(path: daemon.runtime + "/bus")
        func version() throws -> Variant? {
            try client.call(
                path: ControlNames.managerPath, interface: ControlNames.managerInterface, member: "Version"
            ).first
        }
        #expect(try version() == .string(ControlNames.version))
        let program = daemon.root + "/greenroomd"
        try replaceFile(at: program, with: Array("neither ELF nor a script".utf8), mode: 0o755)
        let failed = try control(daemon, ["reexec"])
        #expect(failed.status == .exited(1))
        #expect(failed.output.contains("greenroomd was not replaced"))
        #expect(TestDaemon.text(of: daemon.root + "/log").contains("Cannot reexecute: execve"))
        // Connections are read and accepted again.
        #expect(try version() == .string(ControlNames.version))
        let next = try BusConnection(path: daemon.runtime + "/bus")
        #expect(next.isOpen)
        // With a program it succeeds.
        try replaceFile(
            at: program, with: readFile(at: TestDaemon.binaries + "/greenroomd", limit: 1 << 28), mode: 0o755)
        var succeeded = try control(daemon, ["reexec"])
        // A process that another test has forked meanwhile has the file open for writing until it executes its own program (ETXTBSY).
        for _ in 0..<100
        where succeeded.status != .exited(0) && TestDaemon.text(of: daemon.root + "/log").contains("Text file busy") {
            succeeded = try control(daemon, ["reexec"])
        }
        #expect(succeeded.status == .exited(0), "\(succeeded.output)")
        #expect(throws: BusError.self) { try version() }
    }
}
