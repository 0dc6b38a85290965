import Systemd

/// The object that the connections of all runs serve, and which connection belongs to which run.
final class AppConnections {
    private(set) lazy var objects = makeObjects()
    private struct WeakTransport {
        weak var value: ConnectionTransport?
    }
    private var owners: [ObjectIdentifier: WeakTransport] = [:]
    /// By the user of the app.
    private var configurations: [UInt32: BusServer.Configuration] = [:]

    func insert(_ transport: ConnectionTransport, for peer: BusPeer) {
        owners[ObjectIdentifier(peer)] = WeakTransport(value: transport)
    }

    func remove(_ peer: BusPeer) { owners[ObjectIdentifier(peer)] = nil }

    /// What the sockets of all apps of a user share.
    func configuration(for user: UInt32) -> BusServer.Configuration {
        if let configuration = configurations[user] { return configuration }
        let configuration = ConnectionTransport.configuration(for: user)
        configurations[user] = configuration
        return configuration
    }

    /// The transport of the run whose connection made the call; `nil`: that run is over.
    subscript(call: MethodCall) -> ConnectionTransport? { owners[ObjectIdentifier(call.peer)]?.value }

    private func makeObjects() -> BusObjects {
        let objects = BusObjects()
        objects.add(at: SelfInterface.path, [SelfInterface(connections: self).interface])
        return objects
    }
}
