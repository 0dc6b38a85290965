import LifecycleCore
import Linux
import Posix
import Systemd

/// The service manager's file descriptor store (sd_notify(3), `FDSTORE=1`). What is in it survives this daemon and is
/// passed to the next. Without a service manager that offers one, all methods do nothing.
final class DescriptorStore {
    let isAvailable: Bool
    private let journal: Journal
    /// Whether the last message was not sent. Only the first of several failures is logged: a service manager that does
    /// not listen any more would be logged for each descriptor.
    private var isFailing = false

    /// - Parameter environment: looks up a variable. systemd sets `FDSTORE` to the size of the store since version 254.
    ///   Before that, a service that it started is taken to have one.
    init(environment: (String) -> String?, journal: Journal) {
        self.journal = journal
        isAvailable =
            environment("NOTIFY_SOCKET") != nil
            && (environment("FDSTORE") != nil || environment("INVOCATION_ID") != nil)
    }

    /// Stores a copy of a descriptor under a name.
    func store(_ descriptor: SharedDescriptor, _ name: String) {
        attempt("\(name) cannot be stored for the next greenroomd") {
            try ServiceManager.store([descriptor], name: name)
        }
    }

    /// Removes all descriptors of this name from the store.
    func remove(_ name: String) {
        attempt("\(name) cannot be removed from the file descriptor store") {
            try ServiceManager.removeStored(name: name)
        }
    }

    private func attempt(_ failure: String, _ body: () throws -> Bool) {
        guard isAvailable else { return }
        do {
            _ = try body()
            isFailing = false
        } catch {
            if !isFailing { journal.logWarning("\(failure): \(error)") }
            isFailing = true
        }
    }
}

extension RunController {
    /// Stores the notify socket and the pidfd of the main process, so that the next daemon misses no message and no
    /// exit.
    func storeDescriptors() {
        context.store.store(socket.descriptor, RecoveredDescriptors.notifySocket(id))
        if let process { context.store.store(process.descriptor, RecoveredDescriptors.process(id)) }
    }

    /// The descriptors that a program needs that replaces this one by execve(2), by name.
    var descriptorsForReexec: [(name: String, descriptor: SharedDescriptor)] {
        var all = [(name: RecoveredDescriptors.notifySocket(id), descriptor: socket.descriptor)]
        if let process { all.append((RecoveredDescriptors.process(id), process.descriptor)) }
        if let listener = connections.socket?.descriptor {
            all.append((RecoveredDescriptors.connectionSocket(id), listener))
        }
        return all
    }

    /// Records what the next daemon needs to find this run's processes again. A run that is removed is not recorded
    /// again: its record would never be removed.
    func persistRecord() {
        guard context.runs.contains(self) else { return }
        context.logbook.persist(RunRecord(self).bytes, as: RunRecord.name(id))
    }

    /// Removes the record and the stored descriptors.
    func removeRecord() {
        context.logbook.removeRecord(RunRecord.name(id))
        context.store.remove(RecoveredDescriptors.notifySocket(id))
        context.store.remove(RecoveredDescriptors.process(id))
    }
}
