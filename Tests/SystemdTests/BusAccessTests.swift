import Glibc
import Posix
import Systemd
import Testing

/// Access of other users. A test needs root to become another user.
@Suite(
    "Other users on a private socket", .serialized,
    .enabled(if: geteuid() == 0, "only root can become another user"),
    .enabled(if: isInstalled("setpriv") && isInstalled("busctl"), "setpriv or busctl is not installed"))
struct BusAccessTests {
    /// The user nobody.
    static let otherUser: UInt32 = 65534

    private func busctl(_ stage: Stage, _ member: String) throws -> (status: Int32, text: String) {
        let become = ["setpriv", "--reuid=\(Self.otherUser)", "--regid=\(Self.otherUser)", "--clear-groups"]
        let call = ["call", Exhibit.name, Exhibit.path, Exhibit.manager, member]
        return try stage.loop.run(become + ["busctl", "--address=unix:path=\(stage.path)", "--no-pager"] + call)
    }

    @Test("a socket with mode 0600 refuses other users when they connect")
    func mode() throws {
        let stage = try Stage()
        chmod(stage.folder.path, 0o755)
        let text = try busctl(stage, "Who").text
        #expect(text.contains("Permission denied"), "\(text)")
    }

    @Test("a connection of another user is refused before its handshake, whatever the socket's mode")
    func refused() throws {
        let stage = try Stage(mode: 0o666)
        #expect(try busctl(stage, "Who").status == 1)
        #expect(stage.warnings.count == 1)
        #expect(stage.warnings.first?.contains("(uid 65534)") == true)
        #expect(stage.warnings.first?.hasSuffix("was refused: only uid 0 may connect.") == true)
        #expect(stage.server.peers.isEmpty && stage.exhibit.calls == 0)
        #expect(try stage.ask(try stage.client(), "Who").get().count == 2)
    }

    @Test("a permitted user may call unrestricted methods, but none that are reserved for the owner")
    func permitted() throws {
        let stage = try Stage(mode: 0o666, permittedUsers: [0, Self.otherUser])
        let caller = try busctl(stage, "Who")
        #expect(caller.text.hasPrefix("iu ") && caller.text.hasSuffix(" \(Self.otherUser)\n"), "\(caller.text)")
        let called = try busctl(stage, "Drop")
        // busctl's text for org.freedesktop.DBus.Error.AccessDenied.
        #expect(called.status == 1 && called.text == "Call failed: Access denied\n", "\(called.text)")
    }
}
