import CSystemd

/// A call that waits for its answer; retained by libsystemd's slot, finished exactly once.
final class OutgoingCall {
    private var handler: ((Result<[Variant], BusError>) -> Void)?
    private let limits: MessageLimits

    init(limits: MessageLimits = MessageLimits(), _ handler: @escaping (Result<[Variant], BusError>) -> Void) {
        self.handler = handler
        self.limits = limits
    }

    func finish(_ result: Result<[Variant], BusError>) {
        guard let handler else { return }
        self.handler = nil
        handler(result)
    }

    /// What a reply or an error message says.
    func result(of message: OpaquePointer) -> Result<[Variant], BusError> {
        if let error = BusError(sd_bus_message_get_error(message)) { return .failure(error) }
        do throws(BusError) {
            return .success(try MessageReader.read(message, limits: limits))
        } catch {
            return .failure(error)
        }
    }

    /// Sends `message` on `bus`; `call` is finished by the reply, by the time-out or by the end of the connection.
    static func send(
        _ message: OpaquePointer, on bus: OpaquePointer, timeout: Duration?, _ call: OutgoingCall
    ) throws(BusError) {
        var slot: OpaquePointer?
        let userdata = Unmanaged.passRetained(call).toOpaque()
        let result = sd_bus_call_async(bus, &slot, message, replyCallback, userdata, busTimeout(timeout))
        guard result >= 0, let slot else {
            releaseUserdata(userdata)
            throw disconnectedOr(result, "the call could not be sent")
        }
        float(slot)
    }
}

/// Leaves a slot to its connection, and gives its userdata back when it goes.
func float(_ slot: OpaquePointer) {
    sd_bus_slot_set_destroy_callback(slot, releaseUserdata)
    let result = sd_bus_slot_set_floating(slot, 1)
    precondition(result >= 0, "sd_bus_slot_set_floating: \(errnoText(-result))")
    sd_bus_slot_unref(slot)
}

/// libsystemd's time-out of a call: 0 would mean its default of 25 s, the largest number means none.
func busTimeout(_ timeout: Duration?) -> UInt64 {
    timeout.map { max(1, $0.wholeMicroseconds) } ?? UInt64.max
}
