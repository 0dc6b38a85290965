extension Deadline: Storable {
    func store(in writer: inout ByteWriter) {
        writer.put(kind)
        writer.put(start)
        writer.put(allowed)
        writer.put(isInspected)
        writer.put(isDoubtful)
    }

    init(from reader: inout ByteReader) throws(SavedError) {
        self.init(kind: try reader.take(), start: try reader.take(), allowed: try reader.take())
        isInspected = try reader.flag()
        isDoubtful = try reader.flag()
    }
}

extension BackgroundTask: Storable {
    func store(in writer: inout ByteWriter) {
        writer.put(text: name)
        writer.put(began)
        writer.put(signed: Int64(owner))
        writer.put(end)
        writer.put(isDoubtful)
    }

    init(from reader: inout ByteReader) throws(SavedError) {
        let name = try reader.text(upTo: SavedLimits.text, "a task's name")
        self.init(
            name: name, began: try reader.take(), owner: try reader.int32("an owner"), end: try reader.optional())
        isDoubtful = try reader.flag()
    }
}

extension Wake: Storable {
    func store(in writer: inout ByteWriter) {
        writer.put(reason)
        writer.put(deadline)
        writer.put(mustComplete)
    }

    init(from reader: inout ByteReader) throws(SavedError) {
        self.init(reason: try reader.take(), deadline: try reader.take(), mustComplete: try reader.flag())
    }
}

extension Run: Storable {
    func store(in writer: inout ByteWriter) {
        writer.put(id)
        writer.put(created)
        writer.put(pid: pid)
        writer.put(size: memory)
        writer.put(tasks)
        writer.put(counter: interruptions)
        for flag in [isExecuted, isEndWanted, isStopped, isThrottled, isBackgroundTimeOver, noticeGiven] {
            writer.put(flag)
        }
        writer.put(backgroundTime)
        writer.put(backgroundTimeLeft)
        writer.put(wake)
        writer.put(counter: freezeAttempt)
        writer.put(cpuWhenTold)
    }

    init(from reader: inout ByteReader) throws(SavedError) {
        self.init(id: try reader.take(), created: try reader.take())
        pid = try reader.pid()
        memory = try reader.size()
        tasks = try reader.take(upTo: LifecycleCore.maximumTasks + 1, "tasks")
        interruptions = Int(
            try reader.number(upTo: UInt64(LifecycleCore.maximumInterruptions), "interruptions"))
        isExecuted = try reader.flag()
        isEndWanted = try reader.flag()
        isStopped = try reader.flag()
        isThrottled = try reader.flag()
        isBackgroundTimeOver = try reader.flag()
        noticeGiven = try reader.flag()
        backgroundTime = try reader.optional()
        backgroundTimeLeft = try reader.optional()
        wake = try reader.optional()
        freezeAttempt = try reader.counter("attempt")
        cpuWhenTold = try reader.take()
        for (deadline, kind) in [(backgroundTime, DeadlineKind.backgroundTime), (wake?.deadline, .wake)] {
            guard deadline.map({ $0.kind == kind }) ?? true else {
                throw reader.error("a deadline of another kind than \(kind.rawValue)")
            }
        }
    }
}

extension Waiter: Storable {
    func store(in writer: inout ByteWriter) {
        writer.put(request)
        writer.put(goal)
        writer.put(isAfterEnd)
    }

    init(from reader: inout ByteReader) throws(SavedError) {
        self.init(request: try reader.take(), goal: try reader.take(), isAfterEnd: try reader.flag())
    }
}

extension App: Storable {
    func store(in writer: inout ByteWriter) {
        writer.put(id)
        writer.put(policy)
        writer.put(isRegistered)
        writer.put(isForgotten)
        writer.put(isHeldBack)
        writer.put(phase)
        writer.put(since)
        writer.put(run)
        writer.put(counter: launches)
        writer.put(lastReceipt.map(StoredSetting.init))
        writer.put(notifications)
        writer.put(waiters)
        writer.put(counter: earlyEnds)
        writer.put(counter: launchDeaths)
        writer.put(postponedUntil)
    }

    init(from reader: inout ByteReader) throws(SavedError) {
        let id: AppID = try reader.take()
        let policy: AppPolicy = try reader.take()
        let isRegistered = try reader.flag()
        let isForgotten = try reader.flag()
        let isHeldBack = try reader.flag()
        let phase: Phase = try reader.take()
        let since: Instant = try reader.take()
        let run: Run? = try reader.optional()
        let launches = try reader.counter("launches")
        self.init(id: id, policy: policy, since: since, launches: launches)
        self.isRegistered = isRegistered
        self.isForgotten = isForgotten
        self.isHeldBack = isHeldBack
        self.phase = phase
        self.run = run
        lastReceipt = try reader.setting()
        notifications = try reader.take()
        waiters = try reader.take(upTo: SavedLimits.waiters, "waiters")
        earlyEnds = try reader.counter("early ends")
        launchDeaths = try reader.counter("deaths in launch")
        postponedUntil = try reader.optional()
        let hasRun = run != nil
        guard hasRun != phase.isNotRunning else {
            throw reader.error("\(id) is \(phase.state) with\(hasRun ? "" : "out") a run")
        }
        guard !isForgotten || (!hasRun && waiters.isEmpty) else { throw reader.error("\(id) is forgotten, and runs") }
    }
}

extension Phase {
    var isNotRunning: Bool { if case .notRunning = self { true } else { false } }
}
