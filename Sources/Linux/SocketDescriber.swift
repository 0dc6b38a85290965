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

    /// A question that the kernel has answered, and whose answer was not read yet.
    package struct Question {
        fileprivate let describer: SocketDescriber
        fileprivate let inode: UInt64
        fileprivate let known: KnownSocket

        /// Reads the answer, which is about the time of the question. It is read once.
        /// - Returns: `nil` if the socket has no bytes, or the kernel does not tell.
        package func answer() -> Description? { describer.answer(inode, known) }
    }

    /// Made at the first use.
    private var socket: DiagnosticSocket?
    private var isAnswerWaiting = false

    package init() {}

    /// Asks. The kernel answers in the same call (`netlink_rcv_skb`).
    /// - Parameter known: the socket as a look has found it before.
    /// - Returns: `nil` if the kernel does not answer, or not at once (before Linux 6.9).
    package func ask(_ inode: UInt64, _ known: KnownSocket) -> Question? {
        if DiagnosticSocket.isSerialized { return nil }
        // What was not read would be taken for the next answer.
        if socket == nil || isAnswerWaiting { socket = try? DiagnosticSocket() }
        guard let socket, (try? socket.send(DiagnosticRequest.brief(known))) != nil else { return nil }
        isAnswerWaiting = true
        return Question(describer: self, inode: inode, known: known)
    }

    private func answer(_ inode: UInt64, _ known: KnownSocket) -> Description? {
        guard let socket, isAnswerWaiting, let received = try? socket.receive() else { return nil }
        isAnswerWaiting = false
        guard case .socket(let message)? = received.first, let answer = InternetSocket(parsing: message),
            answer.inode == inode, answer.unread > 0
        else {
            return nil
        }
        return Description(bytes: answer.unread, peer: known.identity.peer(answer.family))
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
