import LifecycleCore
import Linux
import LoopPolicy
import Posix
import Systemd

/// Measures apps exactly on a helper thread, one after the other: suspended apps after the freeze, and the apps that the core asks
/// for (`RunMemoryEffect.measureSize`). There are up to three steps, each for all processes of the app:
///
/// 1. what the processes have in memory and in swap, where they share memory: the kernel walks the page tables for it, 15 to
///    26 µs for each resident MiB of each process;
/// 2. files in memory that only they hold, such as memfds;
/// 3. which of these files are mapped: step 1, or the estimate, has counted those.
///
/// What is found of a suspended app is valid until it runs again.
final class FootprintMeter {
    fileprivate struct Job {
        enum Step { case memory, files, mapped }

        let run: RunID
        /// The freeze that it follows; `nil`: only the core asked for it.
        let attempt: Int?
        /// The core waits for it, whether the app is frozen or not.
        var isRequested: Bool
        /// Another number for each job.
        let token: UInt64
        let estimate: FootprintMeasurement
        var step: Step
        /// Those that are still to be submitted in this step.
        var processes: ArraySlice<Int32>
        /// Submitted, not collected.
        var pending = 0
        /// In bytes; `shared` is a part of `memory`.
        var memory: UInt64 = 0
        var shared: UInt64 = 0
        var files: UInt64 = 0
        /// The daemon may not read a process: the app keeps its estimate.
        var isRefused = false
        let isMemoryMeasured: Bool
    }

    private let loop: EventLoop
    private let runs: RunTable
    private unowned let events: any EventSink
    private lazy var thread = try? HelperThread(name: "footprint", .reports)
    private var source: EventSource?
    /// The first one is being measured.
    private var jobs: [Job] = []
    private var lastToken: UInt64 = 0

    /// The apps that wait to be measured. A further one keeps its estimate.
    private static let mostJobs = 1000
    /// A process that ends while it is measured counts as 0 bytes.
    private static let mostProcesses = 1000

    init(loop: EventLoop, runs: RunTable, events: any EventSink) {
        (self.loop, self.runs, self.events) = (loop, runs, events)
    }

    /// Measures a frozen app. `footprintMeasured` follows, unless the estimate is good enough.
    func measure(_ run: RunID, attempt: Int, after estimate: FootprintMeasurement) {
        guard thread != nil, jobs.count < Self.mostJobs, 1...Self.mostProcesses ~= estimate.processes.count else {
            return
        }
        // The core knows that exact size as well.
        if jobs.contains(where: { $0.run == run && $0.isRequested }) { return }
        let isUncertain = estimate.uncertainty > SizeRecord.tolerance(of: estimate.footprint.bytes)
        // All shared memory of a group with a controller is in its estimate, so there is nothing to be found but what is too much.
        if estimate.isCounted, !isUncertain { return }
        lastToken += 1
        add(
            Job(
                run: run, attempt: attempt, isRequested: false, token: lastToken, estimate: estimate,
                step: isUncertain ? .memory : .files, processes: estimate.processes[...],
                isMemoryMeasured: isUncertain))
    }

    /// Measures an app that the core asks for. `sizeMeasured` follows.
    func measure(_ run: RunID) {
        if let index = jobs.firstIndex(where: { $0.run == run && $0.isMemoryMeasured }) {
            return jobs[index].isRequested = true
        }
        guard let controller = runs[run] else { return }
        // A group that cannot be read counts as removed.
        guard let estimate = controller.measureMemory(in: nil) else {
            return controller.send(.memory(.sizeMeasured(bytes: 0, estimate: 0)))
        }
        lastToken += 1
        let job = Job(
            run: run, attempt: nil, isRequested: true, token: lastToken, estimate: estimate, step: .memory,
            processes: estimate.processes.prefix(Self.mostProcesses), isMemoryMeasured: true)
        if thread == nil { report(job) } else { add(job) }
    }

    private func add(_ job: Job) {
        if source == nil, let completions = thread?.completions {
            source = try? loop.addDescriptor(completions, events: .readable, kind: .helperAnswer) {
                [weak self] _ in TurnResult(self?.collect() ?? true)
            }
        }
        jobs.append(job)
        if jobs.count == 1 { advance() }
    }

    /// - Returns: whether the thread has answered.
    private func collect() -> Bool {
        let completions = (try? thread?.collect()) ?? []
        for completion in completions {
            guard !jobs.isEmpty else { break }
            jobs[0].pending -= 1
            guard completion.errno == 0 else {
                // Gone, or the daemon may not look into it.
                if !SystemError(call: "read", errno: completion.errno).meansGone { jobs[0].refuse() }
                continue
            }
            switch jobs[0].step {
            case .memory:
                jobs[0].memory &+= completion.bytes
                jobs[0].shared &+= completion.shared
            case .files: jobs[0].files &+= completion.bytes
            case .mapped: jobs[0].files -= min(jobs[0].files, completion.bytes)
            }
        }
        advance()
        return !completions.isEmpty
    }

    /// Submits processes of the first app, as many as the thread takes; then its next step, then the next app.
    private func advance() {
        while var job = jobs.first {
            // Awake again or gone: the rest would measure something else.
            let isValid = runs[job.run].map { job.isRequested || $0.isFrozen } ?? false
            if !isValid { job.processes = [] }
            while let pid = job.processes.first, submit(pid, &job) { job.processes.removeFirst() }
            jobs[0] = job
            if job.pending > 0 || !job.processes.isEmpty { return }
            if isValid {
                if !job.isRefused, let next = job.nextStep {
                    jobs[0].step = next
                    jobs[0].processes = job.estimate.processes.prefix(Self.mostProcesses)
                    continue
                }
                report(job)
            }
            jobs.removeFirst()
        }
    }

    private func report(_ job: Job) {
        if job.isRequested {
            let measured = RunEvent.memory(.sizeMeasured(bytes: job.leastBytes, estimate: job.estimate.footprint.bytes))
            return events.send(.run(job.run, measured))
        }
        guard !job.isRefused, job.isMemoryMeasured || job.files > 0, let attempt = job.attempt else { return }
        events.send(.run(job.run, .suspension(.footprintMeasured(attempt: attempt, memory: job.bytes))))
    }

    /// - Returns: false if the thread takes no more now.
    private func submit(_ pid: Int32, _ job: inout Job) -> Bool {
        guard let thread, !job.isRefused, job.pending < HelperThread.capacity else { return false }
        do {
            let folder = try ProcFS().openFolder(of: pid)
            guard try thread.measure(job.measurement, of: folder, token: job.token) else { return false }
            job.pending += 1
        } catch {
            if !error.meansGone { job.refuse() }
        }
        return true
    }
}

extension FootprintMeter.Job {
    /// The sum would lack a process.
    fileprivate mutating func refuse() {
        isRefused = true
        processes = []
    }

    fileprivate var measurement: HelperThread.Measurement {
        switch step {
        case .memory: .memory
        case .files: .files
        case .mapped: .mappedFiles
        }
    }

    fileprivate var nextStep: Step? {
        switch step {
        case .memory: .files
        case .files: files > 0 ? .mapped : nil
        case .mapped: nil
        }
    }

    /// What is given back at least when the processes end: that is what was measured, unless a process was not examined.
    fileprivate var leastBytes: UInt64 {
        max(estimate.footprint.bytes - min(estimate.footprint.bytes, estimate.uncertainty), bytes)
    }

    /// What is given back when the processes end.
    fileprivate var bytes: UInt64 {
        let estimated = estimate.footprint
        if estimate.isCounted {
            // The controller also counts files that the app has written in a tmpfs and that survive it.
            return estimated.bytes - estimated.shared + min(estimated.shared, shared &+ files)
        }
        return isMemoryMeasured ? memory &+ files &+ estimate.kernelBytes : estimated.bytes &+ files
    }
}
