import CSystemd
import Glibc
package import Posix

/// One sd-bus connection, driven by the loop: it serves objects, calls the other side, sends and receives signals.
///
/// libsystemd could drive the connection itself (sd_bus_attach_event), but it then asks every connection in every turn of
/// the loop what it waits for, so that a thousand idle apps would cost time at every event. It also ignores a message that
/// arrives together with the handshake until more bytes arrive, and bounds nothing.
///
/// The parts: `BusTransport` is the socket and its limits, this file the lifetime of the connection,
/// `BusPeer+Turns.swift` its share of the loop, `BusPeer+Dispatch.swift` incoming messages, `BusPeer+Sending.swift`
/// outgoing ones. `BusServer` accepts connections.
package final class BusPeer {
    package enum Role: Sendable {
        case client
        /// Answers the handshake, and what bus clients ask the bus itself (`Hello`), under these bus names. A call with
        /// descriptors gets an error.
        case server(names: [String])
    }

    /// The number of the connection: `:1.NUMBER` is its unique name for clients that ask for one.
    package let number: UInt64
    /// The process at the other end; `nil` if that is a bus daemon, whose messages have a sender each.
    package let credentials: PeerCredentials?
    /// When the connection was accepted, or begun (CLOCK_BOOTTIME, as the start times of processes).
    package let connected = EventLoop.bootTime()
    package let limits: BusLimits
    package private(set) var isGone = false
    /// Called once from the loop with the reason, a sentence, unless `close` was called without one.
    package var onGone: ((String) -> Void)?
    /// Called once from the loop when the handshake is done.
    package var onReady: (() -> Void)?
    /// Called for each signal that arrives.
    package var onSignal: ((BusSignal) -> Void)?
    /// Called for each message that arrives, before anything else happens to it.
    package var onMessage: (() -> Void)?
    /// Called once from the loop when the outgoing queue is empty. Set it while `isCongested`.
    package var onDrained: (() -> Void)?

    let bus: OpaquePointer
    let loop: EventLoop
    package let isOnBus: Bool
    let kinds: BusKinds
    let transport: BusTransport
    private(set) var objects: BusObjects?
    /// Handles in a later turn the messages that libsystemd has read already.
    let continuation: DeferredCall
    /// For the timeouts of calls; created with the first of them.
    var timer: Timer?
    var outgoing: [UInt64: OutgoingCall] = [:]
    /// On a bus: callers that wait for an answer of this connection.
    var watchedSenders: [String: WatchedSender] = [:]
    /// The descriptors of the message that is being handled, for its method.
    var descriptors: [SharedDescriptor] = []
    /// Whether a message is being handled: libsystemd does that for one at a time.
    var isInTurn = false
    /// Whether libsystemd's buffer holds nothing that arrived together with the handshake.
    var isSettled = false
    /// Whether this side serves a private socket.
    let isServer: Bool
    /// Whether a message of the other side has arrived.
    var hasReceived = false
    /// Calls of the other side that wait for an answer, by number.
    var unanswered: [UInt64: UnansweredCall] = [:]
    private var lastSerial: UInt64 = 0
    private var goneHandlers: [UInt64: () -> Void] = [:]

    /// Takes ownership of a connected socket. The handshake is done in the loop.
    /// - Parameters:
    ///   - kinds: of its sources.
    ///   - share: of the app at the other end.
    ///   - isTrusted: of a server: whether the client may do anything to this process anyway (root, and its own user). Then libsystemd
    ///     reads the socket itself.
    ///   - closer: closes the socket of a client that is not trusted, and the descriptors that it sends.
    package init(
        loop: EventLoop, descriptor: consuming Descriptor, role: Role, number: UInt64 = 0, objects: BusObjects? = nil,
        limits: BusLimits = BusLimits(), kinds: BusKinds = .control, share: AppShare? = nil,
        isTrusted: Bool = false, closer: DescriptorCloser = DescriptorCloser()
    ) throws(SystemError) {
        let credentials = try PeerCredentials(ofSocket: descriptor)
        self.credentials = credentials
        let bus = try Self.makeBus()
        let intake: BusIntake?
        do throws(SystemError) {
            try check(sd_bus_negotiate_creds(bus, 1, csystemd_creds_caller()), "sd_bus_negotiate_creds")
            if case .server = role { try Self.makeServer(bus) }
            if case .server = role, !isTrusted {
                intake = try BusIntake(
                    socket: descriptor, bus: bus, closer: closer, mostDescriptors: limits.descriptors)
            } else {
                intake = nil
                try check(sd_bus_set_fd(bus, descriptor.raw, descriptor.raw), "sd_bus_set_fd")
                _ = descriptor.release()
            }
        } catch {
            sd_bus_unref(bus)
            throw error
        }
        self.bus = bus
        self.loop = loop
        self.number = number
        self.limits = limits
        self.kinds = kinds
        isOnBus = false
        isServer = if case .server = role { true } else { false }
        transport = BusTransport(loop: loop, kind: kinds.client, share: share, intake: intake)
        continuation = DeferredCall(loop: loop, kind: kinds.client)
        try start(objects, role)
    }

    /// Connects to a bus daemon. If its socket does not exist yet, libsystemd waits for it without polling
    /// (sd_bus_set_watch_bind(3)). Neither the connection nor the handshake blocks: `isReady` reports when they are done.
    /// - Parameters:
    ///   - busAddress: as sd-bus reads it: `unix:path=…`, several with `;` between them.
    ///   - takesDescriptors: if false, the daemon refuses descriptors that other programs send to this connection.
    package init(
        loop: EventLoop, busAddress: String, objects: BusObjects? = nil, limits: BusLimits = BusLimits(),
        takesDescriptors: Bool = false
    ) throws(SystemError) {
        let bus = try Self.makeBus()
        do throws(SystemError) {
            try check(sd_bus_set_address(bus, busAddress), "sd_bus_set_address", busAddress)
            try check(sd_bus_set_bus_client(bus, 1), "sd_bus_set_bus_client")
            try check(sd_bus_negotiate_fds(bus, takesDescriptors ? 1 : 0), "sd_bus_negotiate_fds")
            try check(sd_bus_set_watch_bind(bus, 1), "sd_bus_set_watch_bind")
        } catch {
            sd_bus_unref(bus)
            throw error
        }
        self.bus = bus
        self.loop = loop
        number = 0
        credentials = nil
        self.limits = limits
        kinds = .control
        isOnBus = true
        isServer = false
        transport = BusTransport(loop: loop, kind: kinds.client, share: nil, intake: nil)
        continuation = DeferredCall(loop: loop, kind: kinds.client)
        try start(objects, .client)
    }

    private static func makeBus() throws(SystemError) -> OpaquePointer {
        var made: OpaquePointer?
        try check(sd_bus_new(&made), "sd_bus_new")
        guard let made else { throw SystemError(call: "sd_bus_new", errno: ENOMEM) }
        return made
    }

    private static func makeServer(_ bus: OpaquePointer) throws(SystemError) {
        var id = sd_id128_t()
        try check(sd_id128_randomize(&id), "sd_id128_randomize")
        try check(sd_bus_set_server(bus, 1, id), "sd_bus_set_server")
        // GDBus and dbus-python deliver a signal to an object's listeners only if it comes from the owner of the name.
        try check(sd_bus_set_sender(bus, BusDriver.ownUniqueName), "sd_bus_set_sender")
        // A client that may send none ends its connection when it is to send one (GDBus, libdbus). `BusIntake` closes those of apps.
        try check(sd_bus_negotiate_fds(bus, 1), "sd_bus_negotiate_fds")
        // `credentials` are the kernel's; with a `BusIntake` libsystemd would see those of this process.
        try check(sd_bus_set_anonymous(bus, 1), "sd_bus_set_anonymous")
    }

    private func start(_ objects: BusObjects?, _ role: Role) throws(SystemError) {
        self.objects = objects
        transport.onEvent = { [weak self] in self?.turn() ?? true }
        continuation.handler = { [weak self] in _ = self?.turn() }
        do throws(SystemError) {
            try addFilter()
            if case .server(let names) = role {
                try BusDriver.objects(names: names).register(on: bus, for: self)
            }
            try objects?.register(on: bus, for: self)
            try check(sd_bus_start(bus), "sd_bus_start")
            try transport.watch(bus)
            if !isOnBus { try transport.limitSendBuffer(limits.sendBuffer) }
        } catch {
            isGone = true
            sd_bus_close(bus)
            transport.close()
            throw error
        }
        // sd_bus_start may have read something already.
        continuation.schedule()
    }

    private func addFilter() throws(SystemError) {
        var slot: OpaquePointer?
        let userdata = Unmanaged.passRetained(WeakPeer(self)).toOpaque()
        let result = sd_bus_add_filter(bus, &slot, filterCallback, userdata)
        guard result >= 0, let slot else {
            releaseUserdata(userdata)
            throw SystemError(call: "sd_bus_add_filter", errno: -result)
        }
        float(slot)
    }

    deinit {
        timer?.cancel()
        if !isGone { sd_bus_close(bus) }
        transport.close()
        sd_bus_unref(bus)
    }

    // MARK: State

    /// Whether the handshake is done.
    package var isReady: Bool { !isGone && sd_bus_is_ready(bus) > 0 }

    /// Whether the other side may get signals. A client of a bus expects the answer to its `Hello` before any other message:
    /// libsystemd ends the connection with EIO if a signal arrives before. So a client of a private socket gets signals once
    /// its first message has arrived, which is answered before anything else is sent.
    package var takesSignals: Bool { isReady && (!isServer || hasReceived) }

    /// Ends the connection at once. Callers and calls that wait are notified from the loop; with a `reason`, `onGone` is
    /// called too.
    package func close(reason: String? = nil) {
        guard !isGone else { return }
        isGone = true
        timer?.cancel()
        continuation.cancel()
        sd_bus_close(bus)
        transport.close()
        let handlers = goneHandlers.sorted { $0.key < $1.key }.map(\.value)
        let calls = outgoing.sorted { $0.key < $1.key }.map(\.value)
        goneHandlers = [:]
        outgoing = [:]
        watchedSenders = [:]
        let onGone = self.onGone
        self.onGone = nil
        onSignal = nil
        onMessage = nil
        onReady = nil
        onDrained = nil
        loop.callLater {
            for call in calls { call.finish(.failure(.disconnected("The connection ended before the answer."))) }
            for handler in handlers { handler() }
            if let reason { onGone?(reason) }
        }
    }

    /// Sets what is called if the caller of an incoming call ends its connection.
    /// - Parameter sender: on a bus, the unique name of the caller.
    func setGoneHandler(_ serial: UInt64, of sender: String?, _ handler: (() -> Void)?) {
        goneHandlers[serial] = isGone ? nil : handler
        if let handler, isGone { return loop.callLater(handler) }
        guard isOnBus, !isGone, let sender else { return }
        if handler == nil { stopWatching(sender, for: serial) } else { watch(sender, for: serial) }
    }

    /// Calls the handlers of these calls: their caller has ended its connection.
    func callersGone(_ serials: [UInt64]) {
        for serial in serials { goneHandlers.removeValue(forKey: serial)?() }
    }

    /// Returns a new number for a call, in either direction.
    func nextSerial() -> UInt64 {
        lastSerial += 1
        return lastSerial
    }
}
