import Systemd

/// A ModemManager with one modem, as far as the daemon reads it.
final class FakeModem {
    enum CallState: Int32 { case ringingIn = 3, active, held, waiting, terminated }

    private static let root = "/org/freedesktop/ModemManager1"
    private static let modem = "\(root)/Modem/0"
    private static let voice = "org.freedesktop.ModemManager1.Modem.Voice"
    private static let call = "org.freedesktop.ModemManager1.Call"

    private let stage: BusStage
    private let messageBus: MessageBus
    private let objects = BusObjects()
    private var calls: [String: CallState] = [:]
    /// How often the state of a call was read.
    private(set) var reads = 0

    /// - Parameter calls: those that there are before ModemManager has its name.
    init(_ stage: BusStage, calls: [(number: Int, state: CallState)] = []) throws {
        self.stage = stage
        messageBus = try MessageBus(
            loop: stage.loop, address: stage.bus.address, name: "org.freedesktop.ModemManager1", objects: objects)
        objects.addObjectManager(at: Self.root)
        objects.add(
            at: Self.modem,
            [
                BusInterface(
                    Self.voice,
                    properties: [
                        BusProperty("Calls", "ao") { [unowned self] _ in
                            .array("o", self.calls.keys.sorted().map { .objectPath($0) })
                        }
                    ])
            ])
        for number in 0..<4 {
            let path = Self.path(number)
            objects.add(
                at: path,
                [
                    BusInterface(
                        Self.call,
                        properties: [
                            BusProperty("State", "i") { [unowned self] _ in
                                self.reads += 1
                                return .int32(self.calls[path]?.rawValue ?? 0)
                            }
                        ])
                ])
        }
        for (number, state) in calls { self.calls[Self.path(number)] = state }
        messageBus.connect()
        try stage.serve("the name of the fake") { self.messageBus.nameState == .owned }
    }

    private static func path(_ number: Int) -> String { "\(root)/Call/\(number)" }

    private func emit(_ path: String, _ interface: String, _ member: String, _ arguments: [Variant]) throws {
        try messageBus.peer?.emitSignal(path: path, interface: interface, member: member, arguments)
    }

    /// Begins, changes or removes (`nil`) a call.
    func set(_ number: Int, _ state: CallState?) throws {
        let path = Self.path(number)
        let before = calls[path]
        calls[path] = state
        guard let state else { return try emit(Self.modem, Self.voice, "CallDeleted", [.objectPath(path)]) }
        guard let before else { return try emit(Self.modem, Self.voice, "CallAdded", [.objectPath(path)]) }
        try emit(path, Self.call, "StateChanged", [.int32(before.rawValue), .int32(state.rawValue), .uint32(0)])
    }

    /// A modem is unplugged: these calls are gone without a signal.
    func unplug(_ numbers: Int...) throws {
        for number in numbers { calls[Self.path(number)] = nil }
        try emit(
            Self.root, "org.freedesktop.DBus.ObjectManager", "InterfacesRemoved",
            [.objectPath(Self.modem), .strings([Self.voice])])
    }
}
