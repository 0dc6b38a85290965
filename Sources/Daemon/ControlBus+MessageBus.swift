import Control
import Glibc
import LifecycleCore
import Linux
import Posix
import Systemd

/// The machine's bus (or the user's), and what is said of it in the journal: each thing once, when it changes.
extension ControlBus {
    /// Begins to look for the bus, and for logind; nothing waits for them.
    ///
    /// - Parameter inhibitor: of an earlier daemon.
    func joinBus(_ options: DaemonOptions, _ inhibitor: consuming Descriptor?, _ journal: Journal) throws {
        messageBus?.onName = { [unowned self] in self.nameChanged($0, journal) }
        messageBus?.onDown = { [unowned self] in self.busIsDown($0, journal) }
        switch options.mode {
        case .system: systemBus = messageBus
        case .user:
            systemBus = try MessageBus(
                loop: house.loop, address: options.systemBusAddress, name: nil, objects: BusObjects())
        }
        if let systemBus { try watchLogind(systemBus, options, inhibitor, journal) }
        messageBus?.connect()
        systemBus?.connect()
    }

    private func watchLogind(
        _ systemBus: MessageBus, _ options: DaemonOptions, _ inhibitor: consuming Descriptor?, _ journal: Journal
    ) throws {
        let logind = try Logind(
            loop: house.loop, bus: systemBus, journal: journal, user: options.mode == .user ? geteuid() : nil,
            inherited: inhibitor,
            send: { [unowned shell] in shell.send($0) })
        self.logind = logind
        house.performer.allowSleep = { [weak logind] in logind?.allowSleep() }
        systemBus.onUp = { [weak logind] in logind?.busIsUp($0) }
        systemBus.onSignal = { [weak logind] in logind?.heard($0) }
        guard systemBus !== messageBus else { return }
        systemBus.onDown = { [weak logind] _ in logind?.busIsDown() }
    }

    private func busIsDown(_ reason: String, _ journal: Journal) {
        journal.log(
            .notice, MessageID.bus,
            "the bus at \(messageBus?.address ?? "") is away (\(reason)); the private socket serves on")
        if systemBus === messageBus { logind?.busIsDown() }
    }

    private func nameChanged(_ name: MessageBus.Name, _ journal: Journal) {
        let service = ControlNames.busName
        let meanwhile = "; until then only the private socket is served"
        switch name {
        case .owned: journal.log(.info, MessageID.bus, "\(service) is on the bus")
        case .waiting:
            journal.log(
                .warning, MessageID.bus,
                "another program has the name \(service) on the bus; it is taken over when that one ends\(meanwhile)")
        case .lost: journal.log(.warning, MessageID.bus, "the name \(service) on the bus was taken away")
        case .refused(let error):
            journal.log(
                .warning, MessageID.bus,
                "the bus does not let us have the name \(service): \(error.message) (its policy is in \(service).conf)")
        }
    }
}
