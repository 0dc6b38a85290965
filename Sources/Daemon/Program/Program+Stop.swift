import Glibc
import LifecycleCore
import Linux
import Posix
import Reports
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
        // The kernel would wait for them in execve(2).
        if let problem = BlockedHelpers.problem(of: BlockedHelpers.wait()) { throw Problem(problem) }
        _ = try? context.storage.receipts.writePending()
        context.storage.pendingReceipts.update()
        driver.saveSnapshot()
        bus.failCallsBeforeReexec()
        let descriptors =
            context.storage.stored.all + context.wakes.sockets.all + context.runs.all.flatMap(\.descriptorsForReexec)
            + bus.socketForReexec
            + (bus.logind?.inhibitorForReexec ?? []) + [(RecoveredDescriptors.lock, lock.descriptor)]
            + groupLockForReexec
        try Reexecution.run(path, descriptors)
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
        endWork()
        // The kernel waits for these threads before it reports the end of this process.
        guard let problem = BlockedHelpers.problem(of: BlockedHelpers.wait()) else { return }
        journal.logWarning("this process cannot end: \(problem)")
        // The descriptors stay open until then. The next daemon need not wait for that.
        lock.release()
        groupLock?.release()
    }

    private func endWork() {
        do { try context.storage.receipts.writePending() } catch {
            // The next daemon finds them in the logbook, but only after a restart.
            if case .restart = stop {
            } else {
                journal.logWarning("\(context.storage.receipts.pending.count) receipts are lost: \(error)")
            }
        }
        if case .restart = stop { return bus.close(isTakenOver: true) }
        bus.close()
        relays.close()
        context.store.remove(RecoveredDescriptors.controlSocket)
        context.wakes.sockets.closeAll()
        context.storage.stored.archive(in: StateArchive(folder: options.folders.restoration, journal: journal))
        context.logbook.remove()
        _ = try? removeFile(at: options.folders.notifySockets, folder: true)
        _ = try? removeFile(at: options.folders.connections, folder: true)
        _ = try? context.storage.receipts.removeLastReceiptFiles()
        do {
            if try context.containment.removeRoot() == .busy {
                journal.logWarning("processes are left in \(context.containment.mode.summary)")
            }
        } catch {
            journal.logWarning("\(error)")
        }
    }
}
