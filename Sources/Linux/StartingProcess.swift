import CLinux
import Glibc
package import Posix

/// The result of an attempt to execute a program.
package enum ExecOutcome: Equatable {
    case pending
    case executed
    case failed(SpawnFailure)
    /// A signal ended the process before it executed its program; `Process.reap()` reports which.
    case killedBeforeExec
}

/// A process that may not have executed its program yet. Wait until `outcomeDescriptor` is readable or hung up, then call
/// `outcome()`.
package struct StartingProcess: ~Copyable {
    package let process: Process
    /// Readable, or hung up, when the outcome is known.
    package let outcomeDescriptor: SharedDescriptor
    private let executable: String
    private let workingDirectory: String?
    private let outputPath: String
    private let errorPath: String
    private let passedNames: [String]
    private let limitNames: [String]
    private let credentials: Credentials?
    private let readOnlyProgram: String?
    private let programDigest: FileDigest?
    /// The child's stack and arguments; `nil` once the child no longer uses them.
    private var memory: UnsafeMutableRawPointer?
    private let memorySize: Int
    private var report: clinux_spawn_report?
    private var known = ExecOutcome.pending

    init(_ start: clinux_spawn_start, _ request: SpawnRequest) {
        process = Process(pid: start.pid, pidfd: Descriptor(adopting: start.pidfd))
        outcomeDescriptor = SharedDescriptor(Descriptor(adopting: start.outcome))
        executable = request.executable
        workingDirectory = request.workingDirectory
        outputPath = request.outputFile?.path ?? ""
        errorPath = request.errorFile?.path ?? ""
        passedNames = request.passedDescriptors.map(\.name)
        limitNames = request.resourceLimits.map(\.name)
        credentials = request.credentials
        readOnlyProgram = request.readOnlyProgram
        programDigest = request.programDigest
        memory = start.memory
        memorySize = start.memory_size
    }

    package var pid: Int32 { process.pid }

    /// Kills a process whose outcome is not known. Its stack stays mapped: the process may be in a system call that SIGKILL
    /// does not end.
    deinit {
        if memory != nil { _ = try? process.signal(SIGKILL) }
    }

    /// Returns the outcome without blocking. The first result other than `.pending` is final. Call it before reaping: a zombie
    /// still shows whether it has executed a program.
    package mutating func outcome() throws(SystemError) -> ExecOutcome {
        guard let block = memory else { return known }
        while true {
            var report = clinux_spawn_report()
            let size = MemoryLayout<clinux_spawn_report>.size
            let count = retryInterrupted { read(outcomeDescriptor.raw, &report, size) }
            if count < 0, errno == EAGAIN { return .pending }
            try checkErrno(count, "read", "the error pipe of \(executable)")
            // End of file: the child has executed a program or ended. Only now does it no longer use this process's memory, so
            // a failure is not reported before.
            if count == 0 { break }
            if count == size { self.report = report }
        }
        if let report {
            known = .failed(failure(report, block))
        } else {
            known = clinux_spawn_reached_exec(block) && hasExecuted ? .executed : .killedBeforeExec
        }
        clinux_spawn_release(block, memorySize)
        memory = nil
        return known
    }

    /// Whether the kernel reports that the process has executed a program. The flag in the block only shows that the child was
    /// about to; it decides if the process has been reaped.
    private var hasExecuted: Bool {
        guard let bytes = try? readFileIfPresent(at: "/proc/\(pid)/stat", limit: 4096) else { return true }
        return ProcessStat(parsing: bytes)?.hasExecuted ?? true
    }

    private func failure(_ report: clinux_spawn_report, _ block: UnsafeMutableRawPointer) -> SpawnFailure {
        let stage = SpawnStage(rawValue: report.stage) ?? .executable
        let index = Int(report.index)
        let subject =
            switch stage {
            case .executable, .programDigest: executable
            case .readOnlyProgram: readOnlyProgram ?? ""
            case .workingDirectory: workingDirectory ?? ""
            case .descriptors: passedNames.indices.contains(index) ? passedNames[index] : ""
            case .limits: limitNames.indices.contains(index) ? limitNames[index] : ""
            case .user: credentials.map { String($0.uid) } ?? ""
            case .group: credentials.map { String($0.gid) } ?? ""
            case .groups: credentials?.groups.map(String.init).joined(separator: " ") ?? ""
            case .standardOutput: outputPath
            case .standardError: errorPath
            case .signals, .session, .cgroup, .oomScoreAdjust, .standardInput, .noNewPrivileges: ""
            }
        let interpreter: MissingInterpreter? =
            report.interpreter_missing == 0
            ? nil : MissingInterpreter(firstBytes: String(cString: clinux_spawn_first_bytes(block)))
        let mismatch =
            stage == .programDigest && report.error == EBADMSG
            ? programDigest.map { wanted in
                let bytes = UnsafeBufferPointer(start: clinux_spawn_digest(block), count: Int(CLINUX_DIGEST_SIZE))
                return DigestMismatch(found: FileDigest(wanted.kind, Array(bytes)), wanted: wanted)
            } : nil
        return SpawnFailure(
            stage: stage, errno: report.error, path: subject, missingInterpreter: interpreter, digest: mismatch)
    }
}
