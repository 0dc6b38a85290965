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
    private var framing: MessageFraming
    /// Until libsystemd has finished the handshake of a connection that is resumed: the near end of the pair to which it
    /// writes its part, and the far end.
    private var standIn: StandIn?
    /// The messages that had descriptors, and that libsystemd has not handled yet, with those that are kept.
    private var descriptors: [(serial: UInt32, kept: [SharedDescriptor])] = []
    /// The most descriptors of a message that are kept.
    private let mostDescriptors: Int
    /// The connection's part of the budget for large messages; `nil`: there is none.
    private let share: IncomingBudget.Share?
    /// Whether no message is begun: the next program is to read it. A message of which a part was read is read to its end.
    var isHeld = false

    /// Takes ownership of `socket` and gives `bus` one of the pair for reading and a duplicate of the socket for writing.
    /// - Parameter resumption: the previous program began the connection.
    init(
        socket: consuming Descriptor, bus: OpaquePointer, closer: DescriptorCloser, resumption: BusResumption? = nil,
        share: IncomingBudget.Share? = nil, mostDescriptors: Int = 0
    ) throws(SystemError) {
        let socket = SharedDescriptor(socket, closer: closer)
        let pair = try SocketPair()
        reading = SharedDescriptor(try pair.near.duplicate())
        self.socket = socket
        self.closer = closer
        self.share = share
        self.mostDescriptors = mostDescriptors
        var handshake: [UInt8] = []
        switch resumption {
        case .none: framing = MessageFraming()
        case .some(.established):
            framing = MessageFraming(isInMessages: true)
            handshake = StandIn.clientHandshake
        case .some(.handshake(let bytes)):
            framing = MessageFraming()
            handshake = bytes
            // Without descriptors it cannot fail.
            _ = try? framing.follow(&handshake, hasDescriptors: false)
        }
        if resumption != nil {
            // The peer must not get libsystemd's part of the handshake.
            let other = try SocketPair()
            let output = try other.near.duplicate()
            let number = output.raw
            try setDescriptors(of: bus, input: try pair.near.duplicate(), output: output)
            standIn = StandIn(number, other.closingNear(), for: socket)
        } else {
            let output = try socket.descriptor.duplicate()
            try setDescriptors(of: bus, input: try pair.near.duplicate(), output: output)
        }
        let far = pair.closingNear()
        if !handshake.isEmpty {
            _ = send(far.raw, handshake, handshake.count, Int32(MSG_DONTWAIT | MSG_NOSIGNAL))
        }
        writing = .some(far)
    }

    /// Finishes the handshake with libsystemd of a connection that is resumed.
    func finishHandshake(_ bus: OpaquePointer) throws(SystemError) {
        try standIn?.finish(bus) { hasFinished(bus) }
        standIn = nil
    }

    /// Whether libsystemd has read all that has arrived of the handshake, and has answered it.
    private func hasFinished(_ bus: OpaquePointer) -> Bool {
        guard framing.isInHandshake else { return sd_bus_is_ready(bus) > 0 }
        let events = sd_bus_get_events(bus)
        return reading.descriptor.readableBytes == 0 && events >= 0 && events & Int32(POLLOUT) == 0
    }

    /// What the client has sent of its handshake, if no message has begun, and if libsystemd has read all of it.
    var handshake: [UInt8]? { reading.descriptor.readableBytes == 0 ? framing.handshake : nil }

    /// Whether nothing is read from the socket: the connection is held, or its message waits to be admitted.
    var isBlocked: Bool { isHeldNow || share?.isWaiting ?? false }

    private var isHeldNow: Bool { isHeld && framing.missingBytes == 0 }

    /// A message has been handled.
    func messageArrived() { share?.release() }

    /// The peer has closed its end. It gets no answer to a message that waits.
    func hungUp() { if share?.isWaiting ?? false { writing = nil } }

    /// Whether libsystemd has read all that was passed on, and that were whole messages.
    var isQuiet: Bool { framing.isAtStart && descriptors.isEmpty && reading.descriptor.readableBytes == 0 }

    deinit { close() }

    /// Ends the connection. libsystemd must have closed its duplicate of the socket before: the last close of a socket also
    /// closes the descriptors that are unread in it.
    func close() {
        guard let socket else { return }
        share?.release()
        writing = nil
        // The peer sees the end at once, however long the close takes.
        shutdown(socket.raw, Int32(SHUT_RDWR))
        self.socket = nil
    }

    /// Passes on at most 4,096 bytes, once libsystemd has read the previous ones.
    /// - Returns: whether something was read, or the connection has ended.
    func pass() throws(Failure) -> Bool {
        guard let socket, let number = writing?.raw, reading.descriptor.readableBytes == 0, !isHeldNow,
            share?.admits(framing.messageLength) ?? true
        else { return false }
        let limit = isHeld ? min(Self.portion, framing.missingBytes) : Self.portion
        let received: ReceivedMessage?
        do throws(SystemError) {
            received = try socket.descriptor.receive(limit: limit, closer: closer)
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
