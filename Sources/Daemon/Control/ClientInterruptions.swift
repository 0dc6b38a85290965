import LifecycleCore
import Systemd

/// The interruptions that end with the connection of the client that asked for them (L13).
final class ClientInterruptions {
    /// The most requests of a client that are kept without a look whether they are still needed.
    private static let unchecked = 64

    private let driver: CoreDriver
    private var requests: [BusClient: [RequestID]] = [:]

    init(driver: CoreDriver) { self.driver = driver }

    /// Ends the interruption that this request begins when the caller disconnects.
    func tie(_ request: RequestID, to call: MethodCall) {
        let client = call.client
        guard var known = requests[client] else {
            requests[client] = [request]
            return call.onDisconnect { [weak self] in self?.disconnected(client) }
        }
        known.append(request)
        // Most may have ended long ago.
        if known.count > Self.unchecked, known.count.isMultiple(of: Self.unchecked) {
            known.removeAll { $0 != request && !driver.core.awaitsDisconnect(of: $0) }
        }
        requests[client] = known
    }

    private func disconnected(_ client: BusClient) {
        for request in requests.removeValue(forKey: client) ?? [] { driver.send(.requestAbandoned(request)) }
    }
}
