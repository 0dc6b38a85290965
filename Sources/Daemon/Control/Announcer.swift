import Control
import LifecycleCore
import Linux
import Manifest
import Reports
import Systemd

/// Sends the standard signals about objects: PropertiesChanged, InterfacesAdded and InterfacesRemoved.
///
/// It sends in a later turn of the loop, and only the properties whose values differ from those that were last sent, however
/// often they changed in between. Changes of many apps are sent in several turns, so that clients can read meanwhile.
final class Announcer {
    /// The properties of an app whose changes are announced.
    struct Properties: Equatable {
        var name: String
        var state: AppState
        var pid: Int32
        var isForeground: Bool
        /// Of an app that has more than the scene `main`.
        var scenes: [SceneStatus] = []
        /// The open tasks that have reported their progress, the first ones.
        var tasks: [TaskStatus] = []
        var lastReceipt: UInt64
        /// The error in the manifest that disables the app; `nil`: there is none.
        var loadError: String?
        /// When the snapshot was stored, in microseconds since 1970; 0: there is none, or it is hidden.
        var snapshotTime: UInt64 = 0
        var presentation: Presentation
        var windowAppID: String
        var seat: String
    }

    private unowned let bus: ControlBus
    /// What was last sent.
    private var announced: [AppID: Properties] = [:]
    /// Apps that clients know from the previous daemon, until the daemon announces something about them.
    private var recovered: Set<AppID> = []
    /// The properties of the manager that change, as they were last sent.
    private var manager: [Property] = []
    /// Apps whose properties may have changed, in the order of the changes.
    private var changed: ArraySlice<AppID> = []
    private var isChanged: Set<AppID> = []
    /// The foreground apps that were last sent: an app that loses its foreground slot to another app has no report.
    private var announcedForeground: [AppID] = []
    /// That the device is held otherwise is announced of each app that is shown.
    private var announcedOrientation = ""
    private var isScheduled = false

    init(_ bus: ControlBus) {
        self.bus = bus
    }

    // MARK: Changes

    /// The apps of the core are those of the previous daemon: their objects are not new to clients.
    func recover() { recovered = Set(bus.driver.core.unsortedAppIDs) }

    func record(_ event: Event) {
        switch event {
        case .configuration(.registered(let id, _, launches: _)), .configuration(.unregistered(let id)): record(id)
        case .run(let run, .process(.spawned(pid: _))), .run(let run, .process(.mainProcessChanged(pid: _))),
            .run(let run, .scene):
            if let id = bus.driver.core.app(of: run) { record(id) }
        case .requested(_, let id, .scene, by: _): record(id)
        case .configuration(.configured): schedule()
        case .observed(let notification, of: nil) where notification.kind == "orientation": schedule()
        default: break
        }
    }

    func record(_ report: Report) {
        switch report {
        case .stateChanged(let id, from: _, to: _, reason: _), .sceneChanged(let id, _, from: _, to: _): record(id)
        case .taskProgressed(let id, _, _), .taskExpires(let id, _, _), .taskEnded(let id, _, _): record(id)
        case .ended(let receipt): record(receipt.app)
        case .memoryLevelChanged: schedule()
        default: break
        }
    }

    /// An instance of a template was removed.
    func recordRemoval(of id: AppID) { record(id) }

    /// Errors in the manifests of these apps have begun, ended or changed.
    func record(_ ids: [AppID]) {
        for id in ids { record(id) }
    }

    private func record(_ id: AppID) {
        if isChanged.insert(id).inserted { changed.append(id) }
        schedule()
    }

    private func schedule() {
        if isScheduled { return }
        isScheduled = true
        bus.service.loop.controlWork.add { [weak self] in self?.announceNext() ?? false }
    }

    /// Records the apps that have lost their foreground slot, and all in the foreground if the device is held otherwise.
    private func recordForeground() {
        let now = Set(bus.driver.core.foregroundApps)
        let orientation = bus.service.orientation
        let mayDiffer =
            announcedForeground.filter { !now.contains($0) }
            + (orientation == announcedOrientation ? [] : now.sorted())
        for id in mayDiffer where isChanged.insert(id).inserted { changed.append(id) }
        announcedForeground = now.sorted()
        announcedOrientation = orientation
    }

    // MARK: Signals

    /// - Returns: whether there is more to announce.
    private func announceNext() -> Bool {
        if changed.isEmpty { recordForeground() }
        if !changed.isEmpty, !isCongested(), let id = changed.popFirst() {
            isChanged.remove(id)
            announce(id)
            return true
        }
        isScheduled = false
        announceManager()
        return false
    }

    /// Whether the message bus takes signals more slowly than apps change. Their latest properties are sent once it has
    /// caught up.
    private func isCongested() -> Bool {
        guard let peer = bus.messageBus?.peer, peer.isCongested else { return false }
        peer.onDrained = { [weak self] in self?.schedule() }
        return true
    }

    private func announce(_ id: AppID) {
        let before = announced[id]
        let now = bus.service.properties(of: id)
        let isKnown = recovered.remove(id) != nil
        guard before != now || isKnown else { return }
        announced[id] = now
        let path = ObjectPath.encode(id.name, below: ControlNames.appPrefix)
        switch (before, now) {
        // What clients know of it is what the previous daemon sent last.
        case (nil, let now?) where isKnown: emitChanged(path, ControlNames.appInterface, now.values)
        case (nil, nil) where isKnown: emitRemoved(path)
        case (nil, let now?): emitAdded(path, id, now)
        case (_?, nil): emitRemoved(path)
        case (let before?, let now?):
            emitChanged(path, ControlNames.appInterface, now.values.filter { !before.values.contains($0) })
        case (nil, nil): break
        }
    }

    private func announceManager() {
        let now = [
            Property(name: "AccountUsers", value: bus.service.accountUsers),
            Property(name: "AlertsWanted", value: .bool(bus.alerts.areWanted)),
            Property(name: "LocationApps", value: bus.service.context.wakes.locations.property),
            Property(name: "MemoryLevel", value: .string(bus.driver.core.memory.level.name)),
            Property(name: "MetricsListen", value: .string(bus.service.metricsListen)),
            Property(name: "Orientation", value: .string(bus.service.orientation)),
            Property(name: "PushApps", value: bus.service.context.wakes.pushEndpoints.property),
            Property(name: "SettingsUsers", value: bus.service.settingsUsers),
        ]
        let changed = now.filter { !manager.contains($0) }
        let isFirst = manager.isEmpty
        manager = now
        if isFirst || changed.isEmpty { return }
        emitChanged(ControlNames.managerPath, ControlNames.managerInterface, changed)
    }

    private func emitChanged(_ path: String, _ interface: String, _ properties: [Property]) {
        let values = Variant.dictionary(properties.map { ($0.name, $0.value) })
        emit(
            path, "org.freedesktop.DBus.Properties", "PropertiesChanged",
            [.string(interface), values, .strings([])])
    }

    /// The interfaces that libsystemd adds to each object. A client considers an object removed when all of its interfaces
    /// are.
    private static let standardInterfaces = [
        "org.freedesktop.DBus.Peer", "org.freedesktop.DBus.Introspectable", "org.freedesktop.DBus.Properties",
    ]

    private func emitAdded(_ path: String, _ id: AppID, _ properties: Properties) {
        if bus.audience.isEmpty { return }
        let own = ControlService.propertyNames.compactMap { name in
            bus.service.property(name, of: id, properties).map { (name, $0) }
        }
        let interfaces =
            Self.standardInterfaces.map { Variant.entry(.string($0), .dictionary([])) }
            + [.entry(.string(ControlNames.appInterface), .dictionary(own))]
        emit(
            ControlNames.managerPath, "org.freedesktop.DBus.ObjectManager", "InterfacesAdded",
            [.objectPath(path), .array("{sa{sv}}", interfaces)])
    }

    private func emitRemoved(_ path: String) {
        emit(
            ControlNames.managerPath, "org.freedesktop.DBus.ObjectManager", "InterfacesRemoved",
            [.objectPath(path), .strings(Self.standardInterfaces + [ControlNames.appInterface])])
    }

    private func emit(_ path: String, _ interface: String, _ member: String, _ arguments: [Variant]) {
        for peer in bus.audience { try? peer.emitSignal(path: path, interface: interface, member: member, arguments) }
    }
}

extension Announcer {
    struct Property: Equatable {
        let name: String
        let value: Variant
    }
}

extension Announcer.Properties {
    typealias Property = Announcer.Property

    /// Into which state it is being launched; empty: it is not (L55).
    private var launchState: String {
        guard state == .launching else { return "" }
        return (isForeground ? AppState.inactive : .background).rawValue
    }

    /// The properties with their names in `App1`.
    var values: [Property] {
        [
            Property(name: "Name", value: .string(name)), Property(name: "State", value: .string(state.rawValue)),
            Property(name: "Pid", value: .uint32(UInt32(clamping: pid))),
            Property(name: "Foreground", value: .bool(isForeground)),
            Property(name: "Visible", value: .bool(presentation.isVisible)),
            Property(name: "ReceivesInput", value: .bool(presentation.receivesInput)),
            Property(name: "LaunchState", value: .string(launchState)),
            Property(name: "Orientation", value: .string(presentation.orientation)),
            Property(name: "NoticeStyle", value: .string(presentation.notices.rawValue)),
            Property(name: "WindowAppID", value: .string(windowAppID)), Property(name: "Seat", value: .string(seat)),
            Property(name: "Scenes", value: scenes.variant),
            Property(name: "Tasks", value: tasks.variant),
            Property(name: "LastReceipt", value: .uint64(lastReceipt)),
            Property(name: "LoadState", value: .string(loadError == nil ? "loaded" : "bad-setting")),
            Property(name: "LoadError", value: .string(loadError ?? "")),
            Property(name: "SnapshotTime", value: .uint64(snapshotTime)),
        ]
    }
}

extension ControlService {
    /// `nil` if there is no such object.
    func properties(of id: AppID) -> Announcer.Properties? {
        let error = library.broken[id]
        let name = context.manifests[id]?.name ?? id.name
        let window = context.manifests[id]?.value.windowAppID ?? id.name
        let seat = context.manifests[id]?.value.policy.seat ?? "seat0"
        guard let view = view(of: id) else {
            guard hasObject(id) else { return nil }
            return Announcer.Properties(
                name: name, state: .notRunning, pid: 0, isForeground: false, lastReceipt: 0, loadError: error,
                presentation: presentation(of: id, nil), windowAppID: window, seat: seat)
        }
        return Announcer.Properties(
            name: name, state: view.state, pid: view.pid ?? 0, isForeground: view.isForeground,
            scenes: scenes(id, view), tasks: tasks(view),
            lastReceipt: view.lastReceipt ?? 0, loadError: error, snapshotTime: snapshotTime(of: id, view),
            presentation: presentation(of: id, view.state.sceneState), windowAppID: window, seat: seat)
    }

    /// How many tasks the property `Tasks` has.
    private static let announcedTasks = 16

    /// Without times, which would change all the time.
    private func tasks(_ view: AppView) -> [TaskStatus] {
        view.tasks.lazy.filter { $0.progress != nil }.prefix(Self.announcedTasks).map { task in
            var status = TaskStatus(task.name, task.progress)
            if task.isContinued { status.isContinued = true }
            if task.isCancelled { status.isCancelled = true }
            return status
        }
    }

    /// The users whose settings are to be reported (`ReportSettings`).
    var settingsUsers: Variant { .array("u", context.wakes.systemEvents.desktop.users.map { .uint32($0) }) }

    /// The users whose online accounts are to be reported (`ReportAccounts`).
    var accountUsers: Variant { .array("u", context.wakes.systemEvents.accounts.users.map { .uint32($0) }) }

    private func snapshotTime(of id: AppID, _ view: AppView) -> UInt64 {
        if context.manifests[id]?.value.policy.hidesSnapshot ?? false { return 0 }
        return context.storage.stored.snapshotFacts(of: id, sceneForSnapshot(of: id, view))?.time.microseconds ?? 0
    }

    /// The properties of `App1`, in the order of introspection.
    static let propertyNames = [
        "Id", "Name", "State", "Pid", "Foreground", "Visible", "ReceivesInput", "LaunchState", "Orientation",
        "NoticeStyle", "WindowAppID", "Seat", "Scenes", "Tasks",
        "LastReceipt", "MemoryBytes", "Launches", "LoadState",
        "LoadError", "SnapshotTime",
    ]

    /// A property of `App1`; `nil` if there is none of that name.
    func property(_ name: String, of id: AppID, _ properties: Announcer.Properties) -> Variant? {
        switch name {
        case "Id": .string(id.name)
        case "MemoryBytes": .uint64(memory(of: view(of: id)))
        case "Launches": .uint64(UInt64(view(of: id)?.launches ?? 0))
        default: properties.values.first { $0.name == name }?.value
        }
    }

    /// An app's size in bytes: of a running app it is read now; a suspended app's was read when it was frozen.
    func memory(of view: AppView?, in scan: ProcessScan? = nil) -> UInt64 {
        guard let view, let run = view.run.flatMap({ context.runs[$0] }) else { return 0 }
        return run.isFrozen ? view.memory : run.memory(in: scan)
    }

    /// Reads the memory of an app as `memory(of:in:)` does. Its parts are unknown for an app that was suspended by an
    /// earlier daemon.
    func setMemory(_ status: inout AppStatus, _ view: AppView, in scan: ProcessScan?) {
        let stored = context.storage.stored.bytes(of: view.id)
        if stored > 0 { status.storedBytes = stored }
        guard let run = view.run.flatMap({ context.runs[$0] }) else { return }
        let measured = run.isFrozen ? run.frozenFootprint : run.measureMemory(in: scan)?.footprint
        status.memoryBytes = run.isFrozen ? view.memory : measured?.bytes ?? 0
        status.residentBytes = measured?.resident
        status.swappedBytes = measured?.swapped
    }
}
