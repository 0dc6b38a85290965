import Glibc
import Posix
import Systemd
import TestKit
import Testing

/// Large messages that many clients send at the same time.
@Suite("The budget for large messages", .serialized)
struct IncomingBudgetTests {
    /// A client that sends a part of a message and does not read.
    private final class Sender {
        let socket: SharedDescriptor
        private var source: EventSource?
        private(set) var sent = 0

        /// - Parameters:
        ///   - length: of the body.
        ///   - part: the bytes of it that are sent.
        init(_ stage: Stage, length: Int, part: Int) throws {
            socket = try stage.bareClient()
            let size = (0..<4).map { UInt8(length >> (8 * $0) & 0xff) }
            let start = BareBus.handshake + [0x6c, 1, 0, 1] + size + [1, 0, 0, 0, 0, 0, 0, 0]
            #expect(Glibc.send(socket.raw, start, start.count, Int32(MSG_NOSIGNAL)) == start.count)
            source = try stage.loop.addDescriptor(socket, events: .writable) { [weak self] _ in self?.send(part) }
        }

        private static let zeros = [UInt8](repeating: 0, count: 65_536)

        private func send(_ part: Int) {
            let count = min(Self.zeros.count, part - sent)
            let result = Glibc.send(socket.raw, Self.zeros, count, Int32(MSG_NOSIGNAL | MSG_DONTWAIT))
            if result > 0 { sent += result }
            if sent == part || result < 0 && errno != EAGAIN { source = nil }
        }
    }

    @Test("200 clients that each send 7 MiB of a message hold no more than the budget, and others are served")
    func bounded() throws {
        raiseDescriptorLimit()
        var limits = BusServer.Limits()
        // No client is disconnected in this test.
        limits.incoming.timeout = .seconds(3600)
        let stage = try Stage(limits: limits)
        let client = try stage.client()
        #expect(try stage.ask(client, "Who").get().count == 2)
        let senders = try (0..<200).map { _ in try Sender(stage, length: 7 << 20, part: (7 << 20) - 1) }
        // 32 MiB for one user are four messages.
        var most = 0
        #expect(
            try stage.loop.serve {
                most = max(most, stage.server.unfinishedBytes)
                return senders.count { $0.sent == (7 << 20) - 1 } == 4 && stage.server.incoming.waitingCount == 196
            })
        for _ in 0..<20 { #expect(try stage.ask(client, "Who").get().count == 2) }
        #expect(stage.server.incoming.admitted <= limits.incoming.perUser)
        #expect(max(most, stage.server.unfinishedBytes) <= limits.incoming.perUser + 200 * 8192)
        #expect(stage.server.peers.count == 201 && stage.gone == [])
        // Small messages of those that wait would need no budget: they are behind the large one.
        #expect(senders.count { $0.sent < 1 << 20 } == 196)
    }

    @Test("a message that does not end while others wait ends its connection, the largest first, with a warning")
    func timeout() throws {
        var limits = BusServer.Limits()
        limits.incoming.timeout = .milliseconds(100)
        let stage = try Stage(limits: limits)
        let large = try (6...8).map { try Sender(stage, length: $0 << 20 - 1024, part: 5 << 20) }
        #expect(try stage.loop.serve { large.allSatisfy { $0.sent == 5 << 20 } })
        // Without another message that waits, they have all the time.
        #expect(stage.gone == [] && stage.warnings == [])
        let client = try stage.client()
        #expect(try stage.ask(client, "Who").get().count == 2)
        let most = stage.server.incoming.admitted
        // With these the user has more than 32 MiB. They end.
        let text = Variant.variant(.string(String(repeating: "x", count: 3 << 20)))
        var answers = 0
        let callers = try (0..<4).map { _ in try stage.client() }
        for caller in callers {
            try caller.call(
                path: Exhibit.path, interface: Exhibit.manager, member: "Echo", [text], timeout: testTimeout
            ) { if case .success = $0 { answers += 1 } }
        }
        #expect(try stage.loop.serve { answers == 4 })
        let stalled = try Sender(stage, length: 7 << 20, part: 1 << 20)
        let another = try Sender(stage, length: 7 << 20, part: 1 << 20)
        #expect(try stage.loop.serve { !stage.gone.isEmpty })
        #expect(stage.gone.first == "its large message did not end while those of other connections waited")
        #expect(stage.warnings.first?.contains("was not complete after") == true)
        #expect(stage.server.peers.count { $0.isReady } >= 5)
        #expect(most >= 20 << 20 && stage.server.incoming.admitted <= limits.incoming.perUser)
        withExtendedLifetime((client, callers, large, stalled, another)) {}
    }

    @Test("a client that closes while its message waits is removed, and keeps neither the loop nor the budget busy")
    func closedWhileWaiting() throws {
        var limits = BusServer.Limits()
        limits.incoming.perUser = 2 << 20
        limits.incoming.timeout = .seconds(3600)
        let stage = try Stage(limits: limits)
        let first = try Sender(stage, length: 2 << 20 - 1024, part: 1 << 20)
        #expect(try stage.loop.serve { first.sent == 1 << 20 })
        var second: Sender? = try Sender(stage, length: 2 << 20 - 1024, part: 1 << 20)
        #expect(try stage.loop.serve { stage.server.incoming.waitingCount == 1 })
        #expect(second != nil)
        second = nil
        #expect(try stage.loop.serve { stage.gone.count == 1 })
        #expect(stage.server.incoming.waitingCount == 0)
        #expect(stage.server.peers.count == 1)
    }
}
