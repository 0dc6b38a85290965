import LifecycleCore

/// L21: how long an app really runs in the background, counted by what the kernel lets it run, and not by any deadline
/// that the core reports.
struct BudgetChecker {
    /// Entering the background has a deadline of its own (L16), and does not count here.
    private struct Stay {
        var ran: Microseconds = 0
        /// Counting since, and how long the group had been frozen and the core been kept waiting by then.
        var since: Microseconds?
        var frozenTime: Microseconds = 0
        var lateness: Microseconds = 0
        /// How much later than it could the core was told things in this stay.
        var allowance: Microseconds = 0
        var isFresh = false
        /// What it ran until now is not to count.
        var beginsAnew = false
        /// The kernel did not freeze it when it was asked to, or a debugger is attached: all bets are off.
        var isExempt = false
        /// L22: it was told that its tasks expire.
        var isAnnounced = false
    }

    private var stays: [Stay]
    /// The core gives a freeze 2 s, a thaw 5 s, and the daemon a moment.
    private static let slack: Microseconds = 8 * .second

    init(apps: Int) {
        stays = Array(repeating: Stay(), count: apps)
    }

    mutating func note(_ effect: Effect, of app: Int?, _ shadow: Shadow, _ findings: inout Findings) {
        guard let app else { return }
        let known = shadow.apps[app]
        switch effect {
        case .notify(_, .tasksExpiring): stays[app].isAnnounced = true
        case .report(.deadlineMissed(let id, .backgroundTime)):
            findings.check(
                stays[app].isAnnounced, .expirationIsAnnounced, "\(id) is killed for its tasks, and was not told")
        case .report(.deadlineStarted(let id, .backgroundTime, let time)):
            let isWhole = known.phase == .launching || known.phase == .foreground
            findings.check(
                !isWhole || time == known.policy.backgroundTime, .budgetIsKept,
                "\(id) enters the background with a budget of \(time)")
        case .spawn, .report(.stateChanged(_, _, to: .active, _)), .report(.stateChanged(_, _, to: .inactive, _)):
            stays[app] = Stay()
        case .report(.deadlineStarted(_, .wake, _)), .report(.stateChanged(_, _, .background, .woken)):
            // A wake has time of its own (L26), before which nothing counts.
            stays[app].beginsAnew = true
            stays[app].isFresh = true
        case .report(.freezeTimedOut), .report(.deadlineDeferred): stays[app].isExempt = true
        default: break
        }
    }

    mutating func settle(
        of app: Int, _ shadow: Shadow, _ world: World, _ deadlines: DeadlineChecker, at now: Microseconds,
        _ findings: inout Findings
    ) {
        let known = shadow.apps[app]
        guard let id = known.run, let index = world.index(of: id) else {
            stays[app].since = nil
            return
        }
        let run = world.runs[index]
        if let since = stays[app].since {
            stays[app].ran += now - since - (run.frozenTime(at: now) - stays[app].frozenTime)
            stays[app].allowance += world.lateness - stays[app].lateness
        }
        if stays[app].beginsAnew {
            stays[app].ran = 0
            stays[app].allowance = 0
            stays[app].beginsAnew = false
        }
        let counts =
            known.state == .background && known.phase != .entering && !deadlines.isOpen(.wake, of: app)
            && run.killedAt == nil && !run.isEmpty
        stays[app].since = counts ? now : nil
        stays[app].frozenTime = run.frozenTime(at: now)
        stays[app].lateness = world.lateness
        guard counts, !stays[app].isExempt, let longest = known.longestBudget else { return }
        let budget = max(longest.microseconds, stays[app].isFresh ? 30 * .second : 0)
        let limit = budget + Self.slack + max(0, world.stalledUntil - now) + stays[app].allowance
        let suspendDelay = known.policy.suspendDelay.microseconds
        findings.check(
            stays[app].ran <= limit + suspendDelay, .budgetIsKept,
            "\(known.id) has run for \(stays[app].ran) µs in the background; its budget is \(budget) µs")
    }
}
