import CLinux
import Glibc

/// A helper thread for system calls that can block for a long time. It takes a thread with the first job and gives it back after
/// the last, for the next helper; its results arrive through a descriptor.
package final class HelperThread: @unchecked Sendable {
    /// The end of a job that reports one.
    package struct Completion {
        package let token: UInt64
        /// 0 or a positive errno.
        package let errno: Int32
        package let elapsed: Duration
        /// What was measured; of `diagnose` the size of the answers.
        package let bytes: UInt64
        /// Of `Measurement.memory`: shared memory, a part of `bytes`.
        package let shared: UInt64
        /// Of `examineInput`: whether the buffer towards the reader is more than half full.
        package let isHalfFull: Bool
        /// Of `examineInput`: whether the peer is on this machine.
        package let isLocal: Bool
        /// Of `examineInput`: `192.0.2.7:80`, `[2001:db8::1]:80`; empty if it is not known.
        package let peer: String

        fileprivate init(_ done: clinux_completion) {
            token = done.token
            errno = -done.result
            elapsed = .microseconds(Int64(clamping: done.elapsed_microseconds))
            bytes = done.bytes
            shared = done.shared
            isHalfFull = done.is_half_full != 0
            isLocal = done.is_local != 0
            var address = done.address
            var text = clinux_peer()
            withUnsafeBytes(of: &address) { bytes in
                guard let start = bytes.assumingMemoryBound(to: UInt8.self).baseAddress else { return }
                clinux_format_peer(Int32(done.domain), start, done.port, &text)
            }
            let length = text.length
            peer = withUnsafeBytes(of: &text.text) { String(decoding: $0.prefix(length), as: UTF8.self) }
        }
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

    /// What the jobs of a thread do.
    package enum Use {
        /// They report completions.
        case reports
        /// They close descriptors. Those that wait at a reexec are closed by the next program.
        case closes
        /// They close files whose every close(2) can block in a way that no signal ends.
        case closesFiles
        /// They report completions, and can block in a way that no signal ends.
        case examines

        fileprivate var number: Int32 {
            switch self {
            case .reports: Int32(bitPattern: CLINUX_WORKER_REPORTS.rawValue)
            case .closes: Int32(bitPattern: CLINUX_WORKER_CLOSES.rawValue)
            case .closesFiles: Int32(bitPattern: CLINUX_WORKER_CLOSES_FILES.rawValue)
            case .examines: Int32(bitPattern: CLINUX_WORKER_EXAMINES.rawValue)
            }
        }
    }

    /// - Parameters:
    ///   - name: of the thread in ps(1), at most 15 bytes.
    ///   - owner: the app that the jobs are for; empty: none.
    package init(name: String, _ use: Use, owner: String = "") throws(SystemError) {
        var worker: OpaquePointer?
        var end: Int32 = -1
        let result =
            switch use {
            case .reports, .examines: clinux_worker_create(&worker, name, use.number, &end)
            case .closes, .closesFiles: clinux_worker_create(&worker, name, use.number, nil)
            }
        try check(result, "pipe2")
        guard let worker else { throw SystemError(call: "pipe2", errno: ENOMEM) }
        self.worker = worker
        completions = end < 0 ? nil : SharedDescriptor(Descriptor(adopting: end))
        if !owner.isEmpty { setOwner(owner) }
    }

    /// Sets the app that the jobs are for, for `BlockedHelper`.
    package func setOwner(_ owner: String) { clinux_worker_set_owner(worker, owner) }

    deinit { clinux_worker_release(worker) }

    /// Jobs that are queued or running.
    package var pending: Int { Int(clinux_worker_pending(worker)) }

    /// Closes a descriptor; on this thread if there is no memory for the job.
    package func close(_ descriptor: consuming Descriptor) { close(number: descriptor.release()) }

    func close(number: Int32) {
        let kind = Int32(bitPattern: CLINUX_JOB_CLOSE.rawValue)
        var job = clinux_job(
            token: 0, kind: kind, descriptor: number, output: -1, thread: 0, number: -1, bytes: 0, length: 0)
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

    /// Finds what waits at a socket or a pipe, and the other end. The descriptor is closed before the completion.
    /// - Returns: false if `capacity` jobs wait already.
    package func examineInput(_ descriptor: consuming Descriptor, token: UInt64) throws(SystemError) -> Bool {
        try submit(CLINUX_JOB_EXAMINE_INPUT, descriptor, token)
    }

    /// Lists what an epoll descriptor watches, in a file in memory. `bytes` of the completion is the number of targets.
    /// - Parameters:
    ///   - file: /proc/PID/fdinfo/FD of the epoll descriptor.
    ///   - thread: has the epoll descriptor.
    ///   - number: of the epoll descriptor, there.
    ///   - output: receives the targets (`clinux_epoll_target`). Its offset is 0 afterwards.
    /// - Returns: false if `capacity` jobs wait already.
    package func listTargets(
        of file: consuming Descriptor, thread: Int32, number: Int32, output: consuming Descriptor, token: UInt64
    ) throws(SystemError) -> Bool {
        let kind = Int32(bitPattern: CLINUX_JOB_LIST_TARGETS.rawValue)
        let job = clinux_job(
            token: token, kind: kind, descriptor: file.raw, output: output.raw, thread: thread, number: number,
            bytes: 0,
            length: 0)
        guard try submit(job) else { return false }
        _ = file.release()
        _ = output.release()
        return true
    }

    /// Asks the kernel about sockets (sock_diag(7)). `bytes` of the completion is the size of the answers, also after an error.
    /// - Parameter file: a file in memory, with the requests. The answers follow, from the next multiple of 4 on.
    /// - Returns: false if `capacity` jobs wait already.
    package func diagnose(_ file: consuming Descriptor, token: UInt64) throws(SystemError) -> Bool {
        try submit(CLINUX_JOB_DIAGNOSE, file, token)
    }

    /// Frees the space of a regular file up to an offset; what follows stays where it is. A file system that cannot do that (no
    /// FALLOC_FL_PUNCH_HOLE) gets an empty file. It waits until the disk has what is freed.
    /// - Returns: false if `capacity` jobs wait already.
    package func freeStart(of file: consuming Descriptor, upTo offset: UInt64) throws(SystemError) -> Bool {
        try submit(CLINUX_JOB_FREE_START, file, 0, bytes: offset)
    }

    /// Pushes memory of a group out to swap (memory.reclaim).
    /// - Parameters:
    ///   - group: its folder.
    ///   - bytes: how much.
    /// - Returns: false if `capacity` jobs wait already.
    package func reclaim(_ bytes: UInt64, ofGroup group: consuming Descriptor, token: UInt64) throws(SystemError)
        -> Bool
    {
        try submit(CLINUX_JOB_RECLAIM_GROUP, group, token, bytes: bytes)
    }

    /// Pushes private memory of a process out to swap (process_madvise(2)). `bytes` of the completion is the address where to continue;
    /// 0: nothing is left.
    /// - Parameters:
    ///   - process: its pidfd.
    ///   - address: where to begin.
    /// - Returns: false if `capacity` jobs wait already.
    package func reclaim(
        _ bytes: UInt64, of process: consuming Descriptor, pid: Int32, from address: UInt64, token: UInt64
    ) throws(SystemError) -> Bool {
        let kind = Int32(bitPattern: CLINUX_JOB_RECLAIM_PROCESS.rawValue)
        let job = clinux_job(
            token: token, kind: kind, descriptor: process.raw, output: -1, thread: pid, number: -1, bytes: address,
            length: bytes)
        guard try submit(job) else { return false }
        _ = process.release()
        return true
    }

    /// Finds the private pages without a file that processes have in memory. `errno` of the completion is E2BIG if they are too many to be
    /// those of a wake.
    /// - Parameter file: a file in memory with the process IDs. A record, which `bringBack` reads, replaces them.
    /// - Returns: false if `capacity` jobs wait already.
    package func recordPages(in file: consuming Descriptor, token: UInt64) throws(SystemError) -> Bool {
        try submit(CLINUX_JOB_RECORD_PAGES, file, token)
    }

    /// Asks the kernel to read pages from swap (process_madvise(2)).
    /// - Parameters:
    ///   - file: with a record of `recordPages`.
    ///   - end: the time of CLOCK_MONOTONIC at which it stops.
    /// - Returns: false if `capacity` jobs wait already.
    package func bringBack(
        _ file: consuming Descriptor, until end: Duration, token: UInt64
    ) throws(SystemError) -> Bool {
        try submit(CLINUX_JOB_BRING_BACK, file, token, bytes: UInt64(max(0, end / .microseconds(1))))
    }

    /// Reads files, each of which can take as long as a device.
    /// - Parameters:
    ///   - list: a file in memory with their paths, each with a NUL.
    ///   - output: receives the length of each in 32 bits, -1 if it cannot be read, and its contents, at most 4,096 bytes. Its offset is
    ///     0 afterwards.
    /// - Returns: false if `capacity` jobs wait already.
    package func readFiles(
        _ list: consuming Descriptor, output: consuming Descriptor, token: UInt64
    ) throws(SystemError) -> Bool {
        try submit(CLINUX_JOB_READ_FILES, list, output: output, number: -1, token)
    }

    /// Watches the nearest folder above a file that exists, and finds out what the file is like.
    /// - Parameters:
    ///   - inotify: a descriptor of inotify(7), or a duplicate.
    ///   - watch: of the folder that was watched until now; `nil`: none was.
    ///   - file: a file in memory with the path of the file. What is found (`clinux_file_state`) overwrites it.
    /// - Returns: false if `capacity` jobs wait already.
    package func watchFile(
        _ inotify: consuming Descriptor, insteadOf watch: Int32?, file: consuming Descriptor, token: UInt64
    ) throws(SystemError) -> Bool {
        try submit(CLINUX_JOB_WATCH_FILE, inotify, output: file, number: watch ?? -1, token)
    }

    private func submit(
        _ kind: clinux_job_kind, _ descriptor: consuming Descriptor, output: consuming Descriptor, number: Int32,
        _ token: UInt64
    ) throws(SystemError) -> Bool {
        let kind = Int32(bitPattern: kind.rawValue)
        let job = clinux_job(
            token: token, kind: kind, descriptor: descriptor.raw, output: output.raw, thread: 0, number: number,
            bytes: 0, length: 0)
        guard try submit(job) else { return false }
        _ = descriptor.release()
        _ = output.release()
        return true
    }

    private func submit(
        _ kind: clinux_job_kind, _ descriptor: consuming Descriptor, _ token: UInt64, bytes: UInt64 = 0
    ) throws(SystemError) -> Bool {
        let kind = Int32(bitPattern: kind.rawValue)
        let job = clinux_job(
            token: token, kind: kind, descriptor: descriptor.raw, output: -1, thread: 0, number: -1, bytes: bytes,
            length: 0)
        guard try submit(job) else { return false }
        _ = descriptor.release()
        return true
    }

    /// The thread owns the job's descriptors only after it has returned true.
    private func submit(_ job: clinux_job) throws(SystemError) -> Bool {
        var job = job
        let result = clinux_worker_submit(worker, &job)
        if result == -EAGAIN { return false }
        try check(result, "pthread_create")
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
            collected.append(Completion(next))
        }
        return collected
    }
}

/// Closes descriptors on helper threads. close(2) of a descriptor that another program provided can block for as long as
/// that program likes: a TCP socket with SO_LINGER, a file of a FUSE server that does not answer. Each app has a closer of
/// its own, so that no app delays another.
///
/// Files have a thread of their own: each close(2) of a file can wait for its file system (`DescriptorKind`), and no signal
/// ends that. The close of a socket blocks only if it is the last one, and a signal ends it.
///
/// One thread at a time uses a closer: that of the event loop, or of a test.
package final class DescriptorCloser: @unchecked Sendable {
    /// Made for the first descriptor: most apps send none. `nil` also if there was no memory for it. Descriptors are then
    /// closed on the calling thread.
    private var thread: HelperThread?
    private var fileThread: HelperThread?
    private var owner = ""

    package init() {}

    /// Sets the app whose descriptors it closes, for `BlockedHelper`.
    package func setOwner(_ owner: String) {
        self.owner = owner
        thread?.setOwner(owner)
        fileThread?.setOwner(owner)
    }

    /// Closes a descriptor and returns at once.
    package func close(_ descriptor: consuming Descriptor) { close(number: descriptor.release()) }

    func close(number: Int32) {
        let thread = DescriptorKind(of: number).closesAtOnce ? socketThread() : threadOfFiles()
        if let thread { thread.close(number: number) } else { _ = Glibc.close(number) }
    }

    private func socketThread() -> HelperThread? {
        if thread == nil { thread = try? HelperThread(name: "closer", .closes, owner: owner) }
        return thread
    }

    private func threadOfFiles() -> HelperThread? {
        if fileThread == nil { fileThread = try? HelperThread(name: "closer-files", .closesFiles, owner: owner) }
        return fileThread
    }

    /// The number of descriptors that are not closed yet.
    package var pending: Int { (thread?.pending ?? 0) + pendingFiles }

    /// The number of files that are not closed yet.
    package var pendingFiles: Int { fileThread?.pending ?? 0 }

    // MARK: All closers of this process

    /// Stops closing, for execve(2), which would close what waits on the calling thread.
    /// - Returns: the numbers that wait, or are being closed. The next program closes them.
    package static func holdAll() -> [Int32] {
        clinux_closing_hold()
        var capacity = 64
        while true {
            var count = 0
            let numbers = [Int32](unsafeUninitializedCapacity: capacity) { buffer, used in
                count = clinux_closing_waiting(buffer.baseAddress, buffer.count)
                used = min(count, buffer.count)
            }
            if count <= numbers.count { return numbers }
            capacity = count
        }
    }

    /// Continues after `holdAll`.
    package static func continueAll() { clinux_closing_continue() }
}
