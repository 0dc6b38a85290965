import Glibc
import LifecycleCore
import Linux
import Manifest
import Posix
import Systemd

/// The parts of the daemon that run controllers, effects and the control service share. Built once, when the daemon
/// starts.
final class DaemonContext {
    let loop: EventLoop
    let folders: Folders
    let containment: Containment
    let journal: Journal
    let receipts: ReceiptStore
    let launches: LaunchStore
    let logbook: Logbook
    let library: ManifestLibrary
    let memory: MemoryWatch
    let store: DescriptorStore
    let stored: StoredDescriptors
    let users: UserCache
    let groups: GroupRemover
    let notifySockets: NotifySockets
    let inboxes: InboxFolders
    let retries: StorageRetry
    let pendingReceipts: PendingReceipts
    let releaser: MemoryReleaser
    let runs = RunTable()
    let steps = StepTimes()
    let ends: MainProcessEnds
    private(set) lazy var instances = Instances(self)
    let connections = AppConnections()
    let summaries: SummaryStore
    let output: OutputFiles
    let sampler: MemorySampler
    let protection: MemoryProtection
    let kernelKills = KernelKills()
    let autogroups: AutogroupQueue
    let secondSettings: SecondSettings
    let footprints: FootprintMeter
    let reclaimer: MemoryReclaimer
    let work: WorkMeter
    let accessories: Accessories
    let inputs: InputWatcher
    /// Descriptors for watches and held sockets.
    let budget = DescriptorBudget()
    let sockets: HeldSockets
    let timers: Timers
    let systemEvents: SystemEvents
    let deviceWakes: DeviceWakes
    let locationWakes: LocationWakes
    let pushEndpoints = PushEndpoints()
    /// Where the open GPUs of processes are described; elsewhere in a test: not each machine has a GPU.
    var gpuDescriptors = ProcFS()
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
        self.receipts = receipts
        self.launches = launches
        self.logbook = logbook
        self.library = library
        self.store = store
        self.events = events
        memory = MemoryWatch(loop: loop, journal: journal, events: events, apps: containment.mode.root)
        stored = StoredDescriptors(
            logbook: logbook, store: store, files: StateFiles.open(folder: folders.storedFiles, journal),
            journal: journal)
        sockets = HeldSockets(
            loop: loop, logbook: logbook, store: store, journal: journal, budget: budget, events: events)
        timers = Timers(loop: loop, journal: journal, stamps: try LaunchStore(folder: folders.timers), events: events)
        systemEvents = try SystemEvents(loop: loop, journal: journal, events: events)
        deviceWakes = DeviceWakes(loop: loop, journal: journal)
        locationWakes = LocationWakes(loop: loop)
        ends = try MainProcessEnds(loop: loop, runs: runs)
        users = UserCache(now: loop.now)
        groups = GroupRemover(loop: loop, journal: journal)
        notifySockets = NotifySockets(loop: loop, logbook: logbook, folder: folders.notifySockets)
        inboxes = InboxFolders(folders: folders, loop: loop, journal: journal)
        summaries = SummaryStore(folders: folders)
        output = OutputFiles(folders: folders, loop: loop, journal: journal)
        let retries = StorageRetry(loop: loop)
        self.retries = retries
        pendingReceipts = PendingReceipts(receipts: receipts, logbook: logbook, retries: retries)
        releaser = MemoryReleaser(loop: loop)
        autogroups = AutogroupQueue(loop: loop, journal: journal)
        secondSettings = SecondSettings(loop: loop, runs: runs)
        sampler = MemorySampler(
            loop: loop, runs: runs, containment: containment, memory: memory, output: output, stored: stored,
            events: events)
        protection = MemoryProtection(runs: runs, memory: memory, containment: containment, journal: journal)
        footprints = FootprintMeter(loop: loop, runs: runs, events: events)
        reclaimer = MemoryReclaimer(loop: loop, runs: runs, journal: journal, events: events)
        work = WorkMeter(loop: loop, runs: runs, containment: containment)
        accessories = Accessories(loop: loop, runs: runs, library: library, events: events)
        inputs = InputWatcher(loop: loop, budget: budget)
        stored.retries = retries
        for digests in [systemEvents.desktop, systemEvents.accounts] {
            digests.user = { [unowned runs] in runs.user(of: $0) }
        }
        for apps in [locationWakes.apps, pushEndpoints.apps] {
            apps.user = { [unowned self] manifest throws in try users.user(of: manifest)?.owner.uid ?? geteuid() }
        }
        pushEndpoints.changed = { [unowned self] app, endpoint in systemEvents.report(endpoint: endpoint, of: app) }
        systemEvents.endpoint = { [unowned self] app in pushEndpoints[app] }
    }

    /// Valid manifests, by app.
    var manifests: [AppID: SharedManifest] { library.manifests }

    /// Removes the sockets and the stored data of apps without a manifest, and clears the user cache. An app whose manifest has an error
    /// keeps its stored data: the error is expected to be corrected.
    func manifestsChanged() {
        sockets.removeAll { library.manifests[$0] == nil }
        stored.removeAll { library.manifests[$0] == nil && library.broken[$0] == nil }
        users.clear()
    }
}
