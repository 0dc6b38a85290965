import CSystemd
package import Posix

/// An incoming method call. It is answered once, at once or later; if it is dropped without an answer, it fails.
package final class MethodCall {
    package let target: BusTarget
    package let interface: String
    package let member: String
    /// The arguments, which match the method's signature.
    package let arguments: [Variant]
    /// The connection of the caller, which may have ended.
    package let peer: BusPeer
    private let message: OpaquePointer
    private let output: String
    private let serial: UInt64
    package private(set) var isAnswered = false

    init(
        _ message: OpaquePointer, target: BusTarget, interface: String, method: BusMethod, peer: BusPeer,
        serial: UInt64, descriptors: [SharedDescriptor] = []
    ) throws(BusError) {
        self.target = target
        self.interface = interface
        self.member = method.name
        self.output = method.output
        self.peer = peer
        self.serial = serial
        if method.takesDescriptors {
            var values = try MessageReader.readBeforeDescriptors(message, limits: peer.limits.message)
            let count = method.input.utf8.count { $0 == UInt8(ascii: "h") }
            if peer.limits.descriptors > 0 {
                // libsystemd does not have them (`BusIntake`), so it cannot read the values either: they are in their order.
                guard descriptors.count == count else {
                    throw .invalid("\(descriptors.count) file descriptors; \(count) are expected")
                }
                values += descriptors.map { .descriptor($0) }
            } else {
                for _ in 0..<count { values.append(.descriptor(try MessageReader.readDescriptor(message))) }
            }
            arguments = values
        } else {
            arguments = try MessageReader.read(message, limits: peer.limits.message)
        }
        self.message = sd_bus_message_ref(message)
        peer.unanswered[serial] = UnansweredCall(call: self)
    }

    deinit {
        if !isAnswered { fail(.noReply("\(interface).\(member) was dropped without an answer.")) }
        sd_bus_message_unref(message)
    }

    /// The caller; on a bus `nil` until `identify` has found it.
    package private(set) lazy var credentials: PeerCredentials? = peer.credentials

    /// On a bus, the unique name of the caller.
    package var sender: String? {
        peer.isOnBus ? sd_bus_message_get_sender(message).map { String(cString: $0) } : nil
    }

    /// Whether polkit may ask the user for a password (flag ALLOW_INTERACTIVE_AUTHORIZATION of the message).
    package var allowsInteraction: Bool { sd_bus_message_get_allow_interactive_authorization(message) > 0 }

    /// Finds the credentials of the caller. On a bus the daemon is asked, so `found` may be called later.
    package func identify(_ found: @escaping (Result<PeerCredentials, BusError>) -> Void) {
        if let credentials { return found(.success(credentials)) }
        guard let sender else { return found(.failure(.failed("the caller is not known"))) }
        peer.credentials(of: sender) { result in
            self.credentials = try? result.get()
            found(result)
        }
    }

    /// Whether the caller expects an answer. An answer that is not expected is not sent.
    package var expectsReply: Bool { sd_bus_message_get_expect_reply(message) > 0 }

    /// Calls `handler` from the loop if the caller disconnects before the answer. The handler should refer to the call
    /// weakly.
    package func onPeerGone(_ handler: @escaping () -> Void) {
        if !isAnswered { peer.setGoneHandler(serial, of: sender, handler) }
    }

    /// Calls `handler` from the loop once the caller disconnects, also after the answer.
    package func onDisconnect(_ handler: @escaping () -> Void) {
        peer.setGoneHandler(peer.nextSerial(), of: sender, handler)
    }

    /// Identifies the connection of the caller as long as it lasts.
    package var client: BusClient { BusClient(peer: ObjectIdentifier(peer), sender: sender) }

    /// Answers with the method's results. Nothing happens if the caller has disconnected or has its answer.
    package func reply(_ results: [Variant] = []) {
        answer { () throws(BusError) in
            let signature = results.map(\.signature).joined()
            guard signature == self.output else {
                throw .failed("\(self.interface).\(self.member) answered \(signature) instead of \(self.output).")
            }
            var reply: OpaquePointer?
            try BusError.check(sd_bus_message_new_method_return(self.message, &reply), "the reply could not be created")
            guard let reply else { throw .failed("the reply could not be created") }
            defer { sd_bus_message_unref(reply) }
            try MessageWriter.append(results, to: reply)
            try BusError.check(sd_bus_send(self.peer.bus, reply, nil), "the reply could not be sent")
        }
    }

    /// Begins an answer that is one array, which grows element by element: a long one would take a long turn of the loop.
    package func beginArrayReply() -> ArrayReply { ArrayReply(self, message, element: String(output.dropFirst())) }

    /// Sends the message as the answer, unless `error` has occurred.
    fileprivate func send(_ reply: OpaquePointer?, _ error: BusError?) {
        answer { () throws(BusError) in
            if let error { throw error }
            guard let reply else { throw .failed("the reply could not be created") }
            try BusError.check(sd_bus_message_close_container(reply), "the reply could not be ended")
            try BusError.check(sd_bus_send(self.peer.bus, reply, nil), "the reply could not be sent")
        }
    }

    /// Answers with an error. `name` is a D-Bus error name (`org.greenroom.Error.NoSuchApp`), `text` a sentence.
    package func fail(_ name: String, _ text: String) {
        fail(BusError(name, text))
    }

    package func fail(_ error: BusError) {
        answer { () throws(BusError) in throw error }
    }

    /// Calls `send` once. The caller gets an error that it throws as the answer.
    private func answer(_ send: () throws(BusError) -> Void) {
        guard !isAnswered else { return }
        isAnswered = true
        peer.unanswered[serial] = nil
        peer.setGoneHandler(serial, of: sender, nil)
        guard !peer.isGone, expectsReply else { return }
        do throws(BusError) {
            try send()
        } catch {
            var problem = sd_bus_error()
            _ = error.set(&problem)
            sd_bus_reply_method_error(message, &problem)
            sd_bus_error_free(&problem)
        }
        peer.update()
    }
}

/// The connection of a caller: to this process, or to a message bus.
package struct BusClient: Hashable {
    let peer: ObjectIdentifier
    /// On a bus, the unique name of the caller.
    let sender: String?
}

/// An answer that is one array.
package final class ArrayReply {
    private let call: MethodCall
    private let element: String
    private var message: OpaquePointer?
    /// The first failure, which becomes the answer.
    private var failure: BusError?

    fileprivate init(_ call: MethodCall, _ request: OpaquePointer, element: String) {
        self.call = call
        self.element = element
        attempt { () throws(BusError) in
            try BusError.check(sd_bus_message_new_method_return(request, &message), "the reply could not be created")
            try BusError.check(
                sd_bus_message_open_container(message, CChar(UInt8(ascii: "a")), element),
                "the reply could not be begun")
        }
    }

    deinit { sd_bus_message_unref(message) }

    /// Adds an element of the array.
    package func append(_ value: Variant) {
        guard let message, failure == nil else { return }
        attempt { () throws(BusError) in
            guard value.signature == element else {
                throw .failed("\(call.member) answered with \(value.signature) in an array of \(element).")
            }
            try MessageWriter.append([value], to: message)
        }
    }

    /// Sends the answer. Nothing happens if the caller has disconnected.
    package func send() { call.send(message, failure) }

    private func attempt(_ body: () throws(BusError) -> Void) {
        do throws(BusError) { try body() } catch { if failure == nil { failure = error } }
    }
}
