import LifecycleCore
import Linux
import Posix
import Systemd

/// Measures suspended apps exactly where their processes share memory, on a helper thread. The kernel walks the page tables
/// for it: 15 to 26 µs for each resident MiB of each process. What is found is valid until the app runs again.
final class FootprintMeter {
    private struct Job {
        let run: RunID
        let attempt: Int
        /// Those that are still to be submitted.
        var processes: ArraySlice<Int32>
        var bytes: UInt64
        /// Submitted, not collected.
        var pending = 0
        /// The daemon may not read a process: the app keeps its estimate.
        var isRefused = false
    }

    private unowned let context: DaemonContext
    private let thread = try? HelperThread(name: "footprint", reportsCompletions: true)
    private var source: EventSource?
    /// The first one is being measured.
    private var jobs: [Job] = []

    /// The apps that wait to be measured. A further one keeps its estimate.
    private static let mostJobs = 1000
    /// A process that ends while it is measured counts as 0 bytes.
    private static let mostProcesses = 1000
    /// An app is measured if its estimate may be wrong by more than this many bytes and by more than a tenth.
    private static let tolerance: UInt64 = 8 << 20

    init(_ context: DaemonContext) { self.context = context }

    /// Measures a frozen app, unless the estimate is good enough. `footprintMeasured` follows.
    func measure(_ run: RunID, attempt: Int, after estimate: FootprintMeasurement) {
        guard estimate.uncertainty > max(Self.tolerance, estimate.footprint.bytes / 10), let thread,
            jobs.count < Self.mostJobs, estimate.processes.count <= Self.mostProcesses
        else { return }
        if source == nil, let completions = thread.completions {
            source = try? context.loop.addDescriptor(completions, events: .readable) { [weak self] _ in self?.collect()
            }
        }
        jobs.append(Job(run: run, attempt: attempt, processes: estimate.processes[...], bytes: estimate.kernelBytes))
        if jobs.count == 1 { advance() }
    }

    private func collect() {
        for completion in (try? thread?.collect()) ?? [] {
            guard !jobs.isEmpty else { return }
            jobs[0].pending -= 1
            jobs[0].bytes &+= completion.bytes
        }
        advance()
    }

    /// Submits processes of the first app, as many as the thread takes, and continues with the next app when all are measured.
    private func advance() {
        while var job = jobs.first {
            // Awake again or gone: the rest would measure something else.
            if !isValid(job) { job.processes = [] }
            while let pid = job.processes.first, submit(pid, &job) { job.processes.removeFirst() }
            if job.isRefused { job.processes = [] }
            jobs[0] = job
            if job.pending > 0 || !job.processes.isEmpty { return }
            jobs.removeFirst()
            if isValid(job), !job.isRefused {
                context.events.send(.run(job.run, .footprintMeasured(attempt: job.attempt, memory: job.bytes)))
            }
        }
    }

    /// - Returns: false if the thread takes no more now.
    private func submit(_ pid: Int32, _ job: inout Job) -> Bool {
        guard let thread, !job.isRefused, job.pending < HelperThread.capacity else { return false }
        do {
            guard try thread.measureMemory(of: try ProcFS().openMemoryRollup(of: pid), token: 0) else { return false }
            job.pending += 1
        } catch {
            job.isRefused = job.isRefused || !error.meansGone
        }
        return true
    }

    private func isValid(_ job: Job) -> Bool { context.runs[job.run]?.isFrozen ?? false }
}
