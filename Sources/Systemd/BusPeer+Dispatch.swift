import CSystemd
import Glibc
import Posix

// Incoming messages: signals, and calls of the objects that the connection serves.

/// A call that waits for its answer. Its handler has it.
struct UnansweredCall {
    weak var call: MethodCall?
}

extension BusPeer {
    /// Answers all calls that wait with this error: this program will not answer them any more.
    package func failCalls(_ error: BusError) {
        let calls = unanswered.sorted { $0.key < $1.key }.compactMap(\.value.call)
        for call in calls { call.fail(error) }
    }

    /// Examines a message before the objects do.
    /// - Returns: whether the message is dropped.
    func filter(_ message: OpaquePointer) -> Bool {
        transport.messageArrived()
        hasReceived = true
        onMessage?()
        if isGone || takeDescriptors(message) { return true }
        if sd_bus_message_is_method_call(message, nil, nil) > 0 {
            let isLarge =
                sd_bus_message_is_method_call(message, "org.freedesktop.DBus.ObjectManager", nil) > 0
                || sd_bus_message_is_method_call(message, "org.freedesktop.DBus.Introspectable", nil) > 0
            checkQueue(limit: isLarge ? limits.queuedLargeAnswers : limits.queuedMessages)
            return isGone || objects?.managed.take(message, self) ?? false
        }
        if isOnBus || onSignal != nil, let signal = BusSignal(message, limits: limits.message) {
            handleOwnerChange(signal)
            onSignal?(signal)
        }
        return false
    }

    /// Keeps the descriptors of a call for its method, if that takes descriptors; otherwise the call is answered with an error.
    /// - Returns: whether the message is dropped.
    private func takeDescriptors(_ message: OpaquePointer) -> Bool {
        var serial: UInt64 = 0
        descriptors = []
        guard sd_bus_message_get_cookie(message, &serial) >= 0, let arrived = transport.takeDescriptors(serial) else {
            return false
        }
        guard sd_bus_message_is_method_call(message, nil, nil) > 0 else { return true }
        if !arrived.isEmpty, let member = sd_bus_message_get_member(message),
            objects?.takesDescriptors(String(cString: member)) ?? false
        {
            descriptors = arrived
            return false
        }
        checkQueue(limit: limits.queuedMessages)
        if isGone { return true }
        var problem = sd_bus_error()
        _ = BusError.descriptors.set(&problem)
        sd_bus_reply_method_error(message, &problem)
        sd_bus_error_free(&problem)
        return true
    }

    /// Calls the method that a message names. The caller gets an error that is thrown as the answer.
    func dispatch(_ message: OpaquePointer, _ binding: Binding) throws(BusError) {
        guard let path = sd_bus_message_get_path(message), let member = sd_bus_message_get_member(message),
            let vtable = binding.vtable, let method = vtable.methods[String(cString: member)],
            let target = binding.objects.target(String(cString: path))
        else { throw .failed("There is no such method here.") }
        let descriptors = method.takesDescriptors ? self.descriptors : []
        self.descriptors = []
        let call = try MethodCall(
            message, target: target, interface: vtable.interface.name, method: method, peer: self, serial: nextSerial(),
            descriptors: descriptors)
        guard method.access == .owner else { return method.handler(call) }
        call.identify { [weak self] result in
            switch result {
            case .failure(let error): call.fail(error)
            case .success(let caller): self?.authorise(call, caller, method, binding.objects.owner?.authorise)
            }
        }
    }

    /// Calls a method of `BusAccess.owner` for root and the daemon's user, and for other users if `authorise` allows it.
    private func authorise(
        _ call: MethodCall, _ caller: PeerCredentials, _ method: BusMethod, _ authorise: BusObjects.Authorise?
    ) {
        if caller.uid == geteuid() || caller.uid == 0 { return method.handler(call) }
        guard let authorise else {
            return call.fail(
                .accessDenied("\(call.interface).\(call.member) is only for uid \(geteuid()) and root."))
        }
        authorise(call, caller) { error in
            if let error { call.fail(error) } else { method.handler(call) }
        }
    }
}
