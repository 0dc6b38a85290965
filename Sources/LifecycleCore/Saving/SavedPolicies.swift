extension AppPolicy: SavedRecord {
    package static var blank: AppPolicy { AppPolicy() }

    package mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.field(1, &readiness)
        try coder.optional(2, &launchAtStart)
        try coder.field(3, &relaunch)
        try coder.nullable(4, &launchDeadline)
        try coder.nullable(5, &backgroundDeadline)
        try coder.nullable(6, &terminateDeadline)
        try coder.nullable(7, &extendedDeadlineMax)
        try coder.nullable(8, &backgroundTime)
        try coder.field(9, &expirationNotice)
        try coder.field(10, &suspendDelay)
        try coder.optional(11, &watchdog)
        try coder.flag(12, &exitsOnSuspend)
        try coder.flag(13, &usesProtectedData)
        try coder.field(14, &backgroundModes)
        try coder.field(15, &jetsamPriority)
        try coder.optional(16, &memoryHigh)
        try coder.optional(17, &suspendedMemoryHigh)
        try coder.field(18, &killMode)
        try coder.field(19, &terminateSuspended)
        try coder.nullable(20, &startUpTime)
        try coder.nullable(21, &backgroundTimePerHour)
        try coder.optional(22, &memoryMax)
        try coder.optional(23, &suspendedMemoryMax)
        var role = role == .app ? nil : role
        try coder.optional(24, &role)
        self.role = role ?? .app
        try coder.flag(25, &wakesOnTraffic)
        try coder.sparse(26, &wakeThreshold)
        var idle = idleTime == .seconds(10) ? nil : idleTime
        try coder.optional(27, &idle)
        idleTime = idle ?? .seconds(10)
        var keepAwake = keepAwake == [.cpu, .requests] ? nil : keepAwake
        try coder.optional(28, &keepAwake)
        self.keepAwake = keepAwake ?? [.cpu, .requests]
        var request = requestTime == .seconds(90) ? nil : requestTime
        try coder.optional(29, &request)
        requestTime = request ?? .seconds(90)
        var share = idleProcessorShare == 10 ? nil : idleProcessorShare
        try coder.optional(30, &share)
        idleProcessorShare = share ?? 10
        try coder.optional(31, &backgroundCPU)
        var limit = backgroundCPULimit == 800 ? nil : backgroundCPULimit
        try coder.optional(32, &limit)
        backgroundCPULimit = min(max(1, limit ?? 800), Self.largestBackgroundCPULimit)
        var time = backgroundCPUTime == .seconds(60) ? nil : backgroundCPUTime
        try coder.optional(33, &time)
        backgroundCPUTime = time ?? .seconds(60)
        try coder.flag(34, &holdsSockets)
        // Only what is not the default is saved; zero stands for `nil`, which is no valid setting.
        var wait = connectionWait == .seconds(60) ? nil : connectionWait ?? .zero
        try coder.optional(35, &wait)
        connectionWait = wait.map { $0 == .zero ? nil : $0 } ?? .seconds(60)
        try coder.optional(36, &unloadAfter)
        try coder.flag(37, &isTransient)
        var pulse = pulseTime == .seconds(20) ? nil : pulseTime
        try coder.optional(38, &pulse)
        pulseTime = pulse ?? .seconds(20)
        var ignoresTimers = !keepsTimers
        try coder.flag(39, &ignoresTimers)
        keepsTimers = !ignoresTimers
        try codeFurther(&coder)
    }

    private mutating func codeFurther<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        var hooks = hooks.isEmpty ? nil : hooks
        try coder.optional(40, &hooks)
        self.hooks = hooks ?? []
        try coder.flag(50, &hasTimers)
        try coder.field(60, &suspension, unless: .yes)
        try coder.flag(70, &isAttached)
        try coder.field(80, &notifications, unless: [])
        try coder.field(100, &reclaim, unless: .automatic)
        try coder.flag(130, &hidesSnapshot)
        try coder.flag(140, &waitsForRelease)
        try coder.flag(150, &forbidsBackgroundGPU)
        try coder.flag(170, &isEssential)
        try coder.optional(180, &seat)
        // Only what is not the default is saved. A time and `infinity` have a field each: zero is a setting, too.
        var time = taskProgressTime == .seconds(30) ? nil : taskProgressTime
        var isUnlimited = taskProgressTime == nil
        try coder.optional(210, &time)
        try coder.flag(211, &isUnlimited)
        taskProgressTime = isUnlimited ? nil : time ?? .seconds(30)
    }
}

extension ManagerPolicy: SavedRecord {
    package static var blank: ManagerPolicy { ManagerPolicy() }

    package mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        // 0.2.0 wrote 4 and 5, also for its defaults.
        var (oldWarning, oldCritical): (MemoryAmount?, MemoryAmount?) = (nil, nil)
        try coder.field(1, &foregroundLimit)
        try coder.optional(2, &budget)
        try coder.field(3, &jetsamOrder)
        try coder.optional(4, &oldWarning)
        try coder.optional(5, &oldCritical)
        try coder.optional(6, &launchesAtOnce)
        try coder.optional(7, &warningAvailable)
        try coder.optional(8, &criticalAvailable)
        try coder.flag(9, &isDryRun)
        var tasks = continuedTasks == 4 ? nil : continuedTasks
        var isUnlimited = continuedTasks == nil
        try coder.optional(10, &tasks)
        try coder.flag(11, &isUnlimited)
        continuedTasks = isUnlimited ? nil : max(0, tasks ?? 4)
        if let oldWarning, oldWarning != .percent(10) { warningAvailable = warningAvailable ?? oldWarning }
        if let oldCritical, oldCritical != .percent(5) { criticalAvailable = criticalAvailable ?? oldCritical }
    }
}

extension MemoryAmount: SavedUnion {
    package func save(to writer: inout ByteWriter) {
        switch self {
        case .bytes(let bytes): writer.put(case: 1, bytes)
        case .percent(let percent): writer.put(case: 2, percent)
        }
    }

    package init?(case number: UInt64, _ values: inout RecordReader) throws(SavedError) {
        switch number {
        case 1: self = .bytes(try values.next())
        case 2: self = .percent(try values.next())
        default: return nil
        }
    }
}

extension Launch: SavedRecord {
    package static var blank: Launch { Launch(state: .foreground, reason: .user) }

    package mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.required(1, &state)
        try coder.field(2, &reason)
        try coder.optional(3, &url)
        try coder.flag(4, &isFirst)
        try coder.flag(5, &isUnrequested)
        try coder.list(6, &environment, upTo: Self.maximumVariables)
    }
}

extension Notification: SavedUnion {
    /// Events have a third value, which earlier releases skip.
    package func save(to writer: inout ByteWriter) {
        if id == 0 { writer.put(case: 1, kind, payload) } else { writer.put(case: 1, kind, payload, id) }
    }

    package init?(case number: UInt64, _ values: inout RecordReader) throws(SavedError) {
        guard number == 1 else { return nil }
        let kind: String = try values.next()
        let payload: String = try values.next()
        if kind == Self.push, payload.utf8.count <= Self.maximumPush {
            self.init(pushed: payload)
        } else if let notification = Notification(kind: kind, payload: payload) {
            self = notification
        } else {
            throw values.reader.error("not a notification")
        }
        var number: UInt64?
        try values.optional(3, &number)
        id = number ?? 0
    }
}

extension NotificationQueue: SavedRecord {
    package static var blank: NotificationQueue { NotificationQueue() }
    /// An app's own kinds, its events and pushes are bounded; of each other kind there is one at most.
    private static var limit: Int { maximumKinds + 2 * maximumEvents + Notification.kinds.count }

    package mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        var (pending, known, afterEnd) = (pending, known, afterEnd)
        try coder.list(1, &pending, upTo: Self.limit)
        try coder.list(2, &known, upTo: Self.limit)
        try coder.list(3, &afterEnd, upTo: Self.limit)
        self = NotificationQueue(pending: pending, known: known, afterEnd: afterEnd)
    }
}
