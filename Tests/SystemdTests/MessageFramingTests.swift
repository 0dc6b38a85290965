import Systemd
import TestKit
import Testing

/// Which messages descriptors belong to.
@Suite("Descriptors of messages")
struct MessageFramingTests {
    /// A call with two descriptors.
    private static let call = BareBus.pingCall(serial: 7, descriptors: 2)

    /// The messages to which descriptors belong that arrive with some bytes; `nil` if these belong to none.
    private func follow(_ framing: inout MessageFraming, _ bytes: [UInt8], hasDescriptors: Bool = false) -> [UInt32]? {
        var bytes = bytes
        return try? framing.follow(&bytes, hasDescriptors: hasDescriptors)
    }

    @Test("descriptors belong to the message whose header tells their number, which is set to 0")
    func found() throws {
        var framing = MessageFraming()
        #expect(follow(&framing, BareBus.handshake) == [])
        var bytes = BareBus.pingCall() + Self.call + BareBus.pingCall()
        #expect(try framing.follow(&bytes, hasDescriptors: true) == [7])
        #expect(bytes == BareBus.pingCall() + BareBus.pingCall(serial: 7, descriptors: 0) + BareBus.pingCall())
        #expect(framing.isAtStart)
    }

    @Test("the bytes may arrive in any pieces", arguments: 1...40)
    func pieces(size: Int) {
        var framing = MessageFraming()
        let all = BareBus.handshake + BareBus.pingCall() + BareBus.pingCall()
        for start in stride(from: 0, to: all.count, by: size) {
            let isLast = start + size >= all.count
            #expect(follow(&framing, Array(all[start..<min(all.count, start + size)])) == [])
            #expect(!isLast || framing.isAtStart)
        }
        #expect(follow(&framing, Self.call, hasDescriptors: true) == [7])
    }

    @Test("descriptors without a number in a header belong to no message")
    func unknown() {
        var framing = MessageFraming()
        #expect(follow(&framing, BareBus.handshake, hasDescriptors: true) == nil)
        framing = MessageFraming(isInMessages: true)
        #expect(follow(&framing, BareBus.pingCall(), hasDescriptors: true) == nil)
        framing = MessageFraming(isInMessages: true)
        #expect(follow(&framing, BareBus.pingCall(descriptors: 0), hasDescriptors: true) == nil)
        // Only a part of the header.
        framing = MessageFraming(isInMessages: true)
        #expect(follow(&framing, Array(Self.call.prefix(40)), hasDescriptors: true) == nil)
        framing = MessageFraming(isInMessages: true)
        #expect(follow(&framing, Array("GET / HTTP/1.1\r\n\r\n".utf8), hasDescriptors: true) == nil)
    }

    @Test("no bytes of a header are read or changed beyond its end", arguments: 0..<96)
    func damaged(index: Int) {
        for value: UInt8 in [0, 1, 8, 9, 0x73, 0x75, 0x7f, 0x80, 0xff] {
            var bytes = Self.call
            bytes[index] = value
            var framing = MessageFraming(isInMessages: true)
            let length = bytes.count
            bytes += [0xaa, 0xaa, 0xaa, 0xaa]
            _ = try? framing.follow(&bytes, hasDescriptors: true)
            #expect(bytes.count == length + 4)
        }
    }
}
