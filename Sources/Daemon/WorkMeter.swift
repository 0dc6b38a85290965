import LifecycleCore
import Linux
import Manifest
import Systemd

/// Measures what runs in the background have to do (L51), one run after the other, in pieces over turns of the loop. Looks that
/// follow each other within 50 ms share the lists of the machine's sockets and processes. While a look waits for a helper
/// thread, others continue.
final class WorkMeter {
    private struct Job {
        let run: RunID
        let app: AppID
        var isFirst: Bool
        /// The last freeze before the look: with another one the run was suspended meanwhile.
        var attempt: Int
        /// The run is suspended: only its sockets are examined.
        var isFrozen: Bool
    }

    private unowned let context: DaemonContext
    private let tables: SocketTables
    private var jobs: [Job] = []
    private var current: (job: Job, look: WorkLook)?
    private lazy var asker = SocketAsker(context.loop, isSerialized: tables.isSerialized)
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
    /// What the looks at a run have found.
    private struct Known {
        var baseline = WorkBaseline()
        /// The last freeze before the last look, and whether that look was at the frozen run.
        var attempt = 0
        var wasFrozen = false

        func isThawedSince(_ job: Job) -> Bool { !job.isFrozen && (wasFrozen || attempt != job.attempt) }
    }
    /// By run. Those of runs that are over are removed.
    private var known: [RunID: Known] = [:]
    private var mostKnown = WorkMeter.fewKnown
    private var isFailureLogged = false

    /// With more runs, those that are over are looked for.
    private static let fewKnown = 64
    /// For how long a search of /proc serves other looks.
    private static let scanValidity = Duration.milliseconds(100)

    init(_ context: DaemonContext, tables: SocketTables = SocketTables()) {
        self.context = context
        self.tables = tables
    }

    /// Looks at a run, or at the sockets of one that is suspended. `workMeasured` follows, unless the run is
    /// suspended, thawed or
    /// over before.
    /// - Parameter isFirst: to compare the next look with.
    func measure(_ run: RunController, isFirst: Bool) {
        // A freeze that is under way is an answer too late.
        guard !run.isFrozen || run.reportedAttempt != nil else { return }
        let attempt = run.freezeAttempt
        if let index = jobs.firstIndex(where: { $0.run == run.id }) {
            jobs[index].isFirst = isFirst || (jobs[index].isFirst && jobs[index].attempt == attempt)
            jobs[index].attempt = attempt
            jobs[index].isFrozen = run.isFrozen
        } else {
            jobs.append(
                Job(run: run.id, app: run.app, isFirst: isFirst, attempt: attempt, isFrozen: run.isFrozen))
        }
        start()
    }

    private func start() {
        if isMeasuring { return }
        isMeasuring = true
        context.loop.work.add { [weak self] in self?.step() ?? false }
    }

    /// A TCP socket of a run as the last look has found it.
    func socket(_ inode: UInt64, of run: RunID) -> KnownSocket? { known[run]?.baseline.socket(inode) }

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
        guard let run = context.runs[job.run], run.isFrozen == job.isFrozen, run.freezeAttempt == job.attempt else {
            return nil
        }
        // It may have been continued by another process, and is being frozen again.
        if run.isFrozen, run.reportedAttempt == nil { return nil }
        return run
    }

    /// In process-group mode: searches /proc on, unless a search was just made.
    /// - Returns: whether the processes are known, or each run's are searched for by themselves.
    private func hasProcesses() -> Bool {
        let now = context.loop.now()
        if isScanned, now - scanBegan <= Self.scanValidity { return true }
        if scan == nil || isScanned {
            guard let made = context.containment.makeScan() else {
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
            if job.isFirst, let work = resume(job, members) { return run.send(.workMeasured(work)) }
            let look = WorkLook(
                members, at: context.loop.now(), cgroup: run.enclosure.cgroupID,
                baseline: known[job.run]?.baseline ?? WorkBaseline(), tables: tables, isFrozen: job.isFrozen,
                mayAsk: asker.mayAsk(about: job.app))
            current = (job, look)
        } catch {
            fail(job, error)
        }
    }

    /// Instead of the first look after a thaw; `nil`: the run has not been looked at before it was frozen.
    private func resume(_ job: Job, _ members: Enclosure.Members) -> RunWork? {
        guard var known = known[job.run], known.isThawedSince(job) else { return nil }
        let measurement = known.baseline.resume(members, at: context.loop.now())
        (known.attempt, known.wasFrozen) = (job.attempt, false)
        self.known[job.run] = known
        return RunWork(measurement)
    }

    private func advance(_ job: Job, _ look: WorkLook) {
        guard let run = validRun(job) else {
            current = nil
            return
        }
        do {
            if try look.advance(at: context.loop.now()) { return }
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
                + "\(SocketAsker.timeout.components.seconds)s; until it is released, requests may be missed, so the app "
                + "counts as having one for RequestSec=")
    }

    private func report(_ run: RunController, _ look: WorkLook, _ job: Job) {
        let policy = run.manifest.policy
        let limits = IdleLimits(processorShare: policy.idleProcessorShare, requestTime: policy.requestTime)
        var known = known[run.id] ?? Known()
        let measurement =
            job.isFrozen
            ? known.baseline.judgeFrozen(look.findings)
            : known.baseline.judge(look.findings, isFirst: job.isFirst, limits)
        (known.attempt, known.wasFrozen) = (job.attempt, job.isFrozen)
        self.known[run.id] = known
        if self.known.count > mostKnown { removeEnded() }
        run.send(.workMeasured(RunWork(measurement)))
    }

    private func removeEnded() {
        known = known.filter { context.runs[$0.key] != nil }
        mostKnown = 2 * known.count + Self.fewKnown
        lateRuns = lateRuns.filter { context.runs[$0] != nil }
    }

    /// The app counts as having what it may have.
    private func fail(_ job: Job, _ error: any Error) {
        guard let run = validRun(job) else { return }
        if !isFailureLogged { run.logWarning("what the app has to do cannot be measured: \(error)") }
        isFailureLogged = true
        var work = RunWork(cpu: run.cpu)
        work.isIncomplete = true
        run.send(.workMeasured(work))
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
        isRunnable = measurement.isRunnable
        hasNewProcesses = measurement.hasNewProcesses
        unread = measurement.unread
        unsent = measurement.unsent
        requests = measurement.requests
        newestRequest = measurement.newestRequest
        connections = measurement.connections
        hasUnusualWait = measurement.hasUnusualWait
        shortestWait = measurement.shortestWait
        isIncomplete = measurement.isIncomplete
        isOwn = measurement.isOwn
        isBrief = measurement.isBrief
    }
}
