/// Which apps are killed for memory, when, and how many (L38 … L41).
extension LifecycleCore {
    /// If tasks stall for this long at level `warning`, although apps were warned, an app is killed (L40: there is time).
    static let warningTimeout = Duration.seconds(5)
    /// Stalls that are reported within this time after a victim is gone happened before.
    static let pressureSettling = Duration.seconds(1)
    /// How long running apps have to answer a warning before one is killed, if there is time.
    static let warningLead = Duration.seconds(1)
    /// How long what a victim gives back is counted on where available memory is critical, for each GiB of it that is begun (L39). The
    /// kernel frees a GiB in about that time. lmkd waits for 100 ms too (kill_timeout_ms). Elsewhere it is counted on until the
    /// processes are gone.
    static let creditTime = Duration.milliseconds(100)
    /// The time between the two looks before an active app is killed.
    static let foregroundLookTime = Duration.seconds(1)
    /// For how long available memory is critical at each reading before an app is killed for it while swap has space: what a program
    /// fills, the kernel takes from others in some milliseconds.
    static let swappingTime = Duration.seconds(1)
    /// How many apps one event kills. The next ones follow after `victimPause`.
    package static let victimsAtOnce = 16
    static let victimPause = Duration.milliseconds(1)

    // MARK: What is on its way

    /// The end of a run begins: its memory will be available.
    mutating func expectMemory(_ index: AppIndex, _ now: Instant) {
        dropAwaitedSize(self[run: index].id)
        setSize(index, SizeRecord(estimate: self[run: index].memory))
        let bytes = self[run: index].memory
        if bytes == 0 { return }
        let time = Self.creditTime * Int(min(60, 1 + (bytes - 1) >> 30))
        memoryState.credits.append(MemoryCredit(run: self[run: index].id, bytes: bytes, due: now + time))
    }

    // MARK: Choosing

    /// What is missing, and for which reason.
    private struct Need {
        var cause: MemoryCause
        /// Bytes, as long as an app is left that is not in the foreground.
        var background: UInt64
        var foreground: UInt64
        var isPressing: Bool
    }

    /// `look`: nil: no new reading. Then only the budget, which follows from the sizes of the apps, can be judged.
    mutating func freeMemory(_ look: MemoryEvidence?, _ pools: MemoryPools, _ now: Instant) {
        decideBudget()
        if look != nil { recordSwapping(pools, now) }
        var needs = memoryNeeds(pools, now)
        if needs.isEmpty {
            memoryState.excess = nil
            if look != nil { memoryState.foregroundLook = nil }
            if let look { answerPressure(look, now) }
            // The deficit is covered by what is on its way.
            if pools.contains(where: \.isCritical) { memoryState.checkCredits(now) }
            return
        }
        // Not again a first look, when the next shortage comes.
        if look != nil, !needs.contains(where: { $0.foreground > 0 }) { memoryState.foregroundLook = nil }
        if look == nil {
            if needs.contains(where: { $0.cause != .budget }), !memoryState.credits.expectsMemory(now) {
                measureMemory(now)
            }
            needs.removeAll { $0.cause != .budget }
        }
        // Where available memory is critical, what is killed helps, whatever the sizes are.
        let isShort = pools.contains(where: \.isCritical)
        let others = isShort ? nil : answerExcess(look, now)
        if let others {
            memoryState.foregroundLook = nil
            needs = [Need(cause: .budget, background: others, foreground: 0, isPressing: false)]
        }
        if !isWarned(now) {
            let isTime = needs.allSatisfy { !$0.isPressing }
            if isTime, let since = memoryState.warnedSince { memoryState.check(by: since + Self.warningLead) }
            needs.removeAll { !$0.isPressing }
        }
        if let most = needs.max(by: { $0.background < $1.background }) {
            let largest = others == nil ? .max : manager.budget ?? .max
            let excess = needs.first { $0.cause == .budget }?.background ?? 0
            kill(most.cause, most.background, excess: excess, below: .inactive, upTo: largest, isShort: isShort, now)
            if let look, others == nil { killInForeground(needs, look, isShort: isShort, now) }
        }
        memoryState.checkCredits(now)
    }

    @inline(__always)
    private mutating func memoryNeeds(_ pools: MemoryPools, _ now: Instant) -> [Need] {
        var needs: [Need] = []
        let excess = budgetExcess
        if excess > 0 { needs.append(Need(cause: .budget, background: excess, foreground: excess, isPressing: false)) }
        let credited = memoryState.credits.credited(now)
        pools.forEach { pool in
            let deficit = pool.deficit(credited: credited)
            if deficit == 0 || pool.hasSwap && awaitsSwapping(now) { return }
            needs.append(
                Need(
                    cause: pool.cause, background: deficit, foreground: pool.foregroundDeficit(credited: credited),
                    isPressing: pool.isPressing))
        }
        return needs
    }

    /// Whether running apps have had time to answer the warning, or there is none.
    private func isWarned(_ now: Instant) -> Bool {
        awakeCount == 0 || (memoryState.warnedSince.map { now - $0 >= Self.warningLead } ?? false)
    }

    /// Kills the shortest prefix of L38's order that gives back `bytes` (L39). Sizes that may be too large are made exact first, unless
    /// memory is short: an app that turns out to be smaller comes later in the order.
    ///
    /// - Parameters:
    ///   - excess: by how much the apps exceed the budget. Against that counts what a victim has at least.
    ///   - largest: larger apps are not to be killed now.
    private mutating func kill(
        _ cause: MemoryCause, _ bytes: UInt64, excess: UInt64, below limit: JetsamRank.Class,
        upTo largest: UInt64 = .max,
        isShort: Bool,
        _ now: Instant
    ) {
        if bytes == 0 { return }
        refreshRanks()
        var (missing, excess) = (bytes, excess)
        var victims: [AppIndex] = []
        for index in jetsam.smallest(Self.victimsAtOnce + 1) where self[run: index].memory <= largest {
            guard missing > 0 || excess > 0, victims.count < Self.victimsAtOnce, let rank = jetsam.key(of: index),
                rank.group < limit
            else { break }
            victims.append(index)
            missing = missing.excess(over: self[run: index].memory)
            excess = excess.excess(over: self[run: index].size.certain)
        }
        if !isShort, measureSizes(victims) { return }
        let context = jetsamContext(cause, now)
        for index in victims {
            kill(index, .jetsam(cause, candidates(first: index), context), .jetsam, now)
            jetsam.set(index, to: jetsamRank(index))
        }
        if missing > 0 || excess > 0, victims.count == Self.victimsAtOnce {
            memoryState.check(by: now + Self.victimPause)
        }
    }

    /// Measures the sizes that are in doubt. Returns whether there is one.
    private mutating func measureSizes(_ finalists: [AppIndex]) -> Bool {
        var isAwaited = false
        for index in finalists where self[run: index].size.isInDoubt {
            measureSize(index)
            isAwaited = true
        }
        return isAwaited
    }

    /// Nothing else is left, and nothing is on its way: inactive apps are killed, then an active one, but never for one event.
    private mutating func killInForeground(
        _ needs: [Need], _ look: MemoryEvidence, isShort: Bool, _ now: Instant
    ) {
        guard let most = needs.max(by: { $0.foreground < $1.foreground }), most.foreground > 0 else {
            memoryState.foregroundLook = nil
            return
        }
        let expectsMemory = isShort ? memoryState.credits.expectsMemory(now) : !memoryState.credits.isEmpty
        guard !expectsMemory, let first = jetsam.first, first.key.group >= .inactive else {
            memoryState.foregroundLook = nil
            return
        }
        if first.key.group == .inactive {
            memoryState.foregroundLook = nil
            let excess = needs.first { $0.cause == .budget }?.foreground ?? 0
            kill(most.cause, most.foreground, excess: excess, below: .active, isShort: isShort, now)
        } else if !isShort, measureSizes([first.index]) {
            return
        } else if hasContinued(most.cause, look, now) {
            memoryState.foregroundLook = nil
            kill(first.index, .jetsam(most.cause, candidates, jetsamContext(most.cause, now)), .jetsam, now)
        }
    }

    private func jetsamContext(_ cause: MemoryCause, _ now: Instant) -> JetsamContext {
        // Nothing waits for an earlier victim if only the budget is exceeded.
        let survivor = cause == .budget ? nil : memoryState.credits.survivor(now).flatMap { app(of: $0) }
        return JetsamContext(survivor: survivor, hadNoTime: !isWarned(now))
    }

    /// Whether this is the second look, and tasks have stalled since the first.
    private mutating func hasContinued(_ cause: MemoryCause, _ look: MemoryEvidence, _ now: Instant) -> Bool {
        guard let first = memoryState.foregroundLook else {
            beginForegroundLook(now)
            return false
        }
        guard now - first.at >= Self.foregroundLookTime else {
            memoryState.check(by: first.at + Self.foregroundLookTime)
            return false
        }
        if cause == .budget || look.pressed != nil || haveStalled(since: first, now) { return true }
        beginForegroundLook(now)
        return false
    }

    private mutating func beginForegroundLook(_ now: Instant) {
        memoryState.foregroundLook = MemoryLook(
            at: now, stalls: memoryState.stalls, kills: memoryState.limit?.kills ?? 0)
        memoryState.check(by: now + Self.foregroundLookTime)
    }

    /// Without pressure stall information the second shortage is the evidence.
    private func haveStalled(since first: MemoryLook, _ now: Instant) -> Bool {
        if first.hasStalled || memoryState.limit?.kills ?? 0 > first.kills { return true }
        guard let before = first.stalls, let stalls = memoryState.stalls else { return true }
        return stalls.some - before.some >= (now - first.at) / 10
    }

    // MARK: Stalls

    /// Tasks stall, and the numbers alone ask for no kill: one app that is not in the foreground, if memory is scarce.
    private mutating func answerPressure(_ look: MemoryEvidence, _ now: Instant) {
        guard let pressed = look.pressed, isScarce, memoryState.credits.isEmpty,
            memoryState.ignorePressureUntil.map({ $0 <= now }) ?? true
        else { return }
        refreshRanks()
        if let first = jetsam.first, first.key.group < .inactive, measureSizes([first.index]) {
            memoryState.pendingPressure = pressed
            return
        }
        switch pressed {
        case .normal: break
        case .critical:
            guard isWarned(now) else { return }
            _ = killFirst(look.killsByKernel ? .limit : .pressure, gracefully: false, now)
        case .warning:
            guard let since = memoryState.pressureSince, now - since >= Self.warningTimeout else { return }
            memoryState.pressureSince = now
            _ = killFirst(.pressure, gracefully: true, now)
        }
    }

    /// Killing an app ends stalls only where memory is short: below the warning threshold, or where what was evicted is read
    /// again all the time. While the kernel gains memory by swapping, that is what tasks wait for, and it ends.
    private var isScarce: Bool {
        memoryPools.contains { pool in
            pool.available < pool.thresholds.warning && !pool.hasSwap
                || (pool.cause == .available && pool.available <= pool.total / 4
                    && isThrashing(manager.thresholds(of: pool.total)))
        }
    }

    /// Kills the first app in L38's order that is not in the foreground. A suspended app is killed without notice; a running
    /// one gets `willTerminate` if there is time (L40).
    mutating func killFirst(_ cause: MemoryCause, gracefully: Bool, _ now: Instant) -> AppID? {
        refreshRanks()
        guard let (rank, index) = jetsam.first, rank.group < .inactive else { return nil }
        if gracefully, apps[index].phase == .terminating { return nil }
        if gracefully, canTerminate(index) {
            terminate(index, .jetsam(cause, candidates), now)
        } else {
            kill(index, .jetsam(cause, candidates, JetsamContext()), .jetsam, now)
            memoryState.checkCredits(now)
        }
        return apps[index].id
    }

    private mutating func refreshRanks() {
        for index in touched { jetsam.set(index, to: apps[index].isRemoved ? nil : jetsamRank(index)) }
    }

    /// The first apps in L38's order, with what each gives back.
    var candidates: [Receipt.Candidate] {
        jetsam.smallest(Receipt.maximumCandidates).map { index in
            Receipt.Candidate(
                app: apps[index].id, state: apps[index].state, memory: apps[index].sharedRunStorage?.run.memory ?? 0)
        }
    }

    /// L40: a frozen app, or one that is about to be frozen, cannot receive a notice.
    private func canTerminate(_ index: AppIndex) -> Bool {
        switch apps[index].phase {
        case .launching, .foreground, .enteringBackground, .background, .waking: true
        case .notRunning, .suspending, .suspended, .terminating, .ending: false
        }
    }
}

/// What a reading has shown beside the numbers.
struct MemoryEvidence: Hashable, Sendable {
    /// A trigger has fired, or the kernel has killed; `nil`: neither.
    var pressed: MemoryLevel?
    /// The kernel's OOM killer has killed below the limit.
    var killsByKernel = false
}
