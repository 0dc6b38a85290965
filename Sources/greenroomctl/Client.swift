import Control
import Glibc
import Posix
import Systemd

/// The connection to the daemon: calls, the wait for answers, and errors as sentences.
final class Client {
    private(set) var bus: BusConnection
    let endpoint: Endpoint
    /// How long a daemon that is being replaced has to accept a connection again. systemd starts the next one after 100 ms, and a slow
    /// machine with many apps takes some seconds to recover them.
    private static let reconnectTimeout = Duration.seconds(20)
    private let options: Options
    private(set) var agent: PasswordAgent?

    struct Options {
        /// Whether a user can be asked for a password.
        var isInteractive: Bool
        /// Whether text is made fit for a terminal: with `escaped`, before anything else reads it.
        var escapesText: Bool
    }

    init(_ endpoint: Endpoint, _ options: Options) throws(Failure) {
        self.endpoint = endpoint
        self.options = options
        bus = try Self.connect(endpoint, isExpected: false)
    }

    /// Connects to the next daemon, after the connection was lost.
    func reconnect() throws(Failure) { bus = try Self.connect(endpoint, isExpected: true) }

    /// - Parameter isExpected: whether to wait for a daemon if none listens.
    private static func connect(_ endpoint: Endpoint, isExpected: Bool) throws(Failure) -> BusConnection {
        let limit = EventLoop.now() + reconnectTimeout
        while true {
            do throws(BusError) {
                return try BusConnection.connect(toDaemonAt: endpoint.runtime)
            } catch {
                let isReplaced = error.isOfLostConnection || (isExpected && error.isOfNoServer)
                guard isReplaced, EventLoop.now() < limit else { throw failure(error, endpoint) }
                poll(nil, 0, 50)
            }
        }
    }

    /// Calls a method that answers at once and may be repeated: if the connection is lost, the next daemon is called.
    func call<Value: RecordValue>(
        _ member: String, _ arguments: [Variant] = [], as type: Value.Type = Value.self
    ) throws(Failure) -> Value {
        do throws(Failure) {
            return try callOnce(member, arguments)
        } catch  where error.isLost {
            try reconnect()
            return try callOnce(member, arguments)
        }
    }

    /// What an app, or a scene of it, showed last: the contents, or a memfd that has them, the type and the time; `nil`: there is no
    /// such app.
    func snapshot(of app: String, _ scene: String?) throws(Failure) -> [Variant]? {
        let (what, arguments) = (scene == nil ? "Snapshot" : "SceneSnapshot", scene.map { [Variant.string($0)] } ?? [])
        let (path, interface) = (ObjectPath.encode(app, below: ControlNames.appPrefix), ControlNames.appInterface)
        do throws(BusError) {
            // The message bus passes no descriptors of the daemon.
            if bus.isOnMessageBus {
                return try bus.call(path: path, interface: interface, member: "Read" + what, arguments)
            }
            let answer = try bus.descriptorAndValues(
                path: path, interface: interface, member: "Get" + what, arguments)
            return [.descriptor(answer.descriptor)] + answer.values
        } catch {
            if error.name == "org.freedesktop.DBus.Error.UnknownObject" { return nil }
            throw failure(ofCall: error)
        }
    }

    /// What the daemon says about itself.
    func info() throws(Failure) -> DaemonInfo {
        do throws(Failure) {
            return try infoOnce()
        } catch  where error.isLost {
            try reconnect()
            return try infoOnce()
        }
    }

    private func infoOnce() throws(Failure) -> DaemonInfo {
        do throws(BusError) {
            let answer = try bus.call(
                path: ControlNames.managerPath, interface: "org.freedesktop.DBus.Properties", member: "GetAll",
                [.string(ControlNames.managerInterface)])
            return DaemonInfo(answer.first ?? .dictionary([]))
        } catch {
            throw failure(ofCall: error)
        }
    }

    private func callOnce<Value: RecordValue>(_ member: String, _ arguments: [Variant]) throws(Failure) -> Value {
        let answer: [Variant]
        do throws(BusError) {
            answer = try bus.call(
                path: ControlNames.managerPath, interface: ControlNames.managerInterface, member: member, arguments)
        } catch {
            throw failure(ofCall: error)
        }
        return try decode(answer, "the answer to \(member)")
    }

    /// Repeats a refused request with polkit's password agent, on a terminal where no other agent runs. The agent is started
    /// only then, because most users need none.
    func withAuthorization<Answer>(_ request: () throws(Failure) -> Answer) throws(Failure) -> Answer {
        do throws(Failure) {
            return try request()
        } catch {
            guard error.isRefusal, options.isInteractive, let agent = PasswordAgent() else { throw error }
            self.agent = agent
            defer { self.agent = nil }
            return try request()
        }
    }

    /// Calls a method that answers when the request was carried out, however long that takes.
    func begin(_ member: String, _ arguments: [Variant]) throws(Failure) -> BusConnection.Pending {
        do throws(BusError) {
            return try bus.callAsync(
                path: ControlNames.managerPath, interface: ControlNames.managerInterface, member: member, arguments)
        } catch {
            throw failure(ofCall: error)
        }
    }

    /// The most requests that may be unanswered. Over the message bus the daemon asks polkit about each, and refuses a user's
    /// requests while too many wait for polkit (`Authoriser.maximumPendingPerUser`, 8).
    var maximumUnanswered: Int { bus.isOnMessageBus ? 4 : Int.max }

    /// Whether a request has an effect although this client disconnects before the answer. The daemon ignores a request that
    /// polkit has not authorized yet.
    var mayDisconnect: Bool { !bus.isOnMessageBus }

    /// Waits until one of several answers has arrived.
    ///
    /// - Parameter deadline: a time of `EventLoop.now`; `nil` waits without end.
    func wait(forAnyOf calls: [BusConnection.Pending], until deadline: Duration?) throws(Failure) {
        do throws(BusError) {
            try bus.wait(forAnyOf: calls, until: deadline)
        } catch {
            throw failure(ofCall: error)
        }
    }

    /// Waits for an answer.
    ///
    /// - Parameter deadline: a time of `EventLoop.now`; `nil` waits without end.
    /// - Returns: `nil` if there is no answer yet.
    func answer<Value: RecordValue>(
        _ pending: BusConnection.Pending, until deadline: Duration?, as type: Value.Type = Value.self
    ) throws(Failure) -> Value? {
        let answer: [Variant]
        do throws(BusError) {
            guard try bus.wait(for: pending, until: deadline), let result = pending.result else { return nil }
            answer = try result.get()
        } catch {
            throw failure(ofCall: error)
        }
        return try decode(answer, "the answer")
    }

    /// The next event. Waits without end.
    func nextEvent() throws(Failure) -> LifecycleEvent {
        while true {
            let signal: BusSignal?
            do throws(BusError) {
                signal = try bus.nextSignal(until: nil)
            } catch {
                throw failure(ofCall: error)
            }
            guard let signal else { throw Failure("greenroomd at \(escaped(endpoint.socket)) closed the connection.") }
            if LifecycleEvent.isEvent(signal) {
                return try decode(signal.arguments, signal.member)
            }
        }
    }

    private func decode<Value: RecordValue>(_ answer: [Variant], _ what: String) throws(Failure) -> Value {
        let value = answer.first ?? .dictionary([])
        do throws(RecordError) {
            return try Value(variant: options.escapesText ? value.escapingText() : value)
        } catch {
            throw Failure("Cannot read \(what): \(escaped("\(error)")).")
        }
    }

    // MARK: Errors as sentences

    /// libsystemd's own refusal names interface and user ID; this sentence is shorter.
    private func failure(ofCall error: BusError) -> Failure {
        guard error.name == "org.freedesktop.DBus.Error.AccessDenied" else {
            var failure = Self.failure(error, endpoint)
            failure.isLost = !bus.isOpen || error.name == ControlNames.Failure.replaced.name
            return failure
        }
        var failure = Failure("Access denied: only root and the user of greenroomd may do this.")
        failure.name = ControlNames.Failure.accessDenied.name
        return failure
    }

    private static func failure(_ error: BusError, _ endpoint: Endpoint) -> Failure {
        var failure = unnamedFailure(error, endpoint)
        failure.name = error.name
        return failure
    }

    private static func unnamedFailure(_ error: BusError, _ endpoint: Endpoint) -> Failure {
        let sentence = escaped(error.message)
        let standard = "org.freedesktop.DBus.Error."
        if error.name == ControlNames.Failure.accessDenied.name {
            return Failure(
                sentence, hint: "Try as root. Members of the group greenroom may manage the apps of the system daemon.",
                isRefusal: true)
        }
        guard error.name.hasPrefix(standard) else { return Failure(sentence) }
        switch error.name.dropFirst(standard.count) {
        case "NoServer": return Failure(sentence, hint: endpoint.hint)
        case "AccessDenied": return Failure(sentence, hint: "Try as root, or as the user of greenroomd.")
        case "UnknownMethod", "UnknownInterface", "UnknownObject":
            return Failure("greenroomd does not support this request: it is older than greenroomctl.")
        default: return Failure(sentence)
        }
    }
}

extension Variant {
    /// The same value with `escaped` strings.
    fileprivate func escapingText() -> Variant {
        switch self {
        case .string(let text): .string(escaped(text))
        case .array(let signature, let elements): .array(signature, elements.map { $0.escapingText() })
        case .dictionary(let entries): .dictionary(entries.map { ($0, $1.escapingText()) })
        case .variant(let value): .variant(value.escapingText())
        case .byte, .bool, .int16, .uint16, .int32, .uint32, .int64, .uint64, .double, .objectPath, .signature,
            .descriptor, .bytes, .entry, .structure:
            self
        }
    }
}
