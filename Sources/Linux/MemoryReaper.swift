import Glibc
package import Posix

/// Releases the memory of killed processes on a helper thread (process_mrelease(2)): the call blocks for as long as the
/// memory is large, 58 ms for 1 GiB.
package final class MemoryReaper {
    package enum Outcome: Equatable {
        case done
        /// The process had ended by itself.
        case alreadyGone
        /// EINVAL: the process has not been killed; ENOSYS: a kernel before 5.15.
        case failed(SystemError)
    }

    package struct Completion: Equatable {
        package var token: UInt64
        package var outcome: Outcome
        package var elapsed: Duration
    }

    /// The most jobs that wait at a time.
    package static let capacity = HelperThread.capacity

    private let thread: HelperThread
    /// Readable when a job is done.
    package let descriptor: SharedDescriptor

    package init() throws(SystemError) {
        thread = try HelperThread(name: "memory-reaper", .reports)
        guard let completions = thread.completions else { throw SystemError(call: "pipe2", errno: EBADF) }
        descriptor = completions
    }

    /// Releases the memory of a process that has been sent SIGKILL, before the process itself does.
    /// - Returns: false if `capacity` jobs wait already. The process then releases its memory itself, a little later.
    package func release(_ process: Process, token: UInt64) throws(SystemError) -> Bool {
        try thread.releaseMemory(of: try process.descriptor.descriptor.duplicate(), token: token)
    }

    /// Returns the jobs that have ended since the last call.
    package func completions() throws(SystemError) -> [Completion] {
        try thread.collect().map { completion in
            Completion(token: completion.token, outcome: Self.outcome(completion.errno), elapsed: completion.elapsed)
        }
    }

    private static func outcome(_ errno: Int32) -> Outcome {
        if errno == 0 { return .done }
        let error = SystemError(call: "process_mrelease", errno: errno)
        return error.meansGone ? .alreadyGone : .failed(error)
    }
}
