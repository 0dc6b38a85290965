import Glibc

/// The bytes of a D-Bus client without a library.
package enum BareBus {
    /// The handshake of a client. The server answers with `DATA` and `OK`, in `handshakeAnswer` bytes.
    package static let handshake = Array("\0AUTH EXTERNAL\r\nDATA\r\nBEGIN\r\n".utf8)
    /// `DATA`, then `OK` with 32 digits, each with a line end.
    package static let handshakeAnswer = 6 + 37

    /// A call of org.freedesktop.DBus.Peer.Ping of "/", little endian (D-Bus specification, "Message Format").
    /// - Parameter descriptors: the number in the header field UNIX_FDS; `nil`: without the field.
    package static func pingCall(serial: UInt8 = 1, wantsReply: Bool = true, descriptors: UInt8? = nil) -> [UInt8] {
        let length: UInt8 = descriptors == nil ? 69 : 80
        var bytes: [UInt8] = [0x6c, 1, wantsReply ? 0 : 1, 1, 0, 0, 0, 0, serial, 0, 0, 0, length, 0, 0, 0]
        bytes += [1, 1, 0x6f, 0, 1, 0, 0, 0, 0x2f, 0, 0, 0, 0, 0, 0, 0]
        bytes += [2, 1, 0x73, 0, 25, 0, 0, 0] + Array("org.freedesktop.DBus.Peer\0".utf8) + [0, 0, 0, 0, 0, 0]
        bytes += [3, 1, 0x73, 0, 4, 0, 0, 0] + Array("Ping\0".utf8) + [0, 0, 0]
        if let descriptors { bytes += [9, 1, 0x75, 0, descriptors, 0, 0, 0] }
        return bytes
    }
}

/// Raises this process's soft limit of open files to the hard limit.
/// - Returns: the limit.
@discardableResult
package func raiseDescriptorLimit() -> UInt64 {
    var limit = rlimit()
    guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return 0 }
    limit.rlim_cur = limit.rlim_max
    setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    return UInt64(limit.rlim_max)
}
