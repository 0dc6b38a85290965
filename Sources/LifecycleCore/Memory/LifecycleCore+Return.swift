/// What is to run comes back after jetsam when there is space for it (L11, L38, L49), and never costs another app its life.
extension LifecycleCore {
    /// Memory is measured for apps that wait after this time at first, and after at most `longestReturnCheck`.
    static let shortestReturnCheck = Duration.seconds(1)
    static let longestReturnCheck = Duration.seconds(30)
    /// After the end of an app, and after an app came back, the measurement is sooner.
    static let soonReturnCheck = Duration.milliseconds(100)
    /// If jetsam ends an app again within this time of its return, the return was too early: the next one is postponed as
    /// after an early end (L11).
    static let returnTrial = Duration.seconds(60)
    /// For how long an app that came back may be smaller than its last footprint, and the rest is kept free for it.
    static let growthTime = Duration.seconds(30)
    /// How many apps that came back may grow at a time. A bound of the saved state.
    static let maximumGrowing = 64
    /// How many of the apps that wait are compared with the space that was measured.
    static let comparedReturns = 32

    /// Whether the app runs whenever it can, and so comes back after jetsam: `Relaunch=always`, `LaunchAtStart=`, the
    /// home app, and workers (L49). `Relaunch=on-failure` is not enough: to be killed for memory is no failure of the app.
    func isToRun(_ index: AppIndex) -> Bool {
        let policy = apps[index].policy
        return apps[index].isRegistered
            && (policy.relaunch == .always || policy.launchAtStart != nil || policy.role == .worker || index == home)
    }

    // MARK: The end by jetsam

    /// Whether the run was ended to free memory by the kernel's OOM killer, and the app is one that is to run. For other apps such a
    /// kill is a failure, as for systemd.
    func isTakenByKernel(_ index: AppIndex, _ receipt: Receipt) -> Bool {
        self[run: index].outOfMemory == .machine && receipt.namespace == .jetsam && isToRun(index)
    }

    /// The state into which an app comes back after jetsam has ended it; `nil`: it does not come back.
    mutating func stateAfterJetsam(_ index: AppIndex, _ ending: Ending, _ memory: UInt64, _ now: Instant)
        -> LaunchState?
    {
        let stored = storage(index)
        // The kernel's OOM killer may come before the daemon's SIGKILL.
        let isUnloaded = ending.termination == .unloaded || ending.cause == .unloaded
        guard isToRun(index), shutdown == nil, !stored.run.isTerminationRequested, !isUnloaded else { return nil }
        let wasTooEarly = apps[index].returnedRun == stored.run.id && now - stored.run.created < Self.returnTrial
        apps[index].returnFailures = wasTooEarly ? apps[index].returnFailures + 1 : 0
        apps[index].lastFootprint = memory
        apps[index].isTaken = true
        return ending.relaunch ?? .background
    }

    /// No process of a run that jetsam ended is left. A return that was too early is postponed (L11).
    mutating func beginReturn(_ index: AppIndex, _ state: LaunchState, _ now: Instant) {
        let failures = apps[index].returnFailures
        let wait = failures > 0 ? postponement(after: failures) : .zero
        let at = max(now + wait, apps[index].postponedUntil ?? now)
        guard at > now else { return awaitMemory(index, state, now) }
        report(.relaunchScheduled(apps[index].id, after: at - now, deaths: failures))
        apps[index].life = .notRunning(NotRunning(relaunch: .init(at: at, state: state)))
    }

    /// Before this instant a relaunch is postponed for early ends, or for returns that were too early (L11); `nil`: it is not.
    @inline(__always)
    func earliestRelaunch(_ index: AppIndex) -> Instant? {
        guard apps[index].isTaken, apps[index].returnFailures > 0 else { return apps[index].postponedUntil }
        guard case .notRunning(let notRunning) = apps[index].life else { return nil }
        return notRunning.relaunch?.at
    }

    mutating func awaitMemory(_ index: AppIndex, _ state: LaunchState, _ now: Instant) {
        touch(index)
        apps[index].life = .notRunning(NotRunning(memoryWait: MemoryWait(since: now, state: state)))
        checkReturnsSoon(now)
    }

    /// A manifest was read again: the app may no longer be one that is to run.
    mutating func reconsiderReturn(_ index: AppIndex) {
        guard apps[index].isTaken, case .notRunning(let notRunning) = apps[index].life, notRunning.queued == nil,
            !isToRun(index)
        else { return }
        apps[index].isTaken = false
        apps[index].life = .notRunning(NotRunning())
    }

    /// The position of an app among those that wait for space; `nil`: it does not.
    func returnRank(_ index: AppIndex) -> ReturnRank? {
        guard let wait = apps[index].memoryWait else { return nil }
        return ReturnRank(
            isForForeground: wait.state == .foreground || index == home,
            priority: apps[index].policy.jetsamPriority, since: wait.since)
    }

    // MARK: Measuring

    /// Memory may have become free.
    mutating func checkReturnsSoon(_ now: Instant) {
        returns.interval = Self.shortestReturnCheck
        let soon = now + Self.soonReturnCheck
        returns.checkAt = returns.checkAt.map { min($0, soon) } ?? soon
    }

    /// Memory is measured for returns only while an app waits (law 9). Called when the event is carried out.
    mutating func scheduleReturnCheck(_ now: Instant) {
        let isShort = memoryState.level > .normal
        let wasShort = returns.wasShort
        if isShort != wasShort { returns.wasShort = isShort }
        guard returnQueue.count > 0 else {
            // After most events it is so already.
            if returns.checkAt != nil { returns.checkAt = nil }
            if returns.interval != Self.shortestReturnCheck { returns.interval = Self.shortestReturnCheck }
            return
        }
        if wasShort, !isShort { checkReturnsSoon(now) }
        if returns.checkAt == nil, !memoryState.isMeasuring { returns.checkAt = now + returns.interval }
    }

    mutating func returnCheckReached(_ now: Instant) {
        guard let at = returns.checkAt, at <= now else { return }
        returns.checkAt = nil
        measureMemory(now)
    }

    // MARK: Space

    /// How much memory is free above the thresholds of all warnings, with the distance at which a warning ends, so that a
    /// return does not cause the next one. `nil`: memory is short, or what a kill frees is not measured yet.
    func spaceAboveWarning(_ now: Instant) -> MemorySpace? {
        guard memoryState.level == .normal, !memoryState.credits.expectsMemory(now) else { return nil }
        let apps = Int64(clamping: memoryState.apps)
        var space = MemorySpace()
        memoryPools.forEach { pool in
            let threshold = pool.thresholds.warning
            let limit = Int64(clamping: threshold.saturatingSum(threshold / 10))
            // Neither is negative: the difference does not overflow.
            let free = Int64(clamping: pool.available) - limit
            space.parts.append(
                .init(free: free, capacity: free.addingClamped(apps), total: Int64(clamping: pool.total)))
        }
        if let budget = manager.budget {
            let most = Int64(clamping: budget / 100 * Self.returnPercent)
            space.parts.append(.init(free: most - apps, capacity: most))
        }
        return space
    }

    /// The share of `Budget=` up to which apps come back: below it the warning ends.
    static let returnPercent: UInt64 = 85

    /// Whether there is space for an app beside those that came back and are still growing.
    private func has(_ space: MemorySpace, for index: AppIndex) -> Bool {
        space.parts.allSatisfy { part in
            let kept = returns.growing.reduce(Int64(0)) { sum, run in
                guard let other = runs[run.number], other != index else { return sum }
                let rest = part.needed(apps[other].lastFootprint) - Int64(clamping: self[run: other].memory)
                return sum.addingClamped(max(0, rest))
            }
            return part.free > 0 && part.needed(apps[index].lastFootprint) <= part.free - kept
        }
    }

    /// Removes runs that came back and are over, frozen, as large as before, or old enough.
    private mutating func removeGrown(_ now: Instant) {
        if returns.growing.isEmpty { return }
        returns.growing = returns.growing.filter { isGrowing($0, now) }
    }

    private func isGrowing(_ id: RunID, _ now: Instant) -> Bool {
        guard let index = runs[id.number] else { return false }
        switch apps[index].phase {
        case .notRunning, .suspended, .ending: return false
        case .launching, .foreground, .enteringBackground, .background, .suspending, .waking, .terminating: break
        }
        let stored = storage(index)
        return stored.run.memory < apps[index].lastFootprint && now - stored.run.created < Self.growthTime
    }

    // MARK: Coming back

    /// Memory was measured: the first app for which there is space comes back. The next one needs a measurement of its own.
    mutating func admitReturns(_ now: Instant) {
        removeGrown(now)
        returns.checkAt = nil
        guard returnQueue.count > 0, !isShuttingDown else { return }
        let space = spaceAboveWarning(now)
        var awaitsSlot = returns.growing.count >= Self.maximumGrowing
        for index in returnQueue.smallest(Self.comparedReturns) {
            guard let wait = apps[index].memoryWait else { continue }
            guard let space, has(space, for: index) else {
                reportWait(index, wait)
                continue
            }
            guard !awaitsSlot, mayLaunchNow(index, wait.state) else {
                awaitsSlot = true
                continue
            }
            if comeBack(index, wait, now) { return checkReturnsSoon(now) }
        }
        // Not `* 2`: that function is generic, and slow.
        if !awaitsSlot { returns.interval = min(Self.longestReturnCheck, returns.interval + returns.interval) }
        if returns.growing.count > 0 { returns.interval = Self.shortestReturnCheck }
    }

    /// An app that comes back into the background needs a slot at once: the space may be gone once it is its turn (L52).
    private func mayLaunchNow(_ index: AppIndex, _ state: LaunchState) -> Bool {
        if state == .foreground, isSlotFree(index) { return true }
        return hasLaunchSlot && launchQueue.count == 0
    }

    private mutating func reportWait(_ index: AppIndex, _ wait: MemoryWait) {
        guard !wait.isReported else { return }
        var wait = wait
        wait.isReported = true
        touch(index)
        apps[index].life = .notRunning(NotRunning(memoryWait: wait))
        report(.memoryAwaited(apps[index].id, apps[index].lastFootprint))
    }

    /// - Returns: whether it is launched. If not, its background time is used up, and it waits for that (L53).
    private mutating func comeBack(_ index: AppIndex, _ wait: MemoryWait, _ now: Instant) -> Bool {
        touch(index)
        let run = RunID(nextRun)
        relaunch(index, into: wait.state, now)
        guard apps[index].sharedRunStorage?.run.id == run else { return false }
        apps[index].returnedRun = run
        returns.growing.append(run)
        return true
    }
}

extension ProcessLife {
    /// Whether jetsam ended the run, by SIGKILL or by a notice, before anything else did.
    var isEndedByJetsam: Bool {
        switch self {
        case .notRunning: return false
        case .running(let running):
            if case .terminating(let terminating) = running.execution { return terminating.cause.isJetsam }
            return false
        case .ending(let ending):
            switch ending.termination {
            case .requested, .exitsOnSuspend, .shutdown, .unloaded: return false
            // An app that announced its end would have been relaunched too.
            case .selfInitiated, .jetsam, nil: break
            }
            switch ending.cause {
            case .jetsam, .terminationIgnored(.jetsam, _), .terminationAnswered(.jetsam, _): return true
            // All processes ended before the exit status of the main process was known.
            case nil: return ending.termination?.isJetsam ?? false
            case .missedDeadline, .leakedTasks, .wakeNotCompleted, .tooManyTasks, .removed, .terminatedWithoutNotice,
                .unloaded, .shutdown, .terminationIgnored, .terminationAnswered, .overMemoryLimit, .heldLocks,
                .overProcessorLimit, .usedGPU:
                return false
            }
        }
    }
}

extension App {
    /// The relaunch that is scheduled.
    var relaunch: NotRunning.Relaunch? {
        @inline(__always) get { if case .notRunning(let notRunning) = life { notRunning.relaunch } else { nil } }
    }

    /// The wait for space after jetsam.
    var memoryWait: MemoryWait? {
        @inline(__always) get { if case .notRunning(let notRunning) = life { notRunning.memoryWait } else { nil } }
    }
}

extension Int64 {
    fileprivate func addingClamped(_ other: Int64) -> Int64 {
        let (sum, overflow) = addingReportingOverflow(other)
        return overflow ? (other > 0 ? .max : .min) : sum
    }
}
