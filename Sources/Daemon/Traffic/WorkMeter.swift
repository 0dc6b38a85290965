import Idleness
import LifecycleCore
import Linux
import Manifest
import Posix
import Systemd

/// Measures what runs in the background have to do (L51), one run after the other, in pieces over turns of the loop. Looks that
/// follow each other within 50 ms share the lists of the machine's sockets and processes. While a look waits for a helper
/// thread, others continue.
final class WorkMeter {
    private struct Job {
        let run: RunID
        let app: AppID
        var kind: WorkLookKind
        /// The last freeze before the look: with another one the run was suspended meanwhile.
        var attempt: Int
        /// The run is suspended: only its threads are examined.
        var isFrozen: Bool
    }

    private let loop: EventLoop
    /// A run holds this object while its input is watched.
    private unowned let runs: RunTable
    private let containment: Containment
    private let signalTimers: SignalTimerPoll
    private let tables: SocketTables
    private let clocks = SchedulerClocks()
    private var jobs: [Job] = []
    private var current: (job: Job, look: WorkLook)?
    private lazy var asker = SocketAsker(loop, isSerialized: tables.isSerialized)
    /// Looks that wait for the answer to their question, by app.
    private var waiting: [AppID: (job: Job, look: WorkLook)] = [:]
    /// Those whose question is over.
    private var continuing: [(job: Job, look: WorkLook)] = []
    /// Runs whose questions were not answered in time, as the journal says.
    private var lateRuns: Set<RunID> = []
    private var isMeasuring = false
    /// In process-group mode: a search of /proc, when it began, and whether it is complete.
    private var scan: ProcessScan?
    private var scanBegan = Duration.zero
    private var isScanned = false
    /// What the next daemon needs of frozen runs.
    private var keptRests: [RunID: KeptRests] = [:]
    /// By run. Those of runs that are over are removed.
    private var known: [RunID: WorkBaseline] = [:]
    private var mostKnown = WorkMeter.fewKnown
    private var isFailureLogged = false
    /// When (`EventLoop.now`) /proc/locks may be read again to find programs that wait for locks of an app.
    private var nextSearchForWaiters = Duration.zero

    /// With more runs, those that are over are looked for.
    private static let fewKnown = 64
    /// For how long a search of /proc serves other looks.
    private static let scanValidity = Duration.milliseconds(100)
    /// The shortest time between two readings of /proc/locks for programs that wait for shared locks: the loop waits some 10 ms for
    /// the kernel then. As long as a shared lock keeps an app awake before it is looked at again.
    private static let intervalForWaiters = Duration.seconds(5)

    init(loop: EventLoop, runs: RunTable, containment: Containment, tables: SocketTables = SocketTables()) {
        self.loop = loop
        self.runs = runs
        self.containment = containment
        signalTimers = SignalTimerPoll(loop: loop, runs: runs)
        self.tables = tables
    }

    /// Looks at a run, or at the threads of one that is suspended. `workMeasured` follows, unless the run is suspended, thawed or over
    /// before.
    func measure(_ run: RunController, _ kind: WorkLookKind) {
        // A freeze that is under way is an answer too late.
        guard !run.isFrozen || run.reportedAttempt != nil else { return }
        let job = Job(run: run.id, app: run.app, kind: kind, attempt: run.freezeAttempt, isFrozen: run.isFrozen)
        if let index = jobs.firstIndex(where: { $0.run == run.id }) { jobs[index] = job } else { jobs.append(job) }
        start()
    }

    /// The run is about to be thawed: writes what is left of timeouts that the kernel would begin anew.
    func restoreRests(of run: RunID) {
        keptRests[run] = nil
        guard let rests = known[run]?.takeKeptRests(), !rests.isEmpty else { return }
        let now = loop.now()
        for rest in rests { rest.restore(at: now) }
    }

    /// What the record of a frozen run has; `nil`: the kernel keeps no rest of it.
    func keptRests(of run: RunID) -> KeptRests? { keptRests[run] }

    /// Takes over what the previous daemon has recorded of a run, before the run is recorded again.
    func adopt(_ rests: KeptRests?, of run: RunID) { keptRests[run] = rests }

    /// Takes over a run that the previous daemon has frozen: its rests, if they are of that freeze, and its timers that are due by a
    /// signal, if the core knows of such.
    func recoverFrozen(_ run: RunController, attempt: Int, hasSignalTimers: Bool) {
        if let rests = keptRests[run.id], rests.attempt == attempt {
            known[run.id] = WorkBaseline(keptRests: rests.all)
        } else {
            keptRests[run.id] = nil
        }
        guard hasSignalTimers, run.manifest.policy.keepsTimers else { return }
        let proc = ProcFS()
        let pids = (try? run.enclosure.pids()) ?? []
        signalTimers.add(run, pids.compactMap { (try? SignalTimer(of: $0, proc)) ?? nil })
    }

    /// Timer descriptors that the run uses for ticks, by process: input there does not wake it.
    func ticks(of run: RunID) -> Set<TimerTick> { known[run]?.timerTicks ?? [] }

    /// Whether a search for file locks may read /proc/locks to find programs that wait for a shared one.
    func mayFindWaiters() -> Bool {
        let now = loop.now()
        guard now >= nextSearchForWaiters else { return false }
        nextSearchForWaiters = now + Self.intervalForWaiters
        return true
    }

    private func start() {
        if isMeasuring { return }
        isMeasuring = true
        loop.work.add { [weak self] in self?.step() ?? false }
    }

    /// A TCP socket of a run as the last look has found it.
    func socket(_ inode: UInt64, of run: RunID) -> KnownSocket? { known[run]?.socket(inode) }

    /// - Returns: whether there is more to measure.
    private func step() -> Bool {
        if let (job, look) = current {
            advance(job, look)
        } else if !continuing.isEmpty {
            current = continuing.removeFirst()
        } else if let index = jobs.firstIndex(where: { asker.isFree(for: $0.app) }) {
            if validRun(jobs[index]) == nil {
                jobs.remove(at: index)
            } else if hasProcesses() {
                begin(jobs.remove(at: index))
            }
        } else {
            finish()
            return false
        }
        return true
    }

    /// Returns the run if it has not been suspended or thawed since the look was asked for.
    private func validRun(_ job: Job) -> RunController? {
        guard let run = runs[job.run], run.isFrozen == job.isFrozen, run.freezeAttempt == job.attempt else {
            return nil
        }
        // It may have been continued by another process, and is being frozen again.
        if run.isFrozen, run.reportedAttempt == nil { return nil }
        return run
    }

    /// In process-group mode: searches /proc on, unless a search was just made.
    /// - Returns: whether the processes are known, or each run's are searched for by themselves.
    private func hasProcesses() -> Bool {
        let now = loop.now()
        if isScanned, now - scanBegan <= Self.scanValidity { return true }
        if scan == nil || isScanned {
            guard let made = containment.makeScan() else {
                // With cgroups.
                (scan, isScanned, scanBegan) = (nil, true, now)
                return true
            }
            (scan, isScanned, scanBegan) = (made, false, now)
        }
        do {
            isScanned = try scan?.advance() != true
        } catch {
            (scan, isScanned) = (nil, true)
        }
        // It may have taken longer than it is valid.
        return isScanned
    }

    private func begin(_ job: Job) {
        guard let run = validRun(job) else { return }
        do {
            let members = try run.enclosure.measuredMembers(in: scan)
            switch job.kind {
            case .first: return run.send(.traffic(.workMeasured(resume(job, members))))
            case .brief:
                var work = RunWork(cpu: members.cpu)
                work.isBrief = true
                return run.send(.traffic(.workMeasured(work)))
            case .full, .moment: break
            }
            let look = WorkLook(
                members, at: loop.now(), cgroup: run.enclosure.cgroupID,
                baseline: known[job.run] ?? WorkBaseline(), tables: tables, clocks: clocks, isFrozen: job.isFrozen,
                mayAsk: asker.mayAsk(about: job.app))
            current = (job, look)
        } catch {
            fail(job, error)
        }
    }

    /// The processor time, and what the next look is compared with.
    private func resume(_ job: Job, _ members: Enclosure.Members) -> RunWork {
        RunWork(known[job.run, default: WorkBaseline()].resume(members, at: loop.now()))
    }

    private func advance(_ job: Job, _ look: WorkLook) {
        guard let run = validRun(job) else {
            current = nil
            return
        }
        do {
            if try look.advance(at: loop.now()) { return }
            current = nil
            if let question = look.question { wait(question, look, job) } else { report(run, look, job) }
        } catch {
            current = nil
            fail(job, error)
        }
    }

    private func wait(_ question: SocketQuestion, _ look: WorkLook, _ job: Job) {
        waiting[job.app] = (job, look)
        asker.ask(question, about: job.app) { [weak self] answer in self?.takeAnswer(answer, about: job.app) }
    }

    private func takeAnswer(_ answer: SocketAsker.Answer, about app: AppID) {
        guard let (job, look) = waiting.removeValue(forKey: app) else { return }
        switch answer {
        case .answered(let bytes): look.answered(bytes)
        case .failed: look.giveUp()
        case .late:
            look.giveUp()
            warnOfLock(job)
        }
        continuing.append((job, look))
        start()
    }

    /// Once for each run.
    private func warnOfLock(_ job: Job) {
        guard let run = validRun(job), lateRuns.insert(job.run).inserted else { return }
        run.logWarning(
            "what the app has to do cannot be measured completely: a process has held the lock of a TCP socket for "
                + "\(SocketAsker.timeout.components.seconds)s; if threads of the app wait in ticks, it stays awake until the lock is "
                + "released")
    }

    private func report(_ run: RunController, _ look: WorkLook, _ job: Job) {
        let idleTime = run.manifest.policy.idleTime
        let measurement =
            job.isFrozen
            ? known[run.id, default: WorkBaseline()].judgeFrozen(look.findings, idleTime: idleTime)
            : known[run.id, default: WorkBaseline()].judge(look.findings, idleTime: idleTime)
        if job.isFrozen, run.manifest.policy.keepsTimers { signalTimers.add(run, look.findings.signalTimers) }
        if known.count > mostKnown { removeEnded() }
        if job.isFrozen, let rests = known[run.id]?.keptRests, !rests.isEmpty {
            keptRests[run.id] = KeptRests(attempt: job.attempt, all: rests)
            run.persistRecord()
        }
        var work = RunWork(measurement)
        work.hasSignalTimers = job.isFrozen && !look.findings.signalTimers.isEmpty
        // Until its relay has found this daemon, nothing would thaw it if the daemon died.
        if run.relay?.isConnected == false {
            work.wait = .unwatchedCall
            work.detail = "its 'greenroomctl run' has not found this daemon yet"
        } else if run.relay?.isBusy == true {
            work.wait = .request
        }
        run.send(.traffic(.workMeasured(work)))
    }

    private func removeEnded() {
        known = known.filter { runs[$0.key] != nil }
        mostKnown = 2 * known.count + Self.fewKnown
        lateRuns = lateRuns.filter { runs[$0] != nil }
        keptRests = keptRests.filter { runs[$0.key] != nil }
    }

    /// The app counts as having what it may have.
    private func fail(_ job: Job, _ error: any Error) {
        guard let run = validRun(job) else { return }
        if !isFailureLogged { run.logWarning("what the app has to do cannot be measured: \(error)") }
        isFailureLogged = true
        var work = RunWork(cpu: run.cpu)
        work.wait = .unreadable
        run.send(.traffic(.workMeasured(work)))
    }

    private func finish() {
        isMeasuring = false
        scan = nil
        isScanned = false
        // A look that waits continues with them: it would ask for the same tables again and again.
        if waiting.isEmpty { tables.removeAll() }
    }
}

extension RunWork {
    init(_ measurement: WorkMeasurement) {
        self.init(cpu: measurement.cpu)
        hasNewProcesses = measurement.hasNewProcesses
        unread = measurement.unread
        unsent = measurement.unsent
        connections = measurement.connections
        switch measurement.waits.work {
        case .running, .uninterruptible: isRunnable = true
        case .unwatched: wait = .unwatchedCall
        case .unreadable: wait = .unreadable
        case .shortWait: wait = .short
        case nil: break
        }
        detail = measurement.detail.printable(upTo: Self.maximumDetail)
        tick = measurement.waits.tick
        traffic = measurement.traffic
        due = measurement.waits.due.map { Instant(sinceOrigin: $0) }
        isIncomplete = measurement.isIncomplete
        isOwn = measurement.isOwn
        isBrief = measurement.isBrief
    }
}
