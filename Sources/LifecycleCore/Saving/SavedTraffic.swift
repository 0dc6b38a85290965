extension InputKind: SavedCase {}
extension InputWatch.Problem: SavedCase {}
extension WorkReason: SavedCase {}
extension WorkLookKind: SavedCase {}
extension RunWork.Wait: SavedCase {}

extension AppPolicy.KeepAwake: SavedValue {
    package static var form: SavedForm { .number }
    package func save(to writer: inout ByteWriter) { writer.put(number: UInt64(rawValue)) }
    package init(from reader: inout ByteReader) throws(SavedError) {
        self.init(rawValue: UInt8(try reader.number(upTo: 0xff, "KeepAwake=")))
    }
}

extension AppPolicy.WakeThreshold: SavedRecord {
    package static var blank: AppPolicy.WakeThreshold { AppPolicy.WakeThreshold() }

    package mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.size(1, &bytes)
        try coder.optional(2, &time)
    }
}

extension Input: SavedRecord {
    package static var blank: Input { Input(kind: .stream, pid: 0, descriptor: 0, bytes: 0) }

    package mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.field(1, &kind)
        try coder.required(2, &pid)
        try coder.required(3, &descriptor)
        try coder.sparse(4, &bytes)
        var peer = peer.isEmpty ? nil : peer
        try coder.optional(5, &peer)
        self.peer = peer ?? ""
        try coder.flag(6, &isEnd)
        try coder.flag(7, &isHalfFull)
        var isOwn = source == .own
        try coder.flag(8, &isOwn)
        source = isOwn ? .own : .outside
    }
}

extension InputWatch: SavedRecord {
    package static var blank: InputWatch { InputWatch() }

    package mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.sparse(1, &watched)
        try coder.list(2, &unwatched, upTo: Self.maximumUnwatched)
        try coder.sparse(3, &silent)
    }
}

extension InputWatch.Unwatched: SavedRecord {
    package static var blank: InputWatch.Unwatched { InputWatch.Unwatched(what: "", problem: .failed, count: 0) }

    package mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.required(1, &what)
        try coder.field(2, &problem)
        try coder.required(3, &count)
    }
}

extension RunWork: SavedRecord {
    package static var blank: RunWork { RunWork(cpu: .zero) }

    package mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.required(1, &cpu)
        try coder.flag(2, &isRunnable)
        try coder.flag(3, &hasNewProcesses)
        try coder.sparse(4, &unread)
        try coder.sparse(5, &unsent)
        // 6, 7 and 9 were requests and unusual waits, and 10 the shortest timeout.
        try coder.sparse(8, &connections)
        try coder.flag(11, &isIncomplete)
        try coder.flag(12, &isOwn)
        try coder.flag(13, &isBrief)
        try coder.optional(14, &wait)
        var detail = detail.isEmpty ? nil : detail
        try coder.optional(15, &detail)
        self.detail = detail ?? ""
        try coder.optional(16, &tick)
        try coder.optional(17, &traffic)
        try coder.optional(18, &due)
        try coder.flag(19, &hasSignalTimers)
    }
}

extension FileLocks: SavedRecord {
    package static var blank: FileLocks { FileLocks(count: 0, file: "") }

    package mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.required(1, &count)
        try coder.required(2, &file)
        try coder.flag(3, &isShared)
        try coder.flag(4, &isResource)
    }
}

extension Suspended: SavedRecord {
    package static var blank: Suspended { Suspended() }

    package mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.flag(1, &isWatching)
        try coder.optional(2, &watch)
        try coder.optional(3, &input)
        try coder.optional(4, &inputDue)
        try coder.optional(5, &deferred)
        try coder.optional(6, &look)
        try coder.optional(7, &timerDue)
        try coder.optional(8, &pulseDue)
        try coder.flag(9, &hasSignalTimers)
        try coder.optional(20, &reclaim)
    }
}

extension Reclaim: SavedUnion {
    func save(to writer: inout ByteWriter) {
        switch self {
        case .due(let at): writer.put(case: 1, at)
        case .underWay: writer.put(case: 2)
        case .done: writer.put(case: 3)
        case .waiting: writer.put(case: 4)
        }
    }

    init?(case number: UInt64, _ values: inout RecordReader) throws(SavedError) {
        switch number {
        case 1: self = .due(try values.next())
        case 2: self = .underWay
        case 3: self = .done
        case 4: self = .waiting
        default: return nil
        }
    }
}

extension DeferredInput: SavedRecord {
    package static var blank: DeferredInput { DeferredInput(input: nil, due: .origin) }

    package mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.optional(1, &input)
        try coder.required(2, &due)
    }
}

extension Traffic: SavedRecord {
    package static var blank: Traffic { Traffic() }

    package mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.sparse(1, &wakes)
        try coder.optional(2, &lastInput)
        try coder.optional(3, &lastInputAt)
        try coder.sparse(4, &quickWakes)
        try coder.optional(5, &awakeUntil)
        try coder.flag(6, &isUnwatchable)
        try coder.list(7, &unwatched, upTo: InputWatch.maximumUnwatched)
        try coder.optional(8, &shortestWait)
        try coder.optional(9, &watchAgainAt)
        try coder.optional(10, &momentSince)
        try coder.optional(11, &pulseTime)
        try coder.optional(12, &detail)
        try coder.flag(13, &hadNoWaker)
        try coder.optional(14, &sleepSince)
    }

    package var fault: String? {
        0...Self.maximumQuickWakes ~= quickWakes && wakes >= 0 ? nil : "\(wakes) and \(quickWakes) wakes by input"
    }
}

extension LockHold: SavedRecord {
    package static var blank: LockHold { LockHold(since: .origin, attempt: 0, retryAt: .origin, locks: .blank) }

    package mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.required(1, &since)
        try coder.required(2, &attempt)
        try coder.required(3, &retryAt)
        try coder.required(4, &locks)
    }
}

extension DrySleep: SavedRecord {
    package static var blank: DrySleep { DrySleep(since: .origin) }

    package mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.required(1, &since)
        try coder.optional(2, &cpu)
        try coder.field(3, &used)
        try coder.optional(4, &timerDue)
        try coder.sparse(5, &moments)
        try coder.flag(6, &hasMissedInput)
        try coder.optional(7, &tickUse)
    }
}

extension SocketWait: SavedRecord {
    package static var blank: SocketWait { SocketWait(since: .origin) }

    package mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.required(1, &since)
        try coder.flag(2, &isDatagram)
        try coder.flag(3, &isPostponed)
        try coder.optional(4, &watchedSince)
    }
}

extension EarlyExits: SavedRecord {
    package static var blank: EarlyExits { EarlyExits(since: .origin) }

    package mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.required(1, &since)
        try coder.required(2, &count)
    }

    package var fault: String? {
        0...LifecycleCore.maximumEarlyExits ~= count ? nil : "\(count) early exits"
    }
}

extension WorkLook: SavedRecord {
    package static var blank: WorkLook { WorkLook(nextAt: .origin, measuredAt: .origin) }

    package mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.required(1, &nextAt)
        try coder.optional(2, &before)
        try coder.required(3, &measuredAt)
        var isDone = !isAsked
        try coder.flag(4, &isDone)
        isAsked = !isDone
        try coder.optional(5, &reason)
        try coder.optional(6, &since)
        try coder.flag(8, &isHintedMeanwhile)
        var kind = kind == .first ? nil : kind
        try coder.optional(9, &kind)
        self.kind = kind ?? .first
    }
}
