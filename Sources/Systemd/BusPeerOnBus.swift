import CSystemd

// What is different on a bus with a daemon: callers are told apart by their unique names, and come and go behind one
// connection.

/// The D-Bus daemon itself, on every bus (D-Bus specification, "Message Bus Messages").
package enum BusDaemon {
    package static let name = "org.freedesktop.DBus"
    package static let path = "/org/freedesktop/DBus"
    /// Its answers come at once, or it hangs.
    static let patience = Duration.seconds(25)
}

/// Somebody on the bus who waits for an answer of ours.
struct WatchedSender {
    var rule: String
    /// The numbers of the calls.
    var serials: [UInt64]
}

extension BusPeer {
    /// Calls the D-Bus daemon. Without `reply` a failure is of no consequence.
    package func callDaemon(
        _ member: String, _ arguments: [Variant], reply: @escaping (Result<[Variant], BusError>) -> Void = { _ in }
    ) {
        do throws(BusError) {
            try call(
                BusDaemon.name, path: BusDaemon.path, interface: BusDaemon.name, member: member, arguments,
                timeout: BusDaemon.patience, reply: reply)
        } catch {
            reply(.failure(error))
        }
    }

    /// Has the daemon send us the signals that a rule describes (D-Bus specification, "Match Rules").
    package func addMatch(_ rule: String) { callDaemon("AddMatch", [.string(rule)]) }

    /// Who is behind a unique name, as the kernel noted it when that connection was made.
    func credentials(of sender: String, _ found: @escaping (Result<PeerCredentials, BusError>) -> Void) {
        callDaemon("GetConnectionCredentials", [.string(sender)]) { result in
            do throws(BusError) {
                let answer = try result.get().first ?? .dictionary([])
                guard let uid = answer["UnixUserID"]?.uintValue.flatMap({ UInt32(exactly: $0) }) else {
                    throw .failed("the bus does not know the user of \(sender)")
                }
                // The process is for logs; the group is not told by all daemons.
                let pid = answer["ProcessID"]?.uintValue.flatMap { Int32(exactly: $0) } ?? 0
                found(.success(PeerCredentials(pid: pid, uid: uid, gid: .max)))
            } catch {
                found(.failure(error))
            }
        }
    }

    // MARK: Callers that go away

    /// Has the daemon tell of the end of `sender`, as long as calls of its wait here. A rule each, and only then: one for
    /// all would wake us at each end of any program on the bus.
    func watch(_ sender: String, for serial: UInt64) {
        if watchedSenders[sender] != nil {
            watchedSenders[sender]?.serials.append(serial)
            return
        }
        let rule =
            "type='signal',sender='\(BusDaemon.name)',interface='\(BusDaemon.name)',member='NameOwnerChanged',"
            + "path='\(BusDaemon.path)',arg0='\(sender)'"
        watchedSenders[sender] = WatchedSender(rule: rule, serials: [serial])
        addMatch(rule)
        // It may have gone before the rule was in place.
        callDaemon("NameHasOwner", [.string(sender)]) { [weak self] result in
            if case .success(let answer) = result, answer.first == .bool(false) { self?.senderGone(sender) }
        }
    }

    func stopWatching(_ sender: String, for serial: UInt64) {
        guard var watched = watchedSenders[sender] else { return }
        watched.serials.removeAll { $0 == serial }
        watchedSenders[sender] = watched.serials.isEmpty ? nil : watched
        if watched.serials.isEmpty { callDaemon("RemoveMatch", [.string(watched.rule)]) }
    }

    func noteOwnerChange(_ signal: BusSignal) {
        guard isOnBus, signal.sender == BusDaemon.name, signal.member == "NameOwnerChanged",
            let name = signal.arguments.first?.stringValue, signal.arguments.last == .string("")
        else { return }
        senderGone(name)
    }

    private func senderGone(_ sender: String) {
        guard let watched = watchedSenders.removeValue(forKey: sender) else { return }
        callDaemon("RemoveMatch", [.string(watched.rule)])
        callersGone(watched.serials)
    }
}
