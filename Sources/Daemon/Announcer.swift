import Control
import LifecycleCore
import Manifest
import Systemd

/// Tells bus clients what has become of the objects: PropertiesChanged, InterfacesAdded and InterfacesRemoved. Once a turn
/// of the loop and only what is another now than when it was last told, however often it changed in between.
final class Announcer {
    /// An app's properties that are announced.
    struct Face: Equatable {
        var name: String
        var state: AppState
        var pid: Int32
        var isForeground: Bool
        var lastReceipt: UInt64
    }

    private unowned let bus: ControlBus
    private var faces: [AppID: Face] = [:]
    private var level: MemoryLevel?
    /// Apps of which something may have changed, in the order it did.
    private var changed: [AppID] = []
    private var isChanged: Set<AppID> = []
    /// Apps that were last told to be in the foreground: who loses its place to another is not in the news itself.
    private var inFront: [AppID] = []
    private var isScheduled = false

    init(_ bus: ControlBus) {
        self.bus = bus
    }

    // MARK: What may have changed something

    func note(_ event: Event) {
        switch event {
        case .registered(let id, _, launches: _), .unregistered(let id): note(id)
        case .run(let run, .spawned(pid: _)), .run(let run, .mainProcessChanged(pid: _)):
            if let id = bus.shell.core.app(of: run) { note(id) }
        default: break
        }
    }

    func note(_ news: Report) {
        switch news {
        case .stateChanged(let id, from: _, to: _, reason: _): note(id)
        case .ended(let receipt): note(receipt.app)
        case .memoryLevelChanged: schedule()
        default: break
        }
    }

    private func note(_ id: AppID) {
        if isChanged.insert(id).inserted { changed.append(id) }
        schedule()
    }

    private func schedule() {
        if isScheduled { return }
        isScheduled = true
        bus.service.loop.callLater { [weak self] in
            self?.isScheduled = false
            self?.announce()
        }
    }

    // MARK: Telling

    private func announce() {
        for id in inFront where isChanged.insert(id).inserted { changed.append(id) }
        var told = 0
        while told < changed.count, !isTooFast() {
            announce(changed[told])
            told += 1
        }
        for id in changed[..<told] { isChanged.remove(id) }
        changed.removeFirst(told)
        inFront = bus.shell.core.foregroundApps
        announceLevel()
    }

    /// Whether the bus's daemon is slower than the apps change: what they are like in the end is told when it has caught up.
    private func isTooFast() -> Bool {
        guard let peer = bus.messageBus?.peer, peer.isCongested else { return false }
        peer.onDrained = { [weak self] in self?.schedule() }
        return true
    }

    private func announce(_ id: AppID) {
        let before = faces[id]
        let now = bus.service.face(of: id)
        guard before != now else { return }
        faces[id] = now
        let path = ObjectPath.encode(id.name, below: ControlNames.appPrefix)
        switch (before, now) {
        case (nil, let now?): tellAdded(path, id, now)
        case (_?, nil): tellRemoved(path)
        case (let before?, let now?):
            tell(path, ControlNames.appInterface, now.properties.filter { !before.properties.contains($0) })
        case (nil, nil): break
        }
    }

    private func announceLevel() {
        let now = bus.shell.core.memory.level
        guard level != now else { return }
        let isFirst = level == nil
        level = now
        if isFirst { return }
        tell(
            ControlNames.managerPath, ControlNames.managerInterface,
            [Face.Property(name: "MemoryLevel", value: .string(now.name))])
    }

    private func tell(_ path: String, _ interface: String, _ properties: [Face.Property]) {
        let values = Variant.dictionary(properties.map { ($0.name, $0.value) })
        emit(
            path, "org.freedesktop.DBus.Properties", "PropertiesChanged",
            [.string(interface), values, .strings([])])
    }

    /// What libsystemd serves at each object beside ours: clients count an object as gone when all of its interfaces are.
    private static let standardInterfaces = [
        "org.freedesktop.DBus.Peer", "org.freedesktop.DBus.Introspectable", "org.freedesktop.DBus.Properties",
    ]

    private func tellAdded(_ path: String, _ id: AppID, _ face: Face) {
        if bus.audience.isEmpty { return }
        let own = ControlService.propertyNames.compactMap { name in
            bus.service.property(name, of: id, face).map { (name, $0) }
        }
        let interfaces =
            Self.standardInterfaces.map { Variant.entry(.string($0), .dictionary([])) }
            + [.entry(.string(ControlNames.appInterface), .dictionary(own))]
        emit(
            ControlNames.managerPath, "org.freedesktop.DBus.ObjectManager", "InterfacesAdded",
            [.objectPath(path), .array("{sa{sv}}", interfaces)])
    }

    private func tellRemoved(_ path: String) {
        emit(
            ControlNames.managerPath, "org.freedesktop.DBus.ObjectManager", "InterfacesRemoved",
            [.objectPath(path), .strings(Self.standardInterfaces + [ControlNames.appInterface])])
    }

    private func emit(_ path: String, _ interface: String, _ member: String, _ arguments: [Variant]) {
        for peer in bus.audience { try? peer.emitSignal(path: path, interface: interface, member: member, arguments) }
    }
}

extension Announcer.Face {
    struct Property: Equatable {
        let name: String
        let value: Variant
    }

    /// Under the names that App1 has for them.
    var properties: [Property] {
        [
            Property(name: "Name", value: .string(name)), Property(name: "State", value: .string(state.rawValue)),
            Property(name: "Pid", value: .int32(pid)), Property(name: "Foreground", value: .bool(isForeground)),
            Property(name: "LastReceipt", value: .uint64(lastReceipt)),
        ]
    }
}

extension ControlService {
    /// `nil`: there is no such object.
    func face(of id: AppID) -> Announcer.Face? {
        view(of: id).map { view in
            Announcer.Face(
                name: performer.manifests[id]?.name ?? id.name, state: view.state, pid: view.pid ?? 0,
                isForeground: view.isForeground, lastReceipt: view.lastReceipt ?? 0)
        }
    }

    /// The properties of App1, in the order in which introspection shows them.
    static let propertyNames = [
        "Id", "Name", "State", "Pid", "Foreground", "LastReceipt", "MemoryBytes", "Launches",
    ]

    /// A property of App1; `nil`: there is none of that name.
    func property(_ name: String, of id: AppID, _ face: Announcer.Face) -> Variant? {
        switch name {
        case "Id": .string(id.name)
        case "MemoryBytes": .uint64(memory(of: view(of: id)))
        case "Launches": .uint64(UInt64(view(of: id)?.launches ?? 0))
        default: face.properties.first { $0.name == name }?.value
        }
    }

    /// Bytes. Of an app that runs the size is of now; a frozen one's can't have changed.
    func memory(of view: AppView?) -> UInt64 {
        guard let view, let run = view.run.flatMap({ performer.runs[$0] }) else { return 0 }
        return run.isFrozen ? view.memory : run.memory
    }
}
