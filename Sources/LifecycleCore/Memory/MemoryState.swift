/// The machine's memory, as far as the core knows it. Sizes are bytes.
struct MemoryState: Hashable, Sendable {
    var total: UInt64 = 0
    var available: UInt64 = 0
    /// The tightest limit below the machine's memory, as it was read last.
    var limit: MemoryReading.Limit?
    var swapTotal: UInt64 = 0
    var swapFree: UInt64 = 0
    var stalls: MemoryReading.Stalls?
    /// How fast the machine's available memory falls.
    var fill = MemoryRate()
    /// How fast that below the limit falls.
    var limitFill = MemoryRate()
    /// How fast evicted pages are read again.
    var refaults = MemoryRate()
    /// How long all tasks have stalled for memory: microseconds in a second.
    var fullStall = MemoryRate()
    /// All apps together.
    var apps: UInt64 = 0
    /// By how much `apps` may be too large.
    var uncertain: UInt64 = 0
    /// What apps without a process have stored in memory. It counts for `Budget=`, and no kill gives it back.
    var stored: UInt64 = 0
    /// Runs whose exact size is being measured.
    var awaitedSizes: [RunID] = []
    /// The run that is being pushed out (L37): one at a time.
    var reclaiming: RunID?
    /// An app may wait for its end.
    var isReclaimAwaited = false
    /// The app that exceeds the budget alone.
    var excess: MemoryExcess?
    var level = MemoryLevel.normal
    var cause: MemoryCause?

    /// `measureMemory` is under way.
    var isMeasuring = false
    /// When it was asked for.
    var measuringSince: Instant?
    /// When to measure again.
    var checkAt: Instant?
    /// What ending runs give back, as long as no reading can show it (L39).
    var credits: [MemoryCredit] = []
    /// A run has ended since the last reading: the two say nothing of how fast memory is filled.
    var hasFreed = false

    var pressure = MemoryLevel.normal
    var pressureUntil: Instant?
    /// The end of `critical`, if that is before `pressureUntil`.
    var criticalUntil: Instant?
    /// Since when tasks have stalled without a break.
    var pressureSince: Instant?
    /// A trigger fired and was not acted on yet, because a measurement is awaited.
    var pendingPressure: MemoryLevel?
    /// Stalls before this instant are the ones that the last victim was killed for.
    var ignorePressureUntil: Instant?
    var simulated: MemoryLevel?
    /// When running apps were last warned of each level.
    var lastWarning: Instant?
    var lastCriticalWarning: Instant?
    /// Since when running apps know of the present shortage; `nil`: there is none.
    var warnedSince: Instant?
    /// Since when each reading has shown critical available memory, although the kernel swaps; `nil`: the last one has not.
    var swappingSince: Instant?
    /// The first look at which only active apps were left to kill.
    var foregroundLook: MemoryLook?

    /// What counts for `Budget=`.
    var counted: UInt64 { apps + stored }
    /// What of it is certain.
    var certain: UInt64 { counted - uncertain }

    /// Readings that follow each other faster say nothing of a rate.
    private static let shortestRate = Duration.milliseconds(50)
    /// Android's lmkd counts refaults and stalls over a second as well.
    private static let refaultTime = Duration.seconds(1)

    /// - Returns: whether the kernel has killed below the limit since the last reading.
    mutating func record(_ reading: MemoryReading, _ now: Instant) -> Bool {
        let isNewLimit = limit?.group != reading.limit?.group
        let killsBefore = limit?.kills
        total = reading.total
        available = reading.available
        stored = reading.stored
        swapTotal = reading.swapTotal
        swapFree = reading.swapFree
        stalls = reading.stalls
        limit = reading.limit
        recordRates(reading, isNewLimit: isNewLimit, now)
        guard !isNewLimit, let killsBefore, let kills = limit?.kills else { return false }
        return kills > killsBefore
    }

    /// Rates matter, and are kept, where at most half of the memory is available.
    private mutating func recordRates(_ reading: MemoryReading, isNewLimit: Bool, _ now: Instant) {
        let isKnown = !hasFreed
        hasFreed = false
        if reading.available <= reading.total / 2 {
            fill.update(reading.available, now, shortest: Self.shortestRate, isKnown: isKnown) { $0.excess(over: $1) }
            refaults.update(reading.refaulted, now, shortest: Self.refaultTime) { $1.excess(over: $0) }
            recordStall(reading, isNewLimit: isNewLimit, now)
        } else {
            fill = MemoryRate()
            refaults = MemoryRate()
            fullStall = MemoryRate()
        }
        // Without a copy of the limit, which has a name.
        guard !isNewLimit, let total = limit?.total, let available = limit?.available, available <= total / 2 else {
            limitFill = MemoryRate()
            return
        }
        limitFill.update(available, now, shortest: Self.shortestRate, isKnown: isKnown) { $0.excess(over: $1) }
    }

    private mutating func recordStall(_ reading: MemoryReading, isNewLimit: Bool, _ now: Instant) {
        // The totals are those of the group with the tightest limit.
        if isNewLimit { fullStall = MemoryRate() }
        guard let full = reading.stalls?.full else { return }
        let total = UInt64(clamping: full.wholeMicroseconds)
        fullStall.update(total, now, shortest: Self.refaultTime) { $1.excess(over: $0) }
    }

    /// Memory that is on its way is looked for when it is due.
    mutating func checkCredits(_ now: Instant) {
        for credit in credits where !credit.isGone && credit.due > now { check(by: credit.due) }
    }

    /// An app has started to run: its memory is measured soon.
    mutating func checkSoon(_ now: Instant) { check(by: now + LifecycleCore.shortestCheck) }

    mutating func check(by time: Instant) { checkAt = checkAt.map { min($0, time) } ?? time }
}

/// The footprint of a run that is ending, until it is free or due.
struct MemoryCredit: Hashable, Sendable {
    var run: RunID
    var bytes: UInt64
    /// From then on it is not counted on any more, if available memory is critical.
    var due: Instant
    /// No process of the run is left.
    var isGone = false
    /// The measurement under way began after that.
    var isMeasured = false

    func isExpected(_ now: Instant) -> Bool { isGone || due > now }
}

extension [MemoryCredit] {
    /// What is on its way, compared with the last reading, in bytes.
    func credited(_ now: Instant) -> UInt64 {
        reduce(0) { sum, credit in credit.isExpected(now) ? sum.saturatingSum(credit.bytes) : sum }
    }

    func expectsMemory(_ now: Instant) -> Bool { contains { $0.isExpected(now) } }

    /// A run that should have freed its memory by now.
    func survivor(_ now: Instant) -> RunID? { first { !$0.isExpected(now) }?.run }
}

/// An app that exceeds `Budget=` alone.
struct MemoryExcess: Hashable, Sendable {
    var run: RunID
    /// Since when that is known.
    var since: Instant
}

/// How fast a number of bytes changes, from successive readings.
struct MemoryRate: Hashable, Sendable {
    /// Bytes a second.
    var perSecond: UInt64 = 0
    /// The reading that the next one is compared with; `nil`: there is none.
    var at: Instant?
    var bytes: UInt64 = 0

    /// - Parameters:
    ///   - change: of the bytes since the reading before.
    ///   - shortest: readings that follow each other faster say too little.
    ///   - isKnown: false: something else has changed the number as well. The last rate is kept, for a second at most.
    mutating func update(
        _ value: UInt64, _ now: Instant, shortest: Duration, isKnown: Bool = true,
        _ change: (_ before: UInt64, _ after: UInt64) -> UInt64
    ) {
        guard let before = at else { return start(value, now) }
        let time = now - before
        guard time >= shortest else { return }
        if isKnown || time > .seconds(1) {
            let microseconds = max(1, time.wholeMicroseconds)
            // More in any time is as fast as can be.
            let bytes = min(change(bytes, value), LifecycleCore.fastestFill * 60)
            perSecond = min(LifecycleCore.fastestFill, bytes * 1_000_000 / microseconds)
        }
        start(value, now)
    }

    private mutating func start(_ value: UInt64, _ now: Instant) {
        at = now
        bytes = value
    }
}

/// What was seen when only active apps were left to kill.
struct MemoryLook: Hashable, Sendable {
    var at: Instant
    var stalls: MemoryReading.Stalls?
    /// Kills by the kernel below the limit.
    var kills: UInt64 = 0
    /// A trigger has fired since.
    var hasStalled = false
}

extension UInt64 {
    /// The sum, or the largest number there is.
    func saturatingSum(_ other: UInt64) -> UInt64 {
        let (sum, overflows) = addingReportingOverflow(other)
        return overflows ? .max : sum
    }

    /// The difference, or 0 if `other` is larger.
    package func excess(over other: UInt64) -> UInt64 { self > other ? self - other : 0 }
}
