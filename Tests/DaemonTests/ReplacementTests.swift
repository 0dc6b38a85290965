import Control
import Glibc
import JSON
import Linux
import Systemd
import Testing

/// What those notice who talk to the daemon while another program takes its place.
@Suite("Replacing the daemon")
struct ReplacementTests {
    @Test("whoever connects while the daemon replaces itself waits, and is answered by the next")
    func noRefusal() throws {
        let daemon = try TestDaemon(["photos": TestDaemon.manifest("")])
        try daemon.launch("photos")
        let socket = daemon.runtime + "/bus"
        for _ in 0..<10 {
            _ = try Self.call("Reexec", at: socket)
            // Some find the old program, some none, some the new one. Whom the old one had accepted already, it loses.
            var answers = 0
            while answers < 3 {
                do throws(BusError) {
                    let answer = try Self.call("Status", [.string("photos")], at: socket)
                    answers += 1
                    #expect(JSONText.of(answer, "state") == "active")
                } catch {
                    #expect(!error.name.hasSuffix("NoServer"), "\(error)")
                    guard !error.name.hasSuffix("NoServer") else { return }
                }
            }
        }
        try daemon.reconnect()
        #expect(try daemon.status("photos")["launches"]?.integerValue == 1)
        #expect(daemon.stop() == .exited(0))
        #expect(access(socket, F_OK) != 0)
    }

    private static func call(
        _ member: String, _ arguments: [Variant] = [], at socket: String
    ) throws(BusError) -> [Variant] {
        try BusConnection(path: socket).call(
            path: ControlNames.managerPath, interface: ControlNames.managerInterface, member: member, arguments)
    }
}
