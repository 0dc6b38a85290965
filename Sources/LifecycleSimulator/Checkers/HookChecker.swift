import LifecycleCore

/// Checks when hooks run, and for how long (L57).
struct HookChecker {
    /// Checks an effect. Called before the model records it.
    func record(_ effect: Effect, of app: Int?, _ model: CoreModel, _ findings: inout Findings) {
        guard let app else { return }
        let known = model.apps[app]
        switch effect {
        case .freeze:
            findings.check(!known.hooks.isRunning, .hooksRunAwake, "\(known.id) is frozen while its hook runs")
        case .runHook(_, let hook, _):
            findings.check(
                !known.hooks.isRunning, .hooksRunAwake, "\(hook.kind.rawValue)= of \(known.id) runs beside another hook"
            )
            findings.check(
                known.policy.hooks.contains(hook.kind) && hook.reason != .timer, .hooksRunAwake,
                "\(hook.kind.rawValue)= of \(known.id) runs (\(hook.reason.rawValue))")
            switch known.phase {
            case .foreground, .entering, .running, .waking, .launching: break
            case .unknown, .notRunning, .suspending, .suspended, .terminating, .ending, .past:
                findings.check(false, .hooksRunAwake, "a hook of \(known.id) runs while it is \(known.phase)")
            }
        default: break
        }
    }

    /// Checks after `deadlineReached` that no hook runs whose time is over.
    func verifyAll(_ model: CoreModel, at now: Microseconds, _ findings: inout Findings) {
        for app in model.apps {
            guard let hook = app.hooks.running else { continue }
            findings.check(
                now < hook.due, .hooksAreBounded, "\(hook.kind.rawValue)= of \(app.id) runs for \(now - hook.began) µs")
        }
    }
}
