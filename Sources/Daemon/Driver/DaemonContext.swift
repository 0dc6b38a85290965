import LifecycleCore
import Linux
import Manifest
import Posix
import Systemd

/// The parts of the daemon that run controllers, effects and the control service share. Built once, when the daemon
/// starts. A part takes the members that it uses; runs, and what serves all topics, take this object.
final class DaemonContext {
    let loop: EventLoop
    let folders: Folders
    let containment: Containment
    let journal: Journal
    let logbook: Logbook
    let library: ManifestLibrary
    let store: DescriptorStore
    let runs = RunTable()
    let users: UserCache
    let storage: AppStorage
    let wakes: WakeSources
    let memory: AppMemory
    var background: BackgroundParts
    let instances: Instances
    let connections = AppConnections()
    let notifySockets: NotifySockets
    let groups: GroupRemover
    let ends: MainProcessEnds
    let steps = StepTimes()
    /// `nil`: not made yet.
    weak var launcher: RunLauncher?
    /// `nil`: not made yet.
    weak var relays: RelayServer?
    /// Receives the events of the OS layer. It outlives this object.
    unowned let events: any EventSink

    init(
        loop: EventLoop, folders: Folders, containment: Containment, journal: Journal, receipts: ReceiptStore,
        launches: LaunchStore, logbook: Logbook, library: ManifestLibrary, store: DescriptorStore,
        events: any EventSink
    ) throws(SystemError) {
        self.loop = loop
        self.folders = folders
        self.containment = containment
        self.journal = journal
        self.logbook = logbook
        self.library = library
        self.store = store
        self.events = events
        users = UserCache(now: loop.now)
        ends = try MainProcessEnds(loop: loop, runs: runs)
        groups = GroupRemover(loop: loop, journal: journal)
        notifySockets = NotifySockets(loop: loop, logbook: logbook, folder: folders.notifySockets)
        let watch = MemoryWatch(loop: loop, journal: journal, events: events, apps: containment.mode.root)
        let retries = StorageRetry(loop: loop)
        storage = AppStorage(
            receipts: receipts,
            pendingReceipts: PendingReceipts(receipts: receipts, logbook: logbook, retries: retries),
            launches: launches, summaries: SummaryStore(folders: folders),
            output: OutputFiles(folders: folders, loop: loop, journal: journal),
            inboxes: InboxFolders(folders: folders, loop: loop, journal: journal),
            stored: StoredDescriptors(
                logbook: logbook, store: store, files: StateFiles.open(folder: folders.storedFiles, journal),
                journal: journal),
            retries: retries)
        storage.stored.retries = retries
        // For watches and held sockets.
        let budget = DescriptorBudget()
        wakes = try WakeSources(
            sockets: HeldSockets(
                loop: loop, logbook: logbook, store: store, journal: journal, budget: budget, events: events),
            stamps: try LaunchStore(folder: folders.timers), loop: loop, runs: runs, users: users, journal: journal,
            events: events)
        instances = Instances(
            library: library, wakes: wakes, storage: storage, logbook: logbook, journal: journal, events: events)
        let protection = MemoryProtection(runs: runs, memory: watch, containment: containment, journal: journal)
        let kernelKills = KernelKills()
        memory = AppMemory(
            watch: watch,
            sampler: MemorySampler(
                loop: loop, runs: runs, containment: containment, memory: watch, protection: protection,
                kernelKills: kernelKills, output: storage.output, stored: storage.stored, events: events),
            footprints: FootprintMeter(loop: loop, runs: runs, events: events),
            protection: protection, kernelKills: kernelKills,
            reclaimer: MemoryReclaimer(loop: loop, runs: runs, journal: journal, events: events),
            releaser: MemoryReleaser(loop: loop))
        background = BackgroundParts(
            work: WorkMeter(loop: loop, runs: runs, containment: containment),
            inputs: InputWatcher(loop: loop, budget: budget),
            accessories: Accessories(loop: loop, runs: runs, library: library, events: events),
            autogroups: AutogroupQueue(loop: loop, journal: journal),
            secondSettings: SecondSettings(loop: loop, runs: runs))
    }

    /// Valid manifests, by app.
    var manifests: [AppID: SharedManifest] { library.manifests }

    /// Removes the sockets and the stored data of apps without a manifest, and clears the user cache. An app whose manifest has an error
    /// keeps its stored data: the error is expected to be corrected.
    func manifestsChanged() {
        wakes.sockets.removeAll { library.manifests[$0] == nil }
        storage.stored.removeAll { library.manifests[$0] == nil && library.broken[$0] == nil }
        users.clear()
    }
}
