/// Levels, warnings and victims (L35 … L40).
extension LifecycleCore {
    static let shortestCheck = Duration.milliseconds(100)
    static let longestCheck = Duration.seconds(10)
    /// Bytes a second: about as fast as one core can fill memory (measured: 2 to 5 GiB/s), so that a check comes before a
    /// limit can be exceeded by much.
    static let fastestFill: UInt64 = 4 << 30
    /// L36: at most one warning of each level in this time.
    static let warningInterval = Duration.seconds(25)
    /// A stall counts for this long after its trigger. Triggers come at most once in their window of 1 or 2 s.
    static let pressureHold = Duration.seconds(3)
    /// If tasks stall for this long at level `warning`, although apps were warned, an app is killed (L40: there is time).
    static let warningTimeout = Duration.seconds(5)
    /// Stalls that are reported within this time after a victim is gone happened before.
    static let pressureSettling = Duration.seconds(1)

    /// Records the size of a run. Only its rank in the order of jetsam follows from that.
    mutating func setMemory(_ index: Int, _ bytes: UInt64) {
        var other = bytes
        swap(&other, &self[run: index].memory)
        self[run: index].peakMemory = max(bytes, self[run: index].peakMemory)
        if other == bytes { return }
        memoryState.apps -= other
        memoryState.apps += bytes
        jetsam.set(index, to: jetsamRank(index))
    }

    // MARK: Measuring

    mutating func measureMemory() {
        // The next measurement is scheduled when the one under way has come.
        memoryState.checkAt = nil
        guard !memoryState.isMeasuring else { return }
        memoryState.isMeasuring = true
        effects.append(.measureMemory)
    }

    mutating func memoryMeasured(_ reading: MemoryReading, _ now: Instant) {
        memoryState.isMeasuring = false
        memoryState.total = reading.total
        memoryState.available = reading.available
        memoryState.limit = reading.limit
        for size in reading.sizes {
            guard let index = runs[size.run.number] else { continue }
            switch apps[index].phase {
            case .launching, .foreground, .enteringBackground, .background, .waking, .terminating:
                setMemory(index, size.bytes)
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

    /// A run is gone with all its processes. What that freed is measured before another app is killed (L39).
    mutating func memoryCameBack(_ now: Instant) {
        guard memoryState.awaitsMeasure || memoryState.level > .normal else { return }
        memoryState.ignorePressureUntil = now + Self.pressureSettling
        if memoryState.isMeasuring { memoryState.isStale = true } else { measureMemory() }
    }

    /// Memory is measured only while an app can grow, or while a shortage may end (law 9); the nearer the limit, the sooner.
    mutating func scheduleMemoryCheck(_ now: Instant) {
        let isUnneeded: Bool
        switch (memoryState.level, memoryState.cause) {
        case (.normal, _), (_, .budget), (_, .simulated), (_, nil): isUnneeded = awakeCount == 0
        case (_, .available), (_, .pressure): isUnneeded = false
        }
        if isUnneeded {
            memoryState.checkAt = nil
        } else if memoryState.checkAt == nil, !memoryState.isMeasuring {
            memoryState.checkAt = now + (awakeCount == 0 ? Self.longestCheck : checkInterval)
        }
    }

    private var checkInterval: Duration {
        var distance = memoryState.available - min(memoryState.available, nextThreshold)
        if let budget = manager.budget { distance = min(distance, budget - min(budget, memoryState.apps)) }
        let milliseconds = distance / (Self.fastestFill / 1000)
        return min(Self.longestCheck, max(Self.shortestCheck, .milliseconds(Int64(milliseconds))))
    }

    /// The next threshold of MemAvailable below the current value.
    var nextThreshold: UInt64 {
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

    /// Killing an app does not end stalls while much memory is available: a container at its own limit, for example.
    private var isShort: Bool { memoryState.available <= memoryState.total / 4 }

    private mutating func recordPressure(_ level: MemoryLevel, _ now: Instant) {
        guard isShort else { return }
        memoryState.pressure = max(level, memoryState.pressure)
        memoryState.pressureUntil = now + Self.pressureHold
        if memoryState.pressureSince == nil { memoryState.pressureSince = now }
    }

    /// Sends real warnings. Level `critical` kills one app that is not in the foreground, and no second one, because there is
    /// no shortage to end.
    mutating func pressureSimulated(_ request: RequestID, _ level: MemoryLevel, _ now: Instant) {
        memoryState.simulated = level == .normal ? nil : level
        evaluateMemory(now)
        var victim: AppID?
        if level == .critical, memoryState.returning == 0, !memoryState.awaitsMeasure {
            victim = killVictim(.simulated, upTo: .background, gracefully: false, now)
        }
        answer(request, .simulated(victim: victim))
    }

    // MARK: Deciding

    mutating func evaluateMemory(_ now: Instant, pressed: MemoryLevel? = nil) {
        if let pressed { recordPressure(pressed, now) }
        let (level, cause) = currentLevel()
        if level != memoryState.level || cause != memoryState.cause {
            // The return to `normal` is reported with the cause of the level before.
            report(.memoryLevelChanged(level, cause ?? memoryState.cause ?? .available))
            memoryState.level = level
            memoryState.cause = cause
        }
        if level > .normal { warn(level, now) }
        freeMemory(pressed, now)
    }

    private func currentLevel() -> (MemoryLevel, MemoryCause?) {
        var highest: (MemoryLevel, MemoryCause?) = (.normal, nil)
        func consider(_ level: MemoryLevel, _ cause: MemoryCause) {
            if level > highest.0 { highest = (level, cause) }
        }
        consider(budgetLevel, .budget)
        consider(availableLevel, .available)
        consider(memoryState.pressure, .pressure)
        consider(memoryState.simulated ?? .normal, .simulated)
        return highest
    }

    /// 90 % of the budget are a warning, which ends below 85 %, so that an app at the threshold does not toggle it.
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

    /// One victim at a time, and the next only after what the last one freed was measured (L39).
    private mutating func freeMemory(_ pressed: MemoryLevel?, _ now: Instant) {
        guard memoryState.returning == 0, !memoryState.awaitsMeasure else { return }
        if let budget = manager.budget, memoryState.apps > budget {
            _ = killVictim(.budget, upTo: .active, gracefully: false, now)
        } else if availableLevel == .critical {
            _ = killVictim(.available, upTo: .active, gracefully: false, now)
        } else if let pressed, isShort, memoryState.ignorePressureUntil.map({ $0 <= now }) ?? true {
            answerPressure(pressed, now)
        }
    }

    private mutating func answerPressure(_ level: MemoryLevel, _ now: Instant) {
        switch level {
        case .normal: break
        case .critical: _ = killVictim(.pressure, upTo: .active, gracefully: false, now)
        case .warning:
            guard let since = memoryState.pressureSince, now - since >= Self.warningTimeout else { return }
            memoryState.pressureSince = now
            _ = killVictim(.pressure, upTo: .background, gracefully: true, now)
        }
    }

    /// Kills the first app in L38's order. A suspended app is killed without notice; a running one in the background gets
    /// `willTerminate` if there is time (L40).
    private mutating func killVictim(
        _ cause: MemoryCause, upTo last: JetsamRank.Class, gracefully: Bool, _ now: Instant
    ) -> AppID? {
        for index in touched { jetsam.set(index, to: apps[index].isRemoved ? nil : jetsamRank(index)) }
        guard let (rank, index) = jetsam.first, rank.group <= last else { return nil }
        let candidates = candidates
        if gracefully, apps[index].phase == .terminating { return nil }
        if gracefully, canTerminate(index) {
            terminate(index, .jetsam(cause, candidates), now)
        } else {
            memoryState.awaitsMeasure = true
            kill(index, .jetsam(cause, candidates), .jetsam, now)
        }
        return apps[index].id
    }

    /// The first apps in L38's order, with what each gives back.
    var candidates: [Receipt.Candidate] {
        jetsam.smallest(Receipt.maximumCandidates).map { index in
            Receipt.Candidate(app: apps[index].id, state: apps[index].state, memory: apps[index].run?.memory ?? 0)
        }
    }

    /// L40: a frozen app, or one that is about to be frozen, cannot receive a notice.
    private func canTerminate(_ index: Int) -> Bool {
        switch apps[index].phase {
        case .launching, .foreground, .enteringBackground, .background, .waking: true
        case .notRunning, .suspending, .suspended, .terminating, .ending: false
        }
    }

    // MARK: Warnings (L36)

    private mutating func warn(_ level: MemoryLevel, _ now: Instant) {
        let last = level == .critical ? memoryState.lastCriticalWarning : memoryState.lastWarning
        guard last.map({ now - $0 >= Self.warningInterval }) ?? true else { return }
        if level == .critical { memoryState.lastCriticalWarning = now } else { memoryState.lastWarning = now }
        for index in apps.indices where apps[index].phase != .notRunning { fileWarning(index, level) }
        for index in runningApps() { effects.append(.notify(self[run: index].id, .memoryWarning(level))) }
    }

    /// Suspended apps are not woken for a warning: it is delivered when they run again (L31).
    private mutating func fileWarning(_ index: Int, _ level: MemoryLevel) {
        switch apps[index].phase {
        case .suspending, .suspended:
            let name = level == .critical ? "critical" : "warning"
            file(index, Notification(kind: "memory", payload: name))
        case .notRunning, .launching, .foreground, .enteringBackground, .background, .waking, .terminating, .ending:
            break
        }
    }

    /// The lowest priority first, then the largest.
    private func runningApps() -> [Int] {
        let running = apps.indices.filter { index in
            switch apps[index].phase {
            case .foreground, .enteringBackground, .background: true
            case .notRunning, .launching, .suspending, .suspended, .waking, .terminating, .ending: false
            }
        }
        return running.sorted { a, b in
            let (x, y) = (apps[a].policy.jetsamPriority, apps[b].policy.jetsamPriority)
            if x != y { return x < y }
            let (m, n) = (self[run: a].memory, self[run: b].memory)
            return m != n ? m > n : a < b
        }
    }
}
