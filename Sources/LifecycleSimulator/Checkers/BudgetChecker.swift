import LifecycleCore

/// Measures how long an app actually runs in the background (L21): the time for which the kernel does not freeze it,
/// whatever deadline the core reports.
struct BudgetChecker {
    /// A stay in the background. The time until the app answers `didEnterBackground` does not count: it has a deadline
    /// of its own (L16).
    private struct Stay {
        var ran: Microseconds = 0
        /// When the count was last updated; the values below are of that instant.
        var since: Microseconds?
        var frozenTime: Microseconds = 0
        var lateness: Microseconds = 0
        /// By how much events reached the core late in this stay.
        var allowance: Microseconds = 0
        var isWake = false
        /// Whether the count restarts.
        var restarts = false
        /// Whether the stay is not checked: the kernel did not freeze the app when asked, or a debugger is attached.
        var isExempt = false
        /// Whether `tasksExpiring` was sent (L22).
        var isNotified = false
    }

    private var stays: [Stay]
    /// The timeouts of a freeze (2s) and a thaw (5s), and 1s for the daemon.
    private static let slack: Microseconds = 8 * .second
    /// A thaw may be reported this late, and until then the app is not frozen again. A stay can have several.
    private static let thawTimeout: Microseconds = 5 * .second
    /// In which the connection of an app finds the next daemon: it is not suspended before.
    private static let attachTime: Microseconds = 3 * .second

    init(apps: Int) {
        stays = Array(repeating: Stay(), count: apps)
    }

    mutating func record(_ event: Event, of app: Int?) {
        if let app, case .run(_, .process(.reattached)) = event { stays[app].allowance += Self.attachTime }
    }

    mutating func record(_ effect: Effect, of app: Int?, _ model: CoreModel, _ findings: inout Findings) {
        guard let app else { return }
        let known = model.apps[app]
        switch effect {
        case .run(_, .notify(.tasksExpiring)): stays[app].isNotified = true
        case .report(.deadlineMissed(let id, .backgroundTime, _)):
            findings.check(
                stays[app].isNotified, .budgetIsKept, "\(id) is killed for its tasks without a notice")
        case .report(.deadlineStarted(let id, .backgroundTime, let time, _)):
            let isWhole = known.phase == .launching || known.phase == .foreground
            findings.check(
                !isWhole || time == known.policy.backgroundTime, .budgetIsKept,
                "\(id) enters the background with a budget of \(time)")
            // A wake renews the budget at the thaw, also if the app completes it before the thaw is reported (L26).
            if known.phase == .waking, time == .seconds(30) {
                stays[app].restarts = true
                stays[app].isWake = true
            }
        case .spawn, .report(.stateChanged(_, _, to: .active, _)), .report(.stateChanged(_, _, to: .inactive, _)):
            stays[app] = Stay()
        case .report(.deadlineStarted(_, .wake, _, _)), .report(.stateChanged(_, _, .background, .woken)):
            // A wake has its own time (L26): what ran before does not count.
            stays[app].restarts = true
            stays[app].isWake = true
        case .run(_, .suspension(.thaw)): stays[app].allowance += Self.thawTimeout
        // The suspension waits for the answer (L43).
        case .run(_, .notify(.withdraw)):
            stays[app].allowance += known.policy.backgroundDeadline?.microseconds ?? 60 * .second
        case .report(.suspensionRefused): stays[app].allowance += known.policy.suspendDelay.microseconds
        case .report(.freezeTakesLong), .report(.deadlineDeferred), .report(.wokenTooOften), .report(.locksHeld),
            .report(.stateChanged(_, _, .background, .continued)):
            stays[app].isExempt = true
        default: break
        }
    }

    mutating func verify(
        of app: Int, _ model: CoreModel, _ world: World, _ deadlines: DeadlineChecker,
        _ continued: inout ContinuedTasks, at now: Microseconds,
        _ findings: inout Findings
    ) {
        let known = model.apps[app]
        // It is not frozen.
        if known.policy.effectiveSuspension != .yes { stays[app].isExempt = true }
        guard let id = known.run, let index = world.index(of: id) else {
            stays[app].since = nil
            return
        }
        let run = world.runs[index]
        // The daemon did not run: it may not have read what the app has reported.
        if world.lateness - stays[app].lateness >= 1 * .second { continued.renew(app, now) }
        if let since = stays[app].since {
            stays[app].ran += now - since - (run.frozenTime(at: now) - stays[app].frozenTime)
            stays[app].allowance += world.lateness - stays[app].lateness
        }
        // The budget is whole again once no mode is left (L28).
        if stays[app].restarts || known.isHeldByMode {
            stays[app].ran = 0
            stays[app].allowance = 0
            stays[app].since = nil
            stays[app].restarts = false
        }
        let counts =
            known.state == .background && known.phase != .entering && !deadlines.isOpen(.wake, of: app)
            && !continued.mayContinue(app, known.policy, at: now) && !world.isLeftAwake(app) && !known.hooks.isRunning
            && !known.hooks.isSettling && run.killedAt == nil
            && !run.isEmpty && !run.isAskedToFreeze && !known.isHeldByMode
        // What is left of a delay that has begun already.
        if counts, stays[app].since == nil { stays[app].allowance += max(0, world.stalledUntil - now) }
        stays[app].since = counts ? now : nil
        stays[app].frozenTime = run.frozenTime(at: now)
        stays[app].lateness = world.lateness
        // The time to start up is no background time of the app (L18).
        guard counts, !stays[app].isExempt, let longest = known.longestBudget,
            let startUp = known.startUpTime?.microseconds
        else { return }
        let budget = startUp + max(longest.microseconds, stays[app].isWake ? 30 * .second : 0)
        let limit = budget + Self.slack + stays[app].allowance
        let suspendDelay = known.policy.suspendDelay.microseconds
        findings.check(
            stays[app].ran <= limit + suspendDelay, .budgetIsKept,
            "\(known.id) has run for \(stays[app].ran) µs in the background; its budget is \(budget) µs")
    }
}
