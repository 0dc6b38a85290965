import CLinux
import Glibc

/// What became of an attempt to execute a program.
package enum ExecOutcome: Equatable {
    case pending
    case executed
    case failed(SpawnFailure)
    /// A signal ended it before its program ran; `Process.reap()` says which.
    case killedBeforeExec
}

/// A process that exists but may not have executed its program yet. Poll `outcomeDescriptor` for readability (a hang-up
/// counts), then ask `outcome()`.
package struct StartingProcess: ~Copyable {
    package let process: Process
    private let pipe: Descriptor
    private let executable: String
    private let workingDirectory: String?
    private let passedNames: [String]
    private let limitNames: [String]
    private let credentials: Credentials?
    /// The child's stack and arguments, until it no longer uses them.
    private var memory: UnsafeMutableRawPointer?
    private let memorySize: Int
    private var report: clinux_spawn_report?
    private var known = ExecOutcome.pending

    init(_ start: clinux_spawn_start, _ request: SpawnRequest) {
        process = Process(pid: start.pid, pidfd: Descriptor(adopting: start.pidfd))
        pipe = Descriptor(adopting: start.outcome)
        executable = request.executable
        workingDirectory = request.workingDirectory
        passedNames = request.passedDescriptors.map(\.name)
        limitNames = request.resourceLimits.map(\.name)
        credentials = request.credentials
        memory = start.memory
        memorySize = start.memory_size
    }

    package var pid: Int32 { process.pid }
    package var outcomeDescriptor: Int32 { pipe.raw }

    /// Whoever drops a process that is still on its way gives it up: it is killed. Its stack is left mapped, because it
    /// may be stuck in a system call that even SIGKILL does not end.
    deinit {
        if memory != nil { _ = try? process.signal(SIGKILL) }
    }

    /// Never waits. The first answer other than `.pending` is the final one. Ask before reaping: the zombie still knows
    /// whether it ever executed a program.
    package mutating func outcome() throws(SystemError) -> ExecOutcome {
        guard let block = memory else { return known }
        while true {
            var report = clinux_spawn_report()
            let size = MemoryLayout<clinux_spawn_report>.size
            let count = retryInterrupted { read(pipe.raw, &report, size) }
            if count < 0, errno == EAGAIN { return .pending }
            try checkErrno(count, "read", "the error pipe of \(executable)")
            // End of file: the child's end was closed, by an exec or by death. Only now has it left our memory, so even
            // a failure is not told before.
            if count == 0 { break }
            if count == size { self.report = report }
        }
        if let report {
            known = .failed(failure(report, firstBytes: String(cString: clinux_spawn_first_bytes(block))))
        } else {
            known = clinux_spawn_reached_exec(block) && hasExecuted ? .executed : .killedBeforeExec
        }
        clinux_spawn_release(block, memorySize)
        memory = nil
        return known
    }

    /// The flag in the block says that the child was about to execute; the kernel knows whether it did. A process that
    /// we cannot look at (it was reaped) is taken at its word.
    private var hasExecuted: Bool {
        guard let bytes = try? readFileIfPresent(at: "/proc/\(pid)/stat", limit: 4096) else { return true }
        return ProcessStat(parsing: bytes)?.hasExecuted ?? true
    }

    private func failure(_ report: clinux_spawn_report, firstBytes: String) -> SpawnFailure {
        let stage = SpawnStage(rawValue: report.stage) ?? .executable
        let index = Int(report.index)
        let subject =
            switch stage {
            case .executable: executable
            case .workingDirectory: workingDirectory ?? ""
            case .descriptors: passedNames.indices.contains(index) ? passedNames[index] : ""
            case .limits: limitNames.indices.contains(index) ? limitNames[index] : ""
            case .user: credentials.map { String($0.uid) } ?? ""
            case .group: credentials.map { String($0.gid) } ?? ""
            case .groups: credentials?.groups.map(String.init).joined(separator: " ") ?? ""
            case .signals, .session, .cgroup, .oomScoreAdjust, .standardInput, .standardOutput, .standardError,
                .noNewPrivileges:
                ""
            }
        let interpreter: MissingInterpreter? =
            report.interpreter_missing == 0 ? nil : MissingInterpreter(firstBytes: firstBytes)
        return SpawnFailure(stage: stage, errno: report.error, path: subject, missingInterpreter: interpreter)
    }
}
