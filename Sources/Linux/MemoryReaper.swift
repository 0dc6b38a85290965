import CLinux
import Glibc

/// Work on memory that would hold its caller for as long as the memory is large (58 ms for 1 GiB): done one by one on
/// the process's only helper thread, which starts with the first job.
package final class MemoryReaper {
    package enum Job: Int32 {
        /// The memory of a killed process was freed (process_mrelease(2)).
        case release = 1
        /// An enclosure's memory was pushed out (memory.reclaim).
        case reclaim
        /// A process's private memory was advised to go to swap (process_madvise(2), MADV_PAGEOUT).
        case pageOut
    }

    package enum Outcome: Equatable {
        case done
        /// The process or group had gone by itself.
        case alreadyGone
        /// Less could be reclaimed than was asked for.
        case partly
        /// EINVAL: not killed yet; ENOSYS: a kernel before 5.15.
        case failed(SystemError)
    }

    package struct Completion: Equatable {
        package var token: UInt64
        package var job: Job
        package var outcome: Outcome
        package var elapsed: Duration
    }

    /// More than so many jobs at a time are refused.
    package static let capacity = Int(clinux_worker_capacity)

    private let worker: OpaquePointer
    /// Readable when a job is done.
    package let descriptor: Int32

    package init() throws(SystemError) {
        var worker: OpaquePointer?
        var descriptor: Int32 = -1
        try check(clinux_worker_create(&worker, &descriptor), "pipe2")
        guard let worker else { throw SystemError(call: "pipe2", errno: ENOMEM) }
        self.worker = worker
        self.descriptor = descriptor
    }

    deinit { clinux_worker_release(worker) }

    /// Frees the memory of a process that was sent SIGKILL, ahead of its own dying.
    /// - Returns: false when too many jobs wait: then the process frees it by itself, a little later.
    package func release(_ process: Process, token: UInt64) throws(SystemError) -> Bool {
        try submit(.release, process.duplicateDescriptor(), token)
    }

    /// Pushes out up to so many bytes of an enclosure; false also where there is no memory controller (or a kernel
    /// before 5.19).
    package func reclaim(_ enclosure: Enclosure, bytes: UInt64, token: UInt64) throws(SystemError) -> Bool {
        guard case .cgroup(let leaf) = enclosure.kind, leaf.has("memory.reclaim") else { return false }
        let file: Descriptor
        do {
            file = try Descriptor.open("memory.reclaim", O_WRONLY, in: leaf.folder.raw)
        } catch {
            if error.meansGone { return false }
            throw error
        }
        return try submit(.reclaim, file, token, amount: bytes)
    }

    /// Advises the kernel to page a process out, where nothing better is at hand. Needs swap to do anything, and
    /// CAP_SYS_NICE with ptrace's rights.
    package func pageOut(_ process: Process, token: UInt64) throws(SystemError) -> Bool {
        try submit(.pageOut, process.duplicateDescriptor(), token, pid: process.pid)
    }

    private func submit(
        _ job: Job, _ descriptor: consuming Descriptor, _ token: UInt64, amount: UInt64 = 0, pid: Int32 = 0
    ) throws(SystemError) -> Bool {
        var request = clinux_job(
            token: token, kind: job.rawValue, descriptor: descriptor.raw, amount: amount, pid: pid)
        let result = clinux_worker_submit(worker, &request)
        if result == -EAGAIN { return false }
        try check(result, "pthread_create")
        _ = descriptor.take()
        return true
    }

    /// All that are done by now.
    package func completions() throws(SystemError) -> [Completion] {
        var completions: [Completion] = []
        var next = clinux_completion()
        while completions.count < Self.capacity, try check(clinux_worker_collect(worker, &next), "read") == 1 {
            guard let job = Job(rawValue: next.kind) else { continue }
            completions.append(
                Completion(
                    token: next.token, job: job, outcome: Self.outcome(job, next.result),
                    elapsed: .microseconds(Int64(clamping: next.elapsed_microseconds))))
        }
        return completions
    }

    private static func outcome(_ job: Job, _ result: Int32) -> Outcome {
        if result == 0 { return .done }
        let error = SystemError(call: job.call, errno: -result)
        if error.meansGone { return .alreadyGone }
        return job == .reclaim && error.errno == EAGAIN ? .partly : .failed(error)
    }
}

extension MemoryReaper.Job {
    fileprivate var call: String {
        switch self {
        case .release: "process_mrelease"
        case .reclaim: "write memory.reclaim"
        case .pageOut: "process_madvise"
        }
    }
}
