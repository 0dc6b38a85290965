import LifecycleCore
import Linux
import Systemd

/// What an earlier daemon left, at the start of this one.
enum Inheritance {
    /// The logbook of a daemon that ended without a word; `nil`: there is none to go on with.
    static func read(_ folders: Folders, _ journal: Journal, _ receipts: ReceiptStore) -> Legacy? {
        do {
            guard var legacy = try Logbook.read(at: folders.logbook) else { return nil }
            if legacy.isOfAnotherBoot {
                bury(&legacy, journal, receipts)
                MappedFile.stopCountingOwnEnd()
                return nil
            }
            return legacy
        } catch {
            MappedFile.stopCountingOwnEnd()
            journal.log(.error, MessageID.complaint, "nothing is known of the apps of an earlier daemon: \(error)")
            return nil
        }
    }

    /// The machine went down, and all apps with it: each has its receipt, and nothing else goes on.
    private static func bury(_ legacy: inout Legacy, _ journal: Journal, _ receipts: ReceiptStore) {
        func note(_ effects: [Effect]) {
            for effect in effects {
                switch effect {
                case .writeReceipt(let receipt):
                    do { try receipts.write(receipt) } catch { journal.log(.warning, MessageID.complaint, "\(error)") }
                case .report(.ended(let receipt)): journal.log(ChronicleEntry(.ended(receipt)))
                case .spawn, .notify, .freeze, .thaw, .continueStopped, .inspect, .kill, .throttle, .unthrottle,
                    .deliver,
                    .recordLaunch, .dropRestorationState, .answer, .report, .measureMemory, .allowSleep, .finish:
                    break
                }
            }
        }
        note(legacy.effects)
        for (event, at) in legacy.events { note(legacy.core.handle(event, at: at)) }
        for run in legacy.core.runIDs where !legacy.core.hasExited(run) {
            note(legacy.core.handle(.run(run, .exited(.lost, cpu: .zero, memory: 0)), at: legacy.last))
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
