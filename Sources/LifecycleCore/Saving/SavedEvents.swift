/// Events as the daemon logs them, so that a daemon that follows a crash decides again what was decided. Only the version
/// that wrote a log of events replays it.
extension Event: SavedUnion {
    package func save(to writer: inout ByteWriter) {
        switch self {
        case .run(let run, let event): writer.put(case: 1, run, event)
        case .registered(let id, let policy, let launches): writer.put(case: 2, id, policy, launches)
        case .unregistered(let id): writer.put(case: 3, id)
        case .configured(let policy): writer.put(case: 4, policy)
        case .started: writer.put(case: 5)
        case .recovered: writer.put(case: 6)
        case .requested(let request, let id, let what, let requester): writer.put(case: 7, request, id, what, requester)
        case .requestAbandoned(let request): writer.put(case: 8, request)
        case .shutdownRequested(let immediately): writer.put(case: 9, immediately)
        case .sleepRequested: writer.put(case: 10)
        case .awoke: writer.put(case: 11)
        case .locked: writer.put(case: 12)
        case .unlocked: writer.put(case: 13)
        case .deadlineReached: writer.put(case: 14)
        case .memoryMeasured(let reading): writer.put(case: 15, reading)
        case .pressureStalled(let level): writer.put(case: 16, level)
        case .pressureSimulated(let request, let level): writer.put(case: 17, request, level)
        case .socketsReady(let id, let input): writer.put(case: 18, id, input)
        case .timer(let id, let event): writer.put(case: 30, id, event)
        case .observed(let notification, of: nil): writer.put(case: 100, notification)
        case .observed(let notification, of: let id?): writer.put(case: 101, notification, id)
        }
    }

    package init?(case number: UInt64, _ values: inout RecordReader) throws(SavedError) {
        switch number {
        case 1: self = .run(try values.next(), try values.next())
        case 2: self = .registered(try values.next(), try values.next(), launches: try values.next())
        case 3: self = .unregistered(try values.next())
        case 4: self = .configured(try values.next())
        case 5: self = .started
        case 6: self = .recovered
        case 7: self = .requested(try values.next(), try values.next(), try values.next(), by: try values.next())
        case 8: self = .requestAbandoned(try values.next())
        case 9: self = .shutdownRequested(immediately: try values.next())
        case 10: self = .sleepRequested
        case 11: self = .awoke
        case 12: self = .locked
        case 13: self = .unlocked
        case 14: self = .deadlineReached
        case 15: self = .memoryMeasured(try values.next())
        case 16: self = .pressureStalled(try values.next())
        case 17: self = .pressureSimulated(try values.next(), try values.next())
        case 18: self = .socketsReady(try values.next(), try values.next())
        case 30: self = .timer(try values.next(), try values.next())
        case 100: self = .observed(try values.next())
        case 101: self = .observed(try values.next(), of: try values.next())
        default: return nil
        }
    }
}

extension RunEvent: SavedUnion {
    package func save(to writer: inout ByteWriter) {
        switch self {
        case .spawned(let pid): writer.put(case: 1, pid)
        case .executed: writer.put(case: 2)
        case .spawnFailed(let problem): writer.put(case: 3, problem)
        case .notified(let notice, let delivered, let cpu): writer.put(case: 4, notice, delivered, cpu)
        case .frozen(let attempt, let memory, 0): writer.put(case: 5, attempt, SavedSize(memory))
        case .frozen(let attempt, let memory, let uncertainty):
            writer.put(case: 60, attempt, SavedSize(memory), SavedSize(uncertainty))
        case .thawed(let attempt): writer.put(case: 6, attempt)
        case .inspected(let inspection): writer.put(case: 7, inspection)
        case .exited(let status, let cpu, let memory, let remaining):
            writer.put(case: 8, status, cpu, SavedSize(memory), SavedRemaining(value: remaining))
        case .emptied: writer.put(case: 9)
        case .reattached(let messagesKept, let noticesDelayed): writer.put(case: 10, messagesKept, noticesDelayed)
        case .ready: writer.put(case: 11)
        case .backgroundEntered: writer.put(case: 12)
        case .stopped: writer.put(case: 13)
        case .continued: writer.put(case: 14)
        case .taskBegan(let name, let owner): writer.put(case: 15, name, owner)
        case .taskEnded(let name): writer.put(case: 16, name)
        case .taskProgressed(let name, let progress): writer.put(case: 210, name, progress)
        case .modeBegan(let mode): writer.put(case: 70, mode)
        case .modeEnded(let mode): writer.put(case: 71, mode)
        case .inhibitorChanged(let inhibitor?): writer.put(case: 72, inhibitor)
        case .inhibitorChanged(nil): writer.put(case: 73)
        case .modesShown(let modes): writer.put(case: 180, modes)
        case .modesUnused(let modes): writer.put(case: 190, modes)
        case .scene(.began(let id, let role)): writer.put(case: 120, id, role)
        case .scene(.ended(let id)): writer.put(case: 121, id)
        case .timeoutExtended(let time): writer.put(case: 17, time)
        case .wakeCompleted(let result, nil): writer.put(case: 18, result)
        case .wakeCompleted(let result, let id?): writer.put(case: 31, result, id)
        case .heartbeat: writer.put(case: 19)
        case .heartbeatGivenUp: writer.put(case: 20)
        case .stopping: writer.put(case: 21)
        case .mainProcessChanged(let pid): writer.put(case: 22, pid)
        case .freezeLost(let attempt): writer.put(case: 23, attempt)
        case .footprintMeasured(let attempt, let memory): writer.put(case: 24, attempt, SavedSize(memory))
        case .activityMeasured(let activity): writer.put(case: 25, activity)
        case .outOfMemory(let cause): writer.put(case: 26, cause)
        case .inputWatched(let attempt, let watch): writer.put(case: 27, attempt, watch)
        case .inputArrived(let attempt, let input): writer.put(case: 28, attempt, input)
        case .workMeasured(let work): writer.put(case: 29, work)
        case .locksFound(let attempt, let locks): writer.put(case: 30, attempt, locks)
        case .notificationDelayed(let wake): writer.put(case: 40, wake)
        case .processorMeasured(let used, let waited): writer.put(case: 41, used, waited)
        case .attached(let handled): writer.put(case: 50, UInt64(handled.rawValue))
        case .terminationAnswered: writer.put(case: 51)
        case .idleHinted(let isIdle): writer.put(case: 52, isIdle)
        case .snapshotTaken: writer.put(case: 140)
        case .sceneSnapshotTaken(let scene): writer.put(case: 181, scene)
        case .withdrawn: writer.put(case: 182)
        case .gpuUsed(let time): writer.put(case: 150, time)
        case .heartbeatTimeChanged(let time): writer.put(case: 62, time)
        case .hookEnded(let number, let outcome): writer.put(case: 80, number, outcome)
        case .reclaimed(let attempt, let bytes): writer.put(case: 110, attempt, SavedSize(bytes))
        case .sizeMeasured(let bytes, let estimate): writer.put(case: 61, SavedSize(bytes), SavedSize(estimate))
        }
    }

    package init?(case number: UInt64, _ values: inout RecordReader) throws(SavedError) {
        switch number {
        case 1: self = .spawned(pid: try values.next())
        case 2: self = .executed
        case 3: self = .spawnFailed(try values.next())
        case 4: self = .notified(try values.next(), delivered: try values.next(), cpu: try values.next())
        case 5: self = .frozen(attempt: try values.next(), memory: try values.nextSize())
        case 6: self = .thawed(attempt: try values.next())
        case 7: self = .inspected(try values.next())
        case 8:
            let (status, cpu, memory): (ExitStatus, Duration, UInt64) =
                (try values.next(), try values.next(), try values.nextSize())
            let remaining: SavedRemaining = try values.next()
            self = .exited(status, cpu: cpu, memory: memory, remaining: remaining.value)
        case 9: self = .emptied
        case 10: self = .reattached(messagesKept: try values.next(), noticesDelayed: try values.next())
        case 11: self = .ready
        case 12: self = .backgroundEntered
        case 13: self = .stopped
        case 14: self = .continued
        case 15: self = .taskBegan(name: try values.next(), owner: try values.next())
        case 16: self = .taskEnded(name: try values.next())
        case 17: self = .timeoutExtended(by: try values.next())
        case 18: self = .wakeCompleted(try values.next())
        case 19: self = .heartbeat
        case 20: self = .heartbeatGivenUp
        case 21: self = .stopping
        case 22: self = .mainProcessChanged(pid: try values.next())
        case 23: self = .freezeLost(attempt: try values.next())
        case 24: self = .footprintMeasured(attempt: try values.next(), memory: try values.nextSize())
        case 25: self = .activityMeasured(try values.next())
        case 26: self = .outOfMemory(try values.next())
        case 27: self = .inputWatched(attempt: try values.next(), try values.next())
        case 28: self = .inputArrived(attempt: try values.next(), try values.next())
        case 29: self = .workMeasured(try values.next())
        case 30: self = .locksFound(attempt: try values.next(), try values.next())
        case 31:
            let (result, id): (WakeResult, UInt64) = (try values.next(), try values.next())
            self = .wakeCompleted(result, id: id)
        case 40: self = .notificationDelayed(wake: try values.next())
        case 41: self = .processorMeasured(used: try values.next(), waited: try values.next())
        case 50: self = .attached(HandledNotices(rawValue: UInt32(truncatingIfNeeded: try values.next() as UInt64)))
        case 51: self = .terminationAnswered
        case 52: self = .idleHinted(try values.next())
        case 140: self = .snapshotTaken
        case 181: self = .sceneSnapshotTaken(try values.next())
        case 182: self = .withdrawn
        case 210: self = .taskProgressed(name: try values.next(), try values.next())
        case 150: self = .gpuUsed(try values.next())
        case 60:
            self = .frozen(
                attempt: try values.next(), memory: try values.nextSize(), uncertainty: try values.nextSize())
        case 61: self = .sizeMeasured(bytes: try values.nextSize(), estimate: try values.nextSize())
        case 70: self = .modeBegan(try values.next())
        case 71: self = .modeEnded(try values.next())
        case 72: self = .inhibitorChanged(try values.next())
        case 73: self = .inhibitorChanged(nil)
        case 180: self = .modesShown(try values.next())
        case 190: self = .modesUnused(try values.next())
        case 80: self = .hookEnded(number: try values.next(), try values.next())
        case 110: self = .reclaimed(attempt: try values.next(), bytes: try values.nextSize())
        case 120: self = .scene(.began(try values.next(), try values.next()))
        case 121: self = .scene(.ended(try values.next()))
        case 62: self = .heartbeatTimeChanged(to: try values.next())
        default: return nil
        }
    }
}

extension RecordReader {
    /// The next value of a case, a size in bytes.
    mutating func nextSize() throws(SavedError) -> UInt64 {
        let size: SavedSize = try next()
        return size.bytes
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

extension Request: SavedUnion {
    package func save(to writer: inout ByteWriter) {
        switch self {
        case .launch(let state, let reason, let url, let environment):
            writer.put(case: 1, Launch(state: state, reason: reason, url: url, environment: environment))
        case .activate: writer.put(case: 2)
        case .background: writer.put(case: 3)
        case .interrupt: writer.put(case: 4)
        case .endInterruption: writer.put(case: 5)
        case .terminate: writer.put(case: 6)
        case .remove: writer.put(case: 7)
        case .push(let payload): writer.put(case: 8, payload)
        case .send(let notification): writer.put(case: 9, notification)
        case .interruptWhileConnected: writer.put(case: 10)
        case .open(let url): writer.put(case: 20, url)
        case .scene(let id, let what): writer.put(case: 120, id, what)
        case .cancelTask(let name): writer.put(case: 210, name)
        }
    }

    package init?(case number: UInt64, _ values: inout RecordReader) throws(SavedError) {
        switch number {
        case 1:
            let launch: Launch = try values.next()
            self = .launch(
                launch.state, reason: launch.reason, url: launch.url, environment: launch.environment)
        case 2: self = .activate
        case 3: self = .background
        case 4: self = .interrupt
        case 5: self = .endInterruption
        case 6: self = .terminate
        case 7: self = .remove
        case 8: self = .push(payload: try values.next())
        case 9: self = .send(try values.next())
        case 10: self = .interruptWhileConnected
        case 20: self = .open(url: try values.next())
        case 120: self = .scene(try values.next(), try values.next())
        case 210: self = .cancelTask(name: try values.next())
        default: return nil
        }
    }
}

extension Requester: SavedUnion {
    package func save(to writer: inout ByteWriter) {
        switch self {
        case .user: writer.put(case: 1)
        case .app(nil): writer.put(case: 2)
        case .app(let id?): writer.put(case: 3, id)
        }
    }

    package init?(case number: UInt64, _ values: inout RecordReader) throws(SavedError) {
        switch number {
        case 1: self = .user
        case 2: self = .app(nil)
        case 3: self = .app(try values.next())
        default: return nil
        }
    }
}

// MARK: Memory

extension MemoryReading: SavedRecord {
    package static var blank: MemoryReading { MemoryReading(total: 0, available: 0, sizes: []) }

    package mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.size(1, &total)
        try coder.size(2, &available)
        try coder.list(3, &sizes, upTo: SavedLimits.apps)
        try coder.size(4, &swapTotal)
        try coder.size(5, &swapFree)
        try coder.size(6, &refaulted)
        try coder.optional(7, &limit)
        try coder.optional(8, &stalls)
        try coder.sparseSize(9, &stored)
    }
}

extension MemoryReading.Limit: SavedRecord {
    package static var blank: MemoryReading.Limit { MemoryReading.Limit(group: "", total: 0, available: 0) }

    package mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.required(1, &group)
        try coder.size(2, &total)
        try coder.size(3, &available)
        try coder.size(4, &kills)
    }
}

extension MemoryReading.Stalls: SavedRecord {
    package static var blank: MemoryReading.Stalls { MemoryReading.Stalls(some: .zero, full: .zero) }

    package mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.required(1, &some)
        try coder.required(2, &full)
    }
}

extension MemoryReading.Size: SavedRecord {
    package static var blank: MemoryReading.Size { MemoryReading.Size(run: RunID(0), bytes: 0) }

    package mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.required(1, &run)
        try coder.size(2, &bytes)
        try coder.sparseSize(3, &uncertainty)
    }
}
