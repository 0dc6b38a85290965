import CSystemd
import Glibc
import LoopPolicy
import Posix

/// The limits of one connection.
package struct BusLimits: Sendable {
    /// The kernel's buffer for what is sent, in bytes. libsystemd asks for 8 MiB, which root gets.
    package var sendBuffer: Int32 = 256 << 10
    /// Messages that wait beyond the kernel's buffer because the peer does not read. A stopped `watch` reaches this limit
    /// and is disconnected; other peers are not affected.
    package var queuedMessages: UInt64 = 1024
    /// The same limit when the peer asks for a large answer (all objects, an introspection): about 100 KiB each.
    package var queuedLargeAnswers: UInt64 = 32
    /// Bytes of one incoming message, twice what `message` allows. libsystemd's own limit is 128 MiB.
    package var incomingBytes = 8 << 20
    package var message = MessageLimits()
    /// The most descriptors of one message that are kept for its method (`BusMethod.takesDescriptors`). Those beyond, and
    /// those of other messages, are closed.
    package var descriptors = 0

    package init() {}
}

/// The socket below an sd-bus connection: watches it and counts the bytes that arrive.
///
/// libsystemd owns the socket, or with a `BusIntake` a duplicate, and closes it whenever the connection ends. A descriptor
/// leaves epoll(7) only when its last duplicate is closed; one that libsystemd has closed while a process that is about to
/// exec still has it could not be removed any more, and its next event would make libsystemd abort. So the transport
/// watches duplicates of its own.
final class BusTransport {
    private let loop: EventLoop
    private let kind: SourceKind
    private let share: AppShare?
    private let intake: BusIntake?
    /// A duplicate of what libsystemd reads from.
    private var input: SharedDescriptor?
    private var inputSource: EventSource?
    /// With an intake: the peer's socket.
    private var socketSource: EventSource?
    /// Reports that the peer has read, while many messages wait for it.
    private var writableSource: EventSource?
    /// Bytes that have arrived since the last complete message.
    private(set) var unfinishedBytes = 0
    /// Called when the connection can be read or written. Returns whether anything came of it.
    var onEvent: () -> Bool = { true }

    /// - Parameter intake: reads the socket for libsystemd.
    init(loop: EventLoop, kind: SourceKind, share: AppShare?, intake: BusIntake?) {
        self.loop = loop
        self.kind = kind
        self.share = share
        self.intake = intake
    }

    /// Watches the descriptors that the connection has now. While it connects to a bus daemon, each address has a
    /// socket of its own.
    func watch(_ bus: OpaquePointer) throws(SystemError) {
        inputSource = nil
        if let intake {
            input = intake.reading
            if let socket = intake.socket { socketSource = try addSource(socket) }
        } else {
            let number = try check(sd_bus_get_fd(bus), "sd_bus_get_fd")
            input = SharedDescriptor(try Descriptor.duplicate(of: number))
        }
        if let input { inputSource = try addSource(input) }
    }

    private func addSource(_ descriptor: SharedDescriptor) throws(SystemError) -> EventSource {
        try loop.addDescriptor(descriptor, events: .readable, kind: kind, share: share) { [weak self] _ in
            TurnResult(self?.onEvent() ?? true)
        }
    }

    /// Sets what the connection waits for.
    func setEvents(_ events: EpollEvents) throws(SystemError) {
        guard let intake, let socketSource else {
            try inputSource?.setEvents(events)
            return
        }
        let awaited = intake.isHeld ? events.subtracting(.readable) : events
        try socketSource.setEvents(awaited)
        // A hang-up, which is always reported, would keep the loop busy.
        let isEnabled = !(intake.isHeld && awaited.isEmpty)
        if socketSource.isEnabled != isEnabled { socketSource.isEnabled = isEnabled }
    }

    /// Sets whether nothing is read any more.
    func setHeld(_ isHeld: Bool) { intake?.isHeld = isHeld }

    /// While many messages wait, the connection is also written when the socket has room, not only when something arrives. The kernel reports a socket as
    /// writable only when a good part of its buffer is free, so a peer cannot get more turns than it reads.
    func setCongested(_ isCongested: Bool) throws(SystemError) {
        guard isCongested != (writableSource != nil) else { return }
        guard isCongested, let socket = intake?.socket ?? input else { return writableSource = nil }
        // The same descriptor cannot be watched twice.
        let copy = SharedDescriptor(try socket.descriptor.duplicate())
        writableSource = try loop.addDescriptor(copy, events: .writable, kind: kind, share: share) { [weak self] _ in
            TurnResult(self?.onEvent() ?? true)
        }
    }

    /// Sets the size of the kernel's buffer for what is sent, in bytes.
    func limitSendBuffer(_ bytes: Int32) throws(SystemError) {
        guard let number = intake?.socket?.raw ?? input?.raw else { return }
        // The kernel doubles the value for its own bookkeeping (socket(7)).
        var size = bytes / 2
        try checkErrno(
            setsockopt(number, SOL_SOCKET, SO_SNDBUF, &size, socklen_t(MemoryLayout<Int32>.size)),
            "setsockopt SO_SNDBUF")
    }

    /// Stops watching. To be called after `sd_bus_close`.
    func close() {
        inputSource = nil
        socketSource = nil
        writableSource = nil
        input = nil
        intake?.close()
    }

    deinit { close() }

    /// Calls sd_bus_process, which handles at most one message, and counts what it reads.
    ///
    /// libsystemd reads as much of a message as has arrived: if fewer bytes wait afterwards, it has read all of them.
    /// - Returns: sd_bus_process's result, whether it has read from the socket, and whether an intake has passed something on.
    func process(_ bus: OpaquePointer) throws(BusIntake.Failure) -> (result: Int32, hasRead: Bool, hasPassed: Bool) {
        let hasPassed = try intake?.pass() ?? false
        let before = input?.descriptor.readableBytes ?? 0
        unfinishedBytes += before
        let result = sd_bus_process(bus, nil)
        // The handler of the message may have closed the connection.
        let hasRead = input.map { $0.descriptor.readableBytes < before } ?? false
        // Zero already if the message is complete.
        if !hasRead { unfinishedBytes = max(0, unfinishedBytes - before) }
        return (result, hasRead, hasPassed)
    }

    /// The descriptors of the message with this serial; `nil`: it had none. It is asked for once.
    func takeDescriptors(_ serial: UInt64) -> [SharedDescriptor]? { intake?.takeDescriptors(serial) }

    /// Whether no part of a message has been read from the socket and not been handled.
    var isQuiet: Bool { unfinishedBytes == 0 && intake?.isQuiet ?? true }

    /// Whether bytes have arrived that libsystemd has not read.
    var hasInput: Bool {
        (intake?.socket?.descriptor.readableBytes ?? 0) > 0 || (input?.descriptor.readableBytes ?? 0) > 0
    }

    /// Resets the count: a complete message has arrived.
    func messageArrived() { unfinishedBytes = 0 }
}

/// Gives a connection its descriptors, which libsystemd owns from then on.
func setDescriptors(
    of bus: OpaquePointer, input: consuming Descriptor, output: consuming Descriptor
) throws(SystemError) {
    try check(sd_bus_set_fd(bus, input.raw, output.raw), "sd_bus_set_fd")
    _ = input.release()
    _ = output.release()
}
