import CLinux
import Glibc

/// A helper thread for system calls that can block for a long time. It starts with the first job and ends with the last;
/// its results arrive through a descriptor.
package final class HelperThread: @unchecked Sendable {
    /// The end of a job that reports one.
    package struct Completion {
        package let token: UInt64
        /// 0 or a positive errno.
        package let errno: Int32
        package let elapsed: Duration
        /// What was measured.
        package let bytes: UInt64
        /// Of `Measurement.memory`: shared memory, a part of `bytes`.
        package let shared: UInt64
    }

    /// What is measured of a process. Jobs with the same token are for the processes of one app.
    package enum Measurement {
        /// Its share of anonymous and shared memory, and what of it is swapped; not shared memory that outlives it.
        case memory
        /// The files in memory without a name that it has open, and that no process of the app before had open.
        case files
        /// Those among the files found that it maps, and that no process of the app before mapped.
        case mappedFiles

        fileprivate var kind: clinux_job_kind {
            switch self {
            case .memory: CLINUX_JOB_MEASURE_MEMORY
            case .files: CLINUX_JOB_FIND_FILES
            case .mappedFiles: CLINUX_JOB_FIND_MAPPED
            }
        }
    }

    /// The most jobs with a completion that are queued, running or not yet collected.
    package static let capacity = Int(clinux_worker_capacity)

    /// The C worker, which has a lock of its own.
    private let worker: OpaquePointer
    /// Readable when a job with a completion has ended; `nil` if the thread only closes descriptors.
    package let completions: SharedDescriptor?

    /// - Parameter name: of the thread in ps(1), at most 15 bytes.
    package init(name: String, reportsCompletions: Bool) throws(SystemError) {
        var worker: OpaquePointer?
        var end: Int32 = -1
        let result =
            reportsCompletions
            ? clinux_worker_create(&worker, name, &end) : clinux_worker_create(&worker, name, nil)
        try check(result, "pipe2")
        guard let worker else { throw SystemError(call: "pipe2", errno: ENOMEM) }
        self.worker = worker
        completions = end < 0 ? nil : SharedDescriptor(Descriptor(adopting: end))
    }

    deinit { clinux_worker_release(worker) }

    /// Jobs that are queued or running.
    package var pending: Int { Int(clinux_worker_pending(worker)) }

    /// Closes a descriptor; on this thread if there is no memory for the job.
    package func close(_ descriptor: consuming Descriptor) { close(number: descriptor.release()) }

    func close(number: Int32) {
        var job = clinux_job(token: 0, kind: Int32(bitPattern: CLINUX_JOB_CLOSE.rawValue), descriptor: number)
        if clinux_worker_submit(worker, &job) < 0 { _ = Glibc.close(number) }
    }

    /// Releases the memory of a process that has been sent SIGKILL (process_mrelease(2)).
    /// - Returns: false if `capacity` jobs wait already.
    package func releaseMemory(of pidfd: consuming Descriptor, token: UInt64) throws(SystemError) -> Bool {
        try submit(CLINUX_JOB_RELEASE_MEMORY, pidfd, token)
    }

    /// - Parameter process: its folder /proc/PID.
    /// - Returns: false if `capacity` jobs wait already.
    package func measure(
        _ what: Measurement, of process: consuming Descriptor, token: UInt64
    ) throws(SystemError) -> Bool {
        try submit(what.kind, process, token)
    }

    private func submit(
        _ kind: clinux_job_kind, _ descriptor: consuming Descriptor, _ token: UInt64
    ) throws(SystemError) -> Bool {
        var job = clinux_job(token: token, kind: Int32(bitPattern: kind.rawValue), descriptor: descriptor.raw)
        let result = clinux_worker_submit(worker, &job)
        if result == -EAGAIN { return false }
        try check(result, "pthread_create")
        _ = descriptor.release()
        return true
    }

    /// Returns the completions that have arrived.
    package func collect() throws(SystemError) -> [Completion] {
        guard let completions else { return [] }
        var collected: [Completion] = []
        var next = clinux_completion()
        while collected.count < Self.capacity,
            try check(clinux_worker_collect(worker, completions.raw, &next), "read") == 1
        {
            collected.append(
                Completion(
                    token: next.token, errno: -next.result,
                    elapsed: .microseconds(Int64(clamping: next.elapsed_microseconds)), bytes: next.bytes,
                    shared: next.shared))
        }
        return collected
    }
}

/// Closes descriptors on a helper thread. close(2) of a descriptor that another program provided can block for as long as
/// that program likes: a TCP socket with SO_LINGER, a file of a FUSE server that does not answer. Each app has a closer of
/// its own, so that no app delays another.
package final class DescriptorCloser: Sendable {
    /// `nil`: there was no memory for it. Descriptors are then closed on the calling thread.
    private let thread = try? HelperThread(name: "closer", reportsCompletions: false)

    package init() {}

    /// Closes a descriptor and returns at once.
    package func close(_ descriptor: consuming Descriptor) { close(number: descriptor.release()) }

    func close(number: Int32) {
        if let thread { thread.close(number: number) } else { _ = Glibc.close(number) }
    }

    /// The number of descriptors that are not closed yet.
    package var pending: Int { thread?.pending ?? 0 }
}
