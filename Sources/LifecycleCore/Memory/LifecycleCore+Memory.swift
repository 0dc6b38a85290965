/// Measuring memory, the levels and the warnings (L35, L36).
extension LifecycleCore {
    static let shortestCheck = Duration.milliseconds(100)
    static let longestCheck = Duration.seconds(10)
    /// The next check if memory could be used up at a later one. In this time the fastest program fills 107 MB.
    static let hastyCheck = Duration.milliseconds(25)
    /// Bytes a second: about as fast as one core can fill memory (measured: 2 to 5 GiB/s), so that a check comes before a
    /// limit can be exceeded by much.
    static let fastestFill: UInt64 = 4 << 30
    /// L36: at most one warning of each level in this time.
    static let warningInterval = Duration.seconds(25)
    /// A stall counts for this long after its trigger. Triggers come at most once in their window of 1 or 2 s.
    static let pressureHold = Duration.seconds(3)

    // MARK: Measuring

    mutating func measureMemory(_ now: Instant) {
        // The next measurement is scheduled when the one under way has come.
        memoryState.checkAt = nil
        guard !memoryState.isMeasuring else { return }
        memoryState.isMeasuring = true
        memoryState.measuringSince = now
        for credit in memoryState.credits.indices where memoryState.credits[credit].isGone {
            memoryState.credits[credit].isMeasured = true
        }
        effects.append(.measureMemory)
    }

    mutating func memoryMeasured(_ reading: MemoryReading, _ now: Instant) {
        let since = memoryState.measuringSince
        memoryState.isMeasuring = false
        memoryState.measuringSince = nil
        let killsByKernel = memoryState.record(reading, now)
        for size in reading.sizes {
            guard let index = runs[size.run.number], mayRecordSize(index, since) else { continue }
            estimateSize(index, size.bytes, size.uncertainty)
            checkLimit(index, now)
            renewSize(index, now)
        }
        if !memoryState.credits.isEmpty { memoryState.credits.removeAll(where: \.isMeasured) }
        let pressed = killsByKernel ? .critical : memoryState.pendingPressure
        memoryState.pendingPressure = nil
        evaluateMemory(
            now, look: MemoryEvidence(pressed: pressed == .normal ? nil : pressed, killsByKernel: killsByKernel))
        admitReturns(now)
        // What has ended since this measurement began is counted until the next one.
        if memoryState.credits.contains(where: \.isGone) { measureMemory(now) }
    }

    /// The size of a suspended app was measured at the freeze, exactly if it matters. It changes when its pages are swapped,
    /// so a size counts that was measured while it was suspended.
    private func mayRecordSize(_ index: AppIndex, _ since: Instant?) -> Bool {
        switch apps[index].phase {
        case .launching, .foreground, .enteringBackground, .background, .waking, .terminating: true
        case .suspended: since.map { apps[index].since < $0 } ?? false
        case .notRunning, .suspending, .ending: false
        }
    }

    /// A run is gone with all its processes. The memory that it gave back is counted on until a measurement shows it (L39).
    /// `bytes`: its last size.
    mutating func memoryCameBack(_ run: RunID, _ bytes: UInt64, _ now: Instant) {
        memoryState.hasFreed = memoryState.fill.at != nil || memoryState.limitFill.at != nil
        let position = memoryState.credits.firstIndex { $0.run == run }
        guard memoryState.level > .normal || memoryState.isMeasuring else {
            if let position { memoryState.credits.remove(at: position) }
            return
        }
        memoryState.ignorePressureUntil = now + Self.pressureSettling
        if let position {
            memoryState.credits[position].isGone = true
        } else {
            memoryState.credits.append(MemoryCredit(run: run, bytes: bytes, due: now, isGone: true))
        }
        measureMemory(now)
    }

    /// Memory is measured only while an app can grow, or while a shortage may end (law 9); the nearer the limit, the sooner.
    mutating func scheduleMemoryCheck(_ now: Instant) {
        let isUnneeded: Bool
        switch (memoryState.level, memoryState.cause) {
        case (.normal, _), (_, .simulated), (_, nil): isUnneeded = awakeCount == 0
        case (_, .budget): isUnneeded = awakeCount == 0 && memoryState.credits.isEmpty
        case (_, .available), (_, .pressure), (_, .limit): isUnneeded = false
        }
        if !isUnneeded, memoryState.checkAt != nil || memoryState.isMeasuring { return }
        if needsHaste {
            if memoryState.checkAt == nil, !memoryState.isMeasuring { memoryState.checkAt = now + Self.hastyCheck }
        } else if isUnneeded {
            memoryState.checkAt = nil
        } else {
            memoryState.checkAt = now + (awakeCount == 0 ? Self.longestCheck : checkInterval)
        }
    }

    /// This is asked after each event, so the pools are made only where memory is being filled.
    @inline(__always)
    private var needsHaste: Bool {
        (memoryState.fill.perSecond > 0 || memoryState.limitFill.perSecond > 0)
            && memoryPools.contains(where: \.needsHaste)
    }

    @inline(__always)
    private var checkInterval: Duration {
        var distance = UInt64.max
        memoryPools.forEach { distance = min(distance, $0.available.excess(over: $0.nextThreshold)) }
        if let budget = manager.budget { distance = min(distance, budget.excess(over: memoryState.counted)) }
        let milliseconds = distance / (Self.fastestFill / 1000)
        return min(Self.longestCheck, max(Self.shortestCheck, .milliseconds(Int64(milliseconds))))
    }

    mutating func memoryDeadlineReached(_ now: Instant) {
        if let until = memoryState.criticalUntil, until <= now {
            memoryState.criticalUntil = nil
            if memoryState.pressure == .critical { memoryState.pressure = .warning }
            if memoryState.pressureUntil.map({ $0 > now }) ?? false { evaluateMemory(now) }
        }
        if let until = memoryState.pressureUntil, until <= now {
            memoryState.pressure = .normal
            memoryState.pressureUntil = nil
            memoryState.pressureSince = nil
            evaluateMemory(now)
        }
        if let at = memoryState.checkAt, at <= now { measureMemory(now) }
    }

    // MARK: Pressure

    /// A trigger only makes the daemon look.
    mutating func pressureStalled(_ level: MemoryLevel, _ now: Instant) {
        memoryState.pendingPressure = max(level, memoryState.pendingPressure ?? .normal)
        if level > .normal { memoryState.foregroundLook?.hasStalled = true }
        measureMemory(now)
    }

    /// Stalls do not raise the level while much memory is available.
    private mutating func recordPressure(_ level: MemoryLevel, _ now: Instant) {
        guard level > .normal, memoryPools.contains(where: { $0.available <= $0.total / 4 }) else { return }
        memoryState.pressure = max(level, memoryState.pressure)
        memoryState.pressureUntil = now + Self.pressureHold
        if level == .critical { memoryState.criticalUntil = now + Self.pressureHold }
        if memoryState.pressureSince == nil { memoryState.pressureSince = now }
    }

    /// Sends real warnings. Level `critical` kills one app that is not in the foreground, and no second one, because there is
    /// no shortage to end.
    mutating func pressureSimulated(_ request: RequestID, _ level: MemoryLevel, _ now: Instant) {
        memoryState.simulated = level == .normal ? nil : level
        evaluateMemory(now)
        var victim: AppID?
        if level == .critical, memoryState.credits.allSatisfy(\.isGone) {
            victim = killFirst(.simulated, gracefully: false, now)
        }
        answer(request, .simulated(victim: victim))
    }

    // MARK: Deciding

    /// `look`: what the reading that is evaluated has shown beside the numbers; `nil`: there is no new reading.
    mutating func evaluateMemory(_ now: Instant, look: MemoryEvidence? = nil) {
        if let pressed = look?.pressed { recordPressure(pressed, now) }
        // Nothing that follows changes them.
        let pools = memoryPools
        let (level, cause) = currentLevel(pools)
        if level != memoryState.level || cause != memoryState.cause {
            // The return to `normal` is reported with the cause of the level before.
            report(.memoryLevelChanged(level, cause ?? memoryState.cause ?? .available))
            memoryState.level = level
            memoryState.cause = cause
        }
        if level > .normal {
            warn(level, now)
            if memoryState.warnedSince == nil {
                memoryState.warnedSince = [memoryState.lastWarning, memoryState.lastCriticalWarning].compactMap { $0 }
                    .max()
            }
        } else {
            memoryState.warnedSince = nil
        }
        freeMemory(look, pools, now)
        reclaimUnderPressure(now)
    }

    @inline(__always)
    private func currentLevel(_ pools: MemoryPools) -> (MemoryLevel, MemoryCause?) {
        var highest: (MemoryLevel, MemoryCause?) = (.normal, nil)
        func consider(_ level: MemoryLevel, _ cause: MemoryCause) {
            if level > highest.0 { highest = (level, cause) }
        }
        consider(budgetLevel, .budget)
        pools.forEach { consider(level(of: $0), $0.cause) }
        consider(memoryState.pressure, .pressure)
        consider(memoryState.simulated ?? .normal, .simulated)
        return highest
    }

    @inline(__always)
    private func level(of pool: MemoryPool) -> MemoryLevel {
        if pool.isCritical { return .critical }
        let warning = pool.thresholds.warning
        let isWarning = memoryState.level > .normal && memoryState.cause == pool.cause
        let margin = min(pool.available, isWarning ? warning / 10 : 0)
        return pool.available - margin < warning ? .warning : .normal
    }

    // MARK: Warnings (L36)

    private mutating func warn(_ level: MemoryLevel, _ now: Instant) {
        let last = level == .critical ? memoryState.lastCriticalWarning : memoryState.lastWarning
        guard last.map({ now - $0 >= Self.warningInterval }) ?? true else { return }
        if level == .critical { memoryState.lastCriticalWarning = now } else { memoryState.lastWarning = now }
        for index in apps.indices where apps[index].phase != .notRunning {
            disconnectScenes(index)
            fileWarning(index, level)
        }
        for index in runningApps() {
            endIdleHint(index)
            notify(index, .memoryWarning(level))
        }
    }

    /// Warns one app of level `critical`. The next warning of all apps is not for 25 s, so that it gets no second one in that time.
    mutating func warn(only index: AppIndex, _ now: Instant) {
        guard runningApps().contains(index) else { return }
        memoryState.lastCriticalWarning = now
        endIdleHint(index)
        notify(index, .memoryWarning(.critical))
    }

    /// Suspended apps are not woken for a warning: it is delivered when they run again (L31).
    private mutating func fileWarning(_ index: AppIndex, _ level: MemoryLevel) {
        switch apps[index].phase {
        case .suspending, .suspended:
            let name = level == .critical ? "critical" : "warning"
            file(index, Notification(kind: "memory", payload: name))
        case .notRunning, .launching, .foreground, .enteringBackground, .background, .waking, .terminating, .ending:
            break
        }
    }

    /// The lowest priority first, then the largest.
    private func runningApps() -> [AppIndex] {
        // The keys come first: a closure that refers to the core copies it at each comparison.
        var running: [(priority: Int, memory: UInt64, index: AppIndex)] = []
        for index in apps.indices {
            switch apps[index].phase {
            case .foreground, .enteringBackground, .background:
                running.append((apps[index].policy.jetsamPriority, self[run: index].memory, index))
            case .notRunning, .launching, .suspending, .suspended, .waking, .terminating, .ending: break
            }
        }
        running.sort { a, b in
            if a.priority != b.priority { return a.priority < b.priority }
            return a.memory != b.memory ? a.memory > b.memory : a.index < b.index
        }
        return running.map(\.index)
    }
}
