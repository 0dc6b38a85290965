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
    let wakes: WakeSources
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
        users = UserCache(now: loop.now)
        memory = MemoryWatch(loop: loop, journal: journal, events: events, apps: containment.mode.root)
        stored = StoredDescriptors(
            logbook: logbook, store: store, files: StateFiles.open(folder: folders.storedFiles, journal),
            journal: journal)
        // For watches and held sockets.
        let budget = DescriptorBudget()
        wakes = try WakeSources(
            sockets: HeldSockets(
                loop: loop, logbook: logbook, store: store, journal: journal, budget: budget, events: events),
            stamps: try LaunchStore(folder: folders.timers), loop: loop, runs: runs, users: users, journal: journal,
            events: events)
        ends = try MainProcessEnds(loop: loop, runs: runs)
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
    }

    /// Valid manifests, by app.
    var manifests: [AppID: SharedManifest] { library.manifests }

    /// Removes the sockets and the stored data of apps without a manifest, and clears the user cache. An app whose manifest has an error
    /// keeps its stored data: the error is expected to be corrected.
    func manifestsChanged() {
        wakes.sockets.removeAll { library.manifests[$0] == nil }
        stored.removeAll { library.manifests[$0] == nil && library.broken[$0] == nil }
        users.clear()
    }
}
