/// What decides about the deadlines of a run.
package enum DeadlineEvent: Hashable, Sendable {
    indirect case inspected(Inspection)
    case activityMeasured(RunActivity)
    /// `EXTEND_TIMEOUT_USEC=` (L25).
    case extended(by: Duration)
}

/// What is measured because of a deadline of a run.
package enum DeadlineEffect: Hashable, Sendable {
    /// Measures a run whose deadline has passed. → `inspected`.
    case inspect
    /// Measures what a run does. → `activityMeasured`. `listeners`: including whether it listens on a socket.
    case measureActivity(listeners: Bool)
}

/// What is measured before a missed deadline kills.
package struct Inspection: Hashable, Sendable {
    /// A debugger is attached (L48).
    package var traced: Bool
    /// Processor time that the run has used.
    package var cpu: Duration
    /// Its size in bytes.
    package var memory: UInt64
    /// By how many bytes `memory` may be too large.
    package var uncertainty: UInt64 = 0
    /// Its processes, if the main process has exited.
    package var remaining: RemainingProcesses?
    /// For how long it was ready to run and got no processor, since its launch or its last notice with a deadline (L48).
    package var waited: Duration
    /// What a launch waits for, as the end of a sentence, with at most `maximumObstacle` bytes: `the PID file /run/x.pid does not exist`.
    package var obstacle: String?

    package static let maximumObstacle = 512

    package init(
        traced: Bool, cpu: Duration, memory: UInt64, remaining: RemainingProcesses? = nil, waited: Duration = .zero
    ) {
        self.traced = traced
        self.cpu = cpu
        self.memory = memory
        self.remaining = remaining
        self.waited = waited
    }
}

/// What a run has done since its launch.
package struct RunActivity: Hashable, Sendable {
    /// Processor time that it has used.
    package var cpu: Duration
    /// For how long it was ready to run and got no processor.
    package var waited: Duration
    /// Its main process runs, or is ready to run. The kernel adds the time on a run queue only when the process gets a processor
    /// (kernel: scheduler/sched-stats.rst), so one that got none since it was measured last has otherwise done nothing.
    package var isRunnable = false
    /// Whether one of its processes listens on a socket; `nil`: that was not measured.
    package var listens: Bool?
    /// No process was found that listens, and these could not be examined. Only of an app of `Type=listening`.
    package var hiddenSockets: HiddenSockets?

    package init(cpu: Duration, waited: Duration, listens: Bool? = nil, hiddenSockets: HiddenSockets? = nil) {
        self.cpu = cpu
        self.waited = waited
        self.listens = listens
        self.hiddenSockets = hiddenSockets
    }
}

extension LifecycleCore {
    mutating func handle(_ event: DeadlineEvent, _ index: AppIndex, _ now: Instant) {
        switch event {
        case .inspected(let inspection): inspected(index, inspection, now)
        case .activityMeasured(let activity): activityMeasured(index, activity, now)
        case .extended(let time): timeoutExtended(index, time, now)
        }
    }
}

extension DeadlineEvent: SavedUnion {
    package func save(to writer: inout ByteWriter) {
        switch self {
        case .inspected(let inspection): writer.put(case: 7, inspection)
        case .extended(let time): writer.put(case: 17, time)
        case .activityMeasured(let activity): writer.put(case: 25, activity)
        }
    }

    package init?(case number: UInt64, _ values: inout RecordReader) throws(SavedError) {
        switch number {
        case 7: self = .inspected(try values.next())
        case 17: self = .extended(by: try values.next())
        case 25: self = .activityMeasured(try values.next())
        default: return nil
        }
    }
}

extension Inspection: SavedRecord {
    package static var blank: Inspection { Inspection(traced: false, cpu: .zero, memory: 0) }

    package mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.flag(1, &traced)
        try coder.required(2, &cpu)
        try coder.size(3, &memory)
        try coder.optional(4, &remaining)
        try coder.field(5, &waited)
        try coder.sparseSize(6, &uncertainty)
        try coder.optional(7, &obstacle)
    }
}

extension RunActivity: SavedRecord {
    package static var blank: RunActivity { RunActivity(cpu: .zero, waited: .zero) }

    package mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.required(1, &cpu)
        try coder.required(2, &waited)
        try coder.optional(3, &listens)
        try coder.optional(4, &hiddenSockets)
        try coder.flag(5, &isRunnable)
    }
}

extension HiddenSockets: SavedRecord {
    package static var blank: HiddenSockets { HiddenSockets(count: 0, pid: 0) }

    package mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.required(1, &count)
        try coder.required(2, &pid)
    }
}
