/// `Budget=`: nothing runs out, so no app is killed for it by an estimate, for memory that is on its way, or for another app that
/// exceeds it alone (L39).
extension LifecycleCore {
    /// How long an app that exceeds the budget alone has to answer the warning, before it is killed: as long as apps have that stall
    /// others (`warningTimeout`).
    static let excessTime = warningTimeout

    /// What the apps that are not ending have at least.
    private var certainOfBudget: UInt64 { (memoryState.apps - memoryState.uncertain).excess(over: endingBytes) }

    /// What processes of ending runs still have. It comes back, however long that takes.
    private var endingBytes: UInt64 {
        memoryState.credits.reduce(0) { sum, credit in
            guard !credit.isGone, let index = runs[credit.run.number] else { return sum }
            return sum + self[run: index].memory
        }
    }

    /// By how many bytes the apps exceed the budget.
    var budgetExcess: UInt64 { manager.budget.map { certainOfBudget.excess(over: $0) } ?? 0 }

    /// 90 % of the budget are a warning, which ends below 85 %, so that an app at the threshold does not toggle it.
    var budgetLevel: MemoryLevel {
        guard let budget = manager.budget else { return .normal }
        let certain = memoryState.apps - memoryState.uncertain
        if certain > budget { return .critical }
        return certain > warningThreshold(budget) ? .warning : .normal
    }

    private func warningThreshold(_ budget: UInt64) -> UInt64 {
        budget / 100 * (memoryState.level > .normal && memoryState.cause == .budget ? 85 : 90)
    }

    /// Measures the most uncertain size, if it depends on such sizes whether the budget is exceeded. Its answer asks for the next.
    mutating func decideBudget() {
        guard let budget = manager.budget, memoryState.uncertain > 0, memoryState.awaitedSizes.isEmpty else { return }
        guard certainOfBudget <= budget, memoryState.apps.excess(over: endingBytes) > warningThreshold(budget) else {
            return
        }
        var most: (index: Int, uncertainty: UInt64)?
        for index in apps.indices {
            guard let size = apps[index].run?.size, apps[index].execution != nil else { continue }
            if size.uncertainty > most?.uncertainty ?? 0 { most = (index, size.uncertainty) }
        }
        if let most { measureSize(most.index) }
    }

    /// An app that exceeds the budget alone: killing any others does not help.
    ///
    /// - Returns: what the others exceed the budget by; `nil`: no app exceeds it alone.
    mutating func answerExcess(_ look: MemoryEvidence?, _ now: Instant) -> (app: Int, others: UInt64)? {
        guard let budget = manager.budget, let index = appInExcess(budget) else {
            memoryState.excess = nil
            return nil
        }
        let size = self[run: index].size
        guard size.certain > budget else {
            measureSize(index)
            return (index, 0)
        }
        let others = certainOfBudget.excess(over: size.certain).excess(over: budget)
        if apps[index].phase == .terminating { return (index, others) }
        let due = excessDue(index, now)
        if apps[index].phase == .suspended || due <= now && look != nil {
            memoryState.excess = nil
            let context = JetsamContext(excess: JetsamContext.Excess(size: self[run: index].memory, budget: budget))
            kill(index, .jetsam(.budget, candidates, context), .jetsam, now)
            jetsam.set(index, to: jetsamRank(index))
            return (index, others)
        }
        if due > now { memoryState.check(by: due) } else { measureMemory(now) }
        return (index, others)
    }

    /// The first app in L38's order that has, or may have, more than the budget.
    private func appInExcess(_ budget: UInt64) -> Int? {
        var first: (index: Int, rank: JetsamRank)?
        for index in apps.indices {
            guard let run = apps[index].run, run.memory > budget, let rank = jetsamRank(index) else { continue }
            if first.map({ rank < $0.rank }) ?? true { first = (index, rank) }
        }
        return first?.index
    }

    /// When the app is killed if it has not become smaller. At first it is warned, if it has not received the last warning.
    private mutating func excessDue(_ index: Int, _ now: Instant) -> Instant {
        let run = self[run: index].id
        if let excess = memoryState.excess, excess.run == run { return excess.since + Self.excessTime }
        memoryState.excess = MemoryExcess(run: run, since: now)
        if memoryState.lastCriticalWarning.map({ $0 < self[run: index].created }) ?? true { warn(only: index) }
        return now + Self.excessTime
    }
}
