import Control
import Posix
import Systemd

/// Connections that outlast `Reexec`: the next program gets their sockets, and clients notice nothing.
extension ControlBus {
    /// The connections that the next program resumes, and which disabled apps their clients know. Calls over the message bus
    /// that wait get an error.
    ///
    /// A connection is not passed on, and ends with this program, if a call of it waits for its answer, if an interruption
    /// is to end with it, if it has not read what it was sent, if a message of it is incomplete, or if a call of the daemon
    /// waits for an answer. The end of the connection tells its client that there will be no answer.
    func connectionsForReexec() -> [(name: String, descriptor: SharedDescriptor)] {
        let error = ControlNames.Failure.replaced.error(
            "greenroomd was replaced before it answered. A change that was requested may have been carried out.")
        announcer.flush()
        clientInterruptions.removeEnded()
        // One connection for all clients: it must not end for a call of one of them.
        messageBus?.peer?.failCalls(error)
        var connections: [(name: String, descriptor: SharedDescriptor)] = []
        for peer in server?.peers ?? [] where peer !== reexecCaller && isTransferable(peer) {
            guard let socket = try? peer.socketForHandover() else { continue }
            let client = RecoveredDescriptors.Client(number: peer.number, connected: peer.connected)
            connections.append((client.name, socket))
        }
        if let peer = messageBus?.peer, isTransferable(peer), let socket = try? peer.socketForHandover() {
            connections.append((RecoveredDescriptors.messageBus, socket))
        }
        if let disabled = RecoveredDescriptors.file(ofDisabledApps: announcer.knownDisabled) {
            connections.append((RecoveredDescriptors.disabledApps, disabled))
        }
        return connections
    }

    private func isTransferable(_ peer: BusPeer) -> Bool {
        peer.canBeHandedOver && !clientInterruptions.isTied(to: peer)
    }

    /// Resumes the connections of the private socket. One that cannot be resumed ends.
    func resumeClients(_ descriptors: RecoveredDescriptors) {
        for client in descriptors.clients {
            guard let socket = descriptors.take(client.name) else { continue }
            do throws(SystemError) {
                try server?.resume(socket, number: client.number, connected: client.connected)
            } catch {
                service.logWarning("A connection of the previous program ended: \(error).")
            }
        }
    }
}
