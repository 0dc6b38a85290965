import Glibc
import LifecycleCore
import Linux
import Posix
import Systemd

/// Replaces the running program.
protocol DaemonControl: AnyObject {
    /// Executes the installed program in place of this one. Apps keep running.
    /// - Throws: why this program still runs.
    func reexec() throws
}

/// Stop, restart and reexec.
extension Program: DaemonControl {
    func reexec() throws {
        if case .shutdown = stop { throw Problem("greenroomd is shutting down") }
        // Before calls are answered with an error: they could still be answered if this program is not replaced.
        let path = try Reexecution.executable()
        try awaitClosedFiles()
        _ = try? context.receipts.writePending()
        context.pendingReceipts.update()
        driver.saveSnapshot()
        let connections = bus.connectionsForReexec()
        let descriptors =
            context.stored.all + context.runs.all.flatMap(\.descriptorsForReexec) + bus.socketForReexec
            + (bus.logind?.inhibitorForReexec ?? []) + [(RecoveredDescriptors.lock, lock.descriptor)]
            + groupLockForReexec
        try Reexecution.run(path, descriptors + connections)
    }

    /// How long `reexec` waits for files that are being closed: 1s in steps of 10ms.
    private static let stepsOfClosing = 100

    /// Files that apps and clients sent are closed within microseconds, unless their file system does not answer. The kernel
    /// would wait for that in execve(2).
    private func awaitClosedFiles() throws {
        for _ in 0..<Self.stepsOfClosing {
            guard DescriptorCloser.pendingFilesOfAll > 0 else { return }
            poll(nil, 0, 10)
        }
        if let problem = problemOfClosing { throw Problem(problem) }
    }

    /// Which files cannot be closed; `nil`: none.
    private var problemOfClosing: String? {
        guard DescriptorCloser.pendingFilesOfAll > 0 else { return nil }
        let apps = context.runs.all.filter { $0.socket.closer.pendingFiles > 0 }.map(\.app.name)
        let senders = apps.isEmpty ? "an app or a client" : apps.joined(separator: ", ")
        return
            "files that \(senders) sent cannot be closed: their file system does not answer; end the program that serves it"
    }

    private var groupLockForReexec: [(name: String, descriptor: SharedDescriptor)] {
        guard let descriptor = groupLock?.descriptor else { return [] }
        return [(RecoveredDescriptors.groupLock, descriptor)]
    }

    /// SIGTERM: `systemctl restart` keeps the apps, `systemctl stop` terminates them.
    func shutDownOrRestart() { if isRestart { restart() } else { shutDown() } }

    /// Whether systemd is restarting the service. Without systemd, or if it does not answer, SIGTERM is a stop.
    private var isRestart: Bool {
        guard case .none = stop, context.store.isAvailable else { return false }
        let runtime = options.mode == .system ? "/run" : ownVariable("XDG_RUNTIME_DIR") ?? "/run"
        do {
            return try ServiceJob.current(runtime: runtime) == .restart
        } catch {
            journal.logWarning("cannot ask systemd whether this is a restart, so all apps are terminated: \(error)")
            return false
        }
    }

    /// Exits, and leaves all apps to the next daemon.
    private func restart() {
        journal.log(.notice, MessageID.stopping, "restarting; all apps keep running")
        if let problem = problemOfClosing { journal.logWarning("this process cannot end: \(problem)") }
        setStop(.restart)
        driver.saveSnapshot()
        _ = try? ServiceManager.notify(.stopping)
        // The descriptor store has all descriptors once this returns.
        _ = try? ServiceManager.barrier(timeout: .seconds(2))
        context.loop.exit(0)
    }

    /// Terminates all apps, then exits. The second time the apps are killed.
    func shutDown() {
        if case .restart = stop { return }
        var isFirst = true
        if case .shutdown = stop { isFirst = false }
        if isFirst {
            journal.log(.notice, MessageID.stopping, "shutting down; terminating all apps")
            _ = try? ServiceManager.notify(.stopping)
        }
        setStop(.shutdown)
        driver.send(.shutdownRequested(immediately: !isFirst))
    }

    /// The event loop has ended.
    func end() {
        do { try context.receipts.writePending() } catch {
            // The next daemon finds them in the logbook, but only after a restart.
            if case .restart = stop {
            } else {
                journal.logWarning("\(context.receipts.pending.count) receipts are lost: \(error)")
            }
        }
        if case .restart = stop { return bus.close(isTakenOver: true) }
        bus.close()
        context.store.remove(RecoveredDescriptors.controlSocket)
        context.stored.archive(in: StateArchive(folder: options.folders.restoration, journal: journal))
        context.logbook.remove()
        _ = try? removeFile(at: options.folders.notifySockets, folder: true)
        _ = try? context.receipts.removeLastReceiptFiles()
        do {
            if try context.containment.removeRoot() == .busy {
                journal.logWarning("processes are left in \(context.containment.mode.summary)")
            }
        } catch {
            journal.logWarning("\(error)")
        }
    }
}
