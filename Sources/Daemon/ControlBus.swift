import Control
import JSON
import LifecycleCore
import Linux
import Manifest
import Posix
import Systemd

/// The house as D-Bus shows it, on the private socket and on the machine's bus: requests in, answers and news out. Knows
/// no rule of the lifecycle.
final class ControlBus {
    let shell: Shell
    let house: House
    private(set) var server: BusServer?
    /// The machine's bus, or the user's; `nil` where there can be none.
    private(set) var messageBus: MessageBus?
    /// Where logind is: the same in a system's daemon, the machine's in a user's.
    var systemBus: MessageBus?
    var logind: Logind?
    private var nextRequest: UInt64 = 1
    /// Who waits for which answer.
    private var waiting: [RequestID: (call: MethodCall, app: String)] = [:]
    /// What the objects looked like when they were last told of.
    lazy var announcer = Announcer(self)

    init(house: House, shell: Shell) {
        self.house = house
        self.shell = shell
        shell.heard = { [unowned self] in self.announcer.note($0) }
    }

    /// Serves the private socket, for root and the daemon's user, and the message bus at `busAddress` as soon as it exists.
    ///
    /// - Parameter socket: the listening socket of the previous instance.
    func listen(at path: String, _ socket: consuming Descriptor?, busAddress: String?, authoriser: Authoriser) throws {
        let objects = BusObjects()
        objects.add(at: ControlNames.managerPath, [managerInterface()])
        objects.add(
            below: ControlNames.appPrefix,
            contains: { [unowned self] name in AppID(name).flatMap { self.shell.core.state(of: $0) } != nil },
            list: { [unowned self] in self.shell.core.appIDs.map(\.name) }, [appInterface()])
        objects.addObjectManager(at: ControlNames.managerPath)
        objects.authorise = { [authoriser] in authoriser.decide($0, $1, $2) }
        let server = try BusServer(
            loop: house.loop, path: path, adopting: socket, mode: 0o600, names: [ControlNames.busName],
            objects: objects)
        let store = house.performer.store
        if store.isThere, !server.isAdopted {
            // Removes a stored socket of this name, which no client can reach any more.
            store.forget(HandedDescriptors.controlSocket)
            store.keep(server.listener, HandedDescriptors.controlSocket)
        }
        server.onWarning = { [house] in house.complain($0) }
        self.server = server
        guard let busAddress else { return }
        let bus = try MessageBus(
            loop: house.loop, address: busAddress, name: ControlNames.busName, objects: objects)
        messageBus = bus
        authoriser.bus = bus
    }

    /// What a program that takes this one's place listens with.
    var socketToKeep: [(name: String, descriptor: SharedDescriptor)] {
        server.map { [(HandedDescriptors.controlSocket, $0.listener)] } ?? []
    }

    /// - Parameter toBeContinued: the service manager has the socket, and another daemon is about to: whoever connects
    ///   meanwhile waits.
    func close(toBeContinued: Bool = false) {
        if toBeContinued { server?.leaveInPlace() }
        server = nil
        logind = nil
        systemBus = nil
        messageBus = nil
    }

    // MARK: Asking the core

    /// Asks for something of an app; the answer comes when it has come about, or will not.
    func request(_ call: MethodCall, _ name: String, _ what: Request) {
        guard let id = AppID(name), shell.core.state(of: id) != nil else {
            return call.fail(house.unknownApp(name))
        }
        shell.send(.requested(awaiting(call, about: name), id, what))
    }

    func simulate(_ call: MethodCall, _ level: MemoryLevel) {
        shell.send(.pressureSimulated(awaiting(call, about: ""), level))
    }

    private func awaiting(_ call: MethodCall, about app: String) -> RequestID {
        let request = RequestID(nextRequest)
        nextRequest += 1
        waiting[request] = (call, app)
        call.onPeerGone { [weak self] in
            guard let self, self.waiting.removeValue(forKey: request) != nil else { return }
            self.shell.send(.requestAbandoned(request))
        }
        return request
    }

    func answer(_ request: RequestID, _ answer: Answer) {
        guard let (call, app) = waiting.removeValue(forKey: request) else { return }
        switch answer {
        case .done(let state): call.reply([.dictionary(result("done", state))])
        case .superseded(let state):
            let why = "a later request wanted it \(state.wish)"
            call.reply([.dictionary(result("superseded", state) + [("explanation", .string(why))])])
        case .ended(let receipt):
            let json = JSONValue(receipt, time: house.clock.now())
            call.reply([
                .dictionary(
                    result("ended", .notRunning)
                        + [("explanation", .string(receipt.explanation)), ("receipt", Variant(json))])
            ])
        case .refused(let refusal): call.fail(house.error(refusal, about: app))
        case .simulated(let victim):
            let took = victim.map { [("victim", Variant.string($0.name))] } ?? []
            call.reply([.dictionary([("level", .string(shell.core.memory.level.name))] + took)])
        }
    }

    private func result(_ outcome: String, _ state: AppState) -> [(String, Variant)] {
        [("outcome", .string(outcome)), ("state", .string(state.rawValue))]
    }

    // MARK: Telling

    /// Everybody who hears signals now. On the bus nobody knows whether somebody listens.
    var audience: [BusPeer] {
        let peers = server?.peers.filter(\.isReady) ?? []
        guard let bus = messageBus?.peer, !bus.isCongested else { return peers }
        return peers + [bus]
    }

    func publish(_ news: Report, _ entry: ChronicleEntry) {
        announcer.note(news)
        var audience = self.audience
        // What only interests those who look for faults is for the private socket: the bus is shared with all others.
        if entry.priority == .debug { audience.removeAll { $0 === messageBus?.peer } }
        guard !audience.isEmpty else { return }
        var record: [(String, Variant)] = [
            ("time", .string(house.clock.now())), ("kind", .string(entry.kind)), ("message", .string(entry.message)),
            ("priority", .int32(entry.priority.rawValue)),
        ]
        if let app = entry.app { record.append(("app", .string(app.name))) }
        for (name, value) in entry.fields {
            guard let key = Self.keys[name], !record.contains(where: { $0.0 == key }) else { continue }
            record.append((key, .string(value)))
        }
        for peer in audience {
            try? peer.emitSignal(
                path: ControlNames.managerPath, interface: ControlNames.managerInterface,
                member: ControlNames.newsSignal, [.dictionary(record)])
        }
    }

    /// Journal fields under the names that JSON has for them.
    private static let keys = [
        "GREENROOM_STATE": "state", "GREENROOM_REASON": "reason", "GREENROOM_CODE": "code",
        "GREENROOM_NAMESPACE": "namespace", "GREENROOM_RECEIPT": "receipt", "GREENROOM_TASK": "task",
        "GREENROOM_DEADLINE": "deadline", "GREENROOM_MEMORY_LEVEL": "level",
    ]
}

extension AppState {
    fileprivate var wish: String {
        switch self {
        case .active, .inactive, .launching: "in the foreground"
        case .background, .suspended: "in the background"
        case .terminating, .notRunning: "ended"
        }
    }
}
