import CSystemd
import Glibc

/// The client's end of a private bus, without a loop: calls block, and signals are waited for one by one. For programs
/// that ask and go, as the command line does.
package final class BusConnection {
    /// How long the other side may take to accept and to finish the handshake.
    package static let patience = Duration.seconds(5)
    /// Signals kept until they are asked for; the oldest go first.
    package static let keptSignals = 10_000

    private let bus: OpaquePointer
    private let name: String
    private var signals: [BusSignal] = []
    private var limits = MessageLimits()

    /// Connects to the socket at `path` and finishes the handshake.
    /// - Throws: a sentence for the user: nobody listens, no permission, no answer.
    package convenience init(path: String, server: String = "greenroomd") throws(BusError) {
        let descriptor: Int32
        do throws(SystemdError) {
            descriptor = try UnixSocket.connect(to: path)
        } catch {
            throw Self.explain(error, path, server)
        }
        try self.init(descriptor: descriptor, name: "\(server) at \(path)")
    }

    /// Takes over a connected socket, also when it throws, and finishes the handshake.
    /// - Parameter name: what the other side is called in errors.
    package init(descriptor: Int32, name: String) throws(BusError) {
        self.name = name
        bus = try Self.start(descriptor)
        do throws(BusError) {
            try addFilter()
            try finishHandshake()
        } catch {
            sd_bus_close(bus)
            throw error
        }
    }

    deinit {
        // Without flushing: that would wait for a server that hangs.
        sd_bus_close_unref(bus)
    }

    private static func start(_ descriptor: Int32) throws(BusError) -> OpaquePointer {
        var made: OpaquePointer?
        do throws(BusError) {
            try BusError.check(sd_bus_new(&made), "no connection could be made")
            try BusError.check(sd_bus_set_fd(made, descriptor, descriptor), "the socket is of no use")
        } catch {
            sd_bus_unref(made)
            close(descriptor)
            throw error
        }
        guard let made else { throw .failed("no connection could be made") }
        let started = sd_bus_start(made)
        guard started >= 0 else {
            sd_bus_close_unref(made)
            throw disconnectedOr(started, "the handshake could not begin")
        }
        return made
    }

    private static func explain(_ error: SystemdError, _ path: String, _ server: String) -> BusError {
        switch error.code {
        case ENOENT, ECONNREFUSED: .noServer("no \(server) listens at \(path) (\(errnoText(error.code)))")
        case EACCES, EPERM: .accessDenied("no permission to talk to the \(server) at \(path)")
        case EAGAIN: .noReply("the \(server) at \(path) does not accept connections")
        default: .noServer("\(error)")
        }
    }

    private func addFilter() throws(BusError) {
        var slot: OpaquePointer?
        let collector = Unmanaged.passRetained(WeakConnection(self)).toOpaque()
        let result = sd_bus_add_filter(
            bus, &slot,
            { message, userdata, _ in
                guard let message, let userdata else { return 0 }
                Unmanaged<WeakConnection>.fromOpaque(userdata).takeUnretainedValue().connection?.keep(message)
                return 0
            }, collector)
        guard result >= 0, let slot else {
            releaseUserdata(collector)
            throw disconnectedOr(result, "no filter could be added")
        }
        float(slot)
    }

    private func finishHandshake() throws(BusError) {
        let deadline = EventLoop.now() + Self.patience
        while sd_bus_is_ready(bus) == 0 {
            guard EventLoop.now() < deadline else { throw .noReply("\(name) does not answer") }
            try step(until: deadline)
        }
    }

    private func keep(_ message: OpaquePointer) {
        guard let signal = BusSignal(message, limits: limits) else { return }
        // libsystemd's own word for the end of the connection; the caller is told by an error.
        guard signal.interface != "org.freedesktop.DBus.Local" else { return }
        if signals.count >= Self.keptSignals { signals.removeFirst() }
        signals.append(signal)
    }

    /// Deals with one message, or waits for one.
    private func step(until deadline: Duration?) throws(BusError) {
        let worked = sd_bus_process(bus, nil)
        guard worked >= 0, sd_bus_is_open(bus) > 0 else { throw .disconnected("\(name) ended the connection") }
        guard worked == 0 else { return }
        let patience = deadline.map { ($0 - EventLoop.now()).wholeMicroseconds } ?? UInt64.max
        let waited = sd_bus_wait(bus, patience)
        // EINTR: the caller's signal handler ran; the next round looks again.
        guard waited >= 0 || waited == -EINTR else { throw .disconnected("\(name) ended the connection") }
    }

    /// Whether the other side is still there, as far as was seen.
    package var isOpen: Bool { sd_bus_is_open(bus) > 0 }

    // MARK: Calls

    /// An answer that is waited for elsewhere.
    package final class Pending {
        /// `nil` as long as there is none.
        package fileprivate(set) var result: Result<[Variant], BusError>?
    }

    /// Calls a method and waits for the answer. `timeout` `nil`: as long as it takes.
    package func call(
        path: String, interface: String, member: String, _ arguments: [Variant] = [],
        timeout: Duration? = .seconds(25)
    ) throws(BusError) -> [Variant] {
        let pending = try callAsync(path: path, interface: interface, member: member, arguments, timeout: timeout)
        try wait(for: pending, until: nil)
        guard let result = pending.result else { throw .noReply("\(name) did not answer \(member)") }
        return try result.get()
    }

    /// Calls a method; `wait` tells when the answer is there.
    package func callAsync(
        path: String, interface: String, member: String, _ arguments: [Variant] = [],
        timeout: Duration? = nil
    ) throws(BusError) -> Pending {
        var made: OpaquePointer?
        // The destination means nothing here, but a bus name in it would do no harm either.
        try BusError.check(
            sd_bus_message_new_method_call(bus, &made, nil, path, interface, member),
            "a call of \(interface).\(member) of \(path) could not be made")
        guard let message = made else { throw .failed("no message could be made") }
        defer { sd_bus_message_unref(message) }
        try MessageWriter.append(arguments, to: message)
        // These are programs that people run: they may be asked for a password.
        sd_bus_message_set_allow_interactive_authorization(message, 1)
        let pending = Pending()
        try OutgoingCall.send(
            message, on: bus, timeout: timeout, OutgoingCall(limits: .ofAnswers) { pending.result = $0 })
        return pending
    }

    /// Waits for an answer, at most until `deadline` (CLOCK_MONOTONIC, as `EventLoop.now`; `nil`: as long as it takes).
    /// Signals that come meanwhile are kept.
    /// - Returns: whether the answer is there.
    @discardableResult
    package func wait(for pending: Pending, until deadline: Duration?) throws(BusError) -> Bool {
        while pending.result == nil {
            if let deadline, EventLoop.now() >= deadline { return false }
            do throws(BusError) {
                try step(until: deadline)
            } catch {
                // The end of the connection answers what waits; then that answer tells more.
                if pending.result == nil { throw error }
            }
        }
        return true
    }

    /// A property's value, through org.freedesktop.DBus.Properties.
    package func property(
        path: String, interface: String, _ property: String, timeout: Duration? = .seconds(25)
    ) throws(BusError) -> Variant {
        let answer = try call(
            path: path, interface: "org.freedesktop.DBus.Properties", member: "Get",
            [.string(interface), .string(property)], timeout: timeout)
        guard let value = answer.first else { throw .failed("\(name) answered without a value") }
        return value.unwrapped
    }

    // MARK: Signals

    /// The next signal, in the order they came; `nil` when there was none until `deadline` (`nil`: wait for ever).
    /// - Throws: when the connection ended, after the last signal.
    package func nextSignal(until deadline: Duration?) throws(BusError) -> BusSignal? {
        while signals.isEmpty {
            if let deadline, EventLoop.now() >= deadline { return nil }
            try step(until: deadline)
        }
        return signals.removeFirst()
    }
}

/// A filter's userdata: the connection is not kept alive by its own bus.
private final class WeakConnection {
    weak var connection: BusConnection?

    init(_ connection: BusConnection) {
        self.connection = connection
    }
}
