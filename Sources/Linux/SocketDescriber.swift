import CLinux
import Posix

/// Finds out what waits at TCP sockets of suspended apps, and who sent it, with sock_diag(7). Without INET_DIAG_INFO the kernel
/// takes no lock of the socket for it, unlike for FIONREAD and getpeername(2), so this cannot block.
package final class SocketDescriber {
    package struct Description: Equatable {
        /// Bytes that wait.
        package var bytes: UInt64
        /// `192.0.2.7:50123`
        package var peer: String
    }

    /// Made at the first use.
    private var socket: DiagnosticSocket?

    package init() {}

    /// The kernel answers in the call that asks (`netlink_rcv_skb`).
    /// - Parameter known: the socket as a look has found it before.
    /// - Returns: `nil` if the socket has no bytes, or the kernel does not tell, or not at once (before Linux 6.9).
    package func describe(_ inode: UInt64, _ known: KnownSocket) -> Description? {
        if DiagnosticSocket.isSerialized { return nil }
        if socket == nil { socket = try? DiagnosticSocket() }
        do throws(SystemError) {
            guard let message = try socket?.one(DiagnosticRequest.brief(known)),
                let answer = InternetSocket(parsing: message), answer.inode == inode, answer.unread > 0
            else { return nil }
            return Description(bytes: answer.unread, peer: known.identity.peer(answer.family))
        } catch {
            // An answer that was not read would be taken for the next one.
            socket = nil
            return nil
        }
    }
}

extension SocketIdentity {
    /// The address and the port of the other end: `192.0.2.7:50123`, `[2001:db8::1]:443`.
    func peer(_ family: UInt8) -> String {
        // struct inet_diag_sockid: two ports, the own address, the other one.
        let bytes = bytes
        var text = clinux_peer()
        bytes.withUnsafeBufferPointer { buffer in
            guard let start = buffer.baseAddress else { return }
            clinux_format_peer(Int32(family), start + 20, UInt16(buffer[2]) << 8 | UInt16(buffer[3]), &text)
        }
        let length = text.length
        return withUnsafeBytes(of: &text.text) { String(decoding: $0.prefix(length), as: UTF8.self) }
    }
}

extension WorkBaseline {
    /// A TCP socket as the last look has found it.
    package func socket(_ inode: UInt64) -> KnownSocket? { sockets[inode]?.identity }
}
