import LifecycleCore
import Linux
import Manifest
import Reports
import Systemd

/// Creates instances of templates when they are first asked for, and removes what the daemon has of them when nothing is left of
/// them. An instance without a file is recorded in the logbook, so that the next daemon has it too.
final class Instances {
    private let library: ManifestLibrary
    private let wakes: WakeSources
    private let storage: AppStorage
    private let logbook: Logbook
    private let journal: Journal
    private unowned let events: any EventSink
    /// Instances that the core will know once it has handled the events before.
    private var registering: Set<AppID> = []
    /// Called when an instance was removed.
    var onRemoved: ((AppID) -> Void)?

    init(
        library: ManifestLibrary, wakes: WakeSources, storage: AppStorage, logbook: Logbook, journal: Journal,
        events: any EventSink
    ) {
        (self.library, self.wakes, self.storage) = (library, wakes, storage)
        (self.logbook, self.journal, self.events) = (logbook, journal, events)
    }

    // MARK: Recovery

    /// Takes over the instances of the previous daemon, before the manifests are read.
    func recover(_ recovered: RecoveredState) {
        library.recover(TransientInstance.all(in: recovered.records))
        for case (.configuration(.registered(let id, _, launches: _)), _) in recovered.events
        where library.transient[id] != nil {
            registering.insert(id)
        }
    }

    // MARK: Creation

    /// Whether the core will know the instance, although it does not yet.
    func isRegistering(_ id: AppID) -> Bool { registering.contains(id) }

    /// Creates an instance that the core does not know, and sends the request that asked for it. If the daemon dies meanwhile,
    /// the next one has both or none.
    /// - Parameters:
    ///   - command: of `greenroomctl run`; `nil`: an instance of a template.
    ///   - request: sends the event.
    func create(_ id: AppID, command: RunSettings? = nil, _ request: () -> Void) throws(InstanceProblem) {
        // The core has removed it, and that is still to be performed.
        let isBeingRemoved = command == nil && library.transient[id] != nil && library.manifests[id] != nil
        let manifest: AppManifest
        if isBeingRemoved, let known = library.manifests[id] {
            manifest = known.value
        } else {
            manifest =
                if let command { try library.instantiate(id, command: command) } else { try library.instantiate(id) }
            log("instance created", id)
        }
        registering.insert(id)
        events.batch {
            logbook.batch {
                persist(id)
                register(manifest, launches: isBeingRemoved ? 0 : nil)
                request()
            }
        }
    }

    /// Passes a manifest to the core.
    /// - Parameters:
    ///   - launches: how often the app was launched; `nil`: as often as is recorded.
    ///   - binding: whether its sockets are bound before.
    func register(_ manifest: AppManifest, launches: Int? = nil, binding: Bool = true) {
        let id = manifest.id
        if binding { wakes.sockets.update(manifest) }
        let policy = wakes.sockets.policy(of: manifest)
        events.send(.configuration(.registered(id, policy, launches: launches ?? storage.launches.count(id))))
        wakes.update(manifest)
    }

    /// Records whether an app is an instance without a file: that may change when files are added or removed.
    func persist(_ id: AppID) {
        let name = TransientInstance.recordName(id)
        if let instance = library.transient[id] {
            logbook.persist(instance.savedBytes, as: name)
        } else {
            logbook.removeRecord(name)
        }
    }

    /// The core has handled an event.
    func observe(_ event: Event) {
        guard case .configuration(.registered(let id, _, launches: _)) = event else { return }
        registering.remove(id)
        // An instance that has ended and was removed while its registration waited: nothing would remove it again.
        if id.template != nil, library.manifests[id] == nil { events.send(.configuration(.unregistered(id))) }
    }

    // MARK: Removal

    /// Removes what the daemon has of an instance that the core does not know any more. The receipts, and the directories that the
    /// manifest names, stay.
    func remove(_ id: AppID) {
        // Performed already by the previous daemon, or it has a file now.
        guard library.transient[id] != nil else { return }
        attempt(id) { try storage.launches.remove(id) }
        attempt(id) { try wakes.timers.removeStamp(id) }
        attempt(id) { try storage.summaries.remove(id) }
        attempt(id) { try storage.output.remove(id) }
        attempt(id) { try storage.inboxes.removeInbox(of: id) }
        attempt(id) { try storage.receipts.removeLastReceiptFile(of: id) }
        storage.stored.removeAll(of: id)
        if registering.contains(id) { return }
        wakes.remove(id)
        library.remove(id)
        persist(id)
        log("instance removed: nothing is left of it", id)
        onRemoved?(id)
    }

    private func attempt(_ id: AppID, _ body: () throws -> Void) {
        do { try body() } catch { journal.logWarning("\(error)", app: id) }
    }

    private func log(_ sentence: String, _ id: AppID) {
        journal.log(.info, MessageID.instance, app: id, sentence)
    }
}

/// Tells the parts of the daemon about instances.
final class InstanceObserver: LifecycleObserver {
    private unowned let service: ControlService

    init(service: ControlService) { self.service = service }

    func observe(_ report: Report, at now: Instant) {
        if case .stateChanged(let id, from: _, to: .notRunning, reason: _) = report { service.settleInstance(id) }
    }

    func observe(_ event: Event) {
        service.context.instances.observe(event)
        if case .configuration(.unregistered(let id)) = event { service.settleInstance(id) }
    }

    func observeRemoval(of app: AppID) { service.removeTimestamps(app) }
}

extension ControlService {
    /// Removes an instance that has neither a valid manifest nor a process any more. If an error disables it and it holds sockets,
    /// it comes back with them once the error is corrected.
    func settleInstance(_ id: AppID) {
        guard let instance = library.transient[id], library.manifests[id] == nil, driver.core.state(of: id) == nil,
            library.broken[id] == nil || !instance.holdsSockets
        else { return }
        context.instances.remove(id)
    }
}
