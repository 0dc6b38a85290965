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
    private var search: EnclosureSearch?
    /// What could not be written to the inboxes.
    private let pendingFiles: [RunID: PendingFiles]
    private let connections: [RunID: ConnectionRecords.Recovered]
    /// Freezes that were complete when the previous daemon died, by events that its core has not handled.
    private let unhandledFreezes: [RunID: Int]

    init(
        _ recovered: RecoveredState, driver: CoreDriver, context: DaemonContext, descriptors: RecoveredDescriptors
    ) {
        self.recovered = recovered
        self.driver = driver
        self.context = context
        self.descriptors = descriptors
        pendingFiles = PendingFiles.all(in: recovered.records)
        connections = ConnectionRecords.all(in: recovered.records)
        unhandledFreezes = recovered.events.reduce(into: [:]) { freezes, recorded in
            guard case .run(let id, .suspension(.frozen(let attempt, memory: _, uncertainty: _))) = recorded.event
            else { return }
            freezes[id] = attempt
        }
    }

    /// Recovers all runs in pieces, before the daemon does anything else for apps. Until then no message of an app is read
    /// and no deadline counts. If the daemon dies in between, the next one begins anew: each piece can be repeated.
    /// - Parameter completion: gets how many runs were found.
    func run(_ completion: @escaping (Int) -> Void) {
        // The record was written before the event that created the run was handled. That event will create it again.
        let known = Set(driver.core.runIDs)
        for name in recovered.records.keys {
            let run =
                RunRecord.run(named: name) ?? PendingFiles.run(named: name) ?? ConnectionRecords.run(named: name)
            if let run, !known.contains(run) { context.logbook.removeRecord(name) }
        }
        findEnclosures {
            self.work.add(each: self.driver.core.runIDs, self.reattach) {
                self.context.wakes.sockets.restore(
                    self.recovered.records, self.descriptors, runs: self.context.runs.all
                ) { self.restoreDescriptors(completion) }
            }
        }
    }

    private var work: WorkQueue { context.loop.work }

    /// Lists the groups, or searches /proc, once for all runs. If that fails, each run fails with its own warning.
    private func findEnclosures(_ completion: @escaping () -> Void) {
        search = try? context.containment.beginSearch()
        work.add {
            if (try? self.search?.advance()) ?? false { return true }
            completion()
            return false
        }
    }

    private func restoreDescriptors(_ completion: @escaping (Int) -> Void) {
        let (records, closer) = (recovered.records, DescriptorCloser())
        work.add(each: StoredDescriptors.serials(records)) {
            self.context.storage.stored.restore($0, records, self.descriptors, closer)
        } completion: {
            self.context.storage.stored.endRestore()
            self.driver.resume(self.recovered)
            // The driver does what is left in pieces of its own.
            self.work.add {
                if !self.driver.isIdle { return true }
                self.sendDelayedNotices(completion)
                return false
            }
        }
    }

    /// Sends the notices that the previous daemon had decided on and not sent.
    private func sendDelayedNotices(_ completion: @escaping (Int) -> Void) {
        /// The runs that receive a notice only now, or that are started only now.
        var delayed: Set<RunID> = []
        work.add(each: context.runs.all) { run in
            let isDelayed = run.transport.isUsed || run.connections.hasWaitingNotices
            if !self.reattached.contains(run.id) || isDelayed { delayed.insert(run.id) }
            run.transport.resume()
        } completion: {
            self.driver.send(.recovered)
            self.work.add(each: self.driver.core.runIDs) { id in
                guard self.context.runs[id] != nil else { return }
                let event = RunEvent.process(
                    .reattached(
                        messagesKept: self.keptMessages.contains(id), noticesDelayed: delayed.contains(id)))
                self.driver.send(.run(id, event))
            } completion: {
                self.work.add(each: self.driver.core.runIDs, self.checkProcesses) {
                    self.driver.endRecovery()
                    completion(self.reattached.count)
                }
            }
        }
    }

    // MARK: Reattaching

    private func reattach(_ id: RunID) {
        guard let app = driver.core.app(of: id) else { return }
        do {
            let record = readRecord(id, app)
            guard
                let enclosure = try context.containment.reopen(
                    app: app.name, run: id.number, environmentMarker: record?.marker, in: search)
            else { return }
            if record?.pid == nil, try !(record == nil ? enclosure.isPopulated() : wasUsed(enclosure)) {
                _ = try enclosure.remove()
                return
            }
            try reattach(id, app, try record ?? makeRecord(id, app, enclosure), enclosure)
        } catch {
            context.journal.logWarning("\(error)", app: app)
        }
    }

    /// - Returns: `nil` if the record is missing or cannot be read. The run's processes are found by their group then.
    private func readRecord(_ id: RunID, _ app: AppID) -> RunRecord? {
        guard let bytes = recovered.records[RunRecord.name(id)] else { return nil }
        do {
            return try RunRecord(reading: bytes)
        } catch {
            context.journal.logWarning(
                "the record of its run cannot be read: \(error); its processes are found by their group", app: app)
            return nil
        }
    }

    /// What a lost record of a run contained, as far as the system shows it. The status text and waiting notices are lost.
    private func makeRecord(_ id: RunID, _ app: AppID, _ enclosure: Enclosure) throws -> RunRecord {
        var record = RunRecord(app: app)
        record.marker = enclosure.environmentMarker
        record.owner = fileOwner(at: context.notifySockets.path(of: id))
        // Without the core's pid, the main process is the one that started first.
        if let pid = driver.core.pid(of: id), try enclosure.contains(pid), let stat = try ProcFS().stat(of: pid) {
            record.pid = pid
            record.startTime = stat.startTime
        } else {
            // A stored pidfd cannot be matched with a pid.
            _ = descriptors.take(RecoveredDescriptors.process(id))
            context.store.remove(RecoveredDescriptors.process(id))
        }
        return record
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
            id, in: context.notifySockets, owner: record.owner, recovered: descriptor, isReading: false)
        let run = RunController(
            id: id, manifest: context.manifests[app] ?? SharedManifest(AppManifest(id: app)), enclosure: enclosure,
            socket: socket, owner: record.owner, notices: record.notices,
            inbox: Inbox(of: app, in: context.storage.inboxes, owner: record.owner, name: record.inbox),
            context: context)
        context.runs.insert(run)
        context.background.work.adopt(record.rests, of: id)
        run.restore(record, process: try mainProcess(id, record, enclosure))
        if let pending = pendingFiles[id] { run.restorePending(pending) }
        run.restoreConnections(connections[id], descriptors.take(RecoveredDescriptors.connectionSocket(id)))
        let attempt = completedFreeze(of: id)
        run.restoreFrozen(attempt, mayDiffer: recovered.lacksEvents)
        if let attempt {
            context.background.work.recoverFrozen(
                run, attempt: attempt, hasSignalTimers: driver.core.hasSignalTimers(id))
        }
        // The descriptor store does not contain them.
        if !isStored { run.storeDescriptors() }
        reattached.insert(id)
    }

    /// The freeze of a run that is complete. The core may learn it only when it handles the events that the previous daemon recorded
    /// last: by then the run has to know, or nothing watches its input.
    private func completedFreeze(of id: RunID) -> Int? {
        if let attempt = driver.core.freezeAttempt(ofSuspended: id) { return attempt }
        return unhandledFreezes[id].flatMap { driver.core.isSuspending(id, attempt: $0) ? $0 : nil }
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
            driver.send(.run(id, .process(.exited(.unknown, cpu: .zero, memory: 0))))
            return driver.send(.run(id, .process(.emptied)))
        }
        if let pid = run.mainPID {
            switch driver.core.pid(of: id) {
            case nil: run.send(.process(.spawned(pid: pid)))
            case pid?: break
            // The previous daemon had recorded the new main process, and not the event, or the event is lost.
            case _?: run.send(.process(.mainProcessChanged(pid: pid)))
            }
        }
        // Messages that the app sent before it ended, or before a deadline, still count.
        run.socket.drain()
        run.socket.beginReading()
        run.connections.beginServing()
        run.restoreHook(driver.core.runningHook(of: id))
        if run.start != nil { return }
        if run.process != nil {
            run.checkFrozen()
            run.watchRecoveredProcess()
            run.relay?.recovered()
            return
        }
        if driver.core.hasExited(id) { run.waitUntilEmpty() } else { run.exited(.unknown, cpu: run.cpu) }
    }
}

extension RunController {
    /// Takes over what the previous daemon recorded of the run.
    /// - Parameter process: the main process; `nil`: it has ended.
    func restore(_ record: RunRecord, process: Linux.Process?) {
        reports.statusText = record.statusText
        reports.errno = record.errno
        if let start = record.outputStart { context.storage.output.restore(id, of: app, start) }
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
        if let hook = record.hook { adoptHook(hook) }
        if let relay = record.relay { self.relay = RelayLink(relay, nil, of: self) }
        findEventFiles()
        persistRecord()
    }
}
