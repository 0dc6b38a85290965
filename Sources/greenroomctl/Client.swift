import Control
import Glibc
import JSON
import Systemd

/// The daemon, as this program talks to it.
final class Client {
    private(set) var bus: BusConnection
    let endpoint: Endpoint
    /// How long one that is gone, or that goes while it shakes hands, has to be there again. systemd starts the next one
    /// after 100 ms.
    private static let patience = Duration.seconds(10)
    /// Somebody sits there who could be asked for a password.
    private let hasUser: Bool
    private(set) var agent: PasswordAgent?

    init(_ endpoint: Endpoint, hasUser: Bool) throws(Failure) {
        self.endpoint = endpoint
        self.hasUser = hasUser
        bus = try Self.connect(endpoint, isExpected: false)
    }

    /// After the daemon was lost: connects to the one that follows it.
    func reconnect() throws(Failure) { bus = try Self.connect(endpoint, isExpected: true) }

    /// - Parameter isExpected: where nobody listens somebody will.
    private static func connect(_ endpoint: Endpoint, isExpected: Bool) throws(Failure) -> BusConnection {
        let limit = EventLoop.now() + patience
        while true {
            do throws(BusError) {
                return try open(endpoint)
            } catch {
                let isReplaced = error.isOfLostConnection || (isExpected && error.isOfNoServer)
                guard isReplaced, EventLoop.now() < limit else { throw failure(error, endpoint) }
                poll(nil, 0, 50)
            }
        }
    }

    /// Connects to the private socket, which is for root and the daemon's user. Other users reach the system's daemon over the
    /// message bus, as with systemctl.
    private static func open(_ endpoint: Endpoint) throws(BusError) -> BusConnection {
        do throws(BusError) {
            return try BusConnection(path: endpoint.socket)
        } catch {
            guard error.isOfAccessDenied, endpoint.runtime == Endpoint.systemRuntime else { throw error }
            let address = BusAddress.system { name in getenv(name).map { String(cString: $0) } }
            return try BusConnection(busAddress: address, destination: ControlNames.busName)
        }
    }

    /// Calls a method that answers at once, with one value, and that can be called twice: if the daemon is lost meanwhile
    /// the one that follows it is asked.
    func call(_ member: String, _ arguments: [Variant] = []) throws(Failure) -> JSONValue {
        do throws(Failure) {
            return try callOnce(member, arguments)
        } catch  where error.isLost {
            try reconnect()
            return try callOnce(member, arguments)
        }
    }

    private func callOnce(_ member: String, _ arguments: [Variant]) throws(Failure) -> JSONValue {
        do throws(BusError) {
            let answer = try bus.call(
                path: ControlNames.managerPath, interface: ControlNames.managerInterface, member: member, arguments)
            return Self.value(answer)
        } catch {
            throw failure(ofCall: error)
        }
    }

    /// What the daemon refused is asked for once more with polkit's agent at hand, where nobody else asks for a password. Not
    /// from the start, as most who may need none.
    func insisting<Answer>(_ ask: () throws(Failure) -> Answer) throws(Failure) -> Answer {
        do throws(Failure) {
            return try ask()
        } catch {
            guard error.isRefusal, hasUser, let agent = PasswordAgent() else { throw error }
            self.agent = agent
            defer { self.agent = nil }
            return try ask()
        }
    }

    /// Calls a method that answers when something has come about, however long that takes.
    func begin(_ member: String, _ arguments: [Variant]) throws(Failure) -> BusConnection.Pending {
        do throws(BusError) {
            return try bus.callAsync(
                path: ControlNames.managerPath, interface: ControlNames.managerInterface, member: member, arguments)
        } catch {
            throw failure(ofCall: error)
        }
    }

    /// Waits for an answer, at most until a time of `EventLoop.now`.
    /// - Returns: `nil`: not yet.
    func answer(_ pending: BusConnection.Pending, until deadline: Duration?) throws(Failure) -> JSONValue? {
        do throws(BusError) {
            guard try bus.wait(for: pending, until: deadline), let result = pending.result else { return nil }
            return Self.value(try result.get())
        } catch {
            throw failure(ofCall: error)
        }
    }

    /// The next piece of news.
    func news() throws(Failure) -> JSONValue {
        do throws(BusError) {
            while let signal = try bus.nextSignal(until: nil) {
                if signal.interface == ControlNames.managerInterface, signal.member == ControlNames.newsSignal {
                    return Self.value(signal.arguments)
                }
            }
        } catch {
            throw Self.failure(error, endpoint)
        }
        throw Failure("greenroomd at \(escaped(endpoint.socket)) has nothing more to tell")
    }

    private static func value(_ answer: [Variant]) -> JSONValue {
        answer.first.map { JSONValue($0) } ?? .object([])
    }

    // MARK: Errors in words

    /// The bus itself refuses with interface and number; what it means is short.
    private func failure(ofCall error: BusError) -> Failure {
        guard error.name == "org.freedesktop.DBus.Error.AccessDenied" else {
            var failure = Self.failure(error, endpoint)
            failure.isLost = !bus.isOpen
            return failure
        }
        return Failure("only root and the user that greenroomd runs as may ask for that")
    }

    private static func failure(_ error: BusError, _ endpoint: Endpoint) -> Failure {
        let sentence = escaped(error.message)
        let standard = "org.freedesktop.DBus.Error."
        if error.name == ControlNames.Failure.accessDenied.name {
            return Failure(
                sentence, hint: "Try as root; the system's daemon lets members of the group greenroom, too.",
                isRefusal: true)
        }
        guard error.name.hasPrefix(standard) else { return Failure(sentence) }
        switch error.name.dropFirst(standard.count) {
        case "NoServer": return Failure(sentence, hint: hint(endpoint))
        case "AccessDenied": return Failure(sentence, hint: "Try as root, or as the user that greenroomd runs as.")
        case "UnknownMethod", "UnknownInterface", "UnknownObject":
            return Failure("this greenroomd does not know how to do that: it is older than this greenroomctl")
        default: return Failure(sentence)
        }
    }

    private static func hint(_ endpoint: Endpoint) -> String {
        if let other = endpoint.other, access(other.socket, F_OK) == 0 {
            return "There is one at \(escaped(other.socket)): try greenroomctl \(other.option) …"
        }
        return "Start one with: \(endpoint.start)"
    }
}
