import Control
import Glibc
import JSON
import Linux
import Posix
import Systemd
import Testing

/// Clients while another program replaces the daemon.
@Suite("Replacing the daemon")
struct ReplacementTests {
    @Test("a client that connects during reexec waits and is answered by the new program")
    func noRefusal() throws {
        let daemon = try TestDaemon(["photos": TestDaemon.manifest("")])
        try daemon.launch("photos")
        let socket = daemon.runtime + "/bus"
        for _ in 0..<10 {
            // Lost if the previous request is about to be carried out.
            while (try? Self.call("Reexec", at: socket)) == nil { poll(nil, 0, 1) }
            // Clients connect to the old program, to none or to the new one. A connection that the old one has accepted
            // is lost.
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
        // The last answers may have come from a program that was about to be replaced.
        try daemon.eventually("the last program answers") {
            guard (try? daemon.renewConnection()) != nil else { return false }
            return (try? daemon.status("photos"))?["launches"]?.integerValue == 1
        }
        #expect(daemon.stop() == .exited(0))
        #expect(access(socket, F_OK) != 0)
    }

    @Test("apps are recovered however often the next daemon is killed while it starts")
    func killedInItsStart() throws {
        let first = try TestDaemon(["front": TestDaemon.manifest(""), "back": TestDaemon.manifest("")])
        try first.launch("back")
        try first.launch("front")
        try first.waitUntil("back", is: "suspended")
        let before = try (first.pid("front"), first.pid("back"))
        first.crash()
        let began = EventLoop.now()
        var last = try first.successor()
        // The duration of a start on this machine, so that most daemons are killed while they start.
        let start = EventLoop.now() - began
        last.crash()
        for number in 0..<24 {
            try last.successor(killedAfter: start * number / 24)
        }
        last = try last.successor()
        #expect(try (last.pid("front"), last.pid("back")) == before)
        #expect(try last.state("front") == "active" && last.frozen("back"))
        #expect(try last.receipts("front").isEmpty && last.receipts("back").isEmpty)
    }

    @Test("a logbook is not read again after four daemons crashed while they recovered from it")
    func fatal() throws {
        let first = try TestDaemon(["photos": TestDaemon.manifest("")])
        try first.launch("photos")
        first.crash()
        // The logbook counts four daemons that crashed during a recovery.
        let logbook = try Descriptor.open(first.runtime + "/logbook", O_WRONLY)
        var four: UInt64 = 4
        #expect(pwrite(logbook.raw, &four, 8, 72) == 8)
        let second = try first.successor()
        #expect(try second.state("photos") == "notRunning")
        #expect(try second.receipts("photos").count == 1)
        #expect(TestDaemon.text(of: first.root + "/log").contains("4 daemons crashed while they recovered from it"))
    }

    private static func call(
        _ member: String, _ arguments: [Variant] = [], at socket: String
    ) throws(BusError) -> [Variant] {
        try BusConnection(path: socket).call(
            path: ControlNames.managerPath, interface: ControlNames.managerInterface, member: member, arguments)
    }
}
