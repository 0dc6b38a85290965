package import Posix

/// A lasting place on a bus: objects under a well-known name, as long as the bus's daemon is there. It may come late, be
/// restarted, or never come; nothing here waits for it, and while its socket does not exist nothing runs either.
package final class MessageBus {
    /// What has become of the well-known name.
    package enum Name: Equatable, Sendable {
        case owned
        /// Another program has it; it is ours when that one goes.
        case waiting
        case lost
        /// The bus does not let us have it.
        case refused(BusError)
    }

    /// After a failure the next attempt waits this long, twice as long after each further one, up to the longest: a bus
    /// that restarts is back soon, one that turns us away will do so for a while.
    static let shortestRetry = Duration.milliseconds(100)
    static let longestRetry = Duration.seconds(300)
    /// A connection that lasted this long was a success.
    static let lasting = Duration.seconds(10)
    /// RequestName's results (D-Bus specification): 1 is "primary owner", 2 "in queue", 3 "exists", 4 "already owner".
    private static let owningResults: [UInt64] = [1, 4]

    package let address: String
    /// `nil`: none, for who only calls others.
    package let name: String?
    /// The connection, while it is up.
    package private(set) var peer: BusPeer?
    /// Called from the loop, each time the connection is up or gone; with the reason.
    package var onUp: ((BusPeer) -> Void)?
    package var onDown: ((String) -> Void)?
    package var onName: ((Name) -> Void)?
    package private(set) var nameState: Name?
    package var onSignal: ((BusSignal) -> Void)?

    private let loop: EventLoop
    private let objects: BusObjects
    private let takesDescriptors: Bool
    /// On its way to be `peer`.
    private var newcomer: BusPeer?
    private var errands: [BusPeer] = []
    private var timer: Timer?
    private var retry = shortestRetry
    private var upSince: Duration?
    private var hasComplained = false

    /// - Parameter takesDescriptors: for who trusts everybody on the bus, see `callForDescriptor`.
    package init(
        loop: EventLoop, address: String, name: String?, objects: BusObjects, takesDescriptors: Bool = false
    ) throws(SystemError) {
        self.takesDescriptors = takesDescriptors
        self.loop = loop
        self.address = address
        self.name = name
        self.objects = objects
        timer = try loop.makeTimer { [weak self] _ in self?.connect() }
    }

    deinit {
        timer?.cancel()
        newcomer?.close()
        peer?.close()
        for errand in errands { errand.close() }
    }

    /// Whether it will try again by itself; where the socket does not exist it need not.
    package var isRetrying: Bool { timer?.isArmed ?? false }

    /// Begins; from now on it keeps itself connected.
    package func connect() {
        guard peer == nil, newcomer == nil else { return }
        do throws(SystemError) {
            let made = try BusPeer(
                loop: loop, busAddress: address, objects: objects, takesDescriptors: takesDescriptors)
            newcomer = made
            made.onReady = { [weak self] in self?.up() }
            made.onGone = { [weak self] reason in self?.down(reason) }
        } catch {
            down(SystemError.text(of: error.errno))
        }
    }

    private func up() {
        guard let newcomer else { return }
        self.newcomer = nil
        peer = newcomer
        upSince = loop.now()
        hasComplained = false
        newcomer.onSignal = { [weak self] in self?.hear($0) }
        if let name { requestName(name, newcomer) }
        onUp?(newcomer)
    }

    /// Also of a connection that never came about: told once, until there is one again.
    private func down(_ reason: String) {
        if let upSince, loop.now() - upSince >= Self.lasting { retry = Self.shortestRetry }
        let wasUp = peer != nil
        peer = nil
        newcomer = nil
        nameState = nil
        upSince = nil
        timer?.arm(at: loop.now() + retry)
        retry = min(Self.longestRetry, retry * 2)
        if wasUp || !hasComplained { onDown?(reason) }
        hasComplained = true
    }

    // MARK: Descriptors

    /// Calls a method that answers with a descriptor, which is then the handler's; `reply` is called once, from the loop.
    ///
    /// On a connection of its own, which ends with the answer. Anybody may send a signal with descriptors to one that takes
    /// them, and closing these takes as long as the sender likes (see `StrangersCloser`).
    package func callForDescriptor(
        _ destination: String, path: String, interface: String, member: String, _ arguments: [Variant],
        timeout: Duration, reply: @escaping (Result<SharedDescriptor, BusError>) -> Void
    ) throws(SystemError) {
        let errand = try BusPeer(loop: loop, busAddress: address, takesDescriptors: true)
        errands.append(errand)
        let finish: (Result<SharedDescriptor, BusError>) -> Void = { [weak self, weak errand] result in
            errand?.close()
            self?.errands.removeAll { $0 === errand }
            reply(result)
        }
        errand.onReady = { [weak errand] in
            do throws(BusError) {
                try errand?.callForDescriptor(
                    destination, path: path, interface: interface, member: member, arguments, timeout: timeout,
                    reply: finish)
                // From here on the call is told of the connection's end.
                errand?.onGone = nil
            } catch {
                finish(.failure(error))
            }
        }
        errand.onGone = { finish(.failure(.disconnected($0))) }
    }

    // MARK: The name

    /// Without flags: who comes second waits in line, and nobody is replaced.
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

    private func hear(_ signal: BusSignal) {
        if let name, signal.sender == BusDaemon.name, signal.arguments.first == .string(name) {
            if signal.member == "NameLost" { named(.lost) }
            if signal.member == "NameAcquired" { named(.owned) }
        }
        onSignal?(signal)
    }

    /// NameAcquired comes together with RequestName's own answer.
    private func named(_ state: Name) {
        guard state != nameState else { return }
        nameState = state
        onName?(state)
    }
}
