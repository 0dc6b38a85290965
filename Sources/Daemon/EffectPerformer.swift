import LifecycleCore
import Linux
import Manifest
import Systemd

/// Translates what the core wants into what Linux does, and what came of it into events. The only place where both
/// languages are spoken; it decides nothing.
final class EffectPerformer {
    let loop: EventLoop
    let folders: Folders
    let containment: Containment
    let journal: Journal
    /// Releases what killed processes had; `nil` where there can be no helper thread.
    let reaper: MemoryReaper?
    var reaperSource: EventSource?
    let receipts: ReceiptStore
    let launches: LaunchStore
    let logbook: Logbook
    /// What goes back to the core.
    let send: (Event) -> Void
    /// Who answers those who asked.
    var answer: (RequestID, Answer) -> Void = { _, _ in }
    /// What is sent meanwhile is kept before any of it is carried out.
    var together: (() -> Void) -> Void = { $0() }
    /// Whether a run was told that it is in the background, and has not answered.
    var isEntering: (RunID) -> Bool = { _ in false }
    /// Who tells those who watch.
    var publish: (Report, LogEntry) -> Void = { _, _ in }

    /// Who lets the machine sleep.
    var allowSleep: () -> Void = {}

    /// By name; changed by `reload` only.
    var manifests: [AppID: AppManifest] = [:]
    var runs: [RunID: AppRun] = [:]
    /// Which run a process belongs to, for what the kernel tells by pid.
    var mainProcesses: [Int32: RunID] = [:]
    private var rateLimiter = EventRateLimiter()
    let users: UserCache
    /// Groups of runs that are over, until they can be removed.
    var closing: [UInt64: Retry] = [:]
    var lastClosing: UInt64 = 0
    let memory: MemoryWatch
    let stored: StoredDescriptors
    let store: DescriptorStore
    /// What a user's own daemon passes on of its environment.
    let inheritedEnvironment: [String]

    init(
        loop: EventLoop, folders: Folders, containment: Containment, journal: Journal, receipts: ReceiptStore,
        launches: LaunchStore, logbook: Logbook, memory: MemoryWatch, inheritedEnvironment: [String],
        store: DescriptorStore, send: @escaping (Event) -> Void
    ) {
        self.loop = loop
        self.folders = folders
        self.containment = containment
        self.journal = journal
        self.receipts = receipts
        self.launches = launches
        self.logbook = logbook
        self.store = store
        // Without these the daemon goes on; only a daemon that follows will miss something.
        let files = try? StateFiles(folder: folders.storedFiles)
        stored = StoredDescriptors(logbook: logbook, store: store, files: files)
        self.memory = memory
        self.inheritedEnvironment = inheritedEnvironment
        self.send = send
        users = UserCache(now: loop.now)
        reaper = try? MemoryReaper()
        stored.logWarning = { [journal] in journal.log(.warning, MessageID.complaint, app: $0, $1) }
    }

    func perform(_ effect: Effect) {
        switch effect {
        case .spawn(let app, let run, let launch): spawn(app, run, launch)
        case .notify(let run, let notice):
            withRun(run) { run in
                if case .memoryWarning(let level) = notice { placeWarning(run, level) }
                tell(run, notice)
            }
        case .freeze(let run, let attempt): withRun(run) { freeze($0, attempt) }
        case .thaw(let run, let attempt): withRun(run) { thaw($0, attempt) }
        case .continueStopped(let run): withRun(run) { signal($0, Signals.continue) }
        case .inspect(let run): withRun(run) { inspect($0) }
        case .kill(let run): withRun(run) { kill($0) }
        case .throttle(let run): withRun(run) { setWeights($0, background: true) }
        case .unthrottle(let run): withRun(run) { setWeights($0, background: false) }
        case .deliver(let run, let notifications): withRun(run) { deliver($0, notifications) }
        case .recordLaunch(let app, let count): attempt(app) { try launches.record(app, count) }
        case .writeReceipt(let receipt): attempt(receipt.app) { try receipts.write(receipt) }
        case .dropRestorationState(let app): stored.dropRestorationState(of: app)
        case .answer(let request, let answer): self.answer(request, answer)
        case .report(let report): chronicle(report)
        case .measureMemory: measureMemory()
        case .allowSleep: allowSleep()
        case .finish: loop.exit(0)
        }
    }

    /// What `reload` found. Only an app that is gone loses what it stored: an error in a manifest is to be mended.
    func setManifests(_ manifests: [AppID: AppManifest], broken: Set<AppID>) {
        for gone in self.manifests.keys where manifests[gone] == nil { rateLimiter.forget(gone) }
        self.manifests = manifests
        forgetStored(broken: broken)
        users.forget()
    }

    func forgetStored(broken: Set<AppID>) { stored.forget { manifests[$0] == nil && !broken.contains($0) } }

    private func withRun(_ id: RunID, _ body: (AppRun) -> Void) {
        // A run that is over: the core will hear of it, or has, and crossed the news with this.
        guard let run = runs[id] else { return }
        body(run)
    }

    /// To the journal and to all who watch.
    private func chronicle(_ report: Report) {
        switch rateLimiter.judge(report, at: Instant(sinceOrigin: loop.now())) {
        case .accepted: break
        case .suppressed: return
        case .acceptedAfter(let app, let count):
            logWarning(app, "too many events; \(count) suppressed")
        }
        let entry = LogEntry(report)
        journal.log(entry)
        publish(report, entry)
    }

    /// What the system refuses is logged once, here; the life of the app goes on without it.
    func attempt(_ app: AppID, _ body: () throws -> Void) {
        do { try body() } catch { logWarning(app, "\(error)") }
    }

    func logWarning(_ app: AppID, _ sentence: String) {
        journal.log(.warning, MessageID.complaint, app: app, sentence)
    }

    // MARK: Frozen and awake

    private func freeze(_ run: AppRun, _ attempt: Int) {
        tellAll(run)
        do {
            try run.enclosure.freeze()
        } catch {
            // Nothing is reported as frozen: the core gives up in time, thaws and tries again.
            return logWarning(run.app, "\(error)")
        }
        run.isFrozen = true
        run.lookAgain = Retry.until(loop) { [weak run, send] in
            guard let run, run.isFrozen else { return true }
            guard run.isReallyFrozen else { return false }
            send(.run(run.id, .frozen(attempt: attempt, memory: run.memory)))
            return true
        }
    }

    private func thaw(_ run: AppRun, _ attempt: Int) {
        run.lookAgain = nil
        do {
            try run.enclosure.thaw()
        } catch {
            // No `thawed`: the core's deadline ends an app that can't run again.
            return logWarning(run.app, "\(error)")
        }
        run.isFrozen = false
        send(.run(run.id, .thawed(attempt: attempt)))
    }

    /// L19: timers of apps in the background may come this much later, so that the processor sleeps longer. systemd and
    /// Android use the same for their background work.
    private static let backgroundTimerSlack: UInt64 = 40_000_000

    private func setWeights(_ run: AppRun, background: Bool) {
        attempt(run.app) {
            try run.enclosure.setWeights(
                background: background, timerSlack: background ? Self.backgroundTimerSlack : nil)
        }
    }

    private func inspect(_ run: AppRun) {
        let traced = run.process.flatMap { try? ProcFS().status(of: $0.pid) }.map(\.isTraced) ?? false
        let inspection = Inspection(
            traced: traced, cpu: run.cpu, memory: run.memory)
        send(.run(run.id, .inspected(inspection)))
    }

    // MARK: Memory

    private func measureMemory() {
        let sizes = runs.values.filter { !$0.isFrozen }.sorted { $0.id < $1.id }
            .map { MemoryReading.Size(run: $0.id, bytes: $0.memory) }
        let machine = memory.read()
        send(.memoryMeasured(MemoryReading(total: machine.total, available: machine.available, sizes: sizes)))
    }
}

/// Signals that are sent for what they do, whatever a manifest says (signal(7)).
enum Signals {
    static let `continue`: Int32 = 18
}
