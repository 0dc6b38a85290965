import LoopPolicy
package import Posix

/// A lasting connection to a message bus, with objects under a well-known name. The bus daemon may start late, restart, or not
/// exist: nothing blocks, and while its socket does not exist nothing runs.
package final class MessageBus {
    /// The state of the well-known name.
    package enum Name: Equatable, Sendable {
        case owned
        /// Another program owns the name; this connection is queued for it.
        case waiting
        case lost
        /// The bus refuses the name.
        case refused(BusError)
    }

    /// The time until the next attempt after a failure. It doubles with each further failure, up to the longest.
    static let shortestRetry = Duration.milliseconds(100)
    static let longestRetry = Duration.seconds(300)
    /// A connection that lasted this long resets the retry time.
    static let lasting = Duration.seconds(10)
    /// RequestName's results (D-Bus specification): 1 is "primary owner", 2 "in queue", 3 "exists", 4 "already owner".
    private static let owningResults: [UInt64] = [1, 4]

    package let address: String
    /// `nil`: the connection only calls other services.
    package let name: String?
    /// The connection, while it is established.
    package private(set) var peer: BusPeer?
    /// Called from the loop each time the connection is established, or has ended, with the reason.
    package var onUp: ((BusPeer) -> Void)?
    package var onDown: ((String) -> Void)?
    package var onName: ((Name) -> Void)?
    package private(set) var nameState: Name?
    package var onSignal: ((BusSignal) -> Void)?

    private let loop: EventLoop
    private let objects: BusObjects
    private let takesDescriptors: Bool
    /// The connection that is being established.
    private var connecting: BusPeer?
    private var callConnections: [BusPeer] = []
    private var timer: Timer?
    private var retry = shortestRetry
    private var upSince: Duration?
    private var hasReported = false

    /// - Parameter takesDescriptors: whether the connection accepts descriptors of every program on the bus; see
    ///   `callForDescriptor`.
    package init(
        loop: EventLoop, address: String, name: String?, objects: BusObjects, takesDescriptors: Bool = false
    ) throws(SystemError) {
        self.takesDescriptors = takesDescriptors
        self.loop = loop
        self.address = address
        self.name = name
        self.objects = objects
        timer = try loop.makeTimer(kind: .controlTimer) { [weak self] _ in self?.connect() }
    }

    deinit {
        timer?.cancel()
        connecting?.close()
        peer?.close()
        for connection in callConnections { connection.close() }
    }

    /// Whether a timer for the next attempt runs. None does while the socket does not exist.
    package var isRetrying: Bool { timer?.isArmed ?? false }

    /// Connects, and from then on reconnects by itself.
    package func connect() {
        guard peer == nil, connecting == nil else { return }
        do throws(SystemError) {
            let made = try BusPeer(
                loop: loop, busAddress: address, objects: objects, takesDescriptors: takesDescriptors)
            connecting = made
            made.onReady = { [weak self] in self?.up() }
            made.onGone = { [weak self] reason in self?.down(reason) }
        } catch {
            down(SystemError.text(of: error.errno))
        }
    }

    private func up() {
        guard let connecting else { return }
        self.connecting = nil
        peer = connecting
        upSince = loop.now()
        hasReported = false
        connecting.onSignal = { [weak self] in self?.received($0) }
        if let name { requestName(name, connecting) }
        onUp?(connecting)
    }

    /// Handles the end of a connection and a failed attempt to connect. Repeated failures are reported once.
    private func down(_ reason: String) {
        if let upSince, loop.now() - upSince >= Self.lasting { retry = Self.shortestRetry }
        let wasUp = peer != nil
        peer = nil
        connecting = nil
        nameState = nil
        upSince = nil
        timer?.arm(at: loop.now() + retry)
        retry = min(Self.longestRetry, retry * 2)
        if wasUp || !hasReported { onDown?(reason) }
        hasReported = true
    }

    // MARK: Descriptors

    /// Calls a method that answers with a descriptor; `reply` is called once, from the loop.
    ///
    /// The call has a connection of its own, which ends with the answer: every program can send a signal with descriptors to a
    /// connection that accepts them, and closing these can block for as long as the sender likes.
    package func callForDescriptor(
        _ destination: String, path: String, interface: String, member: String, _ arguments: [Variant],
        timeout: Duration, reply: @escaping (Result<SharedDescriptor, BusError>) -> Void
    ) throws(SystemError) {
        let connection = try BusPeer(loop: loop, busAddress: address, takesDescriptors: true)
        callConnections.append(connection)
        let finish: (Result<SharedDescriptor, BusError>) -> Void = { [weak self, weak connection] result in
            connection?.close()
            self?.callConnections.removeAll { $0 === connection }
            reply(result)
        }
        connection.onReady = { [weak connection] in
            do throws(BusError) {
                try connection?.callForDescriptor(
                    destination, path: path, interface: interface, member: member, arguments, timeout: timeout,
                    reply: finish)
                // From here on the end of the connection answers the call.
                connection?.onGone = nil
            } catch {
                finish(.failure(error))
            }
        }
        connection.onGone = { finish(.failure(.disconnected($0))) }
    }

    // MARK: The name

    /// Without flags: if the name has an owner, this connection is queued for it.
    private func requestName(_ name: String, _ peer: BusPeer) {
        peer.callDaemon("RequestName", [.string(name), .uint32(0)]) { [weak self, weak peer] result in
            guard let self, let peer, self.peer === peer, !peer.isGone else { return }
            switch result {
            case .success(let answer):
                let isOwned = answer.first?.uintValue.map { Self.owningResults.contains($0) } ?? false
                self.named(isOwned ? .owned : .waiting)
            case .failure(let error): self.named(.refused(error))
            }
        }
    }

    private func received(_ signal: BusSignal) {
        if let name, signal.sender == BusDaemon.name, signal.arguments.first == .string(name) {
            if signal.member == "NameLost" { named(.lost) }
            if signal.member == "NameAcquired" { named(.owned) }
        }
        onSignal?(signal)
    }

    /// NameAcquired arrives together with the answer to RequestName.
    private func named(_ state: Name) {
        guard state != nameState else { return }
        nameState = state
        onName?(state)
    }
}
