import LifecycleCore
import Linux
import Manifest
import Posix
import Systemd

/// Recovers the running apps of the previous daemon: their groups by name, their main processes by pidfd or by pid and
/// start time, their notify sockets by descriptor or by path.
final class Recovery {
    private let recovered: RecoveredState
    private let driver: CoreDriver
    private let context: DaemonContext
    private let descriptors: RecoveredDescriptors
    /// Runs of which no notify message is lost.
    private var keptMessages: Set<RunID> = []
    /// Runs that were recovered, and not started by this daemon.
    private var reattached: Set<RunID> = []

    init(
        _ recovered: RecoveredState, driver: CoreDriver, context: DaemonContext, descriptors: RecoveredDescriptors
    ) {
        self.recovered = recovered
        self.driver = driver
        self.context = context
        self.descriptors = descriptors
    }

    /// Recovers all runs, before the daemon does anything else for apps.
    /// - Returns: how many runs were found.
    func run() -> Int {
        // The record was written before the event that created the run was handled. That event will create it again.
        let known = Set(driver.core.runIDs)
        for name in recovered.records.keys {
            if let run = RunRecord.run(named: name), !known.contains(run) { context.logbook.removeRecord(name) }
        }
        for id in driver.core.runIDs { reattach(id) }
        context.stored.restore(recovered.records, descriptors)
        driver.resume(recovered)
        let delayed = sendDelayedNotices()
        driver.send(.recovered)
        for id in driver.core.runIDs where context.runs[id] != nil {
            let event = RunEvent.reattached(
                messagesKept: keptMessages.contains(id), noticesDelayed: delayed.contains(id))
            driver.send(.run(id, event))
        }
        for id in driver.core.runIDs { checkProcesses(of: id) }
        return reattached.count
    }

    /// Sends the notices that the previous daemon had decided on and not sent.
    /// - Returns: the runs that receive a notice only now, or that are started only now.
    private func sendDelayedNotices() -> Set<RunID> {
        var delayed: Set<RunID> = []
        for run in context.runs.all {
            if !reattached.contains(run.id) || run.transport.isUsed { delayed.insert(run.id) }
            run.transport.resume()
        }
        return delayed
    }

    // MARK: Reattaching

    private func reattach(_ id: RunID) {
        guard let bytes = recovered.records[RunRecord.name(id)], let app = driver.core.app(of: id) else { return }
        do {
            let record = try RunRecord(reading: bytes)
            guard
                let enclosure = try context.containment.reopen(
                    app: app.name, run: id.number, environmentMarker: record.marker)
            else { return }
            if record.pid == nil, try !wasUsed(enclosure) {
                _ = try enclosure.remove()
                return
            }
            try reattach(id, app, record, enclosure)
        } catch {
            context.journal.logWarning("\(error)", app: app)
        }
    }

    /// Whether a process was ever started in a group. Without one it has used no processor time.
    private func wasUsed(_ enclosure: Enclosure) throws -> Bool {
        if try enclosure.isPopulated() { return true }
        return try enclosure.cpuTime() > .zero
    }

    private func reattach(_ id: RunID, _ app: AppID, _ record: RunRecord, _ enclosure: Enclosure) throws {
        let descriptor = descriptors.take(RecoveredDescriptors.notifySocket(id))
        let hasSocket = descriptor != nil
        if hasSocket, recovered.reading != id, !recovered.lacksEvents { keptMessages.insert(id) }
        let isStored = hasSocket && descriptors.contains(RecoveredDescriptors.process(id))
        let socket = try NotifySocket(
            loop: context.loop, run: id, path: context.folders.notifySockets + "/\(id)", owner: record.owner,
            recovered: descriptor, logbook: context.logbook)
        let run = RunController(
            id: id, manifest: context.manifests[app] ?? AppManifest(id: app), enclosure: enclosure, socket: socket,
            owner: record.owner, notices: record.notices, context: context)
        context.runs.insert(run)
        run.restore(record, process: try mainProcess(id, record, enclosure))
        run.restoreFrozen(driver.core.isSuspended(id), mayDiffer: recovered.lacksEvents)
        // The descriptor store does not contain them.
        if !isStored { run.storeDescriptors() }
        reattached.insert(id)
    }

    private func mainProcess(_ id: RunID, _ record: RunRecord, _ enclosure: Enclosure) throws -> Linux.Process? {
        guard let pid = record.pid else { return try firstProcess(enclosure) }
        if let descriptor = descriptors.take(RecoveredDescriptors.process(id)) {
            return Linux.Process(pid: pid, pidfd: descriptor)
        }
        guard let process = try Linux.Process.open(pid), let stat = try ProcFS().stat(of: pid),
            stat.startTime == record.startTime
        else { return nil }
        return process
    }

    /// The main process of a run whose daemon died after it started the process and before it recorded the pid: the
    /// process that started first.
    private func firstProcess(_ enclosure: Enclosure) throws -> Linux.Process? {
        let stats = try enclosure.pids().compactMap { try ProcFS().stat(of: $0) }
        guard let first = stats.min(by: { ($0.startTime, $0.pid) < ($1.startTime, $1.pid) }) else { return nil }
        return try Linux.Process.open(first.pid)
    }

    // MARK: Changes since the previous daemon

    /// Reports what the kernel would have reported to the previous daemon.
    private func checkProcesses(of id: RunID) {
        guard let run = context.runs[id] else {
            // Its group does not exist either. If its end was already reported, the core ignores this event.
            driver.send(.run(id, .exited(.unknown, cpu: .zero, memory: 0)))
            return driver.send(.run(id, .emptied))
        }
        if let pid = run.mainPID, driver.core.pid(of: id) == nil { run.send(.spawned(pid: pid)) }
        // Messages that the app sent before it ended, or before a deadline, still count.
        run.socket.drain()
        if run.starting != nil { return }
        if run.process != nil { return run.watchRecoveredProcess() }
        if !driver.core.hasExited(id) { run.send(.exited(.unknown, cpu: run.cpu, memory: 0)) }
        run.waitUntilEmpty()
    }
}

extension RunController {
    /// Takes over what the previous daemon recorded of the run.
    /// - Parameter process: the main process; `nil`: it has ended.
    func restore(_ record: RunRecord, process: Linux.Process?) {
        statusText = record.statusText
        errno = record.errno
        mainPID = record.pid
        startTime = record.startTime
        if let process {
            self.process = process
            mainPID = process.pid
            startTime = (try? ProcFS().stat(of: process.pid))?.startTime ?? record.startTime
            attempt { try enclosure.started(process) }
            context.runs.insertMainProcess(process.pid, of: id)
            transport.findPendingSignal()
        }
        persistRecord()
    }
}
