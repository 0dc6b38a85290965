import CSystemd
import Glibc

/// A private D-Bus server: a socket that busctl, gdbus and our own clients connect to, without a D-Bus daemon.
package final class BusServer {
    package struct Limits: Sendable {
        /// Connections at once, beyond which new ones are closed at once. A descriptor and about 20 KiB each.
        package var peers = 128
        /// Of these for any one user who is neither root nor ours, so that no stranger can use them all up.
        package var peersPerUser = 16
        /// Of these for all such users together: one person may have many user numbers (subuid(5)), and root and our own
        /// user always find room.
        package var peersOfStrangers = 96
        /// Who has sent so many descriptors that can't be closed yet is not let in before they are.
        package var closing = 256
        /// Complaints in a second: anybody can connect again and again.
        package var complaints = 5
        /// From the connection to the end of the handshake. Clients send theirs in their first breath.
        package var handshake = Duration.seconds(5)
        package var peer = BusLimits()

        package init() {}
    }

    package let path: String
    /// The connections, oldest first.
    package private(set) var peers: [BusPeer] = []
    /// Called from the loop when a connection's handshake has begun, and when it is gone, with the reason.
    package var onPeer: ((BusPeer) -> Void)?
    package var onPeerGone: ((BusPeer, String) -> Void)?
    /// Called with a sentence when something is refused or dropped, for the log.
    package var onComplaint: ((String) -> Void)?
    /// Who closes what strangers bring; to be set before the first comes.
    package var closer = StrangersCloser.waiting

    private let loop: EventLoop
    private let objects: BusObjects
    private let names: [String]
    private let limits: Limits
    private let priority: EventPriority
    /// The socket; whoever takes it along keeps those who connect meanwhile waiting, instead of being refused.
    package let listener: Int32
    /// Whether the socket is an earlier server's.
    package let isAdopted: Bool
    private var isLeftInPlace = false
    private let identity: FileIdentity?
    private var listening: EventSource?
    private var handshakeTimer: Timer?
    /// Who has not finished the handshake, oldest first, and until when it may take.
    private var newcomers: [(peer: BusPeer, deadline: Duration)] = []
    private var lastNumber: UInt64 = 0
    /// Complaints of this second.
    private var complaints = (until: Duration.zero, count: 0)
    /// While more connections of strangers wait to be closed than there may be, nobody is let in for a second at a time.
    private var pause: Timer?
    /// Given up for a moment when there are no descriptors left, so that a connection can be taken and closed; a full
    /// table would otherwise keep the socket readable and the loop busy.
    private var spare: Int32

    /// Listens at `path`, with this mode.
    /// - Parameters:
    ///   - adopted: one that a server before this one listened with, taken over in any case, and used if it is one for
    ///     this path; those who connected since then are served.
    ///   - names: the bus names we answer to (`org.greenroom`).
    /// - Throws: also when the path is longer than a socket's may be, or another program listens there.
    package init(
        loop: EventLoop, path: String, adopting adopted: Int32? = nil, mode: UInt32 = 0o600, names: [String],
        objects: BusObjects, limits: Limits = Limits(), priority: EventPriority = .normal
    ) throws(SystemdError) {
        self.loop = loop
        self.path = path
        self.names = names
        self.objects = objects
        self.limits = limits
        self.priority = priority
        if let adopted, UnixSocket.listens(adopted, at: path) {
            (listener, isAdopted) = (adopted, true)
        } else {
            if let adopted { close(adopted) }
            (listener, isAdopted) = (try UnixSocket.listen(at: path, mode: mode), false)
        }
        csystemd_refuse_descriptors(listener)
        identity = FileIdentity(path)
        spare = Self.openSpare()
        handshakeTimer = try loop.makeTimer(priority: priority) { [weak self] _ in self?.dropSilentPeers() }
        listening = try loop.addDescriptor(listener, events: .readable, priority: priority) { [weak self] _ in
            self?.accept()
        }
    }

    deinit {
        listening?.cancel()
        close(listener)
        close(spare)
        for peer in peers { peer.close() }
        // A successor may listen at the same path by now.
        if !isLeftInPlace, let identity, identity == FileIdentity(path) { unlink(path) }
    }

    /// The socket's path stays when this server goes: another one has the socket, or is about to.
    package func leaveInPlace() { isLeftInPlace = true }

    // MARK: To all peers

    /// Sends a signal to every peer.
    package func emitSignal(path: String, interface: String, member: String, _ arguments: [Variant] = [])
        throws(BusError)
    {
        for peer in peers where peer.isReady {
            try peer.emitSignal(path: path, interface: interface, member: member, arguments)
        }
    }

    /// Tells every peer of the new values of properties.
    package func emitPropertiesChanged(path: String, interface: String, _ names: [String]) throws(BusError) {
        for peer in peers { try peer.emitPropertiesChanged(path: path, interface: interface, names) }
    }

    /// Tells every peer of a new object.
    package func emitObjectAdded(path: String) throws(BusError) {
        for peer in peers { try peer.emitObjectAdded(path: path) }
    }

    /// Tells every peer of the end of an object, which must still be there.
    package func emitObjectRemoved(path: String) throws(BusError) {
        for peer in peers { try peer.emitObjectRemoved(path: path) }
    }

    // MARK: Newcomers

    private func accept() {
        // One at a time: the socket stays readable, and what is more urgent comes between.
        let descriptor = accept4(listener, nil, nil, Int32(SOCK_CLOEXEC.rawValue) | Int32(SOCK_NONBLOCK.rawValue))
        guard descriptor >= 0 else {
            refuse(errno)
            return
        }
        do throws(SystemdError) {
            try take(descriptor)
        } catch {
            complain("A connection to \(path) could not be served: \(error).")
        }
    }

    /// Serves a connection if there is room for it; the descriptor is taken over in any case.
    private func take(_ descriptor: Int32) throws(SystemdError) {
        let caller: PeerCredentials
        do throws(SystemdError) {
            caller = try PeerCredentials(ofSocket: descriptor)
        } catch {
            close(descriptor)
            throw error
        }
        let isStranger = Self.isStranger(caller)
        if let reason = reasonToRefuse(caller) {
            complain("A connection of process \(caller.pid) (uid \(caller.uid)) to \(path) was refused: \(reason).")
            guard isStranger else { return _ = close(descriptor) }
            shutdown(descriptor, Int32(SHUT_RDWR))
            closer.close(descriptor, caller.uid)
            if closer.pending(caller.uid) > 4 * limits.closing { rest() }
            return
        }
        lastNumber += 1
        // Strangers have their turn when nobody else is waiting, as some of what is free to be read takes a while.
        let priority = isStranger ? .idle : self.priority
        let peer = try BusPeer(
            loop: loop, descriptor: descriptor, role: .server(names: names), number: lastNumber, objects: objects,
            limits: limits.peer, priority: priority, closer: isStranger ? closer : nil)
        peer.onGone = { [weak self, weak peer] reason in
            if let peer { self?.remove(peer, reason) }
        }
        peers.append(peer)
        newcomers.append((peer, loop.now() + limits.handshake))
        if newcomers.count == 1 { handshakeTimer?.arm(at: newcomers[0].deadline) }
        onPeer?(peer)
    }

    private func reasonToRefuse(_ caller: PeerCredentials) -> String? {
        if peers.count >= limits.peers { return "there are \(peers.count) already" }
        guard Self.isStranger(caller) else { return nil }
        let strangers = peers.compactMap(\.credentials).filter(Self.isStranger)
        let same = strangers.count { $0.uid == caller.uid }
        if same >= limits.peersPerUser { return "that user has \(same) already" }
        if strangers.count >= limits.peersOfStrangers { return "there are \(strangers.count) of other users already" }
        let closing = closer.pending(caller.uid)
        return closing > limits.closing ? "\(closing) descriptors of that user cannot be closed yet" : nil
    }

    private static func isStranger(_ caller: PeerCredentials) -> Bool { caller.uid != 0 && caller.uid != geteuid() }

    private func complain(_ sentence: String) {
        if loop.now() >= complaints.until { complaints = (loop.now() + .seconds(1), 0) }
        complaints.count += 1
        if complaints.count <= limits.complaints { onComplaint?(sentence) }
    }

    private func rest() {
        try? listening?.setEvents([])
        if pause == nil {
            pause = try? loop.makeTimer(priority: priority) { [weak self] _ in
                try? self?.listening?.setEvents(.readable)
            }
        }
        pause?.arm(at: loop.now() + .seconds(1))
    }

    private func refuse(_ code: Int32) {
        guard code == EMFILE || code == ENFILE else {
            // Whoever connected is gone again, or a signal came: nothing to tell.
            return
        }
        close(spare)
        let descriptor = accept4(listener, nil, nil, Int32(SOCK_CLOEXEC.rawValue))
        if descriptor >= 0 { close(descriptor) }
        spare = Self.openSpare()
        complain("A connection to \(path) was refused: there are no descriptors left.")
    }

    private static func openSpare() -> Int32 {
        open("/dev/null", O_RDONLY | O_CLOEXEC)
    }

    /// Drops those whose handshake took too long, and waits for the next.
    private func dropSilentPeers() {
        let now = loop.now()
        newcomers.removeAll { $0.peer.isGone || $0.peer.isReady }
        for (peer, deadline) in newcomers where deadline <= now {
            peer.close(reason: "it said nothing for \(limits.handshake)")
        }
        newcomers.removeAll { $0.peer.isGone }
        handshakeTimer?.arm(at: newcomers.first?.deadline)
    }

    private func remove(_ peer: BusPeer, _ reason: String) {
        peers.removeAll { $0 === peer }
        newcomers.removeAll { $0.peer === peer }
        onPeerGone?(peer, reason)
    }
}

/// Which file a path names, so that a file put in its place can be told apart.
private struct FileIdentity: Equatable {
    let device: UInt
    let inode: UInt

    init?(_ path: String) {
        var status = stat()
        guard lstat(path, &status) == 0 else { return nil }
        device = UInt(status.st_dev)
        inode = UInt(status.st_ino)
    }
}
