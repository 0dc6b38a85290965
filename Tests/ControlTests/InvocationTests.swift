import Testing
import greenroomctl

@Suite("Arguments")
struct InvocationTests {
    @Test("options may stand before or after the verb, with or without an equals sign")
    func options() {
        for line in [
            ["--json", "--runtime", "/r", "launch", "photos", "--background"],
            ["launch", "--background", "photos", "--runtime=/r", "--json"],
        ] {
            guard case .run(let invocation) = Invocation.parse(line) else {
                Issue.record("\(line) was refused")
                continue
            }
            #expect(invocation.verb == .launch)
            #expect(invocation.operands == ["photos"])
            #expect(invocation.options == [.json: "", .runtime: "/r", .background: ""])
        }
    }

    @Test("two hyphens end the options, a single hyphen is an argument")
    func endOfOptions() {
        guard case .run(let invocation) = Invocation.parse(["send", "photos", "x-a", "--", "--json"]) else {
            Issue.record("refused")
            return
        }
        #expect(invocation.operands == ["photos", "x-a", "--json"])
        #expect(invocation.options.isEmpty)
        guard case .run(let push) = Invocation.parse(["push", "photos", "-"]) else {
            Issue.record("refused")
            return
        }
        #expect(push.operands == ["photos", "-"])
    }

    @Test("short options take their value with or without a space")
    func letters() {
        for line in [["receipts", "-n5"], ["receipts", "-n", "5"], ["receipts", "--lines=5"]] {
            guard case .run(let invocation) = Invocation.parse(line) else {
                Issue.record("\(line) was refused")
                continue
            }
            #expect(invocation.options == [.lines: "5"])
        }
    }

    @Test(
        "a usage error is one sentence",
        arguments: [
            (["--background"], "missing verb"),
            (["--user", "--system"], "--user and --system are mutually exclusive"),
            (["lsit"], "unknown verb 'lsit'; did you mean 'list'?"),
            (["frobnicate"], "unknown verb 'frobnicate'"),
            (["idel"], "unknown verb 'idel'; did you mean 'idle'?"),
            (["idle", "-n", "5"], "idle: unexpected option '-n'; it is for receipts and log"),
            (["a\u{1B}[2Jb"], "unknown verb 'a\\x1b[2Jb'"),
            (["list", "--jsno"], "unrecognized option '--jsno'; did you mean '--json'?"),
            (["--frob", "list"], "unrecognized option '--frob'"),
            (["list", "-x"], "invalid option '-x'"),
            (["list", "--json=1"], "option '--json' does not take a value"),
            (["list", "--runtime"], "option '--runtime' requires a value DIR"),
            (["list", "--runtime="], "option '--runtime' requires a value DIR"),
            (["reload", "photos"], "reload: unexpected argument 'photos'"),
            (
                ["enable", "worker@"],
                "enable: invalid app ID 'worker@': it is a template; expected an instance of it such"
            ),
            (["enable", "worker@a/b"], "enable: invalid app ID 'worker@a/b': expected letters, digits, ':', '_'"),
            (
                ["disable", "w@" + String(repeating: "a", count: 300)],
                "disable: invalid app ID 'w@" + String(repeating: "a", count: 300)
                    + "': it has 302 bytes; expected at most 128"
            ),
            (["log", "a/b"], "log: invalid app ID 'a/b': expected 1 to 128 letters"),
            (["launch", "a", "-E", "1A=2"], "--setenv: invalid variable '1A=2'; expected NAME=VALUE"),
            (["launch", "a", "--setenv"], "option '--setenv' requires a value NAME[=VALUE]"),
            (["status", "a", "-E", "A=2"], "status: unexpected option '-E'; it is for launch and restart"),
            (["launch", "a", "--now"], "launch: unexpected option '--now'; it is for enable and disable"),
            (["--user", "--system", "list"], "--user and --system are mutually exclusive"),
            (["launch"], "launch: missing argument APP"),
            (["receipt", "1", "2"], "receipt: unexpected argument '2'"),
            (
                ["activate", "a", "--background"],
                "activate: unexpected option '--background'; it is for launch and restart"
            ),
            (["restart", "a", "--no-block"], "restart: unexpected option '--no-block'; it is for launch, activate, "),
            (["status", "-n", "5"], "status: unexpected option '-n'; it is for receipts and log"),
            (["init", "web"], "init: missing argument COMMAND"),
            (["init", "a b", "true"], "init: invalid app ID 'a b'"),
            (
                ["show", "-p", "state,memroyBytes"],
                "--property: unknown key 'memroybytes'; did you mean 'memoryBytes'?"
            ),
            (["receipts", "--since", "soon"], "--since: invalid time 'soon'; expected a time such as"),
            (["launch", "a", "--remove"], "launch: unexpected option '--remove'; it is for terminate"),
            (
                ["launch", "a", "--reason", "whim"],
                "--reason: invalid value 'whim'; expected user, url, push,"
            ),
            (["send", "a"], "send: missing argument KIND"),
            (["receipt"], "receipt: missing argument ID"),
            (["receipt", "photos"], "receipt: invalid ID 'photos'; expected a number; to list the receipts of"),
            (["receipts", "-n", "x"], "--lines: invalid number 'x'"),
            (
                ["pressure", "critcal"],
                "pressure: invalid level 'critcal'; did you mean 'critical'?; expected normal, warning, critical"
            ),
            (["verify"], "verify: missing argument FILE"),
            (["help", "lunch"], "unknown verb 'lunch'; did you mean 'launch'?"),
        ] as [([String], String)])
    func wrongUsage(line: [String], expected: String) {
        guard case .wrong(let sentence) = Invocation.parse(line) else {
            Issue.record("\(line) was accepted")
            return
        }
        #expect(sentence.hasPrefix(expected), "\(sentence)")
    }

    @Test(
        "a verb of another program is answered with the verb to use, wherever the options stand",
        arguments: [
            ("start", "use 'launch'"), ("stop", "use 'terminate'"), ("kill", "use 'terminate --remove'"),
            ("freeze", "use 'background'"), ("thaw", "use 'activate'"), ("ps", "use 'list'"),
            ("continue", "use 'activate' for a suspended app, or 'resume' to end an interruption"),
            ("mask", "an empty file ID.app"), ("set-property", "use 'edit'"),
            ("daemon-reload", "use 'reload'"), ("logs", "use 'log'"), ("create", "use 'init"), ("why", "use 'idle'"),
        ])
    func hints(word: String, hint: String) {
        for line in [[word, "photos"], ["--runtime", "launch", word, "photos"], ["--json", word, "--user"]] {
            guard case .wrong(let sentence) = Invocation.parse(line) else {
                Issue.record("\(line) was accepted")
                continue
            }
            #expect(sentence.hasPrefix("unknown verb '\(word)'; \(hint)"), "\(sentence)")
        }
    }

    @Test("an app may be named with the suffix of its manifest")
    func suffix() {
        for line in [["launch", "photos.app", "mail"], ["launch", "photos", "mail.app"]] {
            guard case .run(let invocation) = Invocation.parse(line) else {
                Issue.record("\(line) was refused")
                continue
            }
            #expect(invocation.operands == ["photos", "mail"])
        }
        guard case .run(let push) = Invocation.parse(["push", "photos.app", "x.app"]) else {
            Issue.record("refused")
            return
        }
        #expect(push.operands == ["photos", "x.app"])
    }

    @Test("an option that may be repeated collects its values")
    func properties() {
        guard case .run(let invocation) = Invocation.parse(["show", "-p", "state", "-ppid,Since", "photos"]) else {
            Issue.record("refused")
            return
        }
        #expect(invocation.options == [.property: "state,pid,Since"])
    }

    @Test("--setenv may be repeated, and keeps its values as they are")
    func variables() {
        let line = ["launch", "-E", "A=1,2", "w@1", "--setenv=B=x y", "-EC", "--setenv", "D="]
        guard case .run(let invocation) = Invocation.parse(line) else {
            Issue.record("refused")
            return
        }
        #expect(invocation.variables == ["A=1,2", "B=x y", "C", "D="])
        #expect(invocation.operands == ["w@1"])
    }

    @Test("there is general help, and help for each verb", arguments: Verb.allCases)
    func help(verb: Verb) {
        guard case .show(let one) = Invocation.parse([verb.rawValue, "--help"]),
            case .show(let same) = Invocation.parse(["help", verb.rawValue]),
            case .show(let all) = Invocation.parse(["-h"])
        else {
            Issue.record("no help for \(verb)")
            return
        }
        #expect(one == same)
        #expect(one.hasPrefix("Usage: greenroomctl \(verb.rawValue)"))
        #expect(all.contains("\n  \(verb.rawValue) "))
        for line in (one + all).split(separator: "\n") { #expect(line.count <= 120, "\(line)") }
    }
}

@Suite("Selecting the daemon")
struct EndpointTests {
    private func endpoint(_ line: [String], root: Bool = false, _ variables: [String: String] = [:]) throws -> Endpoint
    {
        guard case .run(let invocation) = Invocation.parse(line) else { throw Failure("refused") }
        var environment = Environment(isRoot: root) { variables[$0] }
        environment.workingDirectory = "/srv"
        return try Endpoint(invocation, environment)
    }

    @Test("the system daemon is the default for root, the user's daemon for other users; --runtime selects any")
    func runtime() throws {
        let home = ["HOME": "/home/ada"]
        let session = ["HOME": "/home/ada", "XDG_RUNTIME_DIR": "/run/user/7"]
        #expect(try endpoint(["list"], root: true, home).socket == "/run/greenroom/bus")
        #expect(try endpoint(["list", "--system"], home).socket == "/run/greenroom/bus")
        #expect(try endpoint(["list"], session).socket == "/run/user/7/greenroom/bus")
        #expect(try endpoint(["list"], home).socket == "/home/ada/.cache/greenroom/bus")
        #expect(try endpoint(["list", "--user"], root: true, home).socket == "/home/ada/.cache/greenroom/bus")
        #expect(try endpoint(["list", "--runtime", "/r/"], root: true, home).socket == "/r/bus")
        #expect(try endpoint(["list", "--runtime", "./r/"], root: true, home).socket == "/srv/r/bus")
        #expect(try endpoint(["list"], ["HOME": "relative", "XDG_RUNTIME_DIR": "/x"]).socket == "/x/greenroom/bus")
    }

    @Test("without XDG_RUNTIME_DIR the daemon of the user's session is selected, if its socket exists")
    func session() throws {
        guard case .run(let invocation) = Invocation.parse(["list", "--user"]) else { throw Failure("refused") }
        var environment = Environment(isRoot: false) { ["HOME": "/home/ada"][$0] }
        environment.userID = 7
        #expect(try Endpoint(invocation, environment).socket == "/home/ada/.cache/greenroom/bus")
        environment.exists = { $0 == "/run/user/7/greenroom/bus" }
        #expect(try Endpoint(invocation, environment).socket == "/run/user/7/greenroom/bus")
        environment.variable = { ["HOME": "/home/ada", "XDG_RUNTIME_DIR": "/x"][$0] }
        #expect(try Endpoint(invocation, environment).socket == "/x/greenroom/bus")
    }

    @Test(
        "a command of run leaves the group of a login session, and no other one (L54)",
        arguments: [
            ("/user.slice/user-7.slice/session-2.scope", true), ("/user.slice/user-7.slice/session-c1.scope/a", true),
            ("/user.slice/user-7.slice/user@7.service/app.slice/editor.scope", false),
            ("/user.slice/user-8.slice/session-2.scope", false), ("/system.slice/cron.service", false), ("/", false),
        ])
    func loginSession(group: String, isNeeded: Bool) {
        #expect(UserScope.isNeeded(in: group, user: 7) == isNeeded)
    }

    @Test("without a folder for the user there is an error")
    func noHome() {
        #expect(throws: Failure("Neither XDG_RUNTIME_DIR nor HOME is set; use --runtime DIR or --system.")) {
            try endpoint(["list"], ["HOME": "relative"])
        }
    }
}
