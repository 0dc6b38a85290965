import CSystemd
import Glibc
import Posix

/// Reads a peer's socket and passes the bytes on to libsystemd through a pair of sockets, so that no descriptor of the peer
/// reaches libsystemd.
///
/// Descriptors are agreed on in the handshake all the same. A call that has some gets an error, unless its method takes them: a
/// client that may send none ends its connection when it is to send one (GDBus, libdbus).
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
    /// The messages that had descriptors, and that libsystemd has not handled yet, with those that are kept.
    private var descriptors: [(serial: UInt32, kept: [SharedDescriptor])] = []
    /// The most descriptors of a message that are kept.
    private let mostDescriptors: Int
    /// Whether nothing is read from the socket.
    var isHeld = false

    /// Takes ownership of `socket` and gives `bus` one of the pair for reading and a duplicate of the socket for writing.
    init(
        socket: consuming Descriptor, bus: OpaquePointer, closer: DescriptorCloser, mostDescriptors: Int
    ) throws(SystemError) {
        let socket = SharedDescriptor(socket, closer: closer)
        let pair = try SocketPair()
        reading = SharedDescriptor(try pair.near.duplicate())
        self.socket = socket
        self.closer = closer
        self.mostDescriptors = mostDescriptors
        try setDescriptors(
            of: bus, input: try pair.near.duplicate(), output: try socket.descriptor.duplicate())
        writing = .some(pair.closingNear())
    }

    /// Whether libsystemd has read all that was passed on, and that were whole messages.
    var isQuiet: Bool { framing.isAtStart && descriptors.isEmpty && reading.descriptor.readableBytes == 0 }

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
    /// - Returns: whether something was read, or the connection has ended.
    func pass() throws(Failure) -> Bool {
        guard let socket, let number = writing?.raw, reading.descriptor.readableBytes == 0, !isHeld else {
            return false
        }
        let received: ReceivedMessage?
        do throws(SystemError) {
            received = try socket.descriptor.receive(limit: Self.portion, closer: closer)
        } catch {
            // libsystemd takes the end of the pair for the end of the connection.
            writing = nil
            return true
        }
        guard var received else { return false }
        if received.bytes.isEmpty {
            writing = nil
            return true
        }
        var bytes = received.bytes
        let hasDescriptors = received.descriptors.count > 0 || received.lostDescriptors
        do throws(MessageFraming.UnknownMessage) {
            let serials = try framing.follow(&bytes, hasDescriptors: hasDescriptors)
            var kept: [SharedDescriptor] = []
            // Of several messages in one sendmsg(2) it is not known whose they are.
            if serials.count == 1, !received.lostDescriptors, received.descriptors.count <= mostDescriptors {
                while let next = received.descriptors.takeFirst() { kept.append(SharedDescriptor(next)) }
            }
            descriptors += serials.map { ($0, kept) }
        } catch {
            throw .receivedDescriptors
        }
        descriptors.removeFirst(max(0, descriptors.count - Self.keptSerials))
        let sent = send(number, bytes, bytes.count, Int32(MSG_DONTWAIT | MSG_NOSIGNAL))
        if sent != bytes.count { writing = nil }
        return true
    }

    /// The descriptors of the message with this serial, as far as they are kept; `nil`: it had none.
    func takeDescriptors(_ serial: UInt64) -> [SharedDescriptor]? {
        guard let index = descriptors.firstIndex(where: { UInt64($0.serial) == serial }) else { return nil }
        return descriptors.remove(at: index).kept
    }
}
