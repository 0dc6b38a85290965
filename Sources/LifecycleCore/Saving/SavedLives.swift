extension ProcessLife: SavedUnion {
    package func save(to writer: inout ByteWriter) {
        switch self {
        case .notRunning(let notRunning): writer.put(case: 1, notRunning)
        case .running(let running): writer.put(case: 2, running.run, running.execution)
        case .ending(let ending): writer.put(case: 3, ending)
        }
    }

    package init?(case number: UInt64, _ values: inout RecordReader) throws(SavedError) {
        switch number {
        case 1: self = .notRunning(try values.next())
        case 2: self = .running(Running(run: try values.next(), execution: try values.next()))
        case 3: self = .ending(try values.next())
        default: return nil
        }
    }
}

extension NotRunning: SavedRecord {
    package static var blank: NotRunning { NotRunning() }

    package mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.optional(1, &relaunch)
        var (queued, memoryWait) = (queued, memoryWait)
        try coder.optional(2, &queued)
        try coder.optional(3, &memoryWait)
        self = NotRunning(relaunch: relaunch, queued: queued, memoryWait: memoryWait)
    }

    package var fault: String? { memoryWait != nil && relaunch != nil ? "a relaunch is scheduled and waits" : nil }
}

extension MemoryWait: SavedRecord {
    package static var blank: MemoryWait { MemoryWait(since: .origin, state: .background) }

    package mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.required(1, &since)
        try coder.required(2, &state)
        try coder.flag(3, &isReported)
    }
}

extension Returns: SavedRecord {
    package static var blank: Returns { Returns() }

    package mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.list(1, &growing, upTo: LifecycleCore.maximumGrowing)
        try coder.optional(2, &checkAt)
        try coder.field(3, &interval)
        try coder.flag(4, &wasShort)
        try coder.flag(5, &isHomeWanted)
    }

    package var fault: String? {
        interval > .zero && interval <= LifecycleCore.longestReturnCheck ? nil : "an interval of \(interval)"
    }
}

extension QueuedLaunch: SavedRecord {
    package static var blank: QueuedLaunch { QueuedLaunch(launch: .blank, since: .origin, isRequested: false) }

    package mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.required(1, &launch)
        try coder.optional(2, &wake)
        try coder.required(3, &since)
        try coder.flag(4, &isRequested)
    }
}

extension Admission.Slot: SavedRecord {
    package static var blank: Admission.Slot { Admission.Slot(run: RunID(0), since: .origin) }

    package mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.required(1, &run)
        try coder.required(2, &since)
        try coder.field(3, &used)
        var measured = measuredAt == since || measuredAt == .origin ? nil : measuredAt
        try coder.optional(4, &measured)
        measuredAt = measured ?? since
        try coder.required(5, &checkAt)
        try coder.optional(6, &askedAt)
    }
}

extension NotRunning.Relaunch: SavedRecord {
    package static var blank: NotRunning.Relaunch { .init(at: .origin, state: .background) }

    package mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.required(1, &at)
        try coder.field(2, &state)
    }
}

extension Execution: SavedUnion {
    package func save(to writer: inout ByteWriter) {
        switch self {
        case .launching(let launching): writer.put(case: 1, launching)
        case .foreground(let foreground): writer.put(case: 2, foreground)
        case .enteringBackground(let entering): writer.put(case: 3, entering)
        case .background(let background): writer.put(case: 4, background)
        case .suspending(let suspending): writer.put(case: 5, suspending)
        case .suspended(let suspended): writer.put(case: 6, suspended)
        case .waking(let waking): writer.put(case: 7, waking)
        case .terminating(let terminating): writer.put(case: 8, terminating)
        }
    }

    package init?(case number: UInt64, _ values: inout RecordReader) throws(SavedError) {
        switch number {
        case 1: self = .launching(try values.next())
        case 2: self = .foreground(try values.next())
        case 3: self = .enteringBackground(try values.next())
        case 4: self = .background(try values.next())
        case 5: self = .suspending(try values.next())
        case 6:
            // Releases before 0.4.0 wrote no value.
            var suspended: Suspended?
            try values.optional(1, &suspended)
            self = .suspended(suspended ?? Suspended())
        case 7: self = .waking(try values.next())
        case 8: self = .terminating(try values.next())
        default: return nil
        }
        if let deadline, deadline.kind != deadlineKind {
            throw values.reader.error("a deadline for \(deadline.kind.rawValue) in \(phase)")
        }
    }

    /// The kind of `deadline`.
    private var deadlineKind: DeadlineKind? {
        switch self {
        case .launching: .launch
        case .foreground: .watchdog
        case .enteringBackground: .background
        case .waking: .thaw
        case .terminating: .terminate
        case .background, .suspending, .suspended: nil
        }
    }
}

extension Launching: SavedRecord {
    package static var blank: Launching { Launching(launch: .blank, readiness: .executed) }

    package mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.required(1, &launch)
        try coder.optional(2, &deadline)
        try coder.optional(3, &pending)
        try coder.optional(4, &wake)
        try coder.field(5, &readiness)
    }
}

extension Foreground: SavedRecord {
    package static var blank: Foreground { Foreground() }

    package mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        var activation = SavedActivation(isActive)
        try coder.required(1, &activation)
        isActive = activation == .active
        try coder.optional(2, &watchdog)
    }
}

extension EnteringBackground: SavedRecord {
    package static var blank: EnteringBackground { EnteringBackground() }

    package mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.optional(1, &deadline)
        try coder.optional(2, &pending)
        try coder.flag(3, &isAnswered)
    }
}

extension Background: SavedRecord {
    package static var blank: Background { Background() }

    package mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.optional(1, &idleSince)
        // 2 was the interval before the next freeze (0.2.0).
        try coder.optional(3, &look)
    }
}

extension Suspending: SavedRecord {
    package static var blank: Suspending { Suspending(warnAt: nil) }

    package mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.optional(1, &warnAt)
        // 2 was the interval before the next freeze (0.2.0).
        try coder.optional(3, &look)
    }
}

extension Waking: SavedRecord {
    package static var blank: Waking { Waking() }

    package mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.optional(1, &deadline)
        try coder.optional(2, &pending)
        try coder.optional(3, &wake)
        // 4 was the interval before the next freeze (0.2.0).
        try coder.flag(5, &continuesStopped)
        try coder.flag(6, &isUnloading)
    }
}

extension Terminating: SavedRecord {
    package static var blank: Terminating { Terminating(cause: .requested, from: .notRunning) }

    package mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.field(1, &cause)
        try coder.required(2, &from)
        try coder.optional(3, &deadline)
        try coder.optional(4, &next)
        try coder.optional(5, &exit)
    }
}

extension MainExit: SavedRecord {
    package static var blank: MainExit { MainExit(status: .unknown, cpu: .zero, peak: 0) }

    package mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.field(1, &status)
        try coder.field(2, &cpu)
        try coder.size(3, &peak)
        try coder.optional(4, &remaining)
    }
}

extension Ending: SavedRecord {
    package static var blank: Ending { Ending(.blank, cause: nil, from: .notRunning, start: .origin, warnAt: .origin) }

    package mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.required(1, &run)
        try coder.optional(2, &cause)
        try coder.required(3, &from)
        try coder.required(4, &start)
        try coder.required(5, &remains)
        try coder.flag(6, &isKilled)
        try coder.required(7, &warnAt)
        try coder.optional(8, &termination)
        // 9 is not used any more.
        try coder.optional(10, &relaunch)
        try coder.optional(11, &next)
    }
}

extension Ending.Remains: SavedUnion {
    package func save(to writer: inout ByteWriter) {
        switch self {
        case .everything: writer.put(case: 1)
        case .processes(let receipt): writer.put(case: 2, receipt)
        case .exitStatus: writer.put(case: 3)
        }
    }

    package init?(case number: UInt64, _ values: inout RecordReader) throws(SavedError) {
        switch number {
        case 1: self = .everything
        case 2: self = .processes(try values.next())
        case 3: self = .exitStatus
        default: return nil
        }
    }
}

/// The apps that jetsam could have killed, as one value of a case.
private struct Candidates: SavedRecord {
    static var blank: Candidates { Candidates(list: []) }
    var list: [Receipt.Candidate]

    mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.list(1, &list, upTo: Receipt.maximumCandidates)
    }
}

extension JetsamContext: SavedRecord {
    package static var blank: JetsamContext { JetsamContext() }

    package mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.optional(1, &survivor)
        try coder.flag(2, &hadNoTime)
        try coder.optional(3, &excess)
    }
}

extension JetsamContext.Excess: SavedRecord {
    package static var blank: JetsamContext.Excess { JetsamContext.Excess(size: 0, budget: 0) }

    package mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.size(1, &size)
        try coder.size(2, &budget)
    }
}

/// The names of tasks, as one value of a case.
private struct TaskNames: SavedRecord {
    static var blank: TaskNames { TaskNames(list: []) }
    var list: [String]

    mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.list(1, &list, upTo: LifecycleCore.maximumTasks + 1)
    }
}

extension RecordReader {
    fileprivate mutating func nextCandidates() throws(SavedError) -> [Receipt.Candidate] {
        let candidates: Candidates = try next()
        return candidates.list
    }
}

extension TerminationCause: SavedUnion {
    package func save(to writer: inout ByteWriter) {
        switch self {
        case .requested: writer.put(case: 1)
        case .exitsOnSuspend: writer.put(case: 2)
        case .shutdown: writer.put(case: 3)
        case .selfInitiated: writer.put(case: 4)
        case .jetsam(let cause, let candidates): writer.put(case: 5, cause, Candidates(list: candidates))
        case .unloaded: writer.put(case: 6)
        }
    }

    package init?(case number: UInt64, _ values: inout RecordReader) throws(SavedError) {
        switch number {
        case 1: self = .requested
        case 2: self = .exitsOnSuspend
        case 3: self = .shutdown
        case 4: self = .selfInitiated
        case 5: self = .jetsam(try values.next(), try values.nextCandidates())
        case 6: self = .unloaded
        default: return nil
        }
    }
}

extension KillCause: SavedUnion {
    package func save(to writer: inout ByteWriter) {
        switch self {
        case .missedDeadline(let use): writer.put(case: 1, use)
        case .leakedTasks(let names, let use): writer.put(case: 2, TaskNames(list: names), use)
        case .wakeNotCompleted(let reason, let use): writer.put(case: 3, reason, use)
        case .tooManyTasks(let count): writer.put(case: 4, count)
        case .removed: writer.put(case: 5)
        case .terminatedWithoutNotice: writer.put(case: 6)
        case .shutdown: writer.put(case: 7)
        case .jetsam(let cause, let candidates, JetsamContext()):
            writer.put(case: 8, cause, Candidates(list: candidates))
        case .terminationIgnored(let cause, let use): writer.put(case: 9, cause, use)
        case .jetsam(let cause, let candidates, let context):
            writer.put(case: 10, cause, Candidates(list: candidates), context)
        case .overMemoryLimit(let limit, let size): writer.put(case: 11, SavedSize(limit), SavedSize(size))
        case .heldLocks(let locks): writer.put(case: 12, locks)
        case .overProcessorLimit(let use): writer.put(case: 13, use)
        case .unloaded: writer.put(case: 14)
        case .usedGPU(let time): writer.put(case: 150, time)
        case .terminationAnswered(let cause, nil): writer.put(case: 20, cause)
        case .terminationAnswered(let cause, let use?): writer.put(case: 21, cause, use)
        }
    }

    package init?(case number: UInt64, _ values: inout RecordReader) throws(SavedError) {
        switch number {
        case 1: self = .missedDeadline(try values.next())
        case 2:
            let names: TaskNames = try values.next()
            self = .leakedTasks(names.list, try values.next())
        case 3: self = .wakeNotCompleted(try values.next(), try values.next())
        case 4: self = .tooManyTasks(try values.next())
        case 5: self = .removed
        case 6: self = .terminatedWithoutNotice
        case 7: self = .shutdown
        case 8: self = .jetsam(try values.next(), try values.nextCandidates(), JetsamContext())
        case 9: self = .terminationIgnored(try values.next(), try values.next())
        case 10: self = .jetsam(try values.next(), try values.nextCandidates(), try values.next())
        case 11:
            let limit: SavedSize = try values.next()
            let size: SavedSize = try values.next()
            self = .overMemoryLimit(limit: limit.bytes, size: size.bytes)
        case 12: self = .heldLocks(try values.next())
        case 13: self = .overProcessorLimit(try values.next())
        case 14: self = .unloaded
        case 150: self = .usedGPU(try values.next())
        case 20: self = .terminationAnswered(try values.next(), nil)
        case 21:
            let (cause, use): (TerminationCause, Receipt.DeadlineUse) = (try values.next(), try values.next())
            self = .terminationAnswered(cause, use)
        default: return nil
        }
    }
}
