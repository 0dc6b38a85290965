import Glibc
import Systemd
import Testing

/// What another user may do. Becoming one takes root.
@Suite(
    "Other users on the bus", .serialized,
    .enabled(if: geteuid() == 0, "only root can become another user"),
    .enabled(if: isInstalled("setpriv") && isInstalled("busctl"), "setpriv or busctl is not installed"))
struct BusAccessTests {
    /// nobody, on every Linux.
    static let stranger = 65534

    private func busctl(_ stage: Stage, _ words: String...) throws -> (status: Int32, text: String) {
        let become = ["setpriv", "--reuid=\(Self.stranger)", "--regid=\(Self.stranger)", "--clear-groups"]
        return try stage.loop.run(become + ["busctl", "--address=unix:path=\(stage.path)", "--no-pager"] + words)
    }

    @Test("a stranger may read but not call what is only for the owner")
    func stranger() throws {
        let stage = try Stage(mode: 0o666)
        let read = try busctl(stage, "get-property", Exhibit.name, Exhibit.path, Exhibit.manager, "Version")
        #expect(read.text == "s \"1\"\n")
        let called = try busctl(stage, "call", Exhibit.name, Exhibit.path, Exhibit.manager, "Echo", "v", "s", "x")
        #expect(called.status == 1)
        // busctl's own words for org.freedesktop.DBus.Error.AccessDenied.
        #expect(called.text == "Call failed: Access denied\n")
        #expect(stage.exhibit.calls == 0)
        let who = try busctl(stage, "call", Exhibit.name, Exhibit.path, Exhibit.manager, "Who")
        #expect(who.text.hasPrefix("iu ") && who.text.hasSuffix(" \(Self.stranger)\n"), "\(who.text)")
    }

    @Test("a stranger has fewer connections than there are")
    func fewer() throws {
        var limits = BusServer.Limits()
        limits.peersPerUser = 0
        let stage = try Stage(limits: limits, mode: 0o666)
        #expect(try busctl(stage, "call", Exhibit.name, Exhibit.path, Exhibit.manager, "Who").status == 1)
        #expect(stage.complaints.first?.contains("that user has 0 already") == true)
        #expect(try stage.ask(try stage.client(), "Who").get().count == 2)
    }

    @Test("strangers have their turn when nobody else is waiting")
    func lastInLine() throws {
        let stage = try Stage(mode: 0o666)
        var priorities: [EventPriority] = []
        stage.server.onPeer = { priorities.append($0.priority) }
        #expect(try busctl(stage, "call", Exhibit.name, Exhibit.path, Exhibit.manager, "Who").status == 0)
        #expect(try stage.ask(try stage.client(), "Who").get().count == 2)
        #expect(priorities == [.idle, .normal])
    }

    @Test("strangers together leave room for root, however many users they are")
    func roomForRoot() throws {
        var limits = BusServer.Limits()
        limits.peersOfStrangers = 0
        let stage = try Stage(limits: limits, mode: 0o666)
        #expect(try busctl(stage, "call", Exhibit.name, Exhibit.path, Exhibit.manager, "Who").status == 1)
        #expect(stage.complaints.first?.contains("there are 0 of other users already") == true)
        #expect(try stage.ask(try stage.client(), "Who").get().count == 2)
    }

    @Test("a socket for its owner alone cannot be connected to")
    func ownerOnly() throws {
        let stage = try Stage()
        chmod(stage.folder.path, 0o755)
        let text = try busctl(stage, "call", Exhibit.name, Exhibit.path, Exhibit.manager, "Who").text
        #expect(text.contains("Permission denied"), "\(text)")
    }
}
