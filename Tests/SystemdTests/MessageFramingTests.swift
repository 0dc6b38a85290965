import Systemd
import TestKit
import Testing

/// Which messages descriptors belong to.
@Suite("Descriptors of messages")
struct MessageFramingTests {
    /// A call with two descriptors.
    private static let call = BareBus.pingCall(serial: 7, descriptors: 2)

    private final class Connection {
        var framing: MessageFraming
        /// The last bytes, as they were passed on.
        var bytes: [UInt8] = []

        init(isInMessages: Bool = false) { framing = MessageFraming(isInMessages: isInMessages) }

        /// The messages to which descriptors belong that arrive with some bytes; `nil` if these belong to none.
        func receive(_ bytes: [UInt8], hasDescriptors: Bool = false) -> [UInt32]? {
            self.bytes = bytes
            do throws(MessageFraming.UnknownMessage) {
                return try framing.follow(&self.bytes, hasDescriptors: hasDescriptors)
            } catch {
                return nil
            }
        }
    }

    @Test("descriptors belong to the message whose header tells their number, which is set to 0")
    func found() {
        let connection = Connection()
        #expect(connection.receive(BareBus.handshake) == [])
        let ping = BareBus.pingCall()
        #expect(connection.receive(ping + Self.call + ping, hasDescriptors: true) == [7])
        #expect(connection.bytes == ping + BareBus.pingCall(serial: 7, descriptors: 0) + ping)
        #expect(connection.framing.isAtStart)
    }

    @Test("the bytes may arrive in any pieces", arguments: 1...40)
    func pieces(size: Int) {
        let connection = Connection()
        let all = BareBus.handshake + BareBus.pingCall() + BareBus.pingCall()
        for start in stride(from: 0, to: all.count, by: size) {
            let end = min(all.count, start + size)
            #expect(connection.receive(Array(all[start..<end])) == [])
        }
        #expect(connection.framing.isAtStart)
        #expect(connection.receive(Self.call, hasDescriptors: true) == [7])
    }

    @Test("descriptors without a number in a whole header belong to no message")
    func unknown() {
        #expect(Connection().receive(BareBus.handshake, hasDescriptors: true) == nil)
        let others = [
            BareBus.pingCall(), BareBus.pingCall(descriptors: 0), Array(Self.call.prefix(40)),
            Array("GET / HTTP/1.1\r\n\r\n".utf8),
        ]
        for bytes in others {
            #expect(Connection(isInMessages: true).receive(bytes, hasDescriptors: true) == nil)
        }
    }

    @Test("a damaged header is followed without a trap, and no byte is added or removed", arguments: 0..<96)
    func damaged(index: Int) {
        for value: UInt8 in [0, 1, 8, 9, 0x73, 0x75, 0x7f, 0x80, 0xff] {
            var bytes = Self.call
            bytes[index] = value
            let connection = Connection(isInMessages: true)
            _ = connection.receive(bytes, hasDescriptors: true)
            #expect(connection.bytes.count == bytes.count)
        }
    }
}
