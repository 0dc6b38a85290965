import LifecycleCore

/// L18: an app is frozen when its last assertion has ended `SuspendDelaySec=` ago: not before, and not much later.
struct SuspensionChecker {
    private struct Quiet {
        /// By name, as several may be open under one.
        var tasks: [String: Int] = [:]
        /// Since when it has been running in the background without an assertion.
        var since: Microseconds?
        /// After a freeze that timed out the core waits longer.
        var isRetry = false
        /// The budget is used up: it is suspended at once.
        var isBudgetOver = false
        /// The main process has stopped itself, and was not continued.
        var isStopped = false
    }

    private var apps: [Quiet]
    /// The app that was told something just now for which it has to run.
    private var comesBack: Int?

    init(apps count: Int) {
        apps = Array(repeating: Quiet(), count: count)
    }

    mutating func note(_ event: Event, of app: Int?, _ shadow: Shadow) {
        comesBack = nil
        guard let app else { return }
        switch event {
        case .run(let run, .stopped): if shadow.apps[app].run == run { apps[app].isStopped = true }
        case .run(let run, .continued): if shadow.apps[app].run == run { apps[app].isStopped = false }
        default: break
        }
    }

    mutating func note(
        _ effect: Effect, of app: Int?, _ shadow: Shadow, _ deadlines: DeadlineChecker, at now: Microseconds,
        _ findings: inout Findings
    ) {
        guard let app else { return }
        switch effect {
        case .spawn: apps[app] = Quiet()
        case .notify(_, .willEnterForeground), .notify(_, .willTerminate), .report(.deadlineStarted(_, .wake, _)):
            comesBack = app
        case .report(.deadlineMissed(let id, .backgroundTime)):
            findings.check(
                !apps[app].tasks.isEmpty, .deadlinesAreFair, "\(id) is killed for its tasks, and has none")
        case .continueStopped: apps[app].isStopped = false
        case .report(.taskBegan(_, let name)): apps[app].tasks[name, default: 0] += 1
        case .report(.taskEnded(let id, let name)):
            let count = apps[app].tasks[name] ?? 0
            findings.check(count > 0, .suspendedHasNoAssertion, "\(id): task \(name) ends, but never began")
            apps[app].tasks[name] = count > 1 ? count - 1 : nil
        case .report(.stateChanged(_, _, .terminating, _)): apps[app].tasks = [:]
        case .report(.stateChanged(_, _, .inactive, _)), .report(.stateChanged(_, _, .active, _)):
            apps[app].isBudgetOver = false
            apps[app].isRetry = false
        case .report(.deadlineCancelled(_, .backgroundTime)): apps[app].isBudgetOver = true
        case .report(.deadlineStarted(_, .backgroundTime, _)): apps[app].isBudgetOver = false
        case .report(.freezeTimedOut): apps[app].isRetry = true
        case .freeze: checkFreeze(app, shadow, deadlines, now, &findings)
        default: break
        }
    }

    private func checkFreeze(
        _ app: Int, _ shadow: Shadow, _ deadlines: DeadlineChecker, _ now: Microseconds, _ findings: inout Findings
    ) {
        let known = shadow.apps[app]
        findings.check(
            known.phase == .running, .suspendedHasNoAssertion, "\(known.id) is frozen while it is \(known.phase)")
        findings.check(
            apps[app].tasks.isEmpty && !deadlines.isOpen(.wake, of: app), .suspendedHasNoAssertion,
            "\(known.id) is frozen with an assertion open: tasks \(apps[app].tasks.keys.sorted())")
        findings.check(
            !known.policy.exitsOnSuspend, .suspendedInTime, "\(known.id) is frozen, but is to exit instead (L20)")
        guard let since = apps[app].since, !apps[app].isBudgetOver else { return }
        findings.check(
            now - since >= known.policy.suspendDelay.microseconds || apps[app].isRetry, .suspendedInTime,
            "\(known.id) is frozen \(now - since) µs after its last assertion ended")
    }

    mutating func settle(
        of app: Int, _ shadow: Shadow, _ deadlines: DeadlineChecker, at now: Microseconds,
        _ findings: inout Findings
    ) {
        let known = shadow.apps[app]
        let isQuiet = known.phase == .running && apps[app].tasks.isEmpty && !deadlines.isOpen(.wake, of: app)
        if !isQuiet {
            apps[app].since = nil
        } else if apps[app].since == nil {
            apps[app].since = now
        }
        if comesBack == app {
            // Whoever comes back to the foreground, is told to terminate or woken has to hear of it (L17).
            findings.check(
                !apps[app].isStopped, .foregroundRuns, "\(known.id) had stopped itself, and is not continued")
        }
    }

    /// When the core was told the time: nobody is left running who should have been frozen by now.
    func settleAll(_ shadow: Shadow, at now: Microseconds, _ findings: inout Findings) {
        for app in apps.indices {
            guard let since = apps[app].since, !apps[app].isRetry else { continue }
            let delay = shadow.apps[app].policy.suspendDelay.microseconds
            findings.check(
                now - since < max(1, delay), .suspendedInTime,
                "\(shadow.apps[app].id) has had no assertion for \(now - since) µs, and is not frozen")
        }
    }
}
