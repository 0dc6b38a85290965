import Linux
import LoopPolicy
import Posix
import Systemd

/// Makes the runtime folder again if it was removed while the daemon runs: with its lock, so that no second daemon starts; with
/// its sockets, so that apps and clients reach this one; and with the logbook, so that the next one finds the apps.
final class FolderGuard {
    /// After the last change: the program that removes the folder is to be finished.
    private static let delay = Duration.milliseconds(100)
    private static let longestDelay = Duration.seconds(60)

    private unowned let program: Program
    private var watch: EventSource?
    private var timer: Systemd.Timer?
    /// Until the next attempt, after one that has failed.
    private var retryDelay = FolderGuard.delay
    private var context: DaemonContext { program.context }

    init(_ program: Program) {
        self.program = program
        timer = try? context.loop.makeTimer(kind: .timer) { [weak self] _ in self?.check() }
        start()
    }

    private func start() {
        watch = nil
        do {
            let folder = try FolderWatch(context.folders.runtime)
            let descriptor = folder.descriptor
            watch = try context.loop.addDescriptor(descriptor, events: .readable, kind: .folderChange) {
                [weak self] _ in
                let hasChanged = FolderWatch.clear(descriptor)
                self?.changed()
                return TurnResult(hasChanged)
            }
        } catch {
            context.journal.logWarning("a removal of the runtime folder will not be noticed: \(error)")
        }
    }

    private func changed() {
        if !isIntact { timer?.arm(at: context.loop.now() + Self.delay) }
    }

    private var isIntact: Bool {
        let folders = context.folders
        return program.lock.isInPlace && program.bus.isSocketInPlace && program.relays.isInPlace
            && context.logbook.isInPlace
            && exists(at: folders.notifySockets) && exists(at: folders.connections) && exists(at: folders.inboxes)
            && exists(at: folders.lastReceipts)
    }

    private func check() {
        if isIntact { return }
        do {
            try repair()
            retryDelay = Self.delay
            context.journal.logWarning(
                "\(context.folders.runtime) was removed, in whole or in part, while greenroomd runs; it was made again")
        } catch {
            if retryDelay == Self.delay {
                context.journal.logWarning(
                    "\(context.folders.runtime) was removed while greenroomd runs, and cannot be made again: \(error)")
            }
            retryDelay = min(Self.longestDelay, retryDelay * 2)
            timer?.arm(at: context.loop.now() + retryDelay)
        }
    }

    private func repair() throws {
        let folders = context.folders
        try createDirectories(at: folders.runtime)
        // First: a daemon that starts now has to find it.
        if !program.lock.isInPlace { program.lock = try Startup.acquireLock(folders) }
        start()
        try Startup.createSubfolders(folders)
        context.storage.inboxes.reopen()
        program.driver.saveSnapshot()
        context.storage.stored.writeFilesAgain()
        context.storage.receipts.rewriteLastReceiptFiles()
        for run in context.runs.all { run.makeFilesAgain() }
        try program.bus.listenAgain()
        if !program.relays.isInPlace { program.relays.listen() }
    }
}

extension RunController {
    /// Makes the inbox and the sockets of the run again, if they were removed. Processes of the app that have opened the old socket
    /// send to it in vain; those that use the path do not.
    fileprivate func makeFilesAgain() {
        attempt {
            try inbox.makeAgain()
            if exists(at: socket.path) { return }
            try socket.bindAgain(owner: owner)
            context.store.remove(RecoveredDescriptors.notifySocket(id))
            context.store.store(socket.descriptor, RecoveredDescriptors.notifySocket(id))
        }
        attempt { try connections.listenAgain() }
    }
}
