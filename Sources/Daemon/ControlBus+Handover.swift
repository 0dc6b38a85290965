import Control
import Posix
import Systemd

/// Connections that outlast `Reexec`: the next program gets their sockets, and clients notice nothing.
extension ControlBus {
    /// The connections that the next program resumes, and which disabled apps their clients know. Calls over the message bus
    /// that wait get an error.
    ///
    /// A connection is not passed on, and ends with this program, if a call of it waits for its answer, if an interruption
    /// is to end with it, if it has not read what it was sent, if a message of it is still incomplete (`prepareReexec`), or if
    /// a call of the daemon waits for an answer. The end of the connection tells its client that there will be no answer.
    func connectionsForReexec() -> [(name: String, descriptor: SharedDescriptor)] {
        let error = ControlNames.Failure.replaced.error(
            "greenroomd was replaced before it answered. A change that was requested may have been carried out.")
        announcer.flush()
        clientInterruptions.removeEnded()
        // One connection for all clients: it must not end for a call of one of them.
        messageBus?.peer?.failCalls(error)
        var connections: [(name: String, descriptor: SharedDescriptor)] = []
        var reasons: [String: Int] = [:]
        for peer in server?.peers ?? [] where !reexecCallers.contains(where: { $0 === peer }) {
            guard let resumption = resumption(of: peer), let socket = try? peer.socketForHandover() else {
                reasons[reasonNotToHandOver(peer), default: 0] += 1
                continue
            }
            let client = RecoveredDescriptors.Client(
                number: peer.number, connected: peer.connected, resumption)
            connections.append((client.name, socket))
        }
        logEnds(reasons)
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

    /// `nil`: the connection is not passed on.
    private func resumption(of peer: BusPeer) -> BusResumption? {
        if isTransferable(peer) { return .established }
        return peer.handshakeForHandover.map(BusResumption.handshake)
    }

    /// The end of a sentence about connections.
    private func reasonNotToHandOver(_ peer: BusPeer) -> String {
        if clientInterruptions.isTied(to: peer) { return "an interruption is to end with it" }
        if peer.isReading { return "a part of its handshake or of a message is missing" }
        return peer.isAnswering ? "a call waits for its answer" : "it has not read all messages"
    }

    private func logEnds(_ reasons: [String: Int]) {
        for (reason, count) in reasons.sorted(by: { $0.key < $1.key }) {
            let connections = count == 1 ? "1 connection" : "\(count) connections"
            service.context.journal.log(
                .info, MessageID.bus,
                "\(connections) of the private socket cannot be handed over to the new program: \(reason)")
        }
    }

    /// Replaces the program once no client is in the middle of a message: what clients send from now on waits for the next
    /// program, and so do new connections.
    func prepareReexec(_ caller: BusPeer) {
        reexecCallers.append(caller)
        guard hold == nil else { return }
        guard let server else { return service.loop.callLater { [weak self] in self?.replaceProgram() } }
        do throws(SystemError) {
            hold = try BusHold(server) { [weak self] in self?.replaceProgram() }
        } catch {
            reexecFailed("\(error)")
        }
    }

    private func replaceProgram() {
        do { try service.reexec() } catch { reexecFailed("\(error)") }
    }

    private func reexecFailed(_ reason: String) {
        hold?.end()
        hold = nil
        reexecCallers = []
        service.logWarning("Cannot reexecute: \(reason)")
    }

    /// Resumes the connections of the private socket, in later turns. One that cannot be resumed ends.
    /// - Parameter completion: called once all are resumed.
    func resumeClients(_ descriptors: RecoveredDescriptors, _ completion: @escaping () -> Void) {
        guard let server else { return completion() }
        server.resume(descriptors.takeClients()) { [service] error in
            service.logWarning("A connection of the previous program ended: \(error).")
        } completion: {
            completion()
        }
    }
}
