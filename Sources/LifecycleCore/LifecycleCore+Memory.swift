/// The machine's memory, as far as the core knows it. Bytes.
struct MemoryState: Hashable, Sendable {
    var total: UInt64 = 0
    var available: UInt64 = 0
    /// All apps together.
    var apps: UInt64 = 0
    var level = MemoryLevel.normal
    var cause: MemoryCause?
    /// Runs whose memory is on its way back.
    var returning = 0

    /// `measureMemory` was asked for.
    var isMeasuring = false
    /// What is being measured was asked for before the last victim was gone.
    var isStale = false
    /// A victim was taken, and what it gave back has not been measured yet (L39).
    var awaitsMeasure = false
    /// When to look again.
    var checkAt: Instant?

    var pressure = MemoryLevel.normal
    var pressureUntil: Instant?
    /// Since when it has been stalling without a break.
    var pressureSince: Instant?
    /// A trigger that fired and was not acted on yet, as the measure is awaited.
    var pendingPressure: MemoryLevel?
    /// Stalls before this are those that the last victim was taken for.
    var ignorePressureUntil: Instant?
    var simulated: MemoryLevel?
    /// When running apps were last warned of each level.
    var lastWarning: Instant?
    var lastCriticalWarning: Instant?

    var nextDue: Instant? {
        switch (checkAt, pressureUntil) {
        case (let check?, let pressure?): min(check, pressure)
        case (let check?, nil): check
        case (nil, let pressure): pressure
        }
    }

    /// An app has come to life: what it takes is looked at shortly.
    mutating func checkSoon(_ now: Instant) {
        let soon = now + LifecycleCore.shortestCheck
        checkAt = checkAt.map { min($0, soon) } ?? soon
    }
}

/// Levels, warnings, and who has to go (L35 … L40).
extension LifecycleCore {
    static let shortestCheck = Duration.milliseconds(100)
    static let longestCheck = Duration.seconds(10)
    /// Bytes a second: about as fast as one core can fill memory, so that a check comes before a limit can be passed by
    /// much. (Measured: 2 to 5 GiB/s.)
    static let fastestFill: UInt64 = 4 << 30
    /// L36: at most one warning of each level in this time.
    static let warningInterval = Duration.seconds(25)
    /// A stall counts for this long after its trigger; triggers come at most once in their window of 1 or 2 s.
    static let pressureHold = Duration.seconds(3)
    /// Stalling for this long at level `warning`, in spite of the warning, takes a victim (L40: there is time).
    static let pressurePatience = Duration.seconds(5)
    /// After a victim is gone: the stalls that are still reported were before.
    static let pressureSettling = Duration.seconds(1)

    mutating func setMemory(_ slot: Int, _ bytes: UInt64) {
        memoryState.apps -= self[run: slot].memory
        memoryState.apps += bytes
        self[run: slot].memory = bytes
        touch(slot)
    }

    // MARK: Measuring

    mutating func measureMemory() {
        // What is under way will do: the next is scheduled when it has come.
        memoryState.checkAt = nil
        guard !memoryState.isMeasuring else { return }
        memoryState.isMeasuring = true
        effects.append(.measureMemory)
    }

    mutating func memoryMeasured(_ reading: MemoryReading, _ now: Instant) {
        memoryState.isMeasuring = false
        memoryState.total = reading.total
        memoryState.available = reading.available
        for size in reading.sizes {
            guard let slot = runs[size.run] else { continue }
            switch self[app: slot].phase {
            case .launching, .foreground, .entering, .running, .waking, .terminating: setMemory(slot, size.bytes)
            case .notRunning, .suspending, .suspended, .ending: break
            }
        }
        if memoryState.isStale {
            memoryState.isStale = false
            return measureMemory()
        }
        if memoryState.returning == 0 { memoryState.awaitsMeasure = false }
        let pressed = memoryState.pendingPressure
        memoryState.pendingPressure = nil
        evaluateMemory(now, pressed: pressed)
    }

    /// A run is gone with all its processes. If it was a victim, what came back is measured before another (L39).
    mutating func memoryCameBack(_ now: Instant) {
        guard memoryState.awaitsMeasure || memoryState.level > .normal else { return }
        memoryState.ignorePressureUntil = now + Self.pressureSettling
        if memoryState.isMeasuring { memoryState.isStale = true } else { measureMemory() }
    }

    /// Law 8: looked at only while an app can grow, or while there is a shortage to come out of; the sooner, the nearer
    /// the limit is.
    mutating func scheduleMemoryCheck(_ now: Instant) {
        let nothingToSee: Bool
        switch (memoryState.level, memoryState.cause) {
        case (.normal, _), (_, .budget), (_, .simulated), (_, nil): nothingToSee = awakeCount == 0
        case (_, .available), (_, .pressure): nothingToSee = false
        }
        if nothingToSee {
            memoryState.checkAt = nil
        } else if memoryState.checkAt == nil, !memoryState.isMeasuring {
            memoryState.checkAt = now + (awakeCount == 0 ? Self.longestCheck : checkInterval)
        }
    }

    private var checkInterval: Duration {
        var room = memoryState.available - min(memoryState.available, levelBelow)
        if let budget = manager.budget { room = min(room, budget - min(budget, memoryState.apps)) }
        let milliseconds = room / (Self.fastestFill / 1000)
        return min(Self.longestCheck, max(Self.shortestCheck, .milliseconds(Int64(milliseconds))))
    }

    /// The next threshold of MemAvailable below what there is.
    private var levelBelow: UInt64 {
        let warning = manager.warningAvailable.bytes(of: memoryState.total)
        return memoryState.available > warning ? warning : manager.criticalAvailable.bytes(of: memoryState.total)
    }

    mutating func memoryDeadlineReached(_ now: Instant) {
        if let until = memoryState.pressureUntil, until <= now {
            memoryState.pressure = .normal
            memoryState.pressureUntil = nil
            memoryState.pressureSince = nil
            evaluateMemory(now)
        }
        if let at = memoryState.checkAt, at <= now { measureMemory() }
    }

    // MARK: Pressure

    mutating func pressureStalled(_ level: MemoryLevel, _ now: Instant) {
        memoryState.pendingPressure = max(level, memoryState.pendingPressure ?? .normal)
        measureMemory()
    }

    /// Stalls with plenty available are not for want of memory that killing an app could give: a container at its own
    /// limit, for example.
    private var isShort: Bool { memoryState.available <= memoryState.total / 4 }

    private mutating func notePressure(_ level: MemoryLevel, _ now: Instant) {
        guard isShort else { return }
        memoryState.pressure = max(level, memoryState.pressure)
        memoryState.pressureUntil = now + Self.pressureHold
        if memoryState.pressureSince == nil { memoryState.pressureSince = now }
    }

    /// Warnings are real; of `critical`, one victim that nobody looks at. There is no shortage to end, so no second one.
    mutating func pressureSimulated(_ request: RequestID, _ level: MemoryLevel, _ now: Instant) {
        memoryState.simulated = level == .normal ? nil : level
        evaluateMemory(now)
        var victim: AppID?
        if level == .critical, memoryState.returning == 0, !memoryState.awaitsMeasure {
            victim = takeVictim(.simulated, upTo: .background, gracefully: false, now)
        }
        answer(request, .simulated(victim: victim))
    }

    // MARK: Deciding

    mutating func evaluateMemory(_ now: Instant, pressed: MemoryLevel? = nil) {
        if let pressed { notePressure(pressed, now) }
        let (level, cause) = currentLevel()
        if level != memoryState.level || cause != memoryState.cause {
            // That it is over is reported with what it was.
            report(.memoryLevelChanged(level, cause ?? memoryState.cause ?? .available))
            memoryState.level = level
            memoryState.cause = cause
        }
        if level > .normal { warn(level, now) }
        giveMemoryBack(pressed, now)
    }

    private func currentLevel() -> (MemoryLevel, MemoryCause?) {
        let sources: [(MemoryLevel, MemoryCause)] = [
            (budgetLevel, .budget), (availableLevel, .available), (memoryState.pressure, .pressure),
            (memoryState.simulated ?? .normal, .simulated),
        ]
        var highest: (MemoryLevel, MemoryCause?) = (.normal, nil)
        for (level, cause) in sources where level > highest.0 { highest = (level, cause) }
        return highest
    }

    /// Nine tenths are a warning; it stays one down to 85 %, so that an app at the edge does not make it flicker.
    private var budgetLevel: MemoryLevel {
        guard let budget = manager.budget else { return .normal }
        if memoryState.apps > budget { return .critical }
        let percent: UInt64 = memoryState.level > .normal && memoryState.cause == .budget ? 85 : 90
        return memoryState.apps > budget / 100 * percent ? .warning : .normal
    }

    private var availableLevel: MemoryLevel {
        guard memoryState.total > 0 else { return .normal }
        if memoryState.available < manager.criticalAvailable.bytes(of: memoryState.total) { return .critical }
        let warning = manager.warningAvailable.bytes(of: memoryState.total)
        let isWarning = memoryState.level > .normal && memoryState.cause == .available
        let margin = min(memoryState.available, isWarning ? warning / 10 : 0)
        return memoryState.available - margin < warning ? .warning : .normal
    }

    /// One victim at a time, and the next only after what the last one gave back was measured (L39).
    private mutating func giveMemoryBack(_ pressed: MemoryLevel?, _ now: Instant) {
        guard memoryState.returning == 0, !memoryState.awaitsMeasure else { return }
        if let budget = manager.budget, memoryState.apps > budget {
            _ = takeVictim(.budget, upTo: .active, gracefully: false, now)
        } else if availableLevel == .critical {
            _ = takeVictim(.available, upTo: .active, gracefully: false, now)
        } else if let pressed, isShort, memoryState.ignorePressureUntil.map({ $0 <= now }) ?? true {
            answerPressure(pressed, now)
        }
    }

    private mutating func answerPressure(_ level: MemoryLevel, _ now: Instant) {
        switch level {
        case .normal: break
        case .critical: _ = takeVictim(.pressure, upTo: .active, gracefully: false, now)
        case .warning:
            guard let since = memoryState.pressureSince, now - since >= Self.pressurePatience else { return }
            memoryState.pressureSince = now
            _ = takeVictim(.pressure, upTo: .background, gracefully: true, now)
        }
    }

    /// The first in L38's order. A suspended app is killed without a word; one that runs in the background may end by
    /// itself if there is time for that (L40).
    private mutating func takeVictim(
        _ cause: MemoryCause, upTo last: JetsamRank.Class, gracefully: Bool, _ now: Instant
    ) -> AppID? {
        for slot in touched { jetsam.set(slot, to: apps[slot].isForgotten ? nil : jetsamRank(slot)) }
        guard let (rank, slot) = jetsam.first, rank.group <= last else { return nil }
        let candidates = jetsam.smallest(Receipt.maximumCandidates).map { other in
            Receipt.Candidate(
                app: self[app: other].id, state: self[app: other].phase.state, memory: self[app: other].run?.memory ?? 0
            )
        }
        if gracefully, isTerminating(slot) { return nil }
        if gracefully, canEndByItself(slot) {
            terminate(slot, .jetsam(cause, candidates), now)
        } else {
            memoryState.awaitsMeasure = true
            kill(slot, .jetsam(cause, candidates), .jetsam, now)
        }
        return self[app: slot].id
    }

    /// L40: what is frozen, or about to be, could not hear of it.
    private func canEndByItself(_ slot: Int) -> Bool {
        switch self[app: slot].phase {
        case .launching, .foreground, .entering, .running, .waking: true
        case .notRunning, .suspending, .suspended, .terminating, .ending: false
        }
    }

    // MARK: Warnings (L36)

    private mutating func warn(_ level: MemoryLevel, _ now: Instant) {
        let last = level == .critical ? memoryState.lastCriticalWarning : memoryState.lastWarning
        guard last.map({ now - $0 >= Self.warningInterval }) ?? true else { return }
        if level == .critical { memoryState.lastCriticalWarning = now } else { memoryState.lastWarning = now }
        for slot in apps.indices where apps[slot].run != nil { fileWarning(slot, level) }
        for slot in runningApps() { effects.append(.notify(self[run: slot].id, .memoryWarning(level))) }
    }

    /// Suspended apps are not woken for it: they hear of it when they run again (L31).
    private mutating func fileWarning(_ slot: Int, _ level: MemoryLevel) {
        switch self[app: slot].phase {
        case .suspending, .suspended:
            let name = level == .critical ? "critical" : "warning"
            file(slot, Notification(kind: "memory", payload: name))
        case .notRunning, .launching, .foreground, .entering, .running, .waking, .terminating, .ending: break
        }
    }

    /// The lowest priority first, then the largest.
    private func runningApps() -> [Int] {
        let running = apps.indices.filter { slot in
            switch apps[slot].phase {
            case .foreground, .entering, .running: true
            case .notRunning, .launching, .suspending, .suspended, .waking, .terminating, .ending: false
            }
        }
        return running.sorted { a, b in
            let (x, y) = (self[app: a], self[app: b])
            if x.policy.jetsamPriority != y.policy.jetsamPriority {
                return x.policy.jetsamPriority < y.policy.jetsamPriority
            }
            let (m, n) = (x.run?.memory ?? 0, y.run?.memory ?? 0)
            return m != n ? m > n : a < b
        }
    }
}
