import Control
import Glibc
import Linux
import Systemd
import Testing

/// Access of other users. A test needs root to become another user.
@Suite(
    "Other users", .enabled(if: PrivateBus.isPossible && geteuid() == 0, PrivateBus.requirement),
    .enabled(if: isInstalled("setpriv") && isInstalled("busctl"), "setpriv or busctl is not installed"))
struct BusAccessTests {
    private static let photos = TestDaemon.manifest("")
    private static let launch = [
        "call", ControlNames.busName, "/org/greenroom", ControlNames.managerInterface, "Launch", "sa{sv}", "photos",
        "0",
    ]

    private func launch(_ stage: BusStage, _ options: String...) throws -> (status: Int32, text: String) {
        try stage.run(["busctl", "--system"] + options + Self.launch, asOtherUser: true)
    }

    @Test("another user may query everything on the message bus, and may manage nothing without polkit")
    func withoutPolkit() throws {
        let stage = try BusStage(["photos": Self.photos])
        for words in [
            ["call", ControlNames.busName, "/org/greenroom", ControlNames.managerInterface, "List"],
            ["call", ControlNames.busName, "/org/greenroom", ControlNames.managerInterface, "Pressure"],
            ["get-property", ControlNames.busName, BusStage.path("photos"), ControlNames.appInterface, "State"],
            ["introspect", ControlNames.busName, BusStage.path("photos")],
            ["tree", ControlNames.busName],
        ] {
            let answer = try stage.run(["busctl", "--system", "--no-pager"] + words, asOtherUser: true)
            #expect(answer.status == 0, "\(words): \(answer.text)")
        }
        let refused = try launch(stage)
        #expect(refused.status == 1)
        #expect(
            refused.text.contains("Launch is for root; polkit cannot be asked"), "\(refused.text)")
        #expect(try stage.daemon.state("photos") == "notRunning")
    }

    @Test(
        "another user reads receipts without the output of apps (L56)",
        .enabled(if: !hasJournald, "this machine has a journal"))
    func output() throws {
        let stage = try BusStage(["a": "[App]\nExecStart=/bin/sh -c 'echo secret; exit 3'\n"])
        _ = try stage.daemon.launch("a")
        try stage.daemon.eventually("it has failed") { try !stage.daemon.receipts("a").isEmpty }
        for words in [["Receipt", "t", "1"], ["Receipts", "su", "a", "0"], ["Status", "s", "a"], ["List"]] {
            let call = [
                "busctl", "--system", "call", ControlNames.busName, "/org/greenroom", ControlNames.managerInterface,
            ]
            let others = try stage.run(call + words, asOtherUser: true)
            #expect(others.status == 0 && others.text.contains("Exited with status 3"), "\(words): \(others.text)")
            #expect(!others.text.contains("secret"), "\(words)")
            let own = try stage.run(call + words)
            #expect(own.text.contains("secret") == words[0].hasPrefix("Receipt"), "\(words): \(own.text)")
        }
    }

    @Test("polkit authorizes another user; it receives the caller, the method and the app")
    func allowed() throws {
        let stage = try BusStage(["photos": Self.photos])
        let polkit = try FakePolkit(stage)
        polkit.decide = { $0.answer(true) }
        let done = try launch(stage)
        #expect(done.status == 0, "\(done.text)")
        #expect(try stage.daemon.state("photos") == "active")
        let question = try #require(polkit.questions.first)
        let subject = question.subject.structureValue
        #expect(subject?.first == .string("system-bus-name"))
        #expect(subject?.last?["name"]?.stringValue?.hasPrefix(":1.") == true)
        #expect(question.action == .string("org.greenroom.manage"))
        #expect(
            question.details
                == .array(
                    "{ss}",
                    [.entry(.string("method"), .string("Launch")), .entry(.string("app"), .string("photos"))]))
    }

    @Test(
        "polkit is asked for another action if a call concerns the daemon and not an app",
        arguments: [
            ["Reload"], ["Reexec"], ["SimulatePressure", "s", "normal"], ["SimulateLock", "b", "false"],
            ["Send", "sss", "photos", "locale", ""],
        ])
    func administration(words: [String]) throws {
        let stage = try BusStage(["photos": Self.photos])
        let polkit = try FakePolkit(stage)
        polkit.decide = { $0.answer($0.action == .string("org.greenroom.manage")) }
        let answer = try stage.run(
            ["busctl", "--system", "call", ControlNames.busName, "/org/greenroom", ControlNames.managerInterface]
                + words,
            asOtherUser: true)
        let isOfApp = words[0] == "Send"
        let action = isOfApp ? "org.greenroom.manage" : "org.greenroom.administer"
        #expect(polkit.questions.map(\.action) == [.string(action)])
        #expect(answer.text.contains("polkit does not authorize") == !isOfApp, "\(answer.text)")
    }

    @Test(
        "variables of a launch need polkit's action for administrators, on both interfaces; without any the other is enough",
        arguments: [
            ("/org/greenroom", ControlNames.managerInterface, ["sa{sv}", "photos"]),
            (BusStage.path("photos"), ControlNames.appInterface, ["a{sv}"]),
        ])
    func variables(path: String, interface: String, first: [String]) throws {
        let stage = try BusStage(["photos": Self.photos])
        let polkit = try FakePolkit(stage)
        polkit.decide = { $0.answer($0.action == .string("org.greenroom.manage")) }
        func launch(_ options: String...) throws -> (status: Int32, text: String) {
            try stage.run(
                ["busctl", "--system", "call", ControlNames.busName, path, interface, "Launch"] + first + options,
                asOtherUser: true)
        }
        let variable = ["environment", "as", "1", "LD_PRELOAD=/tmp/evil.so"]
        for options in [["1"] + variable, ["2", "background", "b", "true"] + variable, ["2"] + variable + variable] {
            let refused = try stage.run(
                ["busctl", "--system", "call", ControlNames.busName, path, interface, "Launch"] + first + options,
                asOtherUser: true)
            #expect(refused.status == 1)
            #expect(
                refused.text.contains("polkit does not authorize uid 65534 (org.greenroom.administer)"),
                "\(refused.text)")
        }
        #expect(try stage.daemon.state("photos") == "notRunning")
        polkit.decide = { $0.answer($0.action == .string("org.greenroom.administer")) }
        let done = try launch("1", "environment", "as", "1", "TOKEN=request")
        #expect(done.status == 0, "\(done.text)")
        #expect(try stage.daemon.variable("TOKEN", of: "photos") == "request")
        try stage.daemon.terminate("photos")
        polkit.decide = { $0.answer($0.action == .string("org.greenroom.manage")) }
        #expect(try launch("1", "background", "b", "true").status == 0)
        let actions = polkit.questions.map(\.action)
        #expect(
            actions == Array(repeating: .string("org.greenroom.administer"), count: 4) + [
                .string("org.greenroom.manage")
            ])
    }

    @Test("if polkit refuses or requires authentication, the call fails with AccessDenied and the reason")
    func refused() throws {
        let stage = try BusStage(["photos": Self.photos])
        let polkit = try FakePolkit(stage)
        polkit.decide = { $0.answer(false) }
        #expect(try launch(stage).text.contains("polkit does not authorize uid 65534 (org.greenroom.manage)"))
        polkit.decide = { $0.answer(false, isChallenge: true) }
        #expect(try launch(stage).text.contains("polkit requires authentication"))
        let asked = try launch(stage, "--allow-interactive-authorization=yes")
        #expect(asked.text.contains("no authentication agent is available"), "\(asked.text)")
        let error = try stage.run(
            [
                "gdbus", "call", "--system", "--dest", ControlNames.busName, "--object-path", "/org/greenroom",
                "--method", "org.greenroom.Manager1.Activate", "photos",
            ], asOtherUser: true)
        #expect(error.text.contains("org.greenroom.Error.AccessDenied"), "\(error.text)")
        #expect(try stage.daemon.state("photos") == "notRunning")
        #expect(polkit.questions.count == 4)
    }

    @Test(
        "polkit may ask the user for a password only if the call allows interactive authorization",
        arguments: [true, false])
    func interaction(isAllowed: Bool) throws {
        let stage = try BusStage(["photos": Self.photos])
        let polkit = try FakePolkit(stage)
        polkit.decide = { $0.answer(false) }
        _ = try launch(stage, "--allow-interactive-authorization=\(isAllowed ? "yes" : "no")")
        #expect(polkit.questions.map(\.mayAsk) == [isAllowed])
    }

    @Test("other calls are served while polkit decides; if the caller disconnects, the check is cancelled")
    func callerGone() throws {
        let stage = try BusStage(["photos": Self.photos])
        let polkit = try FakePolkit(stage)
        let running = try stage.start(["busctl", "--system"] + Self.launch, asOtherUser: true)
        try stage.serve("polkit's question") { !polkit.questions.isEmpty }
        #expect(try stage.ask("Version").get().count == 1)
        _ = try running.process.signal(SIGKILL)
        try stage.serve("the cancellation") { !polkit.cancelled.isEmpty }
        #expect(polkit.cancelled == [polkit.questions[0].cancellation])
        // The answer is too late: the call of a caller that has disconnected has no effect.
        polkit.questions[0].answer(true)
        #expect(try stage.ask("Version").get().count == 1)
        #expect(try stage.daemon.state("photos") == "notRunning")
        try stage.serve("the end of busctl") { try running.hasEnded() }
        _ = try running.process.reap()
    }

    @Test("at most eight calls of one user wait for polkit")
    func bounded() throws {
        let stage = try BusStage(["photos": Self.photos])
        let polkit = try FakePolkit(stage)
        var waiting: [BusStage.Running] = []
        for _ in 0..<8 { waiting.append(try stage.start(["busctl", "--system"] + Self.launch, asOtherUser: true)) }
        try stage.serve("eight questions") { polkit.questions.count == 8 }
        #expect(try launch(stage).text.contains("too many calls wait for polkit's decision"))
        for question in polkit.questions { question.answer(false) }
        for running in waiting {
            try stage.serve("the end of busctl") { try running.hasEnded() }
            _ = try running.process.reap()
        }
        polkit.decide = { $0.answer(true) }
        let last = try launch(stage)
        #expect(last.status == 0, "\(last.text)")
    }

    @Test("on the private socket another user is refused, and polkit is not asked")
    func privateSocket() throws {
        let stage = try BusStage(["photos": Self.photos])
        let polkit = try FakePolkit(stage)
        polkit.decide = { $0.answer(true) }
        let socket = "\(stage.daemon.runtime)/bus"
        var status = stat()
        #expect(stat(socket, &status) == 0 && status.st_mode & 0o777 == 0o600)
        let words = ["busctl", "--address=unix:path=\(socket)"] + Self.launch
        let unable = try stage.run(words, asOtherUser: true)
        #expect(unable.status == 1 && unable.text.contains("Permission denied"), "\(unable.text)")
        // Besides the mode of the socket, the daemon checks the user of the connection.
        #expect(chmod(socket, 0o666) == 0)
        let refused = try stage.run(words, asOtherUser: true)
        #expect(refused.status == 1, "\(refused.text)")
        #expect(TestDaemon.text(of: stage.root + "/log").contains("was refused: only uid 0 may connect."))
        #expect(polkit.questions.isEmpty)
        #expect(try stage.daemon.state("photos") == "notRunning")
    }
}
