import Systemd

/// The properties of one object of a service on the system bus, as far as it reports changes of them. The service may start late, end
/// and come back, and so may the bus; it is never started for this.
final class BusReader {
    struct Object {
        let service: String
        let path: String
        let interface: String
        /// Methods that begin and end what the service measures for this connection; `nil`: it always does.
        var claim: (begin: String, end: String)?
    }

    static let upower = Object(
        service: "org.freedesktop.UPower", path: "/org/freedesktop/UPower/devices/DisplayDevice",
        interface: "org.freedesktop.UPower.Device")
    static func sensor(_ name: String) -> Object {
        Object(
            service: "net.hadess.SensorProxy", path: "/net/hadess/SensorProxy", interface: "net.hadess.SensorProxy",
            claim: ("Claim\(name)", "Release\(name)"))
    }

    private static let properties = "org.freedesktop.DBus.Properties"
    /// The default of D-Bus libraries.
    private static let timeout = Duration.seconds(25)
    /// The most properties that are kept. The objects have about 30.
    private static let mostProperties = 128

    private let object: Object
    private weak var peer: BusPeer?
    /// The unique name of the service; `nil`: it does not run, or that is not known yet.
    private var owner: String?
    private var values: [String: Variant] = [:]
    /// Gets all properties that are known; none: the service does not run.
    private let report: ([String: Variant]) -> Void
    private let rules: [String]

    init(_ object: Object, _ peer: BusPeer?, report: @escaping ([String: Variant]) -> Void) {
        self.object = object
        self.report = report
        rules = [
            "type='signal',sender='\(BusDaemon.name)',member='NameOwnerChanged',arg0='\(object.service)'",
            "type='signal',sender='\(object.service)',interface='\(Self.properties)',member='PropertiesChanged',"
                + "path='\(object.path)',arg0='\(object.interface)'",
        ]
        if let peer { busIsUp(peer) }
    }

    /// No app wants to know any more.
    deinit {
        guard let peer, !peer.isGone else { return }
        for rule in rules { peer.removeMatch(rule) }
        if owner != nil, let claim = object.claim { Self.call(peer, object, claim.end) }
    }

    // MARK: The bus

    func busIsUp(_ peer: BusPeer) {
        self.peer = peer
        for rule in rules { peer.addMatch(rule) }
        // A call to the service itself would start it.
        peer.callDaemon("GetNameOwner", [.string(object.service)]) { [weak self] result in
            guard let self else { return }
            let name = (try? result.get())?.first?.stringValue
            if name == nil, self.owner == nil { self.report([:]) }
            self.ownerChanged(name)
        }
    }

    func busIsDown() {
        peer = nil
        ownerChanged(nil)
    }

    private func ownerChanged(_ name: String?) {
        guard name != owner else { return }
        owner = name
        values = [:]
        guard name != nil, let peer else { return report([:]) }
        if let claim = object.claim { Self.call(peer, object, claim.begin) }
        // A service that does not answer is one that has nothing to say.
        try? peer.call(
            object.service, path: object.path, interface: Self.properties, member: "GetAll",
            [.string(object.interface)], timeout: Self.timeout
        ) { [weak self] result in
            guard let self, self.owner == name, let all = (try? result.get())?.first?.dictionaryValue else { return }
            self.take(all, isNew: false)
        }
    }

    private static func call(_ peer: BusPeer, _ object: Object, _ member: String) {
        try? peer.call(
            object.service, path: object.path, interface: object.interface, member: member, timeout: timeout
        ) { _ in }
    }

    func received(_ signal: BusSignal) {
        if signal.sender == BusDaemon.name, signal.member == "NameOwnerChanged",
            signal.arguments.first == .string(object.service), let new = signal.arguments.last?.stringValue
        {
            return ownerChanged(new.isEmpty ? nil : new)
        }
        // Every client of the bus can send a signal of this name. Only those of the service count.
        guard let owner, signal.sender == owner, signal.path == object.path, signal.interface == Self.properties,
            signal.member == "PropertiesChanged", signal.arguments.first == .string(object.interface),
            signal.arguments.count >= 2, let changed = signal.arguments[1].dictionaryValue
        else { return }
        take(changed, isNew: true)
    }

    /// - Parameter isNew: a signal; the answer to a call may be older than a signal before it.
    private func take(_ changed: [(String, Variant)], isNew: Bool) {
        for (name, value) in changed where values[name] != nil || values.count < Self.mostProperties {
            if isNew || values[name] == nil { values[name] = value.unwrapped }
        }
        report(values)
    }
}
