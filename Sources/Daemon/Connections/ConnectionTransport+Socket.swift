import Glibc
import LifecycleCore
import Linux
import LoopPolicy
import Posix
import Systemd

/// The socket of a run's connections: `self/RUN/bus` in the runtime folder. Its folder is readable by the app's user alone.
extension ConnectionTransport {
    /// Of the sockets of all apps of a user.
    static func configuration(for user: UInt32) -> BusServer.Configuration {
        var limits = BusServer.Limits()
        limits.peers = maximumConnections
        limits.keepsSpare = false
        limits.peer.incomingBytes = 64 << 10
        limits.peer.message.bytes = 64 << 10
        limits.peer.message.values = 1000
        limits.peer.message.depth = 8
        limits.peer.queuedMessages = UInt64(EventQueue.capacity) + 64
        limits.peer.queuedLargeAnswers = 8
        limits.peer.descriptors = 1
        return BusServer.Configuration(
            names: [SelfInterface.busName], permittedUsers: [0, user], limits: limits, kinds: .app)
    }

    /// Creates the socket, or takes over that of the previous daemon.
    /// - Parameter isServing: if false, connections wait in the socket until `beginServing`.
    /// - Throws: `SystemError` if it cannot be bound or watched.
    func listen(adopting adopted: consuming Descriptor? = nil, isServing: Bool = true) throws {
        try createDirectories(at: context.folders.connections, mode: 0o711)
        try createDirectories(at: folder, mode: 0o700, owner: run.owner)
        let socket = try BusListener(at: path, adopting: adopted, owner: run.owner)
        firstConnection = try loop.addDescriptor(
            socket.descriptor, events: .readable, kind: .appListener, share: run.socket.share
        ) { [unowned self] _ in TurnResult(serve()) }
        firstConnection?.isEnabled = isServing
        self.socket = socket
        if !socket.isAdopted {
            context.store.remove(RecoveredDescriptors.connectionSocket(run.id))
            context.store.store(socket.descriptor, RecoveredDescriptors.connectionSocket(run.id))
        }
    }

    /// A process has connected. The server accepts it, and the next ones, in later turns.
    /// - Returns: whether that is so.
    private func serve() -> Bool {
        firstConnection?.cancel()
        firstConnection = nil
        guard let socket else { return false }
        do {
            let server = try BusServer(
                loop: loop, path: path, listening: socket, objects: context.connections.objects,
                configuration: context.connections.configuration(for: run.owner?.uid ?? geteuid()),
                share: run.socket.share, closer: run.socket.closer,
                admits: { [weak self] in self?.reasonToRefuse($0) ?? nil })
            server.onPeer = { [weak self] peer in
                guard let self else { return }
                self.context.connections.insert(self, for: peer)
                peer.onMessage = { [weak self] in self?.countMessage() }
                if self.isPaused { peer.hold() }
            }
            server.onPeerGone = { [weak self] peer, reason in self?.ended(peer, reason) }
            server.onWarning = { [weak self] in self?.run.socket.warn($0) }
            self.server = server
        } catch {
            run.logWarning("its connections cannot be served: \(error)")
        }
        return true
    }

    /// The run is about to be started.
    func begin(_ launch: Launch) throws {
        let launch = LaunchRecord(launch, at: loop.now())
        context.logbook.persist(launch.savedBytes, as: ConnectionRecords.launch(run.id))
        run.attempt { try context.storage.summaries.launched(run.app) }
        try listen()
    }

    /// What a process that connects learns about the launch.
    var launch: LaunchRecord {
        context.logbook.record(ConnectionRecords.launch(run.id)).flatMap { try? LaunchRecord(reading: $0) }
            ?? LaunchRecord()
    }

    private func reasonToRefuse(_ caller: PeerCredentials) -> String? {
        // 0: outside of this pid namespace.
        guard caller.pid > 0 else { return "its process is not visible here" }
        if caller.pid == run.mainPID { return nil }
        return (try? run.enclosure.contains(caller.pid)) ?? false ? nil : "it is not a process of this app"
    }

    private func ended(_ peer: BusPeer, _ reason: String) {
        context.connections.remove(peer)
        beginning.removeAll { $0.call.peer === peer }
        detach(peer)
        // That is how programs end their connections.
        if reason != BusPeer.ended {
            run.socket.warn("a connection of process \(peer.credentials?.pid ?? 0) was closed: \(reason)")
        }
    }

    /// Makes the socket again, if its file was removed. The connections stay, and belong to the old one: so they end, and their
    /// clients connect again.
    func listenAgain() throws {
        guard let socket, !socket.isInPlace(at: path) else { return }
        let old = server
        try listen()
        server = nil
        for peer in old?.peers ?? [] {
            context.connections.remove(peer)
            detach(peer)
        }
        old?.leaveInPlace()
    }

    /// The run is over: its connections end, and its socket and records are removed.
    func close() {
        drain()
        for peer in server?.peers ?? [] { context.connections.remove(peer) }
        limiter = nil
        beginning = []
        let wasListening = socket != nil
        (firstConnection, server, socket) = (nil, nil, nil)
        context.store.remove(RecoveredDescriptors.connectionSocket(run.id))
        context.logbook.removeRecord(ConnectionRecords.state(run.id))
        context.logbook.removeRecord(ConnectionRecords.launch(run.id))
        queue.remove { _ in true }
        for token in tasks.keys { context.logbook.removeRecord(ConnectionRecords.task(run.id, token)) }
        tasks = [:]
        guard wasListening else { return }
        run.attempt {
            _ = try removeFile(at: path)
            _ = try removeFile(at: folder, folder: true)
        }
    }
}

extension RunController {
    /// Takes over the connections of the previous daemon's run. A release before 0.3.0 has recorded none: then its processes know
    /// no address.
    func restoreConnections(_ recovered: ConnectionRecords.Recovered?, _ socket: consuming Descriptor?) {
        guard let recovered, recovered.isFound else { return }
        connections.restore(recovered)
        do { try connections.listen(adopting: socket, isServing: false) } catch {
            logWarning("its connections cannot be served: \(error)")
        }
    }
}
