/// What happens to the processes of a run.
package enum ProcessEvent: Hashable, Sendable {
    /// The process exists. Its program is not executed yet.
    case spawned(pid: Int32)
    /// `execve` succeeded.
    case executed
    /// No program runs and nothing is left of the attempt: neither `exited` nor `emptied` follows.
    case spawnFailed(SpawnProblem)
    /// The main process stopped itself (L17).
    case stopped
    case continued
    /// `MAINPID=`: another process of the app is the main process now.
    case mainProcessChanged(pid: Int32)
    /// The main process ended. The status is `.unknown` if the kernel does not report it, because the process is not a
    /// child of this daemon. `cpu`: of the whole run. `memory`: peak in bytes, for runs too short to be measured; 0:
    /// unknown. `remaining`: the processes that it left behind.
    case exited(ExitStatus, cpu: Duration, memory: UInt64, remaining: RemainingProcesses? = nil)
    /// No process of the run is left (L47). Comes once in a run.
    case emptied
    /// After `Event.recovered`: the run was found and is under control again. `messagesKept`: no notify message was lost
    /// while there was no daemon. `noticesDelayed`: this daemon sends notices that the previous one had decided on but not
    /// sent.
    case reattached(messagesKept: Bool, noticesDelayed: Bool = false)
}

/// Why a program could not be started.
package struct SpawnProblem: Hashable, Sendable {
    /// One sentence, without the full stop.
    package var sentence: String
    /// The number that systemd.exec(5) gives to what failed: 203 is EXEC.
    package var exitStatus: Int32

    package init(sentence: String, exitStatus: Int32) {
        self.sentence = sentence
        self.exitStatus = exitStatus
    }
}

/// How a process ended.
package enum ExitStatus: Hashable, Sendable {
    case exited(Int32)
    case signaled(Int32, coreDumped: Bool)
    /// The kernel does not report it: the process was not a child of this daemon, or ended while there was no daemon.
    case unknown
    /// The process ended with the machine.
    case lost

    static let sigkill: Int32 = 9

    var isKill: Bool {
        switch self {
        case .signaled(Self.sigkill, coreDumped: _): true
        case .signaled, .exited, .unknown, .lost: false
        }
    }
}

/// Processes of a run whose main process has exited.
package struct RemainingProcesses: Hashable, Sendable {
    package static let maximumNames = 3

    package var count: Int
    /// Different names (comm) of some of them, at most `maximumNames`.
    package var names: [String]

    package init(count: Int, names: [String]) {
        self.count = count
        self.names = Array(names.prefix(Self.maximumNames))
    }
}

extension LifecycleCore {
    mutating func handle(_ event: ProcessEvent, _ index: AppIndex, _ now: Instant) {
        switch event {
        case .spawned(let pid): self[run: index].pid = pid
        case .executed: executed(index, now)
        case .spawnFailed(let problem): spawnFailed(index, problem, now)
        case .stopped: stopped(index, now)
        case .continued: wasContinued(index)
        case .mainProcessChanged(let pid):
            self[run: index].pid = pid
            self[run: index].isStopped = false
        case .exited(let status, let cpu, let memory, let remaining):
            exited(index, MainExit(status: status, cpu: cpu, peak: memory, remaining: remaining), now)
        case .emptied: emptied(index, now)
        case .reattached(let messagesKept, let noticesDelayed): reattached(index, messagesKept, noticesDelayed, now)
        }
    }
}

extension ProcessEvent: SavedUnion {
    package func save(to writer: inout ByteWriter) {
        switch self {
        case .spawned(let pid): writer.put(case: 1, pid)
        case .executed: writer.put(case: 2)
        case .spawnFailed(let problem): writer.put(case: 3, problem)
        case .exited(let status, let cpu, let memory, let remaining):
            writer.put(case: 8, status, cpu, SavedSize(memory), SavedRemaining(value: remaining))
        case .emptied: writer.put(case: 9)
        case .reattached(let messagesKept, let noticesDelayed): writer.put(case: 10, messagesKept, noticesDelayed)
        case .stopped: writer.put(case: 13)
        case .continued: writer.put(case: 14)
        case .mainProcessChanged(let pid): writer.put(case: 22, pid)
        }
    }

    package init?(case number: UInt64, _ values: inout RecordReader) throws(SavedError) {
        switch number {
        case 1: self = .spawned(pid: try values.next())
        case 2: self = .executed
        case 3: self = .spawnFailed(try values.next())
        case 8:
            let (status, cpu, memory): (ExitStatus, Duration, UInt64) =
                (try values.next(), try values.next(), try values.nextSize())
            let remaining: SavedRemaining = try values.next()
            self = .exited(status, cpu: cpu, memory: memory, remaining: remaining.value)
        case 9: self = .emptied
        case 10: self = .reattached(messagesKept: try values.next(), noticesDelayed: try values.next())
        case 13: self = .stopped
        case 14: self = .continued
        case 22: self = .mainProcessChanged(pid: try values.next())
        default: return nil
        }
    }
}

/// The processes that a main process left behind, as one value of a case.
private struct SavedRemaining: SavedRecord {
    static var blank: SavedRemaining { SavedRemaining(value: nil) }
    var value: RemainingProcesses?

    mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.optional(1, &value)
    }
}

extension SpawnProblem: SavedRecord {
    package static var blank: SpawnProblem { SpawnProblem(sentence: "", exitStatus: 0) }

    package mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.required(1, &sentence)
        try coder.required(2, &exitStatus)
    }
}
