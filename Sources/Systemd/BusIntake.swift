import Glibc
import Posix

/// Reads a peer's socket and passes the bytes on to libsystemd through a pair of sockets, so that no descriptor of the peer
/// reaches libsystemd.
///
/// Descriptors are agreed on in the handshake all the same, and a call that has some gets an error: a client that may send
/// none ends its connection when it is to send one (GDBus, libdbus).
///
/// libsystemd accepts descriptors from a peer whatever was negotiated, and closes them on the loop's thread. close(2) of a
/// peer's descriptor can block for as long as the peer likes; so can close(2) of a socket with unread descriptors in it. A
/// `DescriptorCloser` closes both.
final class BusIntake {
    enum Failure: Error { case receivedDescriptors }

    /// The bytes that are read at once. An empty socket accepts them, whatever its size (socket(7), wmem_default).
    private static let portion = 4096
    /// The most serials that are kept. libsystemd may drop a message that is not valid.
    private static let keptSerials = 64

    /// The peer's socket; `nil` once it is closed.
    private(set) var socket: SharedDescriptor?
    /// A duplicate of the socket from which libsystemd reads.
    let reading: SharedDescriptor
    private var writing: Descriptor?
    private let closer: DescriptorCloser
    private var framing = MessageFraming()
    /// Serials of messages that had descriptors, and that libsystemd has not handled yet.
    private var refused: [UInt32] = []

    /// Takes ownership of `socket` and gives `bus` one of the pair for reading and a duplicate of the socket for writing.
    init(socket: consuming Descriptor, bus: OpaquePointer, closer: DescriptorCloser) throws(SystemError) {
        let socket = SharedDescriptor(socket, closer: closer)
        let pair = try SocketPair()
        reading = SharedDescriptor(try pair.near.duplicate())
        let output = try socket.descriptor.duplicate()
        try setDescriptors(of: bus, input: try pair.near.duplicate(), output: output)
        writing = pair.closingNear()
        self.socket = socket
        self.closer = closer
    }

    deinit { close() }

    /// Ends the connection. libsystemd must have closed its duplicate of the socket before: the last close of a socket also
    /// closes the descriptors that are unread in it.
    func close() {
        guard let socket else { return }
        writing = nil
        // The peer sees the end at once, however long the close takes.
        shutdown(socket.raw, Int32(SHUT_RDWR))
        self.socket = nil
    }

    /// Passes on at most 4,096 bytes, once libsystemd has read the previous ones.
    func pass() throws(Failure) {
        guard let socket, let number = writing?.raw, reading.descriptor.readableBytes == 0 else { return }
        let received: ReceivedMessage?
        do throws(SystemError) {
            received = try socket.descriptor.receive(limit: Self.portion, closer: closer)
        } catch {
            // libsystemd takes the end of the pair for the end of the connection.
            return writing = nil
        }
        guard let received else { return }
        if received.bytes.isEmpty { return writing = nil }
        var bytes = received.bytes
        do throws(MessageFraming.UnknownMessage) {
            refused += try framing.follow(
                &bytes, hasDescriptors: received.descriptors.count > 0 || received.lostDescriptors)
        } catch {
            throw .receivedDescriptors
        }
        refused.removeFirst(max(0, refused.count - Self.keptSerials))
        let sent = send(number, bytes, bytes.count, Int32(MSG_DONTWAIT | MSG_NOSIGNAL))
        if sent != bytes.count { writing = nil }
    }

    /// Whether the message with this serial had descriptors.
    func takeRefused(_ serial: UInt64) -> Bool {
        guard let index = refused.firstIndex(where: { UInt64($0) == serial }) else { return false }
        refused.remove(at: index)
        return true
    }
}
