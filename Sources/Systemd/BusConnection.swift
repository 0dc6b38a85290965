import CSystemd
import Glibc
package import Posix

/// A blocking client of one D-Bus service, on a private socket or on a message bus. Calls block, and signals are read one
/// by one. For programs without a loop, such as the command line.
package final class BusConnection {
    /// How long the other side may take to accept the connection and to finish the handshake.
    package static let handshakeTimeout = Duration.seconds(5)
    /// The most signals that are kept until they are read; the oldest are dropped first.
    package static let keptSignals = 10_000

    private let bus: OpaquePointer
    /// The service, in errors.
    private let name: String
    /// The bus name of the service; `nil` on a private socket.
    private let destination: String?
    /// On a message bus: the unique name of the service, from which alone signals are accepted.
    private var owner: String?
    private var hasLostOwner = false
    private var signals: [BusSignal] = []
    private var limits = MessageLimits()

    /// Connects to the private socket at `path` and finishes the handshake.
    /// - Throws: a sentence for the user: nothing listens there, permission denied, no answer.
    package convenience init(path: String, server: String = "greenroomd") throws(BusError) {
        let descriptor: Descriptor
        do throws(SystemError) {
            descriptor = try UnixSocket.connect(to: path)
        } catch {
            throw Self.explain(error, path, server)
        }
        try self.init(descriptor: descriptor, name: "\(server) at \(path)")
    }

    /// Takes ownership of a connected socket and finishes the handshake.
    /// - Parameter name: of the service, in errors.
    package init(descriptor: consuming Descriptor, name: String) throws(BusError) {
        self.name = name
        destination = nil
        let bus = try Self.makeBus()
        do throws(BusError) {
            try BusError.check(sd_bus_set_fd(bus, descriptor.raw, descriptor.raw), "sd_bus_set_fd")
            // libsystemd owns the descriptor now.
            _ = descriptor.release()
        } catch {
            sd_bus_unref(bus)
            throw error
        }
        self.bus = bus
        try start()
        // The server sends signals only after the first message. The answer is not waited for.
        _ = try send(
            nil, path: BusDaemon.path, interface: BusDaemon.name, member: "Hello", [], timeout: BusDaemon.timeout)
    }

    /// Connects to a message bus for the service that owns `destination` there. The connection ends when that service
    /// does, as on a private socket; no service is started.
    /// - Parameter busAddress: as sd-bus reads it: `unix:path=…`.
    package init(busAddress: String, destination: String) throws(BusError) {
        name = "\(destination) on the message bus"
        self.destination = destination
        let bus = try Self.makeBus()
        do throws(BusError) {
            try BusError.check(sd_bus_set_address(bus, busAddress), "the address \(busAddress) is not valid")
            try BusError.check(sd_bus_set_bus_client(bus, 1), "sd_bus_set_bus_client")
            try BusError.check(sd_bus_negotiate_fds(bus, 0), "sd_bus_negotiate_fds")
        } catch {
            sd_bus_unref(bus)
            throw error
        }
        self.bus = bus
        try start()
        try findOwner(of: destination)
    }

    deinit {
        // Without flushing, which would block if the server does not read.
        sd_bus_close_unref(bus)
    }

    private static func makeBus() throws(BusError) -> OpaquePointer {
        var made: OpaquePointer?
        try BusError.check(sd_bus_new(&made), "sd_bus_new")
        guard let made else { throw .failed("sd_bus_new failed") }
        return made
    }

    private static func explain(_ error: SystemError, _ path: String, _ server: String) -> BusError {
        switch error.errno {
        case ENOENT, ECONNREFUSED:
            .noServer("no \(server) listens at \(path) (\(SystemError.text(of: error.errno)))")
        case EACCES, EPERM: .accessDenied("no permission to talk to the \(server) at \(path)")
        case EAGAIN: .noReply("the \(server) at \(path) does not accept connections")
        default: .noServer("\(error)")
        }
    }

    private func start() throws(BusError) {
        let started = sd_bus_start(bus)
        guard started >= 0 else { throw disconnectedOr(started, "the connection to \(name) could not be started") }
        do throws(BusError) {
            try addFilter()
            let deadline = EventLoop.now() + Self.handshakeTimeout
            while sd_bus_is_ready(bus) == 0 {
                guard EventLoop.now() < deadline else { throw .noReply("\(name) does not answer") }
                try step(until: deadline)
            }
        } catch {
            sd_bus_close(bus)
            guard error.name == BusError.disconnected("").name else { throw error }
            throw .disconnected("\(name) refused the connection; too many are open, or its log has another reason")
        }
    }

    private func addFilter() throws(BusError) {
        var slot: OpaquePointer?
        let collector = Unmanaged.passRetained(WeakConnection(self)).toOpaque()
        let result = sd_bus_add_filter(
            bus, &slot,
            { message, userdata, _ in
                guard let message, let userdata else { return 0 }
                Unmanaged<WeakConnection>.fromOpaque(userdata).takeUnretainedValue().connection?.enqueueSignal(message)
                return 0
            }, collector)
        guard result >= 0, let slot else {
            releaseUserdata(collector)
            throw disconnectedOr(result, "sd_bus_add_filter")
        }
        float(slot)
    }

    /// Asks the bus daemon for the service's signals, for its end, and for its unique name.
    private func findOwner(of destination: String) throws(BusError) {
        let rules = [
            "type='signal',sender='\(destination)'",
            "type='signal',sender='\(BusDaemon.name)',member='NameOwnerChanged',arg0='\(destination)'",
        ]
        for rule in rules { _ = try callDaemon("AddMatch", rule) }
        do throws(BusError) {
            owner = try callDaemon("GetNameOwner", destination).first?.stringValue
        } catch  where error.name == "org.freedesktop.DBus.Error.NameHasNoOwner" {
            throw .noServer("no program owns \(destination) on the message bus")
        }
    }

    private func callDaemon(_ member: String, _ argument: String) throws(BusError) -> [Variant] {
        let pending = try send(
            BusDaemon.name, path: BusDaemon.path, interface: BusDaemon.name, member: member, [.string(argument)],
            timeout: BusDaemon.timeout)
        return try result(of: pending, member)
    }

    private func enqueueSignal(_ message: OpaquePointer) {
        guard let signal = BusSignal(message, limits: limits) else { return }
        // libsystemd reports the end of the connection in this interface; `step` throws for it.
        guard signal.interface != "org.freedesktop.DBus.Local" else { return }
        if destination != nil {
            if signal.sender == BusDaemon.name, signal.member == "NameOwnerChanged", owner != nil {
                hasLostOwner = true
            }
            // A match rule does not keep other programs from sending signals to this connection.
            guard let owner, signal.sender == owner else { return }
        }
        if signals.count >= Self.keptSignals { signals.removeFirst() }
        signals.append(signal)
    }

    /// Handles one message, or waits for one.
    private func step(until deadline: Duration?) throws(BusError) {
        let worked = sd_bus_process(bus, nil)
        guard worked >= 0, isOpen else { throw .disconnected("\(name) ended the connection") }
        guard worked == 0 else { return }
        let timeout = deadline.map { ($0 - EventLoop.now()).wholeMicroseconds } ?? UInt64.max
        let waited = sd_bus_wait(bus, timeout)
        // EINTR: a signal handler of the program has run.
        guard waited >= 0 || waited == -EINTR else { throw .disconnected("\(name) ended the connection") }
    }

    /// Whether the service is called over a message bus.
    package var isOnMessageBus: Bool { destination != nil }

    /// Whether the service is still connected, according to the messages read so far.
    package var isOpen: Bool { !hasLostOwner && sd_bus_is_open(bus) > 0 }

    // MARK: Calls

    /// A call whose answer has not been waited for yet.
    package final class Pending {
        /// `nil` until the answer has arrived.
        package fileprivate(set) var result: Result<[Variant], BusError>?
    }

    /// Calls a method and waits for the answer; without `timeout` for as long as it takes.
    package func call(
        path: String, interface: String, member: String, _ arguments: [Variant] = [],
        timeout: Duration? = .seconds(25)
    ) throws(BusError) -> [Variant] {
        let pending = try callAsync(path: path, interface: interface, member: member, arguments, timeout: timeout)
        return try result(of: pending, member)
    }

    /// Calls a method; `wait` waits for the answer.
    package func callAsync(
        path: String, interface: String, member: String, _ arguments: [Variant] = [],
        timeout: Duration? = nil
    ) throws(BusError) -> Pending {
        try send(destination, path: path, interface: interface, member: member, arguments, timeout: timeout)
    }

    private func send(
        _ destination: String?, path: String, interface: String, member: String, _ arguments: [Variant],
        timeout: Duration?
    ) throws(BusError) -> Pending {
        let message = try makeCall(destination, path, interface, member, arguments)
        defer { sd_bus_message_unref(message) }
        let pending = Pending()
        try OutgoingCall.send(
            message, on: bus, timeout: timeout, OutgoingCall(limits: .ofAnswers) { pending.result = $0 })
        return pending
    }

    private func makeCall(
        _ destination: String?, _ path: String, _ interface: String, _ member: String, _ arguments: [Variant]
    ) throws(BusError) -> OpaquePointer {
        var made: OpaquePointer?
        try BusError.check(
            sd_bus_message_new_method_call(bus, &made, destination, path, interface, member),
            "the call of \(interface).\(member) of \(path) could not be created")
        guard let message = made else { throw .failed("the message could not be created") }
        do throws(BusError) {
            try MessageWriter.append(arguments, to: message)
        } catch {
            sd_bus_message_unref(message)
            throw error
        }
        // polkit may ask the user of the program for a password.
        sd_bus_message_set_allow_interactive_authorization(message, 1)
        sd_bus_message_set_auto_start(message, 0)
        return message
    }

    private func result(of pending: Pending, _ member: String) throws(BusError) -> [Variant] {
        try wait(for: pending, until: nil)
        guard let result = pending.result else { throw .noReply("\(name) did not answer \(member)") }
        return try result.get()
    }

    /// Waits for an answer, at most until `deadline` (CLOCK_MONOTONIC, as `EventLoop.now`; `nil`: as long as it takes).
    /// Signals that arrive meanwhile are kept.
    /// - Returns: whether the answer has arrived.
    @discardableResult
    package func wait(for pending: Pending, until deadline: Duration?) throws(BusError) -> Bool {
        while pending.result == nil {
            if let deadline, EventLoop.now() >= deadline { return false }
            do throws(BusError) {
                try step(until: deadline)
            } catch {
                // The end of the connection has answered the pending calls; their errors are more specific.
                if pending.result == nil { throw error }
            }
        }
        return true
    }

    /// Waits until one of several calls is answered, at most until `deadline` (as in `wait(for:until:)`).
    package func wait(forAnyOf calls: [Pending], until deadline: Duration?) throws(BusError) {
        while !calls.contains(where: { $0.result != nil }) {
            if let deadline, EventLoop.now() >= deadline { return }
            do throws(BusError) {
                try step(until: deadline)
            } catch {
                if !calls.contains(where: { $0.result != nil }) { throw error }
            }
        }
    }

    /// Reads a property (org.freedesktop.DBus.Properties).
    package func property(
        path: String, interface: String, _ property: String, timeout: Duration? = .seconds(25)
    ) throws(BusError) -> Variant {
        let answer = try call(
            path: path, interface: "org.freedesktop.DBus.Properties", member: "Get",
            [.string(interface), .string(property)], timeout: timeout)
        guard let value = answer.first else { throw .failed("\(name) answered without a value") }
        return value.unwrapped
    }

    /// Calls a method whose answer is one descriptor, and waits for it.
    package func descriptor(
        path: String, interface: String, member: String, _ arguments: [Variant] = [], timeout: Duration? = .seconds(25)
    ) throws(BusError) -> SharedDescriptor {
        var result: Result<SharedDescriptor, BusError>?
        let message = try makeCall(destination, path, interface, member, arguments)
        defer { sd_bus_message_unref(message) }
        try OutgoingCall.send(message, on: bus, timeout: timeout, OutgoingCall(forDescriptor: { result = $0 }))
        while true {
            if let result { return try result.get() }
            do throws(BusError) { try step(until: nil) } catch { if result == nil { throw error } }
        }
    }

    /// Calls a method whose answer begins with a descriptor, and waits for it.
    package func descriptorAndValues(
        path: String, interface: String, member: String, _ arguments: [Variant] = [],
        timeout: Duration? = .seconds(25)
    ) throws(BusError) -> (descriptor: SharedDescriptor, values: [Variant]) {
        var result: Result<(SharedDescriptor, [Variant]), BusError>?
        let message = try makeCall(destination, path, interface, member, arguments)
        defer { sd_bus_message_unref(message) }
        try OutgoingCall.send(message, on: bus, timeout: timeout, OutgoingCall(forDescriptorAndValues: { result = $0 }))
        while true {
            if let result { return try result.get() }
            do throws(BusError) { try step(until: nil) } catch { if result == nil { throw error } }
        }
    }

    // MARK: Signals

    /// Reads all that has arrived, without waiting. The signals among it are for `nextSignal`.
    package func readArrived() throws(BusError) {
        var worked: Int32
        repeat { worked = sd_bus_process(bus, nil) } while worked > 0
        // -EBADMSG leaves the bus open, but it reads nothing more.
        guard worked >= 0, isOpen else { throw .disconnected("\(name) ended the connection") }
    }

    /// Waits until the connection or another descriptor has something to read.
    /// - Parameters:
    ///   - descriptors: others that are watched, and for which events of poll(2).
    ///   - deadline: as in `wait(for:until:)`.
    /// - Returns: the events of the other descriptors. All are 0 if a signal has arrived, or the time is over.
    package func waitForInput(or descriptors: [(number: Int32, events: Int16)], until deadline: Duration?)
        throws(BusError)
        -> [Int16]
    {
        try readArrived()
        let nothing = descriptors.map { _ in Int16(0) }
        guard signals.isEmpty else { return nothing }
        var polled = [
            pollfd(fd: sd_bus_get_fd(bus), events: Int16(truncatingIfNeeded: sd_bus_get_events(bus)), revents: 0)
        ]
        polled += descriptors.map { pollfd(fd: $0.number, events: $0.events, revents: 0) }
        let left = deadline.map { ($0 - EventLoop.now()).wholeMicroseconds / 1000 + 1 }
        let found = poll(&polled, nfds_t(polled.count), left.map { Int32(min($0, UInt64(Int32.max))) } ?? -1)
        return found > 0 ? polled.dropFirst().map(\.revents) : nothing
    }

    /// Returns the next signal in the order of arrival, or `nil` if none has arrived by `deadline` (`nil`: wait without
    /// limit).
    /// - Throws: when the connection has ended, after the last signal.
    package func nextSignal(until deadline: Duration?) throws(BusError) -> BusSignal? {
        while signals.isEmpty {
            if let deadline, EventLoop.now() >= deadline { return nil }
            try step(until: deadline)
        }
        return signals.removeFirst()
    }
}

/// The userdata of a filter: the bus does not keep the connection that owns it alive.
private final class WeakConnection {
    weak var connection: BusConnection?

    init(_ connection: BusConnection) {
        self.connection = connection
    }
}
