import Control
import Glibc
import LifecycleCore
import Linux
import Manifest
import Posix
import Reports
import Systemd

/// Controls one run of one app: its processes and their group, from the start to the removal of the run's resources.
/// It decides nothing: it carries out the core's effects and reports the outcomes as events.
///
/// ```
/// start ──▶ exec ──▶ running ⇄ frozen ──▶ main process ended ──▶ group is empty ──▶ removed
///   └─ failed ───────────────────────────────────────────────────────────────────────▲
/// ```
final class RunController {
    let id: RunID
    private let sharedManifest: SharedManifest
    let enclosure: Enclosure
    let transport: SignalTransport
    let socket: NotifySocket
    let inbox: Inbox
    private(set) lazy var connections = ConnectionTransport(self)
    unowned let context: DaemonContext
    /// When this object was created: at the launch, or when the run was recovered (CLOCK_MONOTONIC).
    let created: Duration

    // MARK: Processes

    /// From clone(2) until the outcome of execve(2) is known.
    var start: ProgramStart?
    /// The main process; `nil` before it is started and after it was reaped.
    var process: Linux.Process?
    /// The pid of the main process, also after it was reaped.
    var mainPID: Int32?
    /// When the main process started, in clock ticks since boot (proc_pid_stat(5)).
    var startTime: UInt64 = 0
    /// The main process is not a child of this daemon: the previous daemon or the app itself started it.
    var isAdopted = false
    /// All processes are frozen, or are about to be.
    private(set) var isFrozen = false
    /// As it was measured at the last freeze. Unknown after a restart of the daemon.
    var frozenFootprint: Footprint?
    /// What it had in memory before it was pushed out again: the pages that its last wake touched (`MemoryReclaim.pages`).
    var pages: [UInt8]?
    /// Reads these pages, from a thaw to the next freeze.
    var bringingBack: HelperThread?
    private(set) var end = End.none

    /// The end of the run. It only advances, so the run is removed once and reported as empty at most once.
    enum End {
        /// The main process has not ended.
        case none
        /// The main process has ended, and processes that it left behind have not.
        case emptying(Retry?)
        /// The run's resources are removed.
        case removed
    }

    // MARK: Event sources and probes

    /// Looks for the end of the main process if `MainProcessEnds` cannot watch it.
    var exitProbe: Retry?
    /// Looks whether an adopted main process has executed its program, stopped itself, or was reaped by its parent.
    var adoptedProbe: Retry?
    /// The hook that runs (L57).
    var hook: HookRun?
    /// Of a command of `greenroomctl run` (L54): the process that its caller waits for.
    var relay: RelayLink?
    /// `Type=forking`: from the exit of the first process until the main process is known.
    var forking: Forking?
    /// For how long the run had got no processor when it got its last notice with a deadline. After a recovery: when it was
    /// found again.
    var waitedAtNotice = Duration.zero
    /// Looks whether the whole group is frozen.
    private var freezeProbe: Retry?
    /// While it is suspended: the watch over its descriptors (L50).
    var input: RunInput?
    /// What the app has left in its own pipes.
    @OnDemand var leftInput = LeftInputRecord()
    /// The last freeze that the core asked for.
    private(set) var freezeAttempt = 0
    /// The freeze that was reported to the core as complete; `nil`: none is.
    var reportedAttempt: Int?
    /// When a process of the run was continued by another one than the daemon (process-group mode).
    @Rare var lastContinued: Duration? = nil
    var isContinueLogged = false
    /// The log says that the sockets of a process cannot be examined.
    var areHiddenSocketsLogged = false
    /// While it runs in the background and may not use a GPU (L43).
    var gpuWatch: GPUWatch?
    /// The rank of the processes for the kernel's OOM killer (L38).
    var oomClass = OOMClass.active
    /// The weights that this daemon has set (L19); `nil`: none.
    var hasBackgroundWeights: Bool?
    /// When the weights and `oom_score_adj` are set once more.
    var setAgainAt: Duration?
    /// This daemon has set `oom_score_adj` of the processes.
    var isOOMScoreSet = false
    /// The weights of the app's sessions before it was throttled, by autogroup, as far as they were not 0 (L19).
    var niceBefore: [UInt64: Int] = [:]

    // MARK: Status that the app reports

    /// The user has removed the app: what it stores from now on, and has sent before, is closed.
    var isRemovedByUser = false
    /// What the app has reported, and what was reported of it.
    @OnDemand var reports = RunReports()

    // MARK: Inbox

    /// The files of events that the app may not have removed.
    var eventFiles = EventFiles()
    /// The files that could not be written yet.
    @OnDemand var pendingFiles = PendingFiles()

    /// - Parameters:
    ///   - notices: those that the previous daemon recorded; empty for a new run.
    ///   - inbox: `nil`: it is opened when it is needed.
    init(
        id: RunID, manifest: SharedManifest, enclosure: Enclosure, socket: NotifySocket, owner: Owner?,
        notices: NoticeQueue = NoticeQueue(), inbox: Inbox? = nil, context: DaemonContext
    ) {
        self.id = id
        sharedManifest = manifest
        self.enclosure = enclosure
        self.socket = socket
        self.context = context
        created = context.loop.now()
        transport = SignalTransport(loop: context.loop, queue: notices)
        self.inbox = inbox ?? Inbox(of: manifest.id, in: context.storage.inboxes, owner: owner)
        transport.delegate = self
        socket.delegate = self
        socket.closer.setOwner(app.name)
    }

    var app: AppID { sharedManifest.value.id }
    /// The user that the app runs as; `nil`: the daemon's.
    var owner: Owner? { inbox.owner }

    /// As it was at the launch, or when the run was recovered.
    var manifest: AppManifest { sharedManifest.value }

    func send(_ event: RunEvent) { context.events.send(.run(id, event)) }

    // MARK: Measurements. A group that cannot be read counts as removed.

    var isPopulated: Bool { (try? enclosure.isPopulated()) ?? false }
    /// In bytes.
    var memory: UInt64 { memory(in: nil) }
    /// In bytes. `scan`: a complete search of /proc (process-group mode).
    func memory(in scan: ProcessScan?) -> UInt64 { measureMemory(in: scan)?.footprint.bytes ?? 0 }

    func measureMemory(in scan: ProcessScan?) -> FootprintMeasurement? {
        guard var measurement = try? enclosure.beginMeasurement(in: scan) else { return nil }
        while (try? measurement.advance()) ?? false {}
        return measurement
    }
    /// Processor time of all processes since the launch.
    var cpu: Duration { (try? enclosure.cpuTime()) ?? .zero }

    // MARK: Freezing

    /// Freezes all processes, after all waiting notices are sent. `frozen` follows once the kernel reports the whole
    /// group as frozen. If it does not, the core thaws the group in time and tries again.
    func freeze(attempt: Int) {
        transport.sendAll()
        bringingBack = nil
        context.steps.begin(.freeze, of: app)
        do {
            try enclosure.freeze()
        } catch {
            return logWarning("\(error)")
        }
        isFrozen = true
        freezeAttempt = attempt
        awaitFrozen(attempt: attempt)
    }

    /// Waits until the kernel reports the whole group as frozen, with the main process in it.
    func awaitFrozen(attempt: Int) {
        freezeProbe = Retry.until(context.loop) { [weak self] in
            guard let self, self.isFrozen else { return true }
            if self.wasContinuedLately { return false }
            // Checked each time: another process may move it at any time.
            guard self.holdsMainProcess() else { return false }
            guard (try? self.enclosure.isFrozen()) ?? false else {
                if self.lastContinued != nil { self.attempt { try self.enclosure.freeze() } }
                return false
            }
            self.reportFrozen(attempt)
            return true
        }
    }

    private func reportFrozen(_ attempt: Int) {
        lastContinued = nil
        findFileLocks(attempt: attempt) { [weak self] search in
            guard let self else { return }
            // A process of it was continued meanwhile.
            if self.lastContinued != nil { return self.awaitFrozen(attempt: attempt) }
            self.reportFrozen(attempt, search?.held.map(FileLocks.init), hasAccessory: search?.hasAccessory ?? false)
        }
    }

    private func reportFrozen(_ attempt: Int, _ locks: FileLocks?, hasAccessory: Bool) {
        freezeProbe = nil
        reports.loggedProblem = nil
        reportedAttempt = attempt
        context.storage.output.bound(id)
        // Before the locks: it is not suspended, so it may hold them.
        if hasAccessory { context.background.accessories.found(self) }
        let measurement = measureMemory(in: nil)
        frozenFootprint = measurement?.footprint
        if let locks { send(.suspension(.locksFound(attempt: attempt, locks))) }
        send(
            .suspension(
                .frozen(
                    attempt: attempt, memory: measurement?.footprint.bytes ?? 0,
                    uncertainty: measurement?.uncertainty ?? 0))
        )
        if let measurement { context.memory.footprints.measure(id, attempt: attempt, after: measurement) }
        relay?.frozen()
    }

    private func endFreeze() {
        isFrozen = false
        reportedAttempt = nil
        lastContinued = nil
        freezeProbe = nil
    }

    /// Thaws all processes. If that fails there is no `thawed`, and the core ends the app at its deadline.
    func thaw(attempt: Int) {
        freezeProbe = nil
        guard let relay else { return thawNow(attempt) }
        relay.returnTerminal { [weak self] in self?.thawNow(attempt) }
    }

    private func thawNow(_ attempt: Int) {
        if case .removed = end { return }
        // The core has ended it already: no duplicate may exist while the app runs.
        stopWatchingInput()
        do {
            context.background.work.restoreRests(of: id)
            try enclosure.thaw()
            // An app that is still throttled would not run.
            if hasBackgroundWeights != true { context.loop.yieldProcessor() }
        } catch {
            return logWarning("\(error)")
        }
        endFreeze()
        connections.thawed()
        send(.suspension(.thawed(attempt: attempt)))
    }

    /// Takes over the state of a recovered run. If the previous daemon's last events are lost, the group may be in
    /// another state than the core expects: then it is frozen or thawed.
    /// - Parameter attempt: the freeze that was reported to the core as complete; `nil`: it is not frozen.
    func restoreFrozen(_ attempt: Int?, mayDiffer: Bool) {
        let isFrozen = attempt != nil
        self.isFrozen = isFrozen
        reportedAttempt = attempt
        freezeAttempt = attempt ?? 0
        guard mayDiffer else { return }
        self.attempt { try isFrozen ? enclosure.freeze() : enclosure.thaw() }
    }

    // MARK: Effects

    /// SIGCONT, for a main process that has stopped itself.
    func continueStopped() { sendSignal(SIGCONT) }

    /// Measures the run for the core's judgement. What the app did before is reported first, however late the daemon reads
    /// it (L48).
    func inspect() {
        transport.sendAll()
        reportAnswers()
        let hasExited = process == nil && start == nil
        let measurement = measureMemory(in: nil)
        var inspection = Inspection(
            traced: isTraced, cpu: cpu, memory: measurement?.footprint.bytes ?? 0,
            remaining: hasExited ? remaining : nil, waited: waitedSinceNotice)
        inspection.uncertainty = measurement?.uncertainty ?? 0
        inspection.obstacle = forkingObstacle?.printable(upTo: Inspection.maximumObstacle)
        send(.deadline(.inspected(inspection)))
    }

    /// Whether a debugger is attached to the main process. An app that traces itself is not being debugged (L48).
    private var isTraced: Bool {
        guard let tracer = mainProcessStatus?.tracerPid, tracer != 0 else { return false }
        return !((try? enclosure.contains(tracer)) ?? false)
    }

    /// Reports what may be an answer: the outcome of execve(2), notify messages, a stop, and the end of the main process.
    private func reportAnswers() {
        if start != nil { execDecided() }
        socket.drain()
        connections.drain()
        reportListener()
        guard let process, start == nil else { return }
        if process.isOver {
            mainProcessEnded()
        } else if isAdopted {
            if !isFrozen, hasStopped, context.events.isEntering(id) { send(.process(.stopped)) }
        } else {
            context.runs.childrenChanged()
        }
    }

    /// Sends a notice over the connections of the app, or as a signal. A memory warning has one signal for both levels, so the
    /// level is written to the inbox first (L36).
    func notify(_ notice: Notice, _ effect: EffectID) {
        if notice == .willTerminate { hook?.dropRest() }
        let isTaken = connections.take(notice, effect)
        guard case .memoryWarning(let level) = notice else {
            if !isTaken, !notice.isForConnections { transport.send(notice, effect) }
            return
        }
        let isWritten = writeToInbox("memory", level.name)
        if isTaken { return }
        transport.send(notice, effect)
        if isWritten { transport.announceFiles() }
    }

    // MARK: The end

    /// SIGKILL to all processes of the run, frozen or not.
    func kill() {
        if let relay, !relay.isAttached { return relay.abandon("its process was not created in time") }
        // While a duplicate exists, the peers of a killed process do not see its end.
        stopWatchingInput()
        endFreeze()
        relay?.dropThaw()
        transport.discard()
        hook?.dropRest()
        gpuWatch = nil
        context.steps.begin(.kill, of: app)
        // A main process that has left the group is killed too.
        if process != nil || isPopulated { killGroup() }
        // Without a main process the kill is the end of the run: the exit of the first process was none.
        forking?.exit.status = .signaled(SIGKILL, coreDumped: false)
        endWithFirstProcess()
        // A main process that is a zombie does not populate the group. Its exit is reported before the run is removed.
        if process == nil, start == nil { waitUntilEmpty() }
    }

    /// Reports the run as empty once its last process has ended, and removes its resources (L47). Does nothing
    /// if it waits already or the run is removed.
    /// - Parameter isEmpty: it is known that no process is left.
    func waitUntilEmpty(isEmpty: Bool = false) {
        guard case .none = end else { return }
        end = .emptying(nil)
        let retry = Retry.until(context.loop) { [weak self] in
            guard let self else { return true }
            guard isEmpty || !self.isPopulated else { return false }
            self.finish()
            return true
        }
        if case .emptying = end { end = .emptying(retry) }
    }

    /// No process of the run is left.
    private func finish() {
        guard case .emptying = end else { return }
        remove()
        send(.process(.emptied))
    }

    /// Removes the run's resources: it is over, or its start failed.
    func remove() {
        if case .removed = end { return }
        end = .removed
        stopWatchingInput(isOver: true)
        gpuWatch = nil
        context.runs.remove(self)
        context.memory.protection.remove(id)
        removeRecord()
        removePendingFiles()
        releaseMainProcess()
        releaseHook()
        relay?.ended()
        relay = nil
        connections.close()
        socket.close()
        // From now on nothing else counts what it has stored.
        context.storage.stored.limitMemory(of: app)
        attempt { try context.storage.inboxes.empty(inbox) }
        context.groups.remove(enclosure)
    }

    // MARK: Failures

    /// Logs a failure of the system and continues: the app's lifecycle does not depend on it.
    func attempt(_ body: () throws -> Void) {
        do { try body() } catch { logWarning("\(error)") }
    }
}

/// What an app has reported of itself, and what was reported of it.
struct RunReports: Defaulted, Hashable {
    /// `STATUS=`
    var statusText: String?
    /// `ERRNO=`
    var errno: Int32?
    /// Why the app cannot be suspended, as a sentence; `nil`: it can, as far as is known.
    var suspendProblem: String?
    /// The last such problem that was logged, until the app is suspended.
    var loggedProblem: String?
    /// The last warning about a notify message or the inbox of the app, as a sentence of at most `maximumWarning` bytes.
    var lastWarning: String?
}

extension RunController: SignalTransportDelegate {
    var signals: LifecycleSignals { manifest.signals }

    var mainProcessStatus: ProcessStatus? {
        process.flatMap { try? ProcFS().status(of: $0.pid) }
    }

    func reception(of number: Int32, _ status: ProcessStatus) -> SignalReception {
        guard let process else { return .notReceived }
        return (try? ProcFS().reception(of: number, by: process.pid, status)) ?? .notReceived
    }

    func warn(aboutSignal sentence: String) { socket.warn(sentence) }

    @discardableResult
    func sendSignal(_ number: Int32) -> Bool {
        guard let process else { return false }
        do {
            return try process.signal(number) == .sent
        } catch {
            logWarning("\(error)")
            return false
        }
    }

    func queueChanged() { persistRecord() }

    func notified(_ notice: Notice, delivered: Bool) {
        let use = notice.isAnswered ? wholeProcessorUse : nil
        if let use { waitedAtNotice = use.waited }
        context.events.batch {
            // One entry of the logbook or none: the next daemon finds the notice sent and the event sent, or neither.
            context.logbook.batch {
                persistRecord()
                if let use { send(.transition(.notified(notice, delivered: delivered, cpu: use.used))) }
            }
        }
        guard isAdopted else { return }
        if notice == .didEnterBackground, delivered {
            // The event above may be queued, so the core may handle it later.
            context.loop.callLater { [weak self] in self?.probeForStop() }
        }
        if notice == .willTerminate, hasStopped { continueStopped() }
    }

    func sendsAgain(_ notice: Notice) {
        context.journal.log(
            .notice, MessageID.recovered, app: app,
            "the previous greenroomd ended while it sent \(EventKind(notice).rawValue): it is sent again, so the app may receive it twice"
        )
    }

    func logWarning(_ sentence: String) { context.journal.logWarning(sentence, app: app) }
}
