import CSystemd
import Glibc
import Posix

/// A call that waits for its answer. libsystemd's slot retains it; it is finished exactly once.
final class OutgoingCall {
    /// Gets the message of the answer, or the error.
    private var handler: ((Result<OpaquePointer, BusError>) -> Void)?
    /// Called before the handler.
    var onFinish: () -> Void = {}

    init(limits: MessageLimits = MessageLimits(), _ handler: @escaping (Result<[Variant], BusError>) -> Void) {
        self.handler = {
            handler(Self.read($0) { message throws(BusError) in try MessageReader.read(message, limits: limits) })
        }
    }

    /// For an answer that is one descriptor; the handler gets a duplicate.
    init(forDescriptor handler: @escaping (Result<SharedDescriptor, BusError>) -> Void) {
        self.handler = {
            handler(Self.read($0) { message throws(BusError) in try MessageReader.readDescriptor(message) })
        }
    }

    /// For an answer that begins with a descriptor; the handler gets a duplicate, and the other values.
    init(forDescriptorAndValues handler: @escaping (Result<(SharedDescriptor, [Variant]), BusError>) -> Void) {
        self.handler = {
            handler(
                Self.read($0) { message throws(BusError) in
                    (try MessageReader.readDescriptor(message), try MessageReader.readRest(message))
                })
        }
    }

    func finish(_ result: Result<OpaquePointer, BusError>) {
        guard let handler else { return }
        self.handler = nil
        onFinish()
        handler(result)
    }

    private static func read<Value>(
        _ result: Result<OpaquePointer, BusError>, _ body: (OpaquePointer) throws(BusError) -> Value
    ) -> Result<Value, BusError> {
        do throws(BusError) {
            let message = try result.get()
            if let error = BusError(sd_bus_message_get_error(message)) { return .failure(error) }
            return .success(try body(message))
        } catch {
            return .failure(error)
        }
    }

    /// Sends `message` on `bus`; `call` is finished by the reply, the timeout or the end of the connection.
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

/// Leaves a slot to its connection and releases its userdata with it.
func float(_ slot: OpaquePointer) {
    sd_bus_slot_set_destroy_callback(slot, releaseUserdata)
    let result = sd_bus_slot_set_floating(slot, 1)
    precondition(result >= 0, "sd_bus_slot_set_floating: \(SystemError.text(of: -result))")
    sd_bus_slot_unref(slot)
}

/// Returns libsystemd's timeout of a call in microseconds: 0 would mean its default of 25 s, the largest number none.
func busTimeout(_ timeout: Duration?) -> UInt64 {
    timeout.map { max(1, $0.wholeMicroseconds) } ?? UInt64.max
}
