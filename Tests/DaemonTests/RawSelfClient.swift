import Control
import Glibc
import Linux
import Posix
import Systemd
import TestKit

/// The bytes of D-Bus messages in either byte order, for tests of what no library sends.
struct RawMessage {
    var isBigEndian = false
    /// METHOD_CALL.
    var type: UInt8 = 1
    /// NO_REPLY_EXPECTED is 1.
    var flags: UInt8 = 0
    var serial: UInt32
    var member: String
    var signature = ""
    var body = RawWriter()
    var descriptors: UInt32 = 0

    init(_ serial: UInt32, _ member: String, isBigEndian: Bool = false) {
        self.serial = serial
        self.member = member
        self.isBigEndian = isBigEndian
        body.isBigEndian = isBigEndian
    }

    var bytes: [UInt8] {
        var header = RawWriter()
        header.isBigEndian = isBigEndian
        header.bytes = [UInt8(ascii: isBigEndian ? "B" : "l"), type, flags, 1]
        header.put(UInt32(body.bytes.count))
        header.put(serial)
        header.putArray(alignment: 8) { fields in
            fields.putField(1, "o") { $0.put(ControlNames.selfPath) }
            fields.putField(2, "s") { $0.put(ControlNames.selfInterface) }
            fields.putField(3, "s") { $0.put(member) }
            if !signature.isEmpty { fields.putField(8, "g") { $0.putSignature(signature) } }
            if descriptors > 0 { fields.putField(9, "u") { $0.put(descriptors) } }
        }
        header.align(8)
        return header.bytes + body.bytes
    }
}

/// Writes values as the D-Bus specification aligns them.
struct RawWriter {
    var isBigEndian = false
    var bytes: [UInt8] = []

    mutating func align(_ alignment: Int) { while bytes.count % alignment != 0 { bytes.append(0) } }

    mutating func put<Number: FixedWidthInteger>(_ number: Number) {
        align(MemoryLayout<Number>.size)
        bytes += withUnsafeBytes(of: isBigEndian ? number.bigEndian : number.littleEndian) { Array($0) }
    }

    mutating func put(_ text: String) {
        put(UInt32(text.utf8.count))
        bytes += Array(text.utf8) + [0]
    }

    mutating func putSignature(_ text: String) { bytes += [UInt8(text.utf8.count)] + Array(text.utf8) + [0] }

    mutating func putField(_ code: UInt8, _ signature: String, _ value: (inout RawWriter) -> Void) {
        align(8)
        bytes.append(code)
        putSignature(signature)
        value(&self)
    }

    mutating func putEntry(_ key: String, _ signature: String, _ value: (inout RawWriter) -> Void) {
        align(8)
        put(key)
        putSignature(signature)
        value(&self)
    }

    mutating func putArray(alignment: Int, _ elements: (inout RawWriter) -> Void) {
        put(UInt32(0))
        let length = bytes.count - 4
        align(alignment)
        let start = bytes.count
        elements(&self)
        var size = RawWriter()
        size.isBigEndian = isBigEndian
        size.put(UInt32(bytes.count - start))
        bytes.replaceSubrange(length..<length + 4, with: size.bytes)
    }
}

/// A connection to an app's own bus whose bytes the test writes itself.
final class RawSelfClient {
    struct Reply: Equatable {
        /// 2: a return, 3: an error, 4: a signal.
        var type: UInt8
        var replySerial: UInt32
        var body: [UInt8]
    }

    static let handshake = Array("\0AUTH EXTERNAL\r\nDATA\r\nNEGOTIATE_UNIX_FD\r\nBEGIN\r\n".utf8)
    let socket: Descriptor
    private var buffer: [UInt8] = []

    init(_ daemon: TestDaemon, _ name: String = "lend", handshake: Bool = true) throws {
        socket = try SelfClient.borrow(daemon, name)
        guard handshake else { return }
        try send(Self.handshake)
        for _ in 0..<3 { while try byte() != UInt8(ascii: "\n") {} }
    }

    /// Sends what the daemon accepts: it may have ended the connection.
    func send(_ bytes: [UInt8]) throws {
        var rest = bytes[...]
        while !rest.isEmpty {
            let sent = rest.withUnsafeBytes { Glibc.send(socket.raw, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            guard sent >= 0 else { throw TestFailure("send: \(errno)") }
            rest = rest.dropFirst(sent)
        }
    }

    /// Sends bytes with descriptors.
    func send(_ bytes: [UInt8], with descriptors: [Int32]) throws {
        let sent = sendMessage(bytes, with: descriptors, on: socket.raw)
        guard sent == bytes.count else { throw TestFailure("sendmsg: \(errno)") }
    }

    /// Writes as much as the socket accepts at once.
    /// - Returns: how many bytes; -1: the connection has ended.
    func sendSome(_ bytes: ArraySlice<UInt8>) -> Int {
        let sent = bytes.withUnsafeBytes {
            Glibc.send(socket.raw, $0.baseAddress, $0.count, Int32(MSG_DONTWAIT | MSG_NOSIGNAL))
        }
        if sent < 0 { return errno == EAGAIN ? 0 : -1 }
        return sent
    }

    /// Ends what this side sends, and reads until the daemon has ended the connection.
    func finish() throws {
        shutdown(socket.raw, Int32(SHUT_WR))
        while try read() {}
    }

    /// - Returns: false at the end of the connection.
    private func read() throws -> Bool {
        var polled = pollfd(fd: socket.raw, events: Int16(POLLIN), revents: 0)
        guard poll(&polled, 1, 60_000) > 0 else { throw TestFailure("nothing came over the connection within 60s") }
        var part = [UInt8](repeating: 0, count: 65_536)
        let count = recv(socket.raw, &part, part.count, 0)
        guard count > 0 else { return false }
        buffer += part.prefix(count)
        return true
    }

    private func byte() throws -> UInt8 { try bytes(1)[0] }

    private func bytes(_ count: Int) throws -> [UInt8] {
        while buffer.count < count { guard try read() else { throw TestFailure("the daemon ended the connection") } }
        defer { buffer.removeFirst(count) }
        return Array(buffer.prefix(count))
    }

    /// Reads the next message. The daemon writes in the byte order of this machine.
    func next() throws -> Reply {
        let start = try bytes(16)
        func number(_ bytes: [UInt8], _ at: Int) -> Int {
            bytes[at..<at + 4].reversed().reduce(0) { $0 << 8 | Int($1) }
        }
        let fields = try bytes((number(start, 12) + 7) / 8 * 8)
        let body = try bytes(number(start, 4))
        var reply: UInt32 = 0
        // REPLY_SERIAL: a field begins at a multiple of 8, with its code and the signature "u".
        for at in stride(from: 0, to: fields.count - 7, by: 8) where fields[at..<at + 4].elementsEqual([5, 1, 117, 0]) {
            reply = UInt32(number(fields, at + 4))
        }
        return Reply(type: start[1], replySerial: reply, body: body)
    }

    /// Reads until the answer to a call.
    func answer(to serial: UInt32) throws -> Reply {
        while true {
            let reply = try next()
            if reply.type != 4, reply.replySerial == serial { return reply }
        }
    }
}
