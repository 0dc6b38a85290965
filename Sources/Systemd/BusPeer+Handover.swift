import CSystemd
import Glibc
package import Posix

// A connection that outlasts this program: the program that replaces it by execve(2) gets the socket and continues. The
// other side notices nothing.

extension BusPeer {
    /// Whether the socket is all that the next program needs: no message is in this process, no call of this side waits for
    /// an answer, and no answer can arrive late. The next program numbers its calls from 1 again, and libsystemd tells
    /// answers by these numbers.
    package var canBeHandedOver: Bool {
        guard isReady, isSettled, isOnBus || hasReceived, outgoing.isEmpty, watchedSenders.isEmpty, unanswered.isEmpty,
            !hasLateAnswers, transport.isQuiet
        else { return false }
        var (incoming, waiting): (UInt64, UInt64) = (0, 0)
        return sd_bus_get_n_queued_read(bus, &incoming) >= 0 && incoming == 0
            && sd_bus_get_n_queued_write(bus, &waiting) >= 0 && waiting == 0
    }

    /// The socket, for the next program.
    package func socketForHandover() throws(SystemError) -> SharedDescriptor {
        if let socket = transport.socket { return socket }
        let number = try check(sd_bus_get_fd(bus), "sd_bus_get_fd")
        return SharedDescriptor(try Descriptor.duplicate(of: number))
    }

    /// What the client of a server has sent of its handshake, if that is all that it has sent, and if it has been answered.
    /// The next program lets its own libsystemd read the same bytes, and gives it the socket then.
    package var handshakeForHandover: [UInt8]? {
        guard isServer, !isGone, !hasReceived, unanswered.isEmpty, outgoing.isEmpty, let bytes = transport.handshake
        else { return nil }
        let events = sd_bus_get_events(bus)
        return events >= 0 && events & Int32(POLLOUT) == 0 && !hasQueuedMessages ? bytes : nil
    }

    /// Whether a part of a message has arrived, or one that has not been handled.
    package var isReading: Bool {
        guard !isGone, handshakeForHandover == nil else { return false }
        return !isReady || !isSettled || !transport.isQuiet || hasQueuedMessages
    }

    /// Whether a call of the other side waits for its answer.
    package var isAnswering: Bool { !unanswered.isEmpty }

    private var hasQueuedMessages: Bool {
        var count: UInt64 = 0
        return sd_bus_get_n_queued_read(bus, &count) < 0 || count > 0
    }

    /// Stops reading further messages of the client: they wait in the kernel until `endHold`, or for the next program. A message of
    /// which a part has arrived is read and handled.
    package func hold() {
        transport.setHeld(true)
        update()
        if isReading { continuation.schedule() }
    }

    /// Reads messages again.
    package func endHold() {
        onHeldTurn = nil
        transport.setHeld(false)
        guard !isGone else { return }
        update()
        continuation.schedule()
    }

    /// Answers all calls that wait with this error: the next program does not know them.
    package func failCalls(_ error: BusError) {
        let calls = unanswered.sorted { $0.key < $1.key }.compactMap(\.value.call)
        for call in calls { call.fail(error) }
    }
}

/// What the next program knows of a connection.
package enum BusResumption: Equatable, Sendable {
    /// The handshake is over, and messages were handled.
    case established
    /// What the client has sent so far: its handshake or a part of it. It may be empty.
    case handshake([UInt8])
}

/// A call that waits for its answer. Its handler has it.
struct UnansweredCall {
    weak var call: MethodCall?
}

/// Plays the other side's part in the handshake with libsystemd for a connection that is resumed: libsystemd begins each
/// connection with one, and the other side has finished its own with the previous program.
final class StandIn {
    private let far: Descriptor
    /// libsystemd's descriptor, which becomes the socket of the connection.
    private let number: Int32
    private let socket: SharedDescriptor

    /// A client's handshake, for a server.
    static let clientHandshake = Array("\0AUTH EXTERNAL\r\nDATA\r\nNEGOTIATE_UNIX_FD\r\nBEGIN\r\n".utf8)
    /// A bus daemon's answers, for a client: the ID of the bus is not compared with another.
    static let busAnswers = Array("DATA\r\nOK 00000000000000000000000000000001\r\n".utf8)

    /// - Parameters:
    ///   - number: libsystemd's descriptor, the near end of a pair of sockets.
    ///   - far: the far end.
    ///   - socket: the connection's.
    init(_ number: Int32, _ far: consuming Descriptor, for socket: SharedDescriptor) {
        self.number = number
        self.far = far
        self.socket = socket
    }

    /// Sends the other side's part of the handshake to libsystemd.
    func send(_ bytes: [UInt8]) throws(SystemError) {
        let count = Glibc.send(far.raw, bytes, bytes.count, Int32(MSG_DONTWAIT | MSG_NOSIGNAL))
        guard count == bytes.count else { throw SystemError(call: "resuming a connection: send", errno: errno) }
    }

    /// The steps that libsystemd may take to finish the handshake, whose bytes have all arrived. It takes fewer than ten.
    private static let mostSteps = 64

    /// Finishes the handshake, or the part of it that has arrived, and gives libsystemd the socket of the connection.
    func finish(_ bus: OpaquePointer, until isFinished: () -> Bool) throws(SystemError) {
        var steps = 0
        while !isFinished() {
            steps += 1
            guard steps <= Self.mostSteps else { throw SystemError(call: "resuming a connection", errno: EPROTO) }
            try check(sd_bus_process(bus, nil), "resuming a connection: sd_bus_process")
        }
        try duplicate(socket.raw, as: number)
    }
}
