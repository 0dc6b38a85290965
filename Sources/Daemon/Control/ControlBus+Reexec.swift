import Control
import Posix
import Systemd

/// `Reexec`: connections end with this program, and clients connect again; the listening socket is passed on, so that they find the
/// next program, which tells them what they have missed (`RecentEvents`).
extension ControlBus {
    /// How long the clients of the private socket have to read what they were sent.
    private static let readTime = Duration.seconds(1)

    /// Replaces the program once the clients of the private socket have been sent all that this program has to say.
    func prepareReexec() {
        guard replacement == nil else { return }
        let limit = service.loop.now() + Self.readTime
        replacement = Retry.until(service.loop) { [weak self] in
            guard let self else { return true }
            let isSent = self.server?.peers.allSatisfy { $0.isGone || $0.hasSentAll } ?? true
            guard isSent || self.service.loop.now() >= limit else { return false }
            self.replacement = nil
            do { try self.service.reexec() } catch { self.service.logWarning("Cannot reexecute: \(error)") }
            return true
        }
    }

    /// Answers the calls over the message bus that wait: a connection to it is that of all clients, so its end alone would be reported
    /// as a failed call to them. On the private socket the end of the connection says as much.
    func failCallsBeforeReexec() {
        messageBus?.peer?.failCalls(
            ControlNames.Failure.replaced.error(
                "greenroomd was replaced before it answered. A change that was requested may have been carried out."))
    }
}
