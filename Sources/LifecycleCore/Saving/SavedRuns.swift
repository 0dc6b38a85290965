extension Deadline: SavedRecord {
    package static var blank: Deadline { Deadline(kind: .launch, start: .origin, allowed: .zero) }

    package mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.required(1, &kind)
        try coder.required(2, &start)
        try coder.required(3, &allowed)
        try coder.flag(4, &isInspected)
        try coder.flag(5, &isDoubtful)
        try coder.field(6, &debugged)
        try coder.field(7, &credited)
    }
}

extension Assertion: SavedRecord {
    package static var blank: Assertion { Assertion(kind: .task(name: ""), owner: .daemon, began: .origin) }

    package mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.required(1, &kind)
        try coder.field(2, &owner)
        try coder.required(3, &began)
        try coder.optional(4, &end)
        try coder.flag(5, &isDoubtful)
        try coder.flag(6, &isOfUser)
        try coder.flag(7, &isCancelled)
        try coder.optional(8, &progress)
    }
}

extension OpenProgress.Continuation: SavedCase {}

extension OpenProgress: SavedRecord {
    package static var blank: OpenProgress { OpenProgress(report: .blank, advanced: .origin, published: .origin) }

    package mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.required(1, &report)
        try coder.required(2, &advanced)
        try coder.field(3, &published)
        try coder.field(4, &continuation, unless: .no)
    }
}

extension TaskProgress: SavedRecord {
    package static var blank: TaskProgress { TaskProgress(trusted: 0, 0, "") }

    package mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        var (done, total, title) = (done, total, title)
        try coder.required(1, &done)
        try coder.required(2, &total)
        try coder.required(3, &title)
        self = TaskProgress(trusted: done, total, title)
    }

    package var fault: String? {
        TaskProgress(done: done, total: total, title: title) == nil
            ? "the progress of a task: expected \(Self.rule)" : nil
    }
}

extension Assertion.Kind: SavedUnion {
    package func save(to writer: inout ByteWriter) {
        switch self {
        case .task(let name): writer.put(case: 1, name)
        case .wake(let wake): writer.put(case: 2, wake)
        }
    }

    package init?(case number: UInt64, _ values: inout RecordReader) throws(SavedError) {
        switch number {
        case 1: self = .task(name: try values.next())
        case 2: self = .wake(try values.next())
        default: return nil
        }
    }
}

extension HeldMode: SavedRecord {
    package static var blank: HeldMode { HeldMode(kind: .mode([]), began: .origin) }

    package mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.required(1, &kind)
        try coder.required(2, &began)
    }
}

/// What sources outside the program show of it, and since when the modes among them that its manifest declares hold it awake.
private struct ShownModes: SavedRecord, Equatable {
    var all: BackgroundModes = []
    var held: [HeldMode] = []

    static var blank: ShownModes { ShownModes() }

    mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.required(1, &all)
        try coder.list(2, &held, upTo: LifecycleCore.maximumModes)
        for position in held.indices { held[position].isShown = true }
    }

    var fault: String? { held.contains { $0.mode == nil } ? "an inhibitor among the modes that sources show" : nil }
}

extension HeldMode.Kind: SavedUnion {
    package func save(to writer: inout ByteWriter) {
        switch self {
        case .mode(let mode): writer.put(case: 1, mode)
        case .inhibitor(let text): writer.put(case: 2, text)
        }
    }

    package init?(case number: UInt64, _ values: inout RecordReader) throws(SavedError) {
        switch number {
        case 1: self = .mode(try values.next())
        case 2: self = .inhibitor(try values.next())
        default: return nil
        }
    }
}

extension Assertion.Owner: SavedUnion {
    package func save(to writer: inout ByteWriter) {
        switch self {
        case .process(let pid): writer.put(case: 1, pid)
        case .daemon: writer.put(case: 2)
        }
    }

    package init?(case number: UInt64, _ values: inout RecordReader) throws(SavedError) {
        switch number {
        case 1: self = .process(try values.next())
        case 2: self = .daemon
        default: return nil
        }
    }
}

extension Wake: SavedRecord {
    package static var blank: Wake { Wake(reason: .push, deadline: .blank, mustComplete: false) }

    package mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.field(1, &reason)
        try coder.required(2, &deadline)
        try coder.flag(3, &mustComplete)
        try coder.sparse(4, &id)
        try coder.flag(5, &isUnrequested)
    }

    package var fault: String? { deadline.fault(unless: .wake) }
}

extension AssertionList: SavedRecord {
    package static var blank: AssertionList { AssertionList() }

    /// Without the wakes after the oldest one, of which earlier releases know nothing: they are a field of the run.
    package mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        var saved = all
        try coder.list(1, &saved, upTo: LifecycleCore.maximumTasks + 2)
        self = AssertionList(saved: saved)
    }

    package var fault: String? { all.count { $0.taskName == nil } > 1 ? "two wakes at the same time" : nil }
}

extension PendingWake: SavedRecord {
    package static var blank: PendingWake { PendingWake(reason: .push, id: 0, isUnrequested: false) }

    package mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.field(1, &reason)
        try coder.required(2, &id)
        try coder.flag(3, &isUnrequested)
        try coder.flag(4, &isDoubtful)
        try coder.flag(5, &isExcused)
    }
}

extension BackgroundBudget: SavedUnion {
    package func save(to writer: inout ByteWriter) {
        switch self {
        case .idle: writer.put(case: 1)
        case .counting(let counting): writer.put(case: 2, counting.deadline, counting.isNoticeGiven)
        case .paused(let paused): writer.put(case: 3, paused.left, paused.isNoticeGiven)
        case .spent: writer.put(case: 4)
        }
    }

    package init?(case number: UInt64, _ values: inout RecordReader) throws(SavedError) {
        switch number {
        case 1: self = .idle
        case 2:
            let deadline: Deadline = try values.next()
            if let fault = deadline.fault(unless: .backgroundTime) { throw values.reader.error(fault) }
            self = .counting(Counting(deadline: deadline, isNoticeGiven: try values.next()))
        case 3: self = .paused(Paused(left: try values.next(), isNoticeGiven: try values.next()))
        case 4: self = .spent
        default: return nil
        }
    }
}

extension Deadline {
    fileprivate func fault(unless kind: DeadlineKind) -> String? {
        self.kind == kind ? nil : "a deadline for \(self.kind.rawValue) where one for \(kind.rawValue) was expected"
    }
}

extension Run: SavedRecord {
    package static var blank: Run { Run(id: RunID(0), created: .origin) }

    package mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.required(1, &id)
        try coder.required(2, &created)
        try coder.optional(3, &pid)
        try coder.flag(4, &isExecuted)
        try coder.size(5, &memory)
        try coder.field(6, &assertions)
        try coder.field(7, &budget)
        try coder.field(8, &interruptions)
        try coder.flag(9, &isTerminationRequested)
        try coder.flag(10, &isStopped)
        try coder.flag(11, &isThrottled)
        try coder.field(12, &freezeAttempt)
        try coder.field(13, &cpuAtLastNotice)
        try coder.flag(14, &takesPart)
        try coder.optional(15, &startUp)
        try coder.flag(16, &isUnrequested)
        try coder.list(17, &tiedInterruptions, upTo: LifecycleCore.maximumInterruptions)
        // Most apps are at their peak: nothing is saved then.
        var aboveSize = peakMemory - min(peakMemory, memory)
        try coder.sparseSize(18, &aboveSize)
        peakMemory = memory.addingReportingOverflow(aboveSize).partialValue
        try coder.sparseSize(19, &memoryBeforeEnd)
        try coder.optional(20, &outOfMemory)
        var laterWakes = assertions.laterWakes
        try coder.list(21, &laterWakes, upTo: LifecycleCore.maximumWakes)
        assertions.restoreLaterWakes(laterWakes)
        try coder.sparse(22, &traffic)
        try coder.optional(23, &lockHold)
        try coder.optional(24, &traffic.unwatchableSince)
        try coder.sparse(26, &processor)
        var handled = UInt64(self.handled.rawValue)
        try coder.sparse(27, &handled)
        self.handled = HandledNotices(rawValue: UInt32(truncatingIfNeeded: handled))
        try coder.optional(28, &sleptSince)
        try coder.optional(29, &idleHint)
        try coder.optional(30, &heartbeatTime)
        // Older releases do not know modes that sources show: the app could not end them there.
        var shown = ShownModes(all: shownModes, held: modes.filter(\.isShown))
        var asserted = modes.filter { !$0.isShown }
        try coder.list(31, &asserted, upTo: LifecycleCore.maximumModes)
        // The size of most runs is exact.
        let isCertain = size == SizeRecord(estimate: memory) || size == SizeRecord()
        var uncertain = isCertain ? nil : size
        try coder.optional(40, &uncertain)
        size = uncertain ?? SizeRecord(estimate: memory)
        try coder.optional(41, &hooks)
        var scenes = scenes ?? []
        try coder.list(60, &scenes, upTo: LifecycleCore.maximumScenes)
        self.scenes = scenes.isEmpty ? nil : scenes
        try coder.optional(70, &snapshotDue)
        try coder.flag(80, &isGPUWatched)
        try coder.field(120, &shown, unless: ShownModes())
        try coder.optional(121, &sceneSnapshots)
        try coder.optional(122, &withdrawal)
        try coder.field(130, &unusedModes, unless: [])
        shownModes = shown.all
        modes = asserted + shown.held
    }

    package var fault: String? {
        if let pid, pid < 0 { return "pid \(pid)" }
        guard freezeAttempt >= 0, (0...LifecycleCore.maximumInterruptions).contains(interruptions) else {
            return "\(interruptions) interruptions and \(freezeAttempt) freezes"
        }
        if !assertions.hasWakes, !assertions.laterWakes.isEmpty { return "later wakes without a first one" }
        if let scenes, Set(scenes.map(\.id)).count < scenes.count { return "a scene is there twice" }
        guard tiedInterruptions.count <= interruptions else {
            return "\(tiedInterruptions.count) of \(interruptions) interruptions end with their clients"
        }
        return nil
    }
}

extension Withdrawal: SavedRecord {
    package static var blank: Withdrawal { Withdrawal() }

    package mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.optional(1, &due)
    }
}

extension SizeRecord: SavedRecord {
    package static var blank: SizeRecord { SizeRecord() }

    package mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        var (estimate, doubt, exact) = (estimate, doubt, exact)
        try coder.size(1, &estimate)
        try coder.sparseSize(2, &doubt)
        try coder.optional(3, &exact)
        self = SizeRecord(estimate: estimate, doubt: doubt, exact: exact)
    }
}

extension SizeRecord.Exact: SavedRecord {
    package static var blank: SizeRecord.Exact { SizeRecord.Exact(bytes: 0, estimate: 0, at: .origin) }

    package mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.size(1, &bytes)
        try coder.size(2, &estimate)
        try coder.required(3, &at)
    }
}

extension StartUp: SavedRecord {
    package static var blank: StartUp { StartUp(began: .origin, time: nil) }

    package mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.required(1, &began)
        try coder.optional(2, &end)
        try coder.required(3, &checkAt)
        try coder.field(4, &used)
        try coder.required(5, &measuredAt)
        try coder.required(6, &activeAt)
        try coder.optional(7, &hiddenSockets)
    }
}

extension UnrequestedTime: SavedRecord {
    package static var blank: UnrequestedTime { UnrequestedTime() }

    package mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        var (minutes, since, isReported) = (minutes, since, isReported)
        try coder.list(1, &minutes, upTo: Self.maximumMinutes)
        try coder.optional(2, &since)
        try coder.flag(3, &isReported)
        self = UnrequestedTime(minutes: minutes, since: since, isReported: isReported)
    }

    package var fault: String? {
        let isSorted = zip(minutes, minutes.dropFirst()).allSatisfy { $0.number < $1.number }
        let isWithinMinutes = minutes.allSatisfy { $0.used >= .zero && $0.used <= .seconds(60) }
        return isSorted && isWithinMinutes ? nil : "the minutes of background time are out of order or too long"
    }
}

extension UnrequestedTime.Minute: SavedRecord {
    package static var blank: UnrequestedTime.Minute { UnrequestedTime.Minute(number: 0, used: .zero) }

    package mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.required(1, &number)
        try coder.required(2, &used)
    }
}

extension Waiter: SavedRecord {
    package static var blank: Waiter { Waiter(request: RequestID(0), goal: .awake) }

    package mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.required(1, &request)
        try coder.required(2, &goal)
        try coder.flag(3, &isAfterEnd)
    }
}

extension App: SavedRecord {
    package static var blank: App { App(id: .blank, policy: AppPolicy(), since: .origin, launches: 0) }

    package mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.required(1, &id)
        try coder.field(2, &policy)
        try coder.field(3, &isRegistered)
        try coder.flag(4, &isRemoved)
        try coder.required(5, &life)
        try coder.required(6, &since)
        try coder.field(7, &launches)
        try coder.optional(8, &lastReceipt)
        try coder.field(9, &notifications)
        try coder.list(10, &waiters, upTo: LifecycleCore.maximumWaiters)
        try coder.sparse(11, &earlyEnds)
        try coder.sparse(12, &launchDeaths)
        try coder.optional(13, &postponedUntil)
        try coder.field(14, &unrequestedTime)
        try coder.sparseSize(15, &lastFootprint)
        try coder.sparse(16, &returnFailures)
        try coder.optional(17, &returnedRun)
        try coder.flag(18, &isTaken)
        try coder.sparse(19, &credit.uses)
        credit.uses = min(credit.uses, JetsamCredit.maximumUses)
        try coder.sparse(20, &credit.level)
        var (pending, afterEnd, lastNumber) = (wakes.pending, wakes.afterEnd, wakes.lastNumber)
        try coder.list(21, &pending, upTo: LifecycleCore.maximumWakes)
        try coder.list(22, &afterEnd, upTo: LifecycleCore.maximumWakes)
        try coder.sparse(23, &lastNumber)
        wakes = PendingWakes(pending: pending, afterEnd: afterEnd, lastNumber: min(lastNumber, SavedLimits.counter))
        try coder.flag(24, &sockets.isWatched)
        try coder.optional(25, &sockets.wait)
        try coder.optional(26, &sockets.earlyExits)
        try coder.flag(27, &awaitsRequest)
        try coder.flag(28, &isToRemove)
        try coder.sparse(40, &urls)
        try coder.optional(50, &timers)
        var kept = keptScenes ?? []
        try coder.list(60, &kept, upTo: LifecycleCore.maximumScenes)
        keptScenes = kept.isEmpty ? nil : kept
        try coder.optional(70, &drySleep)
        var discarded = discardedScenes ?? []
        try coder.list(71, &discarded, upTo: LifecycleCore.maximumScenes)
        discardedScenes = discarded.isEmpty ? nil : discarded
    }

    package var fault: String? {
        guard launches >= 0, earlyEnds >= 0, launchDeaths >= 0, returnFailures >= 0 else {
            return "\(id) has a negative count"
        }
        if isRemoved, phase != .notRunning || !waiters.isEmpty { return "\(id) is removed and runs" }
        if let keptScenes {
            let all = keptScenes + (sharedRunStorage?.run.scenes ?? [])
            guard Set(all.map(\.id)).count == all.count, !keptScenes.contains(where: { $0.id == .main }) else {
                return "\(id) keeps a scene that it has"
            }
        }
        return nil
    }
}
