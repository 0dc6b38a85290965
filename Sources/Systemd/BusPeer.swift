import CSystemd
import Glibc

/// What one connection may cost us.
package struct BusLimits: Sendable {
    /// The kernel's buffer for what we send, in bytes. libsystemd asks for 8 MiB, and gets them as root.
    package var sendBuffer: Int32 = 256 << 10
    /// Messages that wait because the other side does not read, beyond the kernel's buffer. A stopped `watch` gets this
    /// far; then it is dropped and nobody else is harmed.
    package var queuedMessages: UInt64 = 1024
    /// The same when it asks for a large answer (all objects, an introspection): about 100 KiB each.
    package var queuedLargeAnswers: UInt64 = 32
    /// Bytes of one incoming message; libsystemd itself would collect 128 MiB. Twice what `message` lets through.
    package var incomingBytes = 8 << 20
    package var message = MessageLimits()

    package init() {}
}

/// One connection on a socket, driven by the loop: it serves objects, calls the other side, sends and hears signals.
/// A server's and an app's end differ only in their role in the handshake.
///
/// libsystemd could drive it itself (sd_bus_attach_event), but asks each connection anew in each turn of the loop what
/// it waits for, so that a thousand idle apps would cost something at every event; it forgets a message that came
/// together with the handshake until more arrives; and it bounds nothing.
package final class BusPeer {
    package enum Role: Sendable {
        case client
        /// Answers the handshake, and what bus clients ask of the bus itself (`Hello`), under these bus names.
        case server(names: [String])
    }

    /// Given by whoever makes the connection: `:1.NUMBER` is its unique name for clients that ask for one.
    package let number: UInt64
    /// Who is at the other end; `nil` where that is a D-Bus daemon, as each message has a sender of its own then.
    package let credentials: PeerCredentials?
    package let limits: BusLimits
    package private(set) var isGone = false
    /// Called once from the loop, with the reason in a sentence, unless `close` was called without one.
    package var onGone: ((String) -> Void)?
    /// Called once from the loop, when the handshake is done.
    package var onReady: (() -> Void)?
    /// Called for each signal that arrives.
    package var onSignal: ((BusSignal) -> Void)?

    let bus: OpaquePointer
    let isOnBus: Bool
    var outgoing: [UInt64: OutgoingCall] = [:]
    /// On a bus: who waits for an answer of ours, and is watched for going away.
    var watchedSenders: [String: WatchedSender] = [:]
    private let loop: EventLoop
    /// libsystemd's. On the way to a D-Bus daemon another address may bring another one.
    private var descriptor: Int32
    package let priority: EventPriority
    private var watch: DescriptorWatch?
    /// What a stranger sent and libsystemd has not taken yet.
    private var intakeWatch: DescriptorWatch?
    /// For the time-outs of calls; made with the first of them.
    private var timer: Timer?
    private var lastSerial: UInt64 = 0
    private var goneHandlers: [UInt64: () -> Void] = [:]
    /// Bytes that came since the last whole message.
    private var intake = 0
    /// Where a stranger is at the other end.
    private let strangersIntake: BusIntake?
    /// Whether everything that was read together with the handshake has been dealt with.
    private var isSettled = false
    private var isTurnScheduled = false

    /// Takes over `descriptor`, a connected socket, also when it throws. The handshake goes on in the loop.
    /// - Parameter closer: set where a stranger is at the other end: no descriptor is taken from it.
    package init(
        loop: EventLoop, descriptor: Int32, role: Role, number: UInt64 = 0, objects: BusObjects? = nil,
        limits: BusLimits = BusLimits(), priority: EventPriority = .normal, closer: StrangersCloser? = nil
    ) throws(SystemdError) {
        self.loop = loop
        self.descriptor = descriptor
        self.number = number
        self.limits = limits
        self.priority = priority
        isOnBus = false
        var intake: BusIntake?
        do throws(SystemdError) {
            let caller = try PeerCredentials(ofSocket: descriptor)
            credentials = caller
            if let closer { intake = try BusIntake(socket: descriptor, uid: caller.uid, closer: closer) }
            bus = try Self.makeBus(descriptor, role, intake)
        } catch {
            if intake == nil { Glibc.close(descriptor) }
            throw error
        }
        strangersIntake = intake
        try start(objects, role)
    }

    /// Connects to a D-Bus daemon. The address is sd-bus's (`unix:path=…`, several behind each other with `;`). Where its
    /// socket is not there yet, this waits for it, without looking again and again (sd_bus_set_watch_bind(3)). Neither
    /// connecting nor the handshake waits for anybody: `isReady` tells when they are done.
    /// - Parameter takesDescriptors: otherwise the bus refuses them to whoever sends us any (see `StrangersCloser`).
    package init(
        loop: EventLoop, busAddress: String, objects: BusObjects? = nil, limits: BusLimits = BusLimits(),
        priority: EventPriority = .normal, takesDescriptors: Bool = false
    ) throws(SystemdError) {
        self.loop = loop
        descriptor = -1
        number = 0
        self.limits = limits
        self.priority = priority
        isOnBus = true
        credentials = nil
        strangersIntake = nil
        bus = try Self.makeBus(address: busAddress, takesDescriptors: takesDescriptors)
        try start(objects, .client)
    }

    private func start(_ objects: BusObjects?, _ role: Role) throws(SystemdError) {
        do throws(SystemdError) {
            try register(objects, role)
            try check(sd_bus_start(bus), "sd_bus_start")
            if !isOnBus { try limitSendBuffer() }
            try watchDescriptor()
            if let strangersIntake {
                intakeWatch = try DescriptorWatch(strangersIntake.reading, in: loop, priority: priority) {
                    [weak self] in
                    self?.turn()
                }
            }
        } catch {
            isGone = true
            sd_bus_close(bus)
            stopWatching()
            strangersIntake?.close()
            throw error
        }
        // The start may have read something already.
        scheduleTurn()
    }

    /// Waits for whatever descriptor the connection has now.
    private func watchDescriptor() throws(SystemdError) {
        watch = nil
        if strangersIntake == nil { descriptor = try check(sd_bus_get_fd(bus), "sd_bus_get_fd") }
        watch = try DescriptorWatch(descriptor, in: loop, priority: priority) { [weak self] in self?.turn() }
    }

    private func stopWatching() {
        watch = nil
        intakeWatch = nil
    }

    deinit {
        timer?.cancel()
        if !isGone { sd_bus_close(bus) }
        stopWatching()
        strangersIntake?.close()
        sd_bus_unref(bus)
    }

    /// A connection that owns `descriptor` if this succeeds, or with an `intake` a copy of it.
    private static func makeBus(
        _ descriptor: Int32, _ role: Role, _ intake: BusIntake?
    ) throws(SystemdError) -> OpaquePointer {
        var made: OpaquePointer?
        try check(sd_bus_new(&made), "sd_bus_new")
        guard let bus = made else { throw SystemdError("sd_bus_new", errno: ENOMEM) }
        do throws(SystemdError) {
            if case .server = role {
                var id = sd_id128_t()
                try check(sd_id128_randomize(&id), "sd_id128_randomize")
                try check(sd_bus_set_server(bus, 1, id), "sd_bus_set_server")
                // GDBus and dbus-python pass a signal on to an object's listeners only if it comes from the name's owner.
                try check(sd_bus_set_sender(bus, BusDriver.ownUniqueName), "sd_bus_set_sender")
            }
            try check(sd_bus_negotiate_creds(bus, 1, csystemd_creds_caller()), "sd_bus_negotiate_creds")
            if let intake {
                try connect(bus, descriptor, intake)
            } else {
                try check(sd_bus_set_fd(bus, descriptor, descriptor), "sd_bus_set_fd")
            }
        } catch {
            sd_bus_unref(bus)
            throw error
        }
        return bus
    }

    private static func connect(
        _ bus: OpaquePointer, _ descriptor: Int32, _ intake: BusIntake
    ) throws(SystemdError) {
        try check(sd_bus_negotiate_fds(bus, 0), "sd_bus_negotiate_fds")
        // A pipe has no credentials that the handshake's word could be compared with; `credentials` are the kernel's.
        try check(sd_bus_set_anonymous(bus, 1), "sd_bus_set_anonymous")
        let copy = fcntl(descriptor, F_DUPFD_CLOEXEC, 3)
        guard copy >= 0 else { throw SystemdError("fcntl F_DUPFD_CLOEXEC", errno: errno) }
        do throws(SystemdError) {
            try check(sd_bus_set_fd(bus, intake.reading, copy), "sd_bus_set_fd")
            intake.isReadingGiven = true
        } catch {
            Glibc.close(copy)
            throw error
        }
    }

    private static func makeBus(address: String, takesDescriptors: Bool) throws(SystemdError) -> OpaquePointer {
        var made: OpaquePointer?
        try check(sd_bus_new(&made), "sd_bus_new")
        guard let bus = made else { throw SystemdError("sd_bus_new", errno: ENOMEM) }
        do throws(SystemdError) {
            try check(sd_bus_set_address(bus, address), "sd_bus_set_address", path: address)
            try check(sd_bus_set_bus_client(bus, 1), "sd_bus_set_bus_client")
            try check(sd_bus_negotiate_fds(bus, takesDescriptors ? 1 : 0), "sd_bus_negotiate_fds")
            try check(sd_bus_set_watch_bind(bus, 1), "sd_bus_set_watch_bind")
        } catch {
            sd_bus_unref(bus)
            throw error
        }
        return bus
    }

    private func limitSendBuffer() throws(SystemdError) {
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
        timer?.cancel()
        sd_bus_close(bus)
        stopWatching()
        strangersIntake?.close()
        let handlers = goneHandlers.sorted { $0.key < $1.key }.map(\.value)
        let calls = outgoing.sorted { $0.key < $1.key }.map(\.value)
        goneHandlers = [:]
        outgoing = [:]
        watchedSenders = [:]
        let onGone = self.onGone
        self.onGone = nil
        onSignal = nil
        onReady = nil
        onDrained = nil
        loop.callLater {
            for call in calls { call.finish(.failure(.disconnected("The connection ended before the answer."))) }
            for handler in handlers { handler() }
            if let reason { onGone?(reason) }
        }
    }

    /// - Parameter sender: on a bus, who it is that may go.
    func setGoneHandler(_ serial: UInt64, of sender: String?, _ handler: (() -> Void)?) {
        goneHandlers[serial] = isGone ? nil : handler
        if let handler, isGone { return loop.callLater(handler) }
        guard isOnBus, !isGone, let sender else { return }
        if handler == nil { stopWatching(sender, for: serial) } else { watch(sender, for: serial) }
    }

    /// Tells the calls of these numbers that nobody waits for them any more.
    func callersGone(_ serials: [UInt64]) {
        for serial in serials { goneHandlers.removeValue(forKey: serial)?() }
    }

    /// A number for a call, in either direction.
    func nextSerial() -> UInt64 {
        lastSerial += 1
        return lastSerial
    }

    /// What waits to be sent because the other side does not read, beyond the kernel's buffer.
    private var queuedMessages: UInt64 {
        var queued: UInt64 = 0
        return !isGone && sd_bus_get_n_queued_write(bus, &queued) >= 0 ? queued : 0
    }

    /// On a bus: its daemon is slower than we are. What is only news is better left out then.
    package var isCongested: Bool { queuedMessages > limits.queuedMessages / 2 }

    /// Called once from the loop, when all that waited has been sent. To be set while congested.
    package var onDrained: (() -> Void)?

    /// Drops a peer that lets too much pile up.
    private func checkQueue(limit: UInt64) {
        let queued = queuedMessages
        guard !isOnBus, queued > limit else { return }
        close(reason: "it does not read: \(queued) messages wait for it")
    }

    // MARK: Driving

    /// Reads or writes what can be, and deals with at most one message, so that others have their turn.
    private func turn() {
        guard !isGone else { return }
        do throws(BusIntake.Failure) {
            try strangersIntake?.pass()
        } catch {
            return close(reason: "it sent a descriptor, which nobody here takes")
        }
        let result = process()
        guard !isGone else { return }
        guard result >= 0 else {
            close(reason: isOnBus ? errnoText(-result) : "it sent what is no D-Bus message: \(errnoText(-result))")
            return
        }
        // On a bus its daemon bounds messages, and one that is too large must not cost others the connection.
        guard isOnBus || intake <= limits.incomingBytes else {
            close(reason: "it sends a message of more than \(limits.incomingBytes) bytes")
            return
        }
        if !isSettled { settle(result) }
        update()
    }

    private func settle(_ result: Int32) {
        if isReady, let onReady {
            self.onReady = nil
            onReady()
        }
        isSettled = result == 0 && isReady
        if result > 0 { scheduleTurn() }
        guard isOnBus, !isReady, !isGone else { return }
        do throws(SystemdError) {
            // A failed attempt may have closed the descriptor, and the next one have the same number.
            try watchDescriptor()
        } catch {
            close(reason: "\(error)")
        }
    }

    /// sd_bus_process, counting what it takes from the socket. libsystemd reads as much of a message as there is, so
    /// where less is there than before, it took all that was.
    private func process() -> Int32 {
        let source = strangersIntake?.reading ?? descriptor
        let before = csystemd_readable_bytes(source)
        intake += Int(before)
        let result = sd_bus_process(bus, nil)
        let left = isGone ? 0 : csystemd_readable_bytes(source)
        let hasRead = !isGone && left < before
        // Zero already where the message is whole.
        if !hasRead { intake = max(0, intake - Int(before)) }
        return result
    }

    private func scheduleTurn() {
        guard !isTurnScheduled else { return }
        isTurnScheduled = true
        loop.callLater { [weak self] in
            self?.isTurnScheduled = false
            self?.turn()
        }
    }

    /// Looks, after anything that may have changed it, what the connection waits for now.
    func update() {
        checkQueue(limit: limits.queuedMessages)
        guard !isGone else { return }
        let events = sd_bus_get_events(bus)
        guard sd_bus_is_open(bus) > 0, events >= 0 else {
            close(reason: "the connection ended")
            return
        }
        var awaited = DescriptorEvents(rawValue: UInt32(events))
        // Whoever asks faster than the bus takes the answers has to wait: then the bus holds back what comes.
        if isOnBus, queuedMessages > limits.queuedMessages { awaited.remove(.readable) }
        if let onDrained, queuedMessages == 0 {
            self.onDrained = nil
            loop.callLater(onDrained)
        }
        do throws(SystemdError) {
            try watch?.setEvents(awaited)
            try updateTimer()
        } catch {
            close(reason: "it cannot be waited for: \(error)")
        }
    }

    private func updateTimer() throws(SystemdError) {
        var until: UInt64 = 0
        // During the handshake that is its own end, after 90 s, which a server decides by itself.
        let isAsked =
            sd_bus_get_timeout(bus, &until) > 0 && until != .max && (isReady || isOnBus || !outgoing.isEmpty)
        guard isAsked else {
            timer?.arm(at: nil)
            return
        }
        if until == 0 {
            // Something has been read already.
            scheduleTurn()
            return
        }
        if timer == nil { timer = try loop.makeTimer(priority: priority) { [weak self] _ in self?.turn() } }
        timer?.arm(at: .microseconds(until))
    }

    // MARK: Incoming

    /// Tells that a whole message has come.
    func noteMessage() {
        intake = 0
    }

    /// Looks at a message before the objects do.
    /// - Returns: whether it must go no further.
    func filter(_ message: OpaquePointer) -> Bool {
        noteMessage()
        if sd_bus_message_is_method_call(message, nil, nil) > 0 {
            let isLarge =
                sd_bus_message_is_method_call(message, "org.freedesktop.DBus.ObjectManager", nil) > 0
                || sd_bus_message_is_method_call(message, "org.freedesktop.DBus.Introspectable", nil) > 0
            checkQueue(limit: isLarge ? limits.queuedLargeAnswers : limits.queuedMessages)
            return isGone
        }
        if isOnBus || onSignal != nil, let signal = BusSignal(message, limits: limits.message) {
            noteOwnerChange(signal)
            onSignal?(signal)
        }
        return false
    }

    /// Calls the method that a message names; what it throws is the answer.
    func dispatch(_ message: OpaquePointer, _ binding: Binding) throws(BusError) {
        guard let path = sd_bus_message_get_path(message), let member = sd_bus_message_get_member(message),
            let vtable = binding.vtable, let method = vtable.methods[String(cString: member)],
            let target = binding.objects.target(String(cString: path))
        else { throw .failed("There is no such method here.") }
        let call = try MethodCall(
            message, target: target, interface: vtable.interface.name, method: method, peer: self, serial: nextSerial())
        guard method.access == .owner else { return method.handler(call) }
        call.identify { [weak self] result in
            switch result {
            case .failure(let error): call.fail(error)
            case .success(let caller): self?.admit(call, caller, method, binding.objects.owner?.authorise)
            }
        }
    }

    /// Lets root and our own user through, and everybody else as far as `authorise` does.
    private func admit(
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
