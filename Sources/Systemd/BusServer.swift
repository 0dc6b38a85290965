import CSystemd
import Glibc
package import LoopPolicy
package import Posix

/// The kinds of the sources of a D-Bus server and of its connections.
package struct BusKinds: Sendable {
    package let listener, client, timer: SourceKind

    /// The control interface.
    package static let control = BusKinds(listener: .controlListener, client: .controlClient, timer: .controlTimer)
    /// The socket of an app.
    package static let app = BusKinds(listener: .appListener, client: .appClient, timer: .appTimer)
}

/// A private D-Bus server: a socket to which busctl, gdbus and Greenroom's own clients connect without a D-Bus daemon.
///
/// Only root and the user of this process are admitted, as on systemd's private socket; other users call through the
/// message bus.
package final class BusServer {
    package struct Limits: Sendable {
        /// Simultaneous connections; further ones are closed at once. Each takes two descriptors, an app's five, and about 20 KiB. 1,000
        /// clients that connect at the same time are served.
        package var peers = 1280
        /// Descriptors that are not closed yet. At this number new connections are refused.
        package var closing = 256
        /// Warnings in a second: a client can be refused again and again.
        package var warnings = 5
        /// From the connection to the end of the handshake, which clients send at once.
        package var handshake = Duration.seconds(5)
        package var peer = BusLimits()
        /// Whether a spare descriptor is kept, to refuse connections when no other is free. Without it `accept` pauses.
        package var keepsSpare = true

        package init() {}

        /// The limits of a process that may have `descriptors` open: connections use at most a third of them.
        package init(descriptors: UInt64) { peers = Int(min(1280, max(128, descriptors / 16))) }
    }

    /// What the servers of one kind share.
    package final class Configuration: Sendable {
        let names: [String]
        let permittedUsers: Set<UInt32>
        let limits: Limits
        let kinds: BusKinds

        /// - Parameters:
        ///   - names: the bus names that the server answers to (`org.greenroom`).
        ///   - permittedUsers: the uids that may connect; by default root and the user of this process.
        ///   - kinds: of the sources of the server and of its connections.
        package init(
            names: [String], permittedUsers: Set<UInt32> = [0, geteuid()], limits: Limits = Limits(),
            kinds: BusKinds = .control
        ) {
            self.names = names
            self.permittedUsers = permittedUsers
            self.limits = limits
            self.kinds = kinds
        }
    }

    package let path: String
    /// The connections, oldest first.
    package private(set) var peers: [BusPeer] = []
    /// Called from the loop when a connection is admitted, and when it has ended, with the reason.
    package var onPeer: ((BusPeer) -> Void)?
    package var onPeerGone: ((BusPeer, String) -> Void)?
    /// Called with a sentence for the log when a connection is refused or fails.
    package var onWarning: ((String) -> Void)?
    private let socket: BusListener

    let loop: EventLoop
    private let objects: BusObjects
    private let configuration: Configuration
    private let admits: ((PeerCredentials) -> String?)?
    /// Of the app whose processes connect.
    private let share: AppShare?
    private var isLeftInPlace = false
    private var listening: EventSource?
    /// Made for the first connection: most apps have none.
    private var handshakeTimer: Timer?
    /// Whether a timer waits for the end of a handshake.
    package var awaitsHandshake: Bool { handshakeTimer?.isArmed ?? false }
    /// Connections whose handshake is not finished, oldest first, with its deadline.
    private var unfinishedHandshakes: [(peer: BusPeer, deadline: Duration)] = []
    private var lastNumber: UInt64 = 0
    /// The warnings of this second.
    private var warnings = (until: Duration.zero, count: 0)
    /// Closes the sockets of an app, the descriptors that it sends, and the connections that are refused.
    private let closer: DescriptorCloser
    /// Whether clients may do anything to this process anyway (`BusPeer.init`).
    private let isTrusting: Bool
    /// Ends a pause of `accept`.
    private var pause: Timer?
    /// A spare descriptor. It is closed when no other is free, so that a waiting connection can be accepted and refused.
    /// Otherwise the socket would stay readable and keep the loop busy.
    private var spare: Descriptor?

    /// Listens at `path`, with a configuration of its own.
    /// - Parameters: as of `BusListener`.
    package convenience init(
        loop: EventLoop, path: String, adopting adopted: consuming Descriptor? = nil, mode: UInt32 = 0o600,
        names: [String], objects: BusObjects, permittedUsers: Set<UInt32> = [0, geteuid()], limits: Limits = Limits()
    ) throws(SystemError) {
        let configuration = Configuration(names: names, permittedUsers: permittedUsers, limits: limits)
        try self.init(
            loop: loop, path: path, listening: BusListener(at: path, adopting: adopted, mode: mode), objects: objects,
            configuration: configuration)
    }

    /// Serves the connections of a socket.
    /// - Parameters:
    ///   - socket: listens at `path`. No other source of the loop waits for it.
    ///   - share: of the app whose processes connect; `nil`: they are no processes of an app.
    ///   - closer: of the app whose processes connect; `nil`: only root and the user of this process may connect.
    ///   - admits: why a process may not connect, as the end of a sentence; `nil`: it may.
    package init(
        loop: EventLoop, path: String, listening socket: BusListener, objects: BusObjects,
        configuration: Configuration, share: AppShare? = nil, closer: DescriptorCloser? = nil,
        admits: ((PeerCredentials) -> String?)? = nil
    ) throws(SystemError) {
        self.loop = loop
        self.path = path
        self.objects = objects
        self.configuration = configuration
        self.admits = admits
        self.closer = closer ?? DescriptorCloser()
        isTrusting = closer == nil
        self.share = share
        self.socket = socket
        if configuration.limits.keepsSpare { spare = Self.openSpare() }
        listening = try loop.addDescriptor(
            socket.descriptor, events: .readable, kind: configuration.kinds.listener, share: share
        ) {
            [weak self] _ in TurnResult(self?.accept() ?? true)
        }
    }

    private var limits: Limits { configuration.limits }
    var kinds: BusKinds { configuration.kinds }

    deinit {
        listening?.cancel()
        for peer in peers { peer.close() }
        // Another server may listen at the same path by now.
        if !isLeftInPlace, isInPlace { unlink(path) }
    }

    /// Leaves the socket's file when this server ends: another process has the socket, or is about to.
    package func leaveInPlace() { isLeftInPlace = true }

    /// Whether the file at the path is this server's socket.
    package var isInPlace: Bool { socket.isInPlace(at: path) }

    /// The listening socket.
    package var listener: SharedDescriptor { socket.descriptor }
    /// Whether the socket was a previous server's.
    package var isAdopted: Bool { socket.isAdopted }

    // MARK: Signals to all peers

    /// Sends a signal to every peer.
    package func emitSignal(path: String, interface: String, member: String, _ arguments: [Variant] = [])
        throws(BusError)
    {
        for peer in peers where peer.isReady {
            try peer.emitSignal(path: path, interface: interface, member: member, arguments)
        }
    }

    /// Sends PropertiesChanged to every peer.
    package func emitPropertiesChanged(path: String, interface: String, _ names: [String]) throws(BusError) {
        for peer in peers { try peer.emitPropertiesChanged(path: path, interface: interface, names) }
    }

    /// Sends InterfacesAdded to every peer.
    package func emitObjectAdded(path: String) throws(BusError) {
        for peer in peers { try peer.emitObjectAdded(path: path) }
    }

    /// Sends InterfacesRemoved to every peer. The object must still exist.
    package func emitObjectRemoved(path: String) throws(BusError) {
        for peer in peers { try peer.emitObjectRemoved(path: path) }
    }

    // MARK: Admission

    /// Accepts one connection. The socket stays readable for the next, so that other sources are served in between.
    /// - Returns: whether there was one.
    private func accept() -> Bool {
        switch UnixSocket.accept(on: listener.descriptor) {
        case .connection(let descriptor):
            do throws(SystemError) {
                try admit(descriptor)
            } catch {
                warn("A connection to \(path) could not be served: \(error).")
            }
        case .outOfDescriptors: refuseWithoutDescriptors()
        case .none: return false
        }
        return true
    }

    private func admit(_ descriptor: consuming Descriptor) throws(SystemError) {
        let caller: PeerCredentials
        do throws(SystemError) {
            caller = try PeerCredentials(ofSocket: descriptor)
        } catch {
            refuse(descriptor)
            throw error
        }
        // `UnixSocket.listens` has asked whether a program listens.
        if admits != nil, caller.pid == getpid() { return refuse(descriptor) }
        if let reason = reasonToRefuse(caller) {
            warn("A connection of process \(caller.pid) (uid \(caller.uid)) to \(path) was refused: \(reason).")
            return refuse(descriptor)
        }
        lastNumber += 1
        let peer = try BusPeer(
            loop: loop, descriptor: descriptor, role: .server(names: configuration.names), number: lastNumber,
            objects: objects,
            limits: limits.peer, kinds: kinds, share: share, isTrusted: isTrusting, closer: closer)
        awaitHandshake(peer)
        add(peer)
    }

    private func awaitHandshake(_ peer: BusPeer) {
        unfinishedHandshakes.append((peer, loop.now() + limits.handshake))
        if unfinishedHandshakes.count == 1 { armHandshakeTimer() }
        peer.onReady = { [weak self, weak peer] in
            if let peer { self?.awaitNoLonger(peer) }
        }
    }

    private func awaitNoLonger(_ peer: BusPeer) {
        unfinishedHandshakes.removeAll { $0.peer === peer }
        // Otherwise each client would wake the daemon once more, after it has its answer.
        if unfinishedHandshakes.isEmpty { handshakeTimer?.arm(at: nil) }
    }

    private func armHandshakeTimer() {
        if handshakeTimer == nil {
            handshakeTimer = try? loop.makeTimer(kind: kinds.timer) { [weak self] _ in self?.dropSilentPeers() }
        }
        handshakeTimer?.arm(at: unfinishedHandshakes.first?.deadline)
    }

    private func add(_ peer: BusPeer) {
        peer.onGone = { [weak self, weak peer] reason in
            if let peer { self?.remove(peer, reason) }
        }
        peers.append(peer)
        onPeer?(peer)
    }

    /// Returns the end of a sentence; `nil`: the connection is admitted.
    private func reasonToRefuse(_ caller: PeerCredentials) -> String? {
        guard configuration.permittedUsers.contains(caller.uid) else {
            return
                "only uid \(configuration.permittedUsers.sorted().map(String.init).joined(separator: " and ")) may connect"
        }
        if let reason = admits?(caller) { return reason }
        if peers.count >= limits.peers { return "\(peers.count) connections are open" }
        return closer.pending > limits.closing ? "\(closer.pending) descriptors of its app are not closed yet" : nil
    }

    /// Ends a connection. Its close can block, since the peer may have sent descriptors already.
    private func refuse(_ descriptor: consuming Descriptor) {
        shutdown(descriptor.raw, Int32(SHUT_RDWR))
        closer.close(descriptor)
        if closer.pending > limits.closing { pauseAccepting() }
    }

    private func pauseAccepting() {
        try? listening?.setEvents([])
        if pause == nil {
            pause = try? loop.makeTimer(kind: kinds.timer) { [weak self] _ in
                try? self?.listening?.setEvents(.readable)
            }
        }
        pause?.arm(at: loop.now() + .seconds(1))
    }

    private func refuseWithoutDescriptors() {
        guard limits.keepsSpare else {
            warn("Connections to \(path) have to wait: there are no descriptors left.")
            return pauseAccepting()
        }
        spare = nil
        if case .connection(let descriptor) = UnixSocket.accept(on: listener.descriptor) { refuse(descriptor) }
        spare = Self.openSpare()
        warn("A connection to \(path) was refused: there are no descriptors left.")
    }

    private static func openSpare() -> Descriptor? { try? Descriptor.open("/dev/null", O_RDONLY) }

    private func warn(_ sentence: String) {
        if loop.now() >= warnings.until { warnings = (loop.now() + .seconds(1), 0) }
        warnings.count += 1
        if warnings.count <= limits.warnings { onWarning?(sentence) }
    }

    /// Disconnects the peers whose handshake took too long, and arms the timer for the next.
    private func dropSilentPeers() {
        let now = loop.now()
        for (peer, deadline) in unfinishedHandshakes where deadline <= now {
            peer.close(reason: "it did not finish the handshake within \(limits.handshake)")
        }
        unfinishedHandshakes.removeAll { $0.peer.isGone }
        armHandshakeTimer()
    }

    private func remove(_ peer: BusPeer, _ reason: String) {
        peers.removeAll { $0 === peer }
        awaitNoLonger(peer)
        onPeerGone?(peer, reason)
    }
}
