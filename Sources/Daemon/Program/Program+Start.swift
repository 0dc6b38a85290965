import LifecycleCore
import Linux
import Manifest
import Posix
import Reports
import Systemd

/// The start, in pieces within the event loop: with 10,000 apps it takes some seconds. Clients of the previous daemon are served
/// at once; what they ask for is carried out once all apps are recovered.
extension Program {
    /// Begins the start. `failure` is set and the loop ends if it fails.
    func start() throws {
        guard let recovered else {
            context.storage.stored.restore([:], descriptors)
            context.wakes.sockets.discard(descriptors)
            return readManifests { self.applyManifests($0, recovered: nil) }
        }
        self.recovered = nil
        context.instances.recover(recovered)
        driver.hold(recovered)
        for warning in recovered.warnings { journal.logWarning(warning) }
        try listen()
        bus.announcer.recover()
        readManifests { changes in
            let recovery = Recovery(
                recovered, driver: self.driver, context: self.context, descriptors: self.descriptors)
            recovery.run { self.applyManifests(changes, recovered: $0) }
        }
    }

    private func readManifests(_ completion: @escaping (ManifestLibrary.Changes) -> Void) {
        service.reloader.read(completion)
    }

    /// - Parameter count: how many apps were recovered; `nil` if there was nothing to recover from.
    private func applyManifests(_ changes: ManifestLibrary.Changes, recovered count: Int?) {
        if count != nil { context.logbook.endRecovery() }
        // The previous daemon may have died at the end of a stop, or before it had read the archive.
        context.storage.stored.restoreArchive(StateArchive(folder: options.folders.restoration, journal: journal)) {
            context.manifests[$0]?.value.keepsSnapshot ?? false
        }
        var changes = changes
        if count != nil {
            // The library of this daemon does not know which manifests the previous one had.
            changes.gone = driver.core.unsortedAppIDs.filter { context.library.manifests[$0] == nil }.sorted()
        }
        killUnknownProcesses {
            self.service.reloader.apply(changes) {
                self.orFail {
                    if self.bus.server == nil { try self.listen() }
                    try self.finishStart(recovered: count)
                }
            }
        }
    }

    /// Ends the loop if a step of the start fails.
    private func orFail(_ step: () throws -> Void) {
        do {
            try step()
        } catch {
            failure = error
            context.loop.exit(1)
        }
    }

    private func finishStart(recovered count: Int?) throws {
        let inhibitor = descriptors.take(RecoveredDescriptors.inhibitor)
        descriptors.removeUnused(from: context.store)
        // Before clients are notified that the daemon is ready. Relays are served in later turns.
        relays.listen()
        logStart(recovered: count)
        // If the service manager cannot be notified, the daemon still serves its apps.
        do { _ = try ServiceManager.notify(.ready) } catch { journal.logWarning("\(error)") }
        if !context.logbook.hasRecord(Self.startedRecord) {
            driver.send(.configuration(.started))
            context.logbook.persist([], as: Self.startedRecord)
        }
        context.library.transient.keys.forEach(service.settleInstance)
        removeUnusedInboxes()
        context.storage.pendingReceipts.update()
        enableSignals()
        bus.modeReports.started()
        driver.core.appsAsserting(.location).forEach(bus.locations.modeBegan)
        context.background.accessories.started(driver.core.appsWithShownModes)
        service.started()
        try bus.joinBus(options, inhibitor, journal)
        folderGuard = FolderGuard(self)
    }

    private func removeUnusedInboxes() {
        context.storage.inboxes.removeUnused { [unowned self] name in
            guard let app = Inbox.app(ofFolder: name), let run = driver.core.run(of: app) else { return false }
            return context.runs[run]?.inbox.name == name
        } isKnown: { [unowned self] name in
            guard let app = AppID(name) else { return false }
            return context.library.manifests[app] != nil || context.library.broken[app] != nil
        }
    }

    private func listen() throws {
        try bus.listen(
            at: options.folders.busSocket, descriptors.take(RecoveredDescriptors.controlSocket),
            busAddress: options.busAddress, authoriser: Authoriser(isForUser: options.mode == .user))
    }

    /// Kills processes in groups that belong to no run, and removes the groups.
    private func killUnknownProcesses(_ completion: @escaping () -> Void) {
        let search: EnclosureSearch
        do {
            search = try context.containment.beginSearch()
        } catch {
            journal.logWarning("groups of the previous greenroomd: \(error)")
            return completion()
        }
        context.loop.work.add { [self] in
            if (try? search.advance()) ?? false { return true }
            let unknown = search.all.filter { context.runs[RunID($0.run)] == nil }
            context.loop.work.add(each: unknown, killUnknown, completion: completion)
            return false
        }
    }

    private func killUnknown(_ found: EnclosureSearch.Found) {
        do {
            guard context.runs[RunID(found.run)] == nil, let group = try context.containment.open(found) else { return }
            if try group.isPopulated() {
                journal.logWarning("killed processes of \(group.app) whose run had ended")
                try group.killAll()
            }
            context.groups.remove(group)
        } catch {
            journal.logWarning("groups of the previous greenroomd: \(error)")
        }
    }

    private func logStart(recovered count: Int?) {
        journal.log(
            .notice, MessageID.started,
            "greenroomd \(Logbook.writer) is ready: \(service.summary), \(context.containment.mode.summary), "
                + "bus \(options.folders.busSocket), \(journal.destination)")
        guard let count else { return }
        journal.log(
            .notice, MessageID.recovered,
            "recovered \(count) running app\(count == 1 ? "" : "s") from the previous instance")
    }
}
