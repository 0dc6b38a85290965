package import Posix

// Connections over execve(2): the previous program begins no further message, and the next one resumes all connections before
// it accepts others.

/// Keeps a server from reading further messages and from accepting connections: these wait in the kernel for the next
/// program. Messages of which a part has arrived are read and handled before.
package final class BusHold {
    private let server: BusServer
    private var completion: (() -> Void)?
    private var timer: Timer?
    /// The connections that are held, and how many of them read the rest of a message.
    private var peers: [BusPeer] = []
    private var reading: Set<UInt64> = []

    /// - Parameters:
    ///   - limit: how long a client may take to send the rest of a message. Clients send a message at once.
    ///   - completion: called once from the loop: no connection reads, or the time is over. Not after `end`.
    package init(
        _ server: BusServer, limit: Duration = .seconds(1), completion: @escaping () -> Void
    ) throws(SystemError) {
        self.server = server
        self.completion = completion
        timer = try server.loop.makeTimer(kind: server.kinds.timer) { [weak self] _ in self?.finish() }
        server.isAccepting = false
        peers = server.peers
        for peer in peers {
            peer.hold()
            guard peer.isReading else { continue }
            reading.insert(peer.number)
            peer.onHeldTurn = { [weak self, weak peer] in self?.hasTurned(peer) }
        }
        timer?.arm(at: server.loop.now() + limit)
        if reading.isEmpty { finish() }
    }

    /// Reads messages and accepts connections again: this program was not replaced.
    package func end() {
        completion = nil
        timer?.cancel()
        for peer in peers { peer.endHold() }
        peers = []
        server.isAccepting = true
    }

    private func hasTurned(_ peer: BusPeer?) {
        guard let peer, !peer.isReading else { return }
        peer.onHeldTurn = nil
        reading.remove(peer.number)
        if reading.isEmpty { finish() }
    }

    private func finish() {
        timer?.cancel()
        guard let completion else { return }
        self.completion = nil
        // After the answers that are on their way.
        server.loop.callLater(completion)
    }
}

/// A connection that the next program resumes.
package struct ResumedClient {
    package let socket: SharedDescriptor
    /// `BusPeer.number` and `BusPeer.connected` in the previous program.
    package let number: UInt64
    package let connected: Duration
    package let resumption: BusResumption

    package init(socket: SharedDescriptor, number: UInt64, connected: Duration, _ resumption: BusResumption) {
        self.socket = socket
        self.number = number
        self.connected = connected
        self.resumption = resumption
    }
}

extension BusServer {
    /// Resumes connections in later turns, in this order. Others are accepted afterwards.
    /// - Parameters:
    ///   - failed: called for each that ends because it cannot be resumed.
    ///   - completion: called once, at once if there are none.
    package func resume(
        _ clients: [ResumedClient], failed: @escaping (SystemError) -> Void, completion: @escaping () -> Void
    ) {
        if clients.isEmpty { return completion() }
        isAccepting = false
        loop.controlWork.add(each: clients) { [weak self] client in
            do throws(SystemError) {
                let socket = try client.socket.descriptor.duplicate()
                try self?.resume(socket, number: client.number, connected: client.connected, client.resumption)
            } catch {
                failed(error)
            }
        } completion: { [weak self] in
            self?.isAccepting = true
            completion()
        }
    }
}
