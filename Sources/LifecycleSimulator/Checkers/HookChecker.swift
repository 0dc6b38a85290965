import LifecycleCore

/// Checks for how long hooks run (L57). `SuspensionChecker` checks that no app is frozen meanwhile.
struct HookChecker {
    /// Checks after `deadlineReached` that no hook runs whose time is over.
    func verifyAll(_ model: CoreModel, at now: Microseconds, _ findings: inout Findings) {
        for app in model.apps {
            guard let hook = app.hooks.running else { continue }
            findings.check(
                now < hook.due, .hooksAreBounded, "\(hook.kind.rawValue)= of \(app.id) runs for \(now - hook.began) µs")
        }
    }
}
