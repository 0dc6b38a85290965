import LifecycleCore
import Linux
import LoopPolicy
import Posix
import Systemd

/// The watch of sockets, which launches and wakes apps, and the end of connections that wait too long.
extension HeldSockets {
    // MARK: The watch

    /// Reports once that a connection or a datagram waits at a socket of the app, also if it does so already.
    func watch(_ app: AppID) {
        watched.insert(app)
        // Those that are being reset are not reported again.
        if rejecting.contains(app) { return }
        if !hasRun(app) { prepare(app) }
        addToSet(app)
    }

    /// A launch needs all sockets of the app: until then connections wait, and no launch fails for each of them.
    func addToSet(_ app: AppID) {
        guard !rejecting.contains(app), hasRun(app) || isComplete(app) else { return }
        for entry in entries[app] ?? [] { addToSet(entry) }
    }

    func stopWatching(_ app: AppID) {
        watched.remove(app)
        for entry in entries[app] ?? [] { removeFromSet(entry) }
    }

    private func addToSet(_ entry: HeldSocketEntry) {
        guard let socket = entry.socket, !entry.isWatched, let set = openSet() else { return }
        let result = set.add(socket.descriptor.raw, .readable, data: entry.serial)
        guard result == 0 else {
            // fs.epoll.max_user_watches: what waits launches the app when it is watched the next time.
            return journal.logWarning("\(entry.address) is not watched: error \(result)", app: entry.app)
        }
        entry.isWatched = true
    }

    /// Before the socket is closed: a process of the app that shares it would keep it in the set.
    func removeFromSet(_ entry: HeldSocketEntry) {
        guard entry.isWatched, let socket = entry.socket else { return }
        set?.remove(socket.descriptor.raw)
        entry.isWatched = false
    }

    private func openSet() -> Epoll? {
        if let set { return set }
        do {
            let made = try Epoll()
            setSource = try loop.addDescriptor(made.descriptor, events: .readable, kind: .heldSockets) {
                [weak self] _ in TurnResult(self?.arrived() ?? true)
            }
            set = made
        } catch {
            journal.logWarning("the sockets of apps are not watched: \(error)")
        }
        return set
    }

    /// - Returns: whether a socket was ready.
    private func arrived() -> Bool {
        let ready = (try? set?.take()) ?? []
        for next in ready {
            // Others of the app were removed with the first one.
            guard let entry = bySerial[next.data], entry.isWatched else { continue }
            report(entry, next.events)
            // What is left stays ready.
            if loop.isTurnOver { break }
        }
        return !ready.isEmpty
    }

    private func report(_ entry: HeldSocketEntry, _ ready: EpollEvents) {
        let app = entry.app
        guard let socket = entry.socket, watched.contains(app) else { return removeFromSet(entry) }
        guard ready.contains(.readable), socket.state == .usable else {
            removeFromSet(entry)
            // The running process has done that to itself.
            if hasRun(app) { return }
            return change(app) {
                release(entry)
                fail(entry, "another process has shut it down")
            }
        }
        stopWatching(app)
        let position = entries[app]?.lazy.filter { $0.socket != nil }.firstIndex { $0 === entry } ?? 0
        let input = Input(
            kind: entry.type == .datagram ? .datagram : .listener, pid: 0,
            descriptor: ServiceManager.firstPassedDescriptor + Int32(position), bytes: socket.waitingBytes,
            peer: entry.address.description.printable(upTo: Input.maximumPeer))
        events.send(.socketsReady(app, input))
    }

    /// Whether a connection waits to be accepted at a socket of the app.
    func hasWaitingConnection(_ app: AppID) -> Bool {
        (entries[app] ?? []).contains { $0.type != .datagram && $0.socket?.isReadable ?? false }
    }

    // MARK: Connections that are reset

    /// How many connections of one socket are reset at a time, at most: others may come as fast.
    private static let mostRejected = 65_536
    private static let rejectedPerPiece = 16

    /// Resets the connections that wait. No process of the app has the sockets now, so they can be non-blocking.
    func rejectConnections(_ app: AppID) {
        guard let own = entries[app], rejecting.insert(app).inserted else { return }
        var left = own.filter { $0.type != .datagram && $0.socket != nil }.map { (entry: $0, count: 0) }
        loop.work.add { [weak self] in
            guard let self, self.rejecting.contains(app), let last = left.last else {
                self?.endRejecting(app)
                return false
            }
            if self.rejectSome(last.entry), last.count < Self.mostRejected {
                left[left.count - 1].count += Self.rejectedPerPiece
            } else {
                left.removeLast()
            }
            return true
        }
    }

    private func endRejecting(_ app: AppID) {
        guard rejecting.remove(app) != nil, watched.contains(app) else { return }
        watch(app)
    }

    /// - Returns: whether more may wait.
    private func rejectSome(_ entry: HeldSocketEntry) -> Bool {
        guard let socket = entry.socket else { return false }
        do {
            try socket.setNonBlocking(true)
            for _ in 0..<Self.rejectedPerPiece where try !socket.rejectConnection() { return false }
            return true
        } catch {
            // Without descriptors, for example. They wait on, and are reset the next time.
            journal.logWarning("connections are not reset: \(error)", app: entry.app)
            return false
        }
    }
}
