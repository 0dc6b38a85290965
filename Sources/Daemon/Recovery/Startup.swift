import LifecycleCore
import Linux
import Posix
import Reports
import Systemd

/// What a starting daemon finds of the previous one.
enum Startup {
    /// The state that the previous daemon recorded.
    /// - Returns: `nil` if there is none to continue with.
    static func readState(
        _ folders: Folders, _ journal: Journal, _ receipts: ReceiptStore, _ containment: Containment
    ) -> RecoveredState? {
        do {
            guard var recovered = try Logbook.read(at: folders.logbook) else { return nil }
            receipts.adoptPending(PendingReceipts.lines(in: recovered.records))
            if recovered.isOfAnotherBoot {
                // No process survives the end of the machine.
                guard try !containment.orphanedEnclosures().contains(where: { try $0.isPopulated() }) else {
                    throw Problem("\(folders.logbook): the boot ID is damaged")
                }
                recordLost(&recovered, journal, receipts)
                MappedFile.stopCountingOwnEnd()
                return nil
            }
            return recovered
        } catch {
            MappedFile.stopCountingOwnEnd()
            journal.log(.error, MessageID.warning, "the apps of the previous greenroomd cannot be recovered: \(error)")
            return nil
        }
    }

    /// Writes a receipt for each app that was running when the machine went down.
    private static func recordLost(_ recovered: inout RecoveredState, _ journal: Journal, _ receipts: ReceiptStore) {
        func write(_ effects: [Effect]) {
            for effect in effects {
                switch effect {
                case .writeReceipt(let receipt):
                    do { try receipts.write(receipt) } catch { journal.logWarning("\(error)", app: receipt.app) }
                case .report(.ended(let receipt)): journal.log(LogEntry(.ended(receipt)))
                case .run, .spawn, .recordLaunch, .dropRestorationState, .removeInstance, .identify, .answer,
                    .report, .sockets, .scheduleTimers, .subscribe, .measureMemory, .allowSleep, .finish:
                    break
                }
            }
        }
        write(recovered.effects)
        for (event, at) in recovered.events { write(recovered.core.handle(event, at: at)) }
        for run in recovered.core.runIDs {
            // Without the main process: its receipt waits for the end of the others.
            let end = recovered.core.hasExited(run) ? ProcessEvent.emptied : .exited(.lost, cpu: .zero, memory: 0)
            write(recovered.core.handle(.run(run, .process(end)), at: recovered.last))
        }
    }

    /// The descriptors that the previous daemon passed on by reexec, or that the service manager has stored.
    static func takeDescriptors() throws -> RecoveredDescriptors {
        if let table = try Reexecution.takeTable() { return RecoveredDescriptors(adopting: table, isReexecuted: true) }
        let closer = DescriptorCloser()
        let passed = try ServiceManager.takePassedDescriptors()
        return RecoveredDescriptors(
            adopting: passed.map {
                ($0.name, UntakenDescriptor(Descriptor(adopting: $0.number), closer: closer))
            })
    }
}
