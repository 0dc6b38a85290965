/// Follows the bytes that a client sends, to find the message to which descriptors belong.
///
/// Descriptors arrive with the first bytes of their message, whose header tells their number (UNIX_FDS). They are closed, the
/// number is set to 0, and the serial of the message is reported: libsystemd drops a message whose number is not the number
/// of its descriptors without an answer.
package struct MessageFraming {
    /// The descriptors belong to no message whose header has arrived.
    package struct UnknownMessage: Error {}

    private enum Position {
        /// In the handshake, with the first bytes of the current line.
        case handshake([UInt8])
        /// In the first 16 bytes of a message, with those that have arrived.
        case start([UInt8])
        /// In a message, so many bytes before its end.
        case inside(Int)
        /// The bytes are not D-Bus. libsystemd ends the connection.
        case lost
    }

    private var position = Position.handshake([])
    /// The line that ends the handshake, without its last byte.
    private static let begin = Array("BEGIN\r".utf8)
    private static let startLength = 16

    /// - Parameter isInMessages: the handshake is over.
    package init(isInMessages: Bool = false) {
        if isInMessages { position = .start([]) }
    }

    /// Whether the next byte is the first of a message.
    package var isAtStart: Bool {
        if case .start(let bytes) = position { bytes.isEmpty } else { false }
    }

    /// Follows the bytes of one recvmsg(2).
    /// - Parameter hasDescriptors: whether descriptors arrived with them. Then UNIX_FDS is set to 0 in `bytes`.
    /// - Returns: the serials of the messages to which the descriptors belong.
    package mutating func follow(_ bytes: inout [UInt8], hasDescriptors: Bool) throws(UnknownMessage) -> [UInt32] {
        var serials: [UInt32] = []
        var next = 0
        while next < bytes.count {
            switch position {
            case .handshake(var line):
                let byte = bytes[next]
                next += 1
                if byte == UInt8(ascii: "\n") {
                    position = line == Self.begin ? .start([]) : .handshake([])
                } else {
                    if line.count <= Self.begin.count { line.append(byte) }
                    position = .handshake(line)
                }
            case .start(let known):
                let count = min(Self.startLength - known.count, bytes.count - next)
                let start = known + bytes[next..<next + count]
                let isWhole = known.isEmpty && start.count == Self.startLength
                if hasDescriptors, isWhole, let serial = Self.clear(&bytes, at: next) { serials.append(serial) }
                next += count
                position = start.count < Self.startLength ? .start(start) : begin(start)
            case .inside(let left):
                let count = min(left, bytes.count - next)
                next += count
                position = left == count ? .start([]) : .inside(left - count)
            case .lost:
                next = bytes.count
            }
        }
        if hasDescriptors, serials.isEmpty { throw UnknownMessage() }
        return serials
    }

    // MARK: Headers

    /// The position after the first 16 bytes of a message: byte order, type, flags and version, then the lengths of the body
    /// and of the header fields (D-Bus specification, "Message Format").
    private mutating func begin(_ start: [UInt8]) -> Position {
        guard let body = Self.number(start, at: 4, order: start[0]),
            let fields = Self.number(start, at: 12, order: start[0])
        else { return .lost }
        let length = Self.aligned(Int(fields)) + Int(body)
        guard length > 0 else { return .start([]) }
        return .inside(length)
    }

    /// Sets UNIX_FDS to 0 in the message that begins at an index.
    /// - Returns: its serial; `nil` if it has no descriptors, or not all of its header has arrived.
    private static func clear(_ bytes: inout [UInt8], at start: Int) -> UInt32? {
        let order = bytes[start]
        guard let serial = number(bytes, at: start + 8, order: order),
            let length = number(bytes, at: start + 12, order: order),
            Int(length) <= bytes.count - start - startLength
        else { return nil }
        // A message begins at a multiple of 8 of its own bytes, so offsets count from its start.
        var next = start + startLength
        let end = next + Int(length)
        while next + 4 <= end {
            let (code, signature) = (bytes[next], bytes[next + 2])
            guard bytes[next + 1] == 1, bytes[next + 3] == 0 else { return nil }
            next += 4
            switch signature {
            case UInt8(ascii: "u"):
                guard next + 4 <= end, let value = number(bytes, at: next, order: order) else { return nil }
                if code == unixDescriptors, value > 0 {
                    for index in next..<next + 4 { bytes[index] = 0 }
                    return serial
                }
                next += 4
            case UInt8(ascii: "s"), UInt8(ascii: "o"):
                guard next + 4 <= end, let count = number(bytes, at: next, order: order) else { return nil }
                next += 4 + Int(count) + 1
            case UInt8(ascii: "g"):
                guard next < end else { return nil }
                next += 1 + Int(bytes[next]) + 1
            default: return nil
            }
            next = start + aligned(next - start)
        }
        return nil
    }

    /// The code of the header field UNIX_FDS.
    private static let unixDescriptors: UInt8 = 9

    private static func aligned(_ length: Int) -> Int { (length + 7) / 8 * 8 }

    /// - Parameter order: `l` or `B`.
    private static func number(_ bytes: [UInt8], at index: Int, order: UInt8) -> UInt32? {
        guard index + 4 <= bytes.count else { return nil }
        let four = bytes[index..<index + 4]
        switch order {
        case UInt8(ascii: "l"): return four.reversed().reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
        case UInt8(ascii: "B"): return four.reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
        default: return nil
        }
    }
}
