import Glibc
import Posix
import Testing

@testable import Linux

/// A message of inet_diag, as the kernel sends it.
func internetMessage(
    state: UInt8 = 1, port: UInt16 = 80, peerPort: UInt16 = 0, inode: UInt32 = 7, readQueue: UInt32 = 0,
    writeQueue: UInt32 = 0,
    received: UInt64 = 0, sent: UInt64 = 0, lastReceived: UInt32 = 0, lastSent: UInt32 = 0
) -> [UInt8] {
    var message = [UInt8](repeating: 0, count: 72)
    func write<Number: FixedWidthInteger>(_ number: Number, at offset: Int, in bytes: inout [UInt8]) {
        bytes.replaceSubrange(offset..<offset + MemoryLayout<Number>.size, with: nativeBytes(number))
    }
    message[0] = 2
    message[1] = state
    write(port.bigEndian, at: 4, in: &message)
    write(peerPort.bigEndian, at: 6, in: &message)
    write(UInt64(inode), at: 44, in: &message)
    write(readQueue, at: 56, in: &message)
    write(writeQueue, at: 60, in: &message)
    write(inode, at: 68, in: &message)
    var info = [UInt8](repeating: 0, count: 248)
    write(lastSent, at: 44, in: &info)
    write(lastReceived, at: 52, in: &info)
    write(received, at: 128, in: &info)
    write(sent, at: 200, in: &info)
    // Another attribute first, whose length is not a multiple of 4.
    return message + nativeBytes(UInt16(5)) + nativeBytes(UInt16(8)) + [1, 0, 0, 0] + nativeBytes(UInt16(252))
        + nativeBytes(UInt16(2)) + info
}

func internetSocket(_ bytes: [UInt8]) throws -> InternetSocket { try #require(InternetSocket(parsing: bytes[...])) }

@Suite("Messages of sock_diag")
struct SocketMessageTests {
    private func netlink(_ type: UInt16, _ payload: [UInt8]) -> [UInt8] {
        let padding = [UInt8](repeating: 0, count: (4 - payload.count % 4) % 4)
        return nativeBytes(UInt32(16 + payload.count)) + nativeBytes(type) + nativeBytes(UInt16(2))
            + nativeBytes(UInt64(1)) + payload + padding
    }

    @Test("a TCP socket is read with its queues and counters")
    func tcp() throws {
        let bytes = internetMessage(
            port: 0x1f90, inode: 4711, readQueue: 3, writeQueue: 9, received: 1 << 40, sent: 5, lastReceived: 12,
            lastSent: 34)
        let socket = try internetSocket(bytes)
        #expect(socket.family == 2 && socket.state == 1 && socket.localPort == 0x1f90 && socket.inode == 4711)
        #expect(socket.unread == 3 && socket.unsent == 9)
        #expect(socket.info?.received == 1 << 40 && socket.info?.sent == 5)
        #expect(socket.info?.lastReceived == 12 && socket.info?.lastSent == 34)
        #expect(socket.identity.bytes == Array(bytes[4..<52]))
        // A slice that does not begin at 0.
        #expect(InternetSocket(parsing: ([1, 2, 3] + bytes)[3...]) == socket)
    }

    @Test("a FIN that was not read is no input, and is not counted as received")
    func end() throws {
        let unread = try internetSocket(internetMessage(state: 8, readQueue: 1, received: 4))
        #expect(unread.unread == 0 && unread.info?.received == 3)
        let read = try internetSocket(internetMessage(state: 8, received: 4))
        #expect(read.unread == 0 && read.info?.received == 3)
        #expect(try internetSocket(internetMessage(state: 8, readQueue: 6)).unread == 5)
        #expect(try internetSocket(internetMessage(state: 8)).info?.received == 0)
    }

    @Test("of a listener the connections that wait are input, and their limit is no output")
    func listener() throws {
        let socket = try internetSocket(internetMessage(state: 10, readQueue: 2, writeQueue: 128))
        #expect(socket.isListening && socket.unread == 2 && socket.unsent == 0)
    }

    @Test("an AF_UNIX socket is read with its queue")
    func unix() throws {
        let queue = nativeBytes(UInt16(12)) + nativeBytes(UInt16(4)) + nativeBytes(UInt32(6)) + nativeBytes(UInt32(70))
        let head: [UInt8] = [1, 1, 1, 0] + nativeBytes(UInt32(99)) + nativeBytes(UInt64(3))
        let socket = try #require(UnixQueue(parsing: (head + queue)[...]))
        #expect(socket.inode == 99 && socket.unread == 6 && !socket.isListening)
        #expect(socket.peer == 0 && socket.clients.isEmpty)
        let peer = nativeBytes(UInt16(8)) + nativeBytes(UInt16(2)) + nativeBytes(UInt32(7))
        let connected = try #require(UnixQueue(parsing: (head + queue + peer)[...]))
        #expect(connected.unread == 6 && connected.peer == 7 && !connected.hasName)
        let name = nativeBytes(UInt16(7)) + nativeBytes(UInt16(0)) + Array("/a".utf8) + [0, 0]
        #expect(UnixQueue(parsing: (head + name + queue)[...])?.hasName == true)
        #expect(connected.isOwn({ $0 == 7 }) && !connected.isOwn({ $0 == 8 }))
        // Of a socket that listens: two that wait, of which one is closed.
        let waiting = nativeBytes(UInt16(12)) + nativeBytes(UInt16(3)) + nativeBytes(UInt32(5)) + nativeBytes(UInt32(0))
        let listening: [UInt8] = [1, 1, 10, 0] + head.dropFirst(4)
        let listener = try #require(UnixQueue(parsing: (listening + waiting)[...]))
        #expect(listener.clients == [5, 0] && !listener.isOwn({ $0 == 5 }))
        #expect(UnixQueue(parsing: (listening + waiting.dropLast())[...])?.clients == [])
        #expect(UnixQueue(parsing: head[...])?.unread == 0)
        #expect(UnixQueue(parsing: head.dropLast()) == nil)
    }

    @Test("a datagram of the kernel is split into messages")
    func split() {
        let bytes = netlink(20, [1, 2, 3]) + netlink(20, [4]) + netlink(1, []) + netlink(3, nativeBytes(Int32(0)))
        let messages = diagnosticMessages(bytes)
        #expect(messages.count == 3)
        #expect(messages.first == .socket([1, 2, 3]) && messages.last == .done)
        #expect(diagnosticMessages(netlink(2, nativeBytes(-ENOENT))) == [.failed(errno: ENOENT)])
        #expect(diagnosticMessages(netlink(3, nativeBytes(-EINVAL))) == [.failed(errno: EINVAL)])
        #expect(diagnosticMessages(netlink(2, nativeBytes(Int32.min))) == [.failed(errno: .max)])
        #expect(diagnosticMessages(netlink(2, [])) == [.done])
    }

    @Test("the answers of a helper thread are read in whole messages")
    func whole() throws {
        let first = netlink(20, [1, 2, 3])
        let last = netlink(3, nativeBytes(Int32(0)))
        #expect(wholeMessages([]) == 0)
        #expect(wholeMessages(first + last) == 20 + 20)
        for count in 0..<20 { #expect(wholeMessages(first + last[..<count]) == 20, "\(count)") }
        #expect(wholeMessages([UInt8](repeating: 0, count: 64)) == 0)
        let file = try MemoryFile.empty("answers")
        let message = netlink(20, [UInt8](repeating: 7, count: 984))
        // They begin at 8, and a piece ends within a message.
        try writeAll([UInt8](repeating: 0, count: 8), to: file)
        for _ in 0..<100 { try writeAll(message, to: file) }
        let answers = DiagnosticAnswers(SharedDescriptor(file), at: 8, bytes: 100_000)
        var found = 0
        while true {
            let messages = try answers.next()
            if messages.isEmpty { break }
            for message in messages { #expect(message == .socket([UInt8](repeating: 7, count: 984)[...])) }
            found += messages.count
        }
        #expect(found == 100)
        // What does not have the form of a message ends them.
        let broken = try SharedDescriptor(MemoryFile.sealed("broken", first + [UInt8](repeating: 0, count: 99)))
        let rest = DiagnosticAnswers(broken, at: 0, bytes: .max)
        let before = try rest.next()
        let after = try rest.next()
        #expect(before.count == 1 && after.isEmpty)
    }

    @Test("only counters are asked for with INET_DIAG_INFO, for which the kernel takes a socket's lock")
    func counters() throws {
        let socket = try internetSocket(internetMessage())
        let known = KnownSocket(family: socket.family, identity: socket.identity)
        // `idiag_ext` of `struct inet_diag_req_v2`, after the header of 16 bytes.
        let extensions = 18
        #expect(DiagnosticRequest.exact(known)[extensions] == 2)
        #expect(DiagnosticRequest.brief(known)[extensions] == 0)
        #expect(DiagnosticRequest.brief(known)[24..<72] == DiagnosticRequest.exact(known)[24..<72])
        for family in DiagnosticRequest.families {
            #expect(DiagnosticRequest.all(family: family, protocol: DiagnosticRequest.tcp)[extensions] == 0)
            let filtered = DiagnosticRequest.all(family: family, protocol: DiagnosticRequest.tcp, cgroup: 1)
            #expect(filtered[extensions] == 0)
        }
    }

    @Test("kernels before 6.9 carry out one request at a time")
    func serialized() {
        for release in ["6.8.0", "6.1.0-28-amd64", "5.10", "4.19.0-rc1", "6", "", "x.y", "6.x"] {
            #expect(DiagnosticSocket.serializes(Array(release.utf8)), "\(release)")
        }
        for release in ["6.9.0", "6.10-rc1", "6.18.44-generic", "7.0", "10.0.1"] {
            #expect(!DiagnosticSocket.serializes(Array(release.utf8)), "\(release)")
        }
    }

    @Test("bytes that are no messages end the datagram")
    func hostile() {
        for length in [UInt32(0), 15, 17, 1 << 31, .max] {
            #expect(diagnosticMessages(nativeBytes(length) + [UInt8](repeating: 20, count: 12)).isEmpty)
        }
        #expect(diagnosticMessages([]).isEmpty)
        for length in [UInt16(0), 3, 9, .max] {
            #expect(netlinkAttribute(2, of: (nativeBytes(length) + nativeBytes(UInt16(2)) + [1, 2])[...]) == nil)
        }
        let whole = internetMessage()
        for count in 0..<72 { #expect(InternetSocket(parsing: whole[..<count]) == nil) }
        for count in 72..<whole.count { _ = InternetSocket(parsing: whole[..<count]) }
        #expect(InternetSocket(parsing: whole[..<(72 + 8 + 4 + 100)])?.info == nil)
        // The counters of an old kernel.
        #expect(TCPInfo(parsing: [UInt8](repeating: 0, count: 207)[...]) == nil)
    }

    @Test("random bytes make no parser trap")
    func noise() {
        var generator = SystemRandomNumberGenerator()
        for _ in 0..<2000 {
            let count = Int.random(in: 0..<300, using: &generator)
            let bytes = (0..<count).map { _ in UInt8.random(in: 0...24, using: &generator) }
            for case .socket(let payload) in diagnosticMessages(bytes) {
                _ = InternetSocket(parsing: payload)
                _ = UnixQueue(parsing: payload)
            }
            _ = InternetSocket(parsing: bytes[...])
            _ = UnixQueue(parsing: bytes[...])
            _ = ListedSocket(parsing: bytes[...])
            _ = ShownActivity(parsing: bytes)
            _ = TimerDescriptor(parsing: bytes)
            _ = executionStart(in: bytes)
            _ = lockLines(bytes)
        }
    }

    @Test("a table of /proc shows the queues of sockets")
    func text() throws {
        func parsed(_ line: String) -> ListedSocket? { ListedSocket(parsing: Array(line.utf8)[...]) }
        let tail = "00:00000000 00000000     0        0 4712 1 0000000000000000 20 4 30 10 -1"
        let socket = try #require(parsed("   1: 0100007F:1F91 0100007F:A000 01 0000000A:00000003 \(tail)"))
        #expect(socket.inode == 4712 && socket.state == 1 && socket.localPort == 0x1f91)
        #expect(socket.unread == 3 && socket.unsent == 10)
        #expect(parsed("1: 0100007F:1F91 0100007F:A000 08 00000000:00000001 \(tail)")?.unread == 0)
        for line in ["", "1: x y z", "1: 0:1F911 0 01 0:0 \(tail)", "1: 0:1 0:1 01 0 \(tail)"] {
            #expect(parsed(line) == nil)
        }
    }
}
