import Control
import Glibc
import LifecycleCore
import Linux
import Posix
import Reports
import Systemd

/// The message bus of the system or of the user, and the log entries about it: one for each change.
extension ControlBus {
    /// Starts to connect to the message bus and to logind, without waiting for them.
    ///
    /// - Parameter inhibitor: the one that the previous daemon held.
    func joinBus(_ options: DaemonOptions, _ inhibitor: consuming Descriptor?, _ journal: Journal) throws {
        switch options.mode {
        case .system: systemBus = messageBus
        case .user:
            systemBus = try MessageBus(
                loop: service.loop, address: options.systemBusAddress, name: nil, objects: BusObjects())
        }
        if let systemBus { try watchLogind(systemBus, options, inhibitor, journal) }
        messageBus?.connect()
        systemBus?.connect()
    }

    /// Logs each change of the connection and of the name.
    func logChanges(of bus: MessageBus, _ journal: Journal) {
        bus.onName = { [unowned self] in self.nameChanged($0, journal) }
        bus.onDown = { [unowned self] in self.busIsDown($0, journal) }
    }

    private func watchLogind(
        _ systemBus: MessageBus, _ options: DaemonOptions, _ inhibitor: consuming Descriptor?, _ journal: Journal
    ) throws {
        let inhibitors = try Inhibitors(
            loop: service.loop, bus: systemBus, containment: service.containment, events: driver
        ) { [unowned driver] in driver.core.inhibitingApps }
        let logind = try Logind(
            loop: service.loop, bus: systemBus, journal: journal, user: options.mode == .user ? geteuid() : nil,
            inhibitor: inhibitor, events: driver, inhibitors: inhibitors, directory: protectedDirectory)
        self.logind = logind
        let systemEvents = service.context.wakes.systemEvents
        systemBus.onUp = { [weak logind, weak systemEvents, weak calls, weak locations] in
            logind?.busIsUp($0)
            systemEvents?.busIsUp($0)
            calls?.busIsUp($0)
            locations?.busIsUp($0)
        }
        systemBus.onSignal = { [weak logind, weak systemEvents, weak calls, weak locations] in
            logind?.received($0)
            systemEvents?.received($0)
            calls?.received($0)
            locations?.received($0)
        }
        guard systemBus !== messageBus else { return }
        systemBus.onDown = { [unowned self] _ in self.systemBusIsDown() }
    }

    private func systemBusIsDown() {
        logind?.busIsDown()
        service.context.wakes.systemEvents.busIsDown()
        calls.busIsDown()
        locations.busIsDown()
    }

    private func busIsDown(_ reason: String, _ journal: Journal) {
        journal.log(
            .notice, MessageID.bus,
            "Lost the message bus at \(messageBus?.address ?? "") (\(reason)); the private socket remains available")
        if systemBus === messageBus { systemBusIsDown() }
    }

    private func nameChanged(_ name: MessageBus.Name, _ journal: Journal) {
        let service = ControlNames.busName
        switch name {
        case .owned: journal.log(.info, MessageID.bus, "Acquired the bus name \(service).")
        case .waiting:
            journal.log(
                .warning, MessageID.bus,
                "Another program owns the bus name \(service); queued for it, and serving only the private socket")
        case .lost:
            journal.log(.warning, MessageID.bus, "Lost the bus name \(service); serving only the private socket")
        case .refused(let error):
            journal.log(
                .warning, MessageID.bus,
                "Cannot acquire the bus name \(service): \(error.message) (the bus policy is in \(service).conf)")
        }
    }
}

extension ControlBus: SleepControl {
    func allowSleep() { protectedDirectory.beforeSleep { [weak self] in self?.logind?.allowSleep() } }
}
