import CSystemd
import Glibc
package import Posix

// Outgoing messages: signals and calls.

extension BusPeer {
    /// Sends a signal. After the end of the connection nothing happens.
    package func emitSignal(path: String, interface: String, member: String, _ arguments: [Variant] = [])
        throws(BusError)
    {
        guard !isGone else { return }
        var message: OpaquePointer?
        try BusError.check(
            sd_bus_message_new_signal(bus, &message, path, interface, member),
            "the signal \(interface).\(member) of \(path) could not be created")
        try send(message, arguments)
    }

    /// Sends PropertiesChanged with the new values of properties, which their `get` provides.
    package func emitPropertiesChanged(path: String, interface: String, _ names: [String]) throws(BusError) {
        guard isReady else { return }
        let result = withStringList(names) { sd_bus_emit_properties_changed_strv(bus, path, interface, $0) }
        try finishEmitting(result, "PropertiesChanged of \(interface) at \(path) could not be sent")
    }

    /// Sends ObjectManager's InterfacesAdded for an object that exists now.
    package func emitObjectAdded(path: String) throws(BusError) {
        guard isReady else { return }
        try finishEmitting(sd_bus_emit_object_added(bus, path), "InterfacesAdded of \(path) could not be sent")
    }

    /// Sends ObjectManager's InterfacesRemoved. Call it while the object still exists: libsystemd reads the names of its
    /// interfaces from it.
    package func emitObjectRemoved(path: String) throws(BusError) {
        guard isReady else { return }
        try finishEmitting(sd_bus_emit_object_removed(bus, path), "InterfacesRemoved of \(path) could not be sent")
    }

    /// Calls a method of the other side, or on a bus of `destination`. `reply` is called exactly once, from the loop: with
    /// the answer or the error, after `timeout` (`nil`: none), or when the connection ends.
    /// - Parameter limits: of the answer.
    package func call(
        _ destination: String? = nil, path: String, interface: String, member: String, _ arguments: [Variant] = [],
        timeout: Duration?, limits: MessageLimits = MessageLimits(),
        reply: @escaping (Result<[Variant], BusError>) -> Void
    ) throws(BusError) {
        try send(
            destination, path, interface, member, arguments, timeout: timeout, OutgoingCall(limits: limits, reply))
    }

    /// Calls a method that answers with a descriptor.
    package func callForDescriptor(
        _ destination: String? = nil, path: String, interface: String, member: String, _ arguments: [Variant] = [],
        timeout: Duration?, reply: @escaping (Result<SharedDescriptor, BusError>) -> Void
    ) throws(BusError) {
        try send(
            destination, path, interface, member, arguments, timeout: timeout, OutgoingCall(forDescriptor: reply))
    }

    private func send(
        _ destination: String?, _ path: String, _ interface: String, _ member: String, _ arguments: [Variant],
        timeout: Duration?, _ call: OutgoingCall
    ) throws(BusError) {
        guard !isGone else { throw .disconnected("The connection has ended.") }
        var message: OpaquePointer?
        try BusError.check(
            sd_bus_message_new_method_call(bus, &message, destination, path, interface, member),
            "a call of \(interface).\(member) of \(path) could not be created")
        guard let message else { throw .failed("the message could not be created") }
        defer { sd_bus_message_unref(message) }
        try MessageWriter.append(arguments, to: message)
        let serial = nextSerial()
        call.onFinish = { [weak self] in
            guard let self else { return }
            self.transport.messageArrived()
            self.outgoing[serial] = nil
        }
        try OutgoingCall.send(message, on: bus, timeout: timeout, call)
        outgoing[serial] = call
        update()
    }

    private func send(_ made: OpaquePointer?, _ arguments: [Variant]) throws(BusError) {
        guard let message = made else { throw .failed("the message could not be created") }
        defer { sd_bus_message_unref(message) }
        try MessageWriter.append(arguments, to: message)
        try finishEmitting(sd_bus_send(bus, message, nil), "a message could not be sent")
    }

    /// Ignores the error of a connection that has ended: the loop reports its end.
    private func finishEmitting(_ result: Int32, _ what: String) throws(BusError) {
        if result < 0, !isDisconnect(-result) { try BusError.check(result, what) }
        update()
    }
}

extension BusSignal {
    /// `nil` for a message that is not a signal or exceeds the limits.
    init?(_ message: OpaquePointer, limits: MessageLimits) {
        guard sd_bus_message_is_signal(message, nil, nil) > 0, let path = sd_bus_message_get_path(message),
            let interface = sd_bus_message_get_interface(message), let member = sd_bus_message_get_member(message),
            let arguments = try? MessageReader.read(message, limits: limits)
        else { return nil }
        // The next reader (a match, another filter) starts at the first value.
        sd_bus_message_rewind(message, 1)
        self.init(
            path: String(cString: path), interface: String(cString: interface), member: String(cString: member),
            arguments: arguments, sender: sd_bus_message_get_sender(message).map { String(cString: $0) })
    }
}

/// Whether an errno reports the end of a connection.
func isDisconnect(_ code: Int32) -> Bool {
    [ENOTCONN, ECONNRESET, ECONNABORTED, EPIPE, ESHUTDOWN, ENOTRECOVERABLE].contains(code)
}

/// Returns the error of a failed libsystemd call; `disconnected` if the connection has ended.
func disconnectedOr(_ result: Int32, _ what: String) -> BusError {
    if isDisconnect(-result) { return .disconnected("\(what): the connection has ended.") }
    do throws(BusError) {
        try BusError.check(min(result, -1), what)
        return .failed(what)
    } catch {
        return error
    }
}

/// Calls `body` with a NULL-terminated list of C strings.
func withStringList<Value>(
    _ texts: [String], _ body: (UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?) -> Value
) -> Value {
    var pointers = texts.map { strdup($0) } + [nil]
    defer { for pointer in pointers { free(pointer) } }
    return pointers.withUnsafeMutableBufferPointer { body($0.baseAddress) }
}
