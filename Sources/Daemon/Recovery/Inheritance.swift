import LifecycleCore
import Linux
import Systemd

/// What an earlier daemon left, at the start of this one.
enum Inheritance {
    /// The logbook of a daemon that ended without a word; `nil`: there is none to go on with.
    static func read(_ folders: Folders, _ journal: Journal, _ receipts: ReceiptStore) -> RecoveredState? {
        do {
            guard var recovered = try Logbook.read(at: folders.logbook) else { return nil }
            if recovered.isOfAnotherBoot {
                bury(&recovered, journal, receipts)
                MappedFile.stopCountingOwnEnd()
                return nil
            }
            return recovered
        } catch {
            MappedFile.stopCountingOwnEnd()
            journal.log(.error, MessageID.complaint, "nothing is known of the apps of an earlier daemon: \(error)")
            return nil
        }
    }

    /// The machine went down, and all apps with it: each has its receipt, and nothing else goes on.
    private static func bury(_ recovered: inout RecoveredState, _ journal: Journal, _ receipts: ReceiptStore) {
        func note(_ effects: [Effect]) {
            for effect in effects {
                switch effect {
                case .writeReceipt(let receipt):
                    do { try receipts.write(receipt) } catch { journal.log(.warning, MessageID.complaint, "\(error)") }
                case .report(.ended(let receipt)): journal.log(LogEntry(.ended(receipt)))
                case .spawn, .notify, .freeze, .thaw, .continueStopped, .inspect, .kill, .throttle, .unthrottle,
                    .deliver,
                    .recordLaunch, .dropRestorationState, .answer, .report, .measureMemory, .allowSleep, .finish:
                    break
                }
            }
        }
        note(recovered.effects)
        for (event, at) in recovered.events { note(recovered.core.handle(event, at: at)) }
        for run in recovered.core.runIDs where !recovered.core.hasExited(run) {
            note(recovered.core.handle(.run(run, .exited(.lost, cpu: .zero, memory: 0)), at: recovered.last))
        }
    }

    /// The descriptors that outlived the daemon before this one: those it took along (`Reexecution`), or those that the
    /// service manager kept.
    static func takeHanded() throws -> HandedDescriptors {
        if let table = try Reexecution.takeTable() { return HandedDescriptors(adopting: table) }
        let handed = try ServiceManager.takeHandedDescriptors()
        return HandedDescriptors(adopting: handed.map { ($0.name, $0.descriptor) })
    }
}
