import Control
import LifecycleCore
import Linux
import Systemd

/// The machine's bus (or the user's), and what is said of it in the journal: each thing once, when it changes.
extension ControlBus {
    /// Begins to look for the bus; nothing waits for it.
    func joinBus(_ journal: Journal) {
        guard let messageBus else { return }
        messageBus.onName = { [unowned self] in self.nameChanged($0, journal) }
        messageBus.onDown = { reason in
            journal.log(
                .notice, MessageID.bus,
                "the bus at \(messageBus.address) is away (\(reason)); the private socket serves on")
        }
        messageBus.connect()
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
