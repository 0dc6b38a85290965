/// `Budget=`: nothing runs out, so no app is killed for it by an estimate, for memory that is on its way, or for another app that
/// exceeds it alone (L39).
extension LifecycleCore {
    /// How long an app that exceeds the budget alone has to answer the warning, before it is killed: as long as apps have that stall
    /// others (`warningTimeout`).
    static let excessTime = warningTimeout

    /// What the apps that are not ending have at least.
    private var certainOfBudget: UInt64 { memoryState.certain.excess(over: endingBytes) }

    /// What processes of ending runs still have. It comes back, however long that takes.
    private var endingBytes: UInt64 {
        memoryState.credits.reduce(0) { sum, credit in
            guard !credit.isGone, let index = runs[credit.run.number] else { return sum }
            return sum + self[run: index].memory
        }
    }

    /// By how many bytes the apps exceed the budget. If what is stored exceeds it alone, no kill can end that.
    var budgetExcess: UInt64 {
        guard let budget = manager.budget, memoryState.stored <= budget else { return 0 }
        return certainOfBudget.excess(over: budget)
    }

    /// 90 % of the budget are a warning, which ends below 85 %, so that an app at the threshold does not toggle it.
    var budgetLevel: MemoryLevel {
        guard let budget = manager.budget else { return .normal }
        if memoryState.certain > budget { return .critical }
        return memoryState.certain > warningThreshold(budget) ? .warning : .normal
    }

    private func warningThreshold(_ budget: UInt64) -> UInt64 {
        budget / 100 * (memoryState.level > .normal && memoryState.cause == .budget ? 85 : 90)
    }

    /// Measures the most uncertain size, if it depends on such sizes whether the budget is exceeded. Its answer asks for the next.
    mutating func decideBudget() {
        guard let budget = manager.budget, memoryState.uncertain > 0, memoryState.awaitedSizes.isEmpty else { return }
        guard certainOfBudget <= budget, memoryState.counted.excess(over: endingBytes) > warningThreshold(budget) else {
            return
        }
        var most: (index: AppIndex, uncertainty: UInt64)?
        for index in apps.indices {
            guard case .running(let running) = apps[index].life else { continue }
            let size = running.sharedStorage.run.size
            if size.uncertainty > most?.uncertainty ?? 0 { most = (index, size.uncertainty) }
        }
        if let most { measureSize(most.index) }
    }

    /// Apps that exceed the budget alone: killing any others does not help. The first of them in L38's order is dealt with.
    ///
    /// - Returns: what the others exceed the budget by; `nil`: no app exceeds it alone.
    mutating func answerExcess(_ look: MemoryEvidence?, _ now: Instant) -> UInt64? {
        guard let budget = manager.budget, let (index, sum) = appsInExcess(budget) else {
            memoryState.excess = nil
            return nil
        }
        let others = certainOfBudget.excess(over: sum).excess(over: budget)
        guard self[run: index].size.certain > budget else {
            measureSize(index)
            return others
        }
        if apps[index].phase == .terminating { return others }
        let due = excessDue(index, now)
        if apps[index].phase == .suspended || due <= now && look != nil {
            memoryState.excess = nil
            let context = JetsamContext(excess: JetsamContext.Excess(size: self[run: index].memory, budget: budget))
            kill(index, .jetsam(.budget, candidates(first: index), context), .jetsam, now)
            jetsam.set(index, to: jetsamRank(index))
            memoryState.check(by: now + Self.victimPause)
        } else if due > now {
            memoryState.check(by: due)
        } else {
            measureMemory(now)
        }
        return others
    }

    /// The first app in L38's order that has, or may have, more than the budget, and what all of those have at least.
    private func appsInExcess(_ budget: UInt64) -> (first: AppIndex, sum: UInt64)? {
        var first: (index: AppIndex, rank: JetsamRank)?
        var sum: UInt64 = 0
        for index in apps.indices {
            guard let stored = apps[index].sharedRunStorage, stored.run.memory > budget,
                let rank = jetsamRank(index)
            else { continue }
            sum += stored.run.size.certain
            if first.map({ rank < $0.rank }) ?? true { first = (index, rank) }
        }
        return first.map { ($0.index, sum) }
    }

    /// The victim, then the others in L38's order.
    func candidates(first index: AppIndex) -> [Receipt.Candidate] {
        let victim = Receipt.Candidate(
            app: apps[index].id, state: apps[index].state, memory: self[run: index].memory)
        return Array(([victim] + candidates.filter { $0.app != victim.app }).prefix(Receipt.maximumCandidates))
    }

    /// When the app is killed if it has not become smaller. At first it is warned, if it has not received the last warning.
    private mutating func excessDue(_ index: AppIndex, _ now: Instant) -> Instant {
        let run = self[run: index].id
        if let excess = memoryState.excess, excess.run == run { return excess.since + Self.excessTime }
        memoryState.excess = MemoryExcess(run: run, since: now)
        if memoryState.lastCriticalWarning.map({ $0 < self[run: index].created }) ?? true { warn(only: index, now) }
        return now + Self.excessTime
    }
}
