import CSystemd
import Glibc

/// Who is at the other end of a socket, as the kernel noted it when the connection was made (SO_PEERCRED, unix(7)).
package struct PeerCredentials: Equatable, Sendable {
    package let pid: Int32
    package let uid: UInt32
    package let gid: UInt32

    package init(pid: Int32, uid: UInt32, gid: UInt32) {
        self.pid = pid
        self.uid = uid
        self.gid = gid
    }

    /// The other end of a connected Unix socket.
    package init(ofSocket descriptor: Int32) throws(SystemdError) {
        var pid: Int32 = 0
        var uid: UInt32 = 0
        var gid: UInt32 = 0
        guard csystemd_peer_credentials(descriptor, &pid, &uid, &gid) == 0 else {
            throw SystemdError("getsockopt SO_PEERCRED", errno: errno)
        }
        self.init(pid: pid, uid: uid, gid: gid)
    }
}

/// What one connection may cost us.
package struct BusLimits: Sendable {
    /// The kernel's buffer for what we send, in bytes. libsystemd asks for 8 MiB, and gets them as root.
    package var sendBuffer: Int32 = 256 << 10
    /// Messages that wait because the other side does not read, beyond the kernel's buffer. A stopped `watch` gets this
    /// far; then it is dropped and nobody else is harmed.
    package var queuedMessages: UInt64 = 1024
    /// The same when it asks for a large answer (all objects, an introspection): about 100 KiB each.
    package var queuedLargeAnswers: UInt64 = 32
    package var message = MessageLimits()

    package init() {}
}

/// One connection on a socket, attached to the loop: it serves objects, calls the other side, sends and hears signals.
/// A server's and an app's end differ only in their role in the handshake.
package final class BusPeer {
    package enum Role: Sendable {
        case client
        /// Answers the handshake, and what bus clients ask of the bus itself (`Hello`), under these bus names.
        case server(names: [String])
    }

    /// Given by whoever makes the connection: `:1.NUMBER` is its unique name for clients that ask for one.
    package let number: UInt64
    /// Who is at the other end.
    package let credentials: PeerCredentials?
    package let limits: BusLimits
    package private(set) var isGone = false
    /// Called once from the loop, with the reason in a sentence, unless `close` was called without one.
    package var onGone: ((String) -> Void)?
    /// Called for each signal that arrives.
    package var onSignal: ((BusSignal) -> Void)?

    let bus: OpaquePointer
    private let loop: EventLoop
    private var lastSerial: UInt64 = 0
    private var goneHandlers: [UInt64: () -> Void] = [:]
    private var outgoing: [UInt64: OutgoingCall] = [:]

    /// Takes over `descriptor`, a connected socket, also when it throws. The handshake goes on in the loop.
    package init(
        loop: EventLoop, descriptor: Int32, role: Role, number: UInt64 = 0, objects: BusObjects? = nil,
        limits: BusLimits = BusLimits(), priority: EventPriority = .normal
    ) throws(SystemdError) {
        self.loop = loop
        self.number = number
        self.limits = limits
        do throws(SystemdError) {
            credentials = try PeerCredentials(ofSocket: descriptor)
            bus = try Self.makeBus(descriptor, role)
        } catch {
            Glibc.close(descriptor)
            throw error
        }
        do throws(SystemdError) {
            try register(objects, role)
            try check(sd_bus_start(bus), "sd_bus_start")
            try limitSendBuffer(descriptor)
            try check(sd_bus_attach_event(bus, loop.event, Int32(priority.rawValue)), "sd_bus_attach_event")
        } catch {
            isGone = true
            sd_bus_close(bus)
            throw error
        }
    }

    deinit {
        if !isGone { sd_bus_close(bus) }
        sd_bus_unref(bus)
    }

    /// A connection that owns `descriptor` if this succeeds.
    private static func makeBus(_ descriptor: Int32, _ role: Role) throws(SystemdError) -> OpaquePointer {
        var made: OpaquePointer?
        try check(sd_bus_new(&made), "sd_bus_new")
        guard let bus = made else { throw SystemdError("sd_bus_new", errno: ENOMEM) }
        do throws(SystemdError) {
            if case .server = role {
                var id = sd_id128_t()
                try check(sd_id128_randomize(&id), "sd_id128_randomize")
                try check(sd_bus_set_server(bus, 1, id), "sd_bus_set_server")
            }
            try check(sd_bus_negotiate_creds(bus, 1, csystemd_creds_caller()), "sd_bus_negotiate_creds")
            // Needed by `filter`, which then looks for what came together with the handshake.
            try check(sd_bus_set_connected_signal(bus, 1), "sd_bus_set_connected_signal")
            // A peer that never finishes the handshake would make the loop's exit wait for it.
            try check(sd_bus_set_close_on_exit(bus, 0), "sd_bus_set_close_on_exit")
            try check(sd_bus_set_fd(bus, descriptor, descriptor), "sd_bus_set_fd")
        } catch {
            sd_bus_unref(bus)
            throw error
        }
        return bus
    }

    private func limitSendBuffer(_ descriptor: Int32) throws(SystemdError) {
        // The kernel doubles what it is given, for its own bookkeeping (socket(7)).
        var size = limits.sendBuffer / 2
        guard setsockopt(descriptor, SOL_SOCKET, SO_SNDBUF, &size, socklen_t(MemoryLayout<Int32>.size)) == 0 else {
            throw SystemdError("setsockopt SO_SNDBUF", errno: errno)
        }
    }

    private func register(_ objects: BusObjects?, _ role: Role) throws(SystemdError) {
        var slot: OpaquePointer?
        let userdata = Unmanaged.passRetained(WeakPeer(self)).toOpaque()
        let result = sd_bus_add_filter(bus, &slot, filterCallback, userdata)
        guard result >= 0, let slot else {
            releaseUserdata(userdata)
            throw SystemdError("sd_bus_add_filter", errno: -result)
        }
        float(slot)
        if case .server(let names) = role {
            try BusDriver.objects(names: names).register(on: bus, for: self)
        }
        try objects?.register(on: bus, for: self)
    }

    // MARK: State

    /// Whether the handshake is done.
    package var isReady: Bool { !isGone && sd_bus_is_ready(bus) > 0 }

    /// Ends the connection at once. Callers that wait here and calls that wait there are told, from the loop; with a
    /// `reason`, `onGone` is too.
    package func close(reason: String? = nil) {
        guard !isGone else { return }
        isGone = true
        sd_bus_close(bus)
        let handlers = goneHandlers.sorted { $0.key < $1.key }.map(\.value)
        let calls = outgoing.sorted { $0.key < $1.key }.map(\.value)
        goneHandlers = [:]
        outgoing = [:]
        let onGone = self.onGone
        self.onGone = nil
        onSignal = nil
        loop.callLater {
            for call in calls { call.finish(.failure(.disconnected("The connection ended before the answer."))) }
            for handler in handlers { handler() }
            if let reason { onGone?(reason) }
        }
    }

    func setGoneHandler(_ serial: UInt64, _ handler: (() -> Void)?) {
        goneHandlers[serial] = isGone ? nil : handler
        if let handler, isGone { loop.callLater(handler) }
    }

    /// Drops a peer that lets too much pile up.
    func checkQueue(limit: UInt64? = nil) {
        var queued: UInt64 = 0
        guard !isGone, sd_bus_get_n_queued_write(bus, &queued) >= 0, queued > limit ?? limits.queuedMessages else {
            return
        }
        close(reason: "it does not read: \(queued) messages wait for it")
    }

    // MARK: Incoming

    /// Looks at a message before the objects do.
    /// - Returns: whether it must go no further.
    func filter(_ message: OpaquePointer) -> Bool {
        if sd_bus_message_is_signal(message, "org.freedesktop.DBus.Local", nil) > 0 {
            if sd_bus_message_is_signal(message, nil, "Disconnected") > 0 {
                close(reason: "the connection ended")
            } else {
                loop.callLater { [weak self] in self?.readLeftOver() }
            }
            return true
        }
        if sd_bus_message_is_method_call(message, nil, nil) > 0 {
            let isLarge =
                sd_bus_message_is_method_call(message, "org.freedesktop.DBus.ObjectManager", nil) > 0
                || sd_bus_message_is_method_call(message, "org.freedesktop.DBus.Introspectable", nil) > 0
            checkQueue(limit: isLarge ? limits.queuedLargeAnswers : nil)
            return isGone
        }
        if let onSignal, let signal = BusSignal(message, limits: limits.message) { onSignal(signal) }
        return false
    }

    /// Deals with messages that were read together with the end of the handshake. libsystemd (252) keeps them in its
    /// buffer and waits for the socket to become readable, which it may never do again: each would wait for the other.
    private func readLeftOver() {
        var result: Int32 = 1
        while !isGone, result > 0 { result = sd_bus_process(bus, nil) }
        if result < 0 { close(reason: "it sent what is no message: \(errnoText(-result))") }
    }

    /// Calls the method that a message names; what it throws is the answer.
    func dispatch(_ message: OpaquePointer, _ binding: Binding) throws(BusError) {
        guard let path = sd_bus_message_get_path(message), let member = sd_bus_message_get_member(message),
            let vtable = binding.vtable, let method = vtable.methods[String(cString: member)],
            let target = binding.objects.target(String(cString: path))
        else { throw .failed("There is no such method here.") }
        lastSerial += 1
        let call = try MethodCall(
            message, target: target, interface: vtable.interface.name, method: method, peer: self, serial: lastSerial)
        if method.access == .owner {
            let caller = try call.credentials()
            guard caller.uid == geteuid() || caller.uid == 0 else {
                call.fail(.accessDenied("\(call.interface).\(call.member) is only for uid \(geteuid()) and root."))
                return
            }
        }
        method.handler(call)
    }

    // MARK: Outgoing

    /// Sends a signal. Nothing happens when the peer is gone.
    package func emitSignal(path: String, interface: String, member: String, _ arguments: [Variant] = [])
        throws(BusError)
    {
        guard !isGone else { return }
        var message: OpaquePointer?
        try BusError.check(
            sd_bus_message_new_signal(bus, &message, path, interface, member),
            "the signal \(interface).\(member) of \(path) could not be made")
        try send(message, arguments)
    }

    /// Tells of the new values of properties, which are asked for here, by their `get`.
    package func emitPropertiesChanged(path: String, interface: String, _ names: [String]) throws(BusError) {
        guard isReady else { return }
        let result = withStringList(names) { sd_bus_emit_properties_changed_strv(bus, path, interface, $0) }
        try finishEmitting(result, "the change of \(interface) at \(path) could not be told")
    }

    /// ObjectManager's InterfacesAdded, for an object that is there from now on.
    package func emitObjectAdded(path: String) throws(BusError) {
        guard isReady else { return }
        try finishEmitting(sd_bus_emit_object_added(bus, path), "the new object \(path) could not be told of")
    }

    /// ObjectManager's InterfacesRemoved. Call it while the object is still there, for that is where libsystemd reads
    /// the names of its interfaces.
    package func emitObjectRemoved(path: String) throws(BusError) {
        guard isReady else { return }
        try finishEmitting(sd_bus_emit_object_removed(bus, path), "the end of the object \(path) could not be told of")
    }

    /// Calls a method of the other side. `reply` is called exactly once, from the loop: with the answer, the error,
    /// after `timeout` (`nil`: none), or when the connection ends.
    package func call(
        path: String, interface: String, member: String, _ arguments: [Variant] = [], timeout: Duration?,
        reply: @escaping (Result<[Variant], BusError>) -> Void
    ) throws(BusError) {
        guard !isGone else { throw .disconnected("The connection has ended.") }
        var message: OpaquePointer?
        try BusError.check(
            sd_bus_message_new_method_call(bus, &message, nil, path, interface, member),
            "a call of \(interface).\(member) of \(path) could not be made")
        guard let message else { throw .failed("no message could be made") }
        defer { sd_bus_message_unref(message) }
        try MessageWriter.append(arguments, to: message)
        lastSerial += 1
        let serial = lastSerial
        let call = OutgoingCall { [weak self] result in
            self?.outgoing[serial] = nil
            reply(result)
        }
        try OutgoingCall.send(message, on: bus, timeout: timeout, call)
        outgoing[serial] = call
        checkQueue()
    }

    private func send(_ made: OpaquePointer?, _ arguments: [Variant]) throws(BusError) {
        guard let message = made else { throw .failed("no message could be made") }
        defer { sd_bus_message_unref(message) }
        try MessageWriter.append(arguments, to: message)
        try finishEmitting(sd_bus_send(bus, message, nil), "a message could not be sent")
    }

    /// A peer that is going away hears nothing more, which is no error: the loop tells of it soon.
    private func finishEmitting(_ result: Int32, _ what: String) throws(BusError) {
        if result < 0, !isDisconnect(-result) { try BusError.check(result, what) }
        checkQueue()
    }
}

extension BusSignal {
    /// `nil` for anything else than a signal within the limits.
    init?(_ message: OpaquePointer, limits: MessageLimits) {
        guard sd_bus_message_is_signal(message, nil, nil) > 0, let path = sd_bus_message_get_path(message),
            let interface = sd_bus_message_get_interface(message), let member = sd_bus_message_get_member(message),
            let arguments = try? MessageReader.read(message, limits: limits)
        else { return nil }
        // Whoever reads after us (a match, the next filter) starts at the first value.
        sd_bus_message_rewind(message, 1)
        self.init(
            path: String(cString: path), interface: String(cString: interface), member: String(cString: member),
            arguments: arguments)
    }
}

/// Whether an errno says that a connection is over.
func isDisconnect(_ code: Int32) -> Bool {
    [ENOTCONN, ECONNRESET, ECONNABORTED, EPIPE, ESHUTDOWN, ENOTRECOVERABLE].contains(code)
}

/// The error of a failed libsystemd call, in our words when the connection is over.
func disconnectedOr(_ result: Int32, _ what: String) -> BusError {
    if isDisconnect(-result) { return .disconnected("\(what): the connection has ended.") }
    do throws(BusError) {
        try BusError.check(min(result, -1), what)
        return .failed(what)
    } catch {
        return error
    }
}

/// A NULL-terminated list of C strings, for the time of `body`.
func withStringList<Value>(
    _ texts: [String], _ body: (UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?) -> Value
) -> Value {
    var pointers = texts.map { strdup($0) } + [nil]
    defer { for pointer in pointers { free(pointer) } }
    return pointers.withUnsafeMutableBufferPointer { body($0.baseAddress) }
}
