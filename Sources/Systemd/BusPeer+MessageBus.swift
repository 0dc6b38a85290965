import CSystemd
import Posix

// On a bus with a daemon, many callers share one connection: each has a unique name, and can end before its answer.

/// The D-Bus daemon, on every bus (D-Bus specification, "Message Bus Messages").
package enum BusDaemon {
    package static let name = "org.freedesktop.DBus"
    package static let path = "/org/freedesktop/DBus"
    /// How long it may take to answer.
    static let timeout = Duration.seconds(25)
}

/// A program on the bus that waits for an answer of this connection.
struct WatchedSender {
    var rule: String
    /// The numbers of the calls.
    var serials: [UInt64]
}

extension BusPeer {
    /// Calls the D-Bus daemon. Without `reply` a failure is ignored.
    package func callDaemon(
        _ member: String, _ arguments: [Variant], reply: @escaping (Result<[Variant], BusError>) -> Void = { _ in }
    ) {
        do throws(BusError) {
            try call(
                BusDaemon.name, path: BusDaemon.path, interface: BusDaemon.name, member: member, arguments,
                timeout: BusDaemon.timeout, reply: reply)
        } catch {
            reply(.failure(error))
        }
    }

    /// Calls the D-Bus daemon, which sends no answer.
    private func tellDaemon(_ member: String, _ arguments: [Variant]) {
        var made: OpaquePointer?
        guard !isGone,
            sd_bus_message_new_method_call(bus, &made, BusDaemon.name, BusDaemon.path, BusDaemon.name, member) >= 0,
            let message = made
        else { return }
        defer { sd_bus_message_unref(message) }
        do throws(BusError) {
            try BusError.check(sd_bus_message_set_expect_reply(message, 0), "\(member) could not be created")
            try MessageWriter.append(arguments, to: message)
        } catch {
            return
        }
        sd_bus_send(bus, message, nil)
        update()
    }

    /// Asks the daemon for the signals that a match rule describes (D-Bus specification, "Match Rules").
    package func addMatch(_ rule: String) {
        callDaemon("AddMatch", [.string(rule)])
    }

    package func removeMatch(_ rule: String) { tellDaemon("RemoveMatch", [.string(rule)]) }

    /// Finds the credentials of the program with a unique name, which the kernel recorded when it connected to the daemon.
    func credentials(of sender: String, _ found: @escaping (Result<PeerCredentials, BusError>) -> Void) {
        callDaemon("GetConnectionCredentials", [.string(sender)]) { result in
            do throws(BusError) {
                let answer = try result.get().first ?? .dictionary([])
                guard let uid = answer["UnixUserID"]?.uintValue.flatMap({ UInt32(exactly: $0) }) else {
                    throw .failed("the bus does not know the user of \(sender)")
                }
                // The process is for logs; not all daemons report the group.
                let pid = answer["ProcessID"]?.uintValue.flatMap { Int32(exactly: $0) } ?? 0
                found(.success(PeerCredentials(pid: pid, uid: uid, gid: .max)))
            } catch {
                found(.failure(error))
            }
        }
    }

    // MARK: Callers that end

    /// Asks the daemon to report the end of `sender` while calls of it wait here. Each sender has a match rule of its own: one
    /// rule for all would wake this process at the end of every program on the bus.
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
        // It may have ended before the rule was added.
        callDaemon("NameHasOwner", [.string(sender)]) { [weak self] result in
            if case .success(let answer) = result, answer.first == .bool(false) { self?.senderGone(sender) }
        }
    }

    func stopWatching(_ sender: String, for serial: UInt64) {
        guard var watched = watchedSenders[sender] else { return }
        watched.serials.removeAll { $0 == serial }
        watchedSenders[sender] = watched.serials.isEmpty ? nil : watched
        if watched.serials.isEmpty { tellDaemon("RemoveMatch", [.string(watched.rule)]) }
    }

    func handleOwnerChange(_ signal: BusSignal) {
        guard isOnBus, signal.sender == BusDaemon.name, signal.member == "NameOwnerChanged",
            let name = signal.arguments.first?.stringValue, signal.arguments.last == .string("")
        else { return }
        senderGone(name)
    }

    private func senderGone(_ sender: String) {
        guard let watched = watchedSenders.removeValue(forKey: sender) else { return }
        tellDaemon("RemoveMatch", [.string(watched.rule)])
        callersGone(watched.serials)
    }
}
