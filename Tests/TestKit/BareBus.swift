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

/// Sends bytes with descriptors (SCM_RIGHTS, cmsg(3)).
/// - Returns: the result of sendmsg(2).
package func sendMessage(
    _ bytes: [UInt8], with descriptors: [Int32], on socket: Int32, flags: Int32 = 0
) -> Int {
    var bytes = bytes
    // A cmsghdr: length, SOL_SOCKET, SCM_RIGHTS.
    var control: [Int32] = [Int32(16 + 4 * descriptors.count), 0, SOL_SOCKET, 1] + descriptors
    if !descriptors.count.isMultiple(of: 2) { control.append(0) }
    return bytes.withUnsafeMutableBytes { bytes in
        control.withUnsafeMutableBytes { control in
            var part = iovec(iov_base: bytes.baseAddress, iov_len: bytes.count)
            return withUnsafeMutablePointer(to: &part) { part in
                var message = msghdr()
                message.msg_iov = part
                message.msg_iovlen = 1
                message.msg_control = descriptors.isEmpty ? nil : control.baseAddress
                message.msg_controllen = descriptors.isEmpty ? 0 : control.count
                return sendmsg(socket, &message, Int32(MSG_NOSIGNAL) | flags)
            }
        }
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
