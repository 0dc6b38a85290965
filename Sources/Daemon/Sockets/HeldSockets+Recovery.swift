import LifecycleCore
import Linux
import Manifest
import Posix
import Reports
import Systemd

/// Sockets that outlive the daemon: in the service manager's store, over reexec, and in the processes of apps.
extension HeldSockets {
    /// Keeps a socket for the next daemon.
    func persist(_ entry: HeldSocketEntry) {
        guard let socket = entry.socket else { return }
        store.store(socket.descriptor, RecoveredDescriptors.socket(entry.serial))
        let record = HeldSocketRecord(app: entry.app, socket: entry.wanted, inode: socket.inode)
        logbook.persist(record.savedBytes, as: HeldSocketRecord.name(entry.serial))
    }

    /// All sockets, for a program that replaces this one by execve(2).
    var all: [(name: String, descriptor: SharedDescriptor)] {
        bySerial.values.compactMap { entry in
            entry.socket.map { (RecoveredDescriptors.socket(entry.serial), $0.descriptor) }
        }
    }

    /// Takes over the sockets of the previous daemon, in pieces. What no daemon has passed on is searched in the app's processes.
    /// - Parameters:
    ///   - runs: the runs that were recovered.
    ///   - completion: called when all are found, or are given up: they are bound again when their manifest is read.
    func restore(
        _ records: [String: [UInt8]], _ descriptors: RecoveredDescriptors, runs: [RunController],
        completion: @escaping () -> Void
    ) {
        let serials = records.keys.compactMap(HeldSocketRecord.serial(ofRecord:)).sorted()
        guard !serials.isEmpty else {
            discard(descriptors)
            return completion()
        }
        var missing: [AppID: [UInt64: HeldSocketEntry]] = [:]
        loop.work.add(each: serials) { serial in
            self.lastSerial = max(self.lastSerial, serial)
            guard let record = try? HeldSocketRecord(reading: records[HeldSocketRecord.name(serial)] ?? []) else {
                return self.removeRecord(serial)
            }
            let entry = HeldSocketEntry(record.socket, of: record.app, serial: serial)
            if let descriptor = descriptors.take(RecoveredDescriptors.socket(serial)) {
                if self.adopt(SharedDescriptor(descriptor), entry) { return }
            }
            missing[record.app, default: [:]][record.inode] = entry
        } completion: {
            self.loop.work.add(each: runs) { run in
                guard let wanted = missing[run.app] else { return }
                self.take(wanted, from: run)
            } completion: {
                for entry in missing.values.flatMap(\.values) where entry.socket == nil {
                    self.removeRecord(entry.serial)
                }
                self.discard(descriptors)
                completion()
            }
        }
    }

    /// Closes sockets without a record before others are bound, or are stored under the same name: the logbook was lost, or the
    /// previous daemon died after it had stored one and before it recorded that.
    func discard(_ descriptors: RecoveredDescriptors) {
        for name in descriptors.names where name.hasPrefix(RecoveredDescriptors.socketPrefix) {
            // A listening socket of the daemon: close(2) does not wait.
            _ = descriptors.take(name)
            store.remove(name)
        }
    }

    private func removeRecord(_ serial: UInt64) {
        logbook.removeRecord(HeldSocketRecord.name(serial))
        store.remove(RecoveredDescriptors.socket(serial))
    }

    private func take(_ wanted: [UInt64: HeldSocketEntry], from run: RunController) {
        do {
            let found = try run.enclosure.takeSockets(Set(wanted.keys))
            for (inode, entry) in wanted.sorted(by: { $0.value.serial < $1.value.serial }) {
                guard let descriptor = found[inode], adopt(descriptor, entry) else { continue }
                journal.log(
                    .info, MessageID.recovered, app: run.app,
                    "the socket \(entry.address) was taken back from its process")
            }
        } catch {
            journal.logWarning("its sockets cannot be taken back: \(error)", app: run.app)
        }
    }

    /// - Returns: whether it is the socket.
    private func adopt(_ descriptor: SharedDescriptor, _ entry: HeldSocketEntry) -> Bool {
        guard let socket = ListeningSocket(entry.type, entry.address, adopting: descriptor) else { return false }
        entries[entry.app, default: []].append(entry)
        bySerial[entry.serial] = entry
        hold(socket, entry, ListeningSocket.Settings())
        return true
    }
}
