import Control
import Glibc
import Linux
import Systemd
import Testing

/// Access of unprivileged users. The tests start programs as another user, which needs root.
@Suite(
    "Access to the interface", .enabled(if: PrivateBus.isPossible && geteuid() == 0, PrivateBus.whyNot),
    .enabled(if: isInstalled("setpriv") && isInstalled("busctl"), "setpriv or busctl is not installed"))
struct BusAccessTests {
    private static let photos = TestDaemon.manifest("")
    private static let launch = [
        "call", ControlNames.busName, "/org/greenroom", ControlNames.managerInterface, "Launch", "sa{sv}", "photos",
        "0",
    ]

    private func launch(_ stage: BusStage, _ options: String...) throws -> (status: Int32, text: String) {
        try stage.run(["busctl", "--system"] + options + Self.launch, asUnprivileged: true)
    }

    @Test("an unprivileged user may read everything, and without polkit cannot manage apps")
    func withoutPolkit() throws {
        let stage = try BusStage(["photos": Self.photos])
        for words in [
            ["call", ControlNames.busName, "/org/greenroom", ControlNames.managerInterface, "List"],
            ["call", ControlNames.busName, "/org/greenroom", ControlNames.managerInterface, "Pressure"],
            ["get-property", ControlNames.busName, BusStage.path("photos"), ControlNames.appInterface, "State"],
            ["introspect", ControlNames.busName, BusStage.path("photos")],
            ["tree", ControlNames.busName],
        ] {
            let answer = try stage.run(["busctl", "--system", "--no-pager"] + words, asUnprivileged: true)
            #expect(answer.status == 0, "\(words): \(answer.text)")
        }
        let refused = try launch(stage)
        #expect(refused.status == 1)
        #expect(
            refused.text.contains("Launch is for root; polkit cannot be asked"), "\(refused.text)")
        #expect(try stage.daemon.state("photos") == "notRunning")
    }

    @Test(
        "with polkit's authorization an unprivileged user manages apps; polkit receives the caller, the method and the app"
    )
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

    @Test("without authorization, or with authentication required, the call fails with AccessDenied and a sentence")
    func refused() throws {
        let stage = try BusStage(["photos": Self.photos])
        let polkit = try FakePolkit(stage)
        polkit.decide = { $0.answer(false) }
        #expect(try launch(stage).text.contains("polkit does not let uid 65534 (org.greenroom.manage)"))
        polkit.decide = { $0.answer(false, isChallenge: true) }
        #expect(try launch(stage).text.contains("polkit wants authentication first"))
        let asked = try launch(stage, "--allow-interactive-authorization=yes")
        #expect(asked.text.contains("found no agent that asks for it"), "\(asked.text)")
        let error = try stage.run(
            [
                "gdbus", "call", "--system", "--dest", ControlNames.busName, "--object-path", "/org/greenroom",
                "--method", "org.greenroom.Manager1.Activate", "photos",
            ], asUnprivileged: true)
        #expect(error.text.contains("org.greenroom.Error.AccessDenied"), "\(error.text)")
        #expect(try stage.daemon.state("photos") == "notRunning")
        #expect(polkit.questions.count == 4)
    }

    @Test("polkit may ask for a password only if the call allows it", arguments: [true, false])
    func interaction(isAllowed: Bool) throws {
        let stage = try BusStage(["photos": Self.photos])
        let polkit = try FakePolkit(stage)
        polkit.decide = { $0.answer(false) }
        _ = try launch(stage, "--allow-interactive-authorization=\(isAllowed ? "yes" : "no")")
        #expect(polkit.questions.map(\.mayAsk) == [isAllowed])
    }

    @Test("a pending polkit question blocks no other call, and is cancelled when its caller disconnects")
    func callerGone() throws {
        let stage = try BusStage(["photos": Self.photos])
        let polkit = try FakePolkit(stage)
        let running = try stage.start(["busctl", "--system"] + Self.launch, asUnprivileged: true)
        try stage.serve("polkit's question") { !polkit.questions.isEmpty }
        #expect(try stage.ask("Version").get().count == 1)
        _ = try running.process.signal(SIGKILL)
        try stage.serve("the cancellation") { !polkit.cancelled.isEmpty }
        #expect(polkit.cancelled == [polkit.questions[0].cancellation])
        // A late answer has no effect: the caller is gone.
        polkit.questions[0].answer(true)
        #expect(try stage.ask("Version").get().count == 1)
        #expect(try stage.daemon.state("photos") == "notRunning")
        try stage.serve("the end of busctl") { try running.hasEnded() }
        _ = try running.process.reap()
    }

    @Test("the calls of one user that wait for polkit are limited")
    func bounded() throws {
        let stage = try BusStage(["photos": Self.photos])
        let polkit = try FakePolkit(stage)
        var waiting: [BusStage.Running] = []
        for _ in 0..<8 { waiting.append(try stage.start(["busctl", "--system"] + Self.launch, asUnprivileged: true)) }
        try stage.serve("eight questions") { polkit.questions.count == 8 }
        #expect(try launch(stage).text.contains("too many calls wait for polkit's decision"))
        for question in polkit.questions { question.answer(false) }
        for running in waiting {
            try stage.serve("the end of busctl") { try running.hasEnded() }
            _ = try running.process.reap()
        }
        polkit.decide = { $0.answer(true) }
        #expect(try launch(stage).status == 0)
    }

    @Test("on the private socket polkit receives the process and its user")
    func privateSocket() throws {
        let stage = try BusStage(["photos": Self.photos])
        let polkit = try FakePolkit(stage)
        polkit.decide = { $0.answer(true) }
        let words = ["busctl", "--address=unix:path=\(stage.daemon.runtime)/bus"] + Self.launch
        let done = try stage.run(words, asUnprivileged: true)
        #expect(done.status == 0, "\(done.text)")
        let subject = try #require(polkit.questions.first?.subject.structureValue)
        #expect(subject.first == .string("unix-process"))
        #expect(subject.last?["uid"] == .int32(Int32(BusStage.unprivilegedUser)))
        #expect(subject.last?["start-time"]?.uintValue ?? 0 > 0)
        polkit.decide = { $0.answer(false) }
        let refused = try stage.run(words, asUnprivileged: true)
        #expect(refused.text.contains("polkit does not let uid 65534"), "\(refused.text)")
    }
}
