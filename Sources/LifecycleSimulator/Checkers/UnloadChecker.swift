import LifecycleCore

/// Checks when suspended apps are ended for `UnloadAfterSec=`, how, and that nothing but a request or a client launches them again.
struct UnloadChecker {
    /// By app: its last run was ended for `UnloadAfterSec=`.
    private var isUnloaded: [Bool]

    init(apps count: Int) { isUnloaded = Array(repeating: false, count: count) }

    /// Whether a suspended app is due.
    static func isDue(_ app: AppModel, at now: Microseconds) -> Bool {
        app.phase == .suspended && (app.policy.unloadAfter.map { now - app.since >= $0.microseconds } ?? false)
    }

    mutating func record(
        _ effect: Effect, of app: Int?, _ model: CoreModel, at now: Microseconds, _ findings: inout Findings
    ) {
        guard let app else { return }
        let known = model.apps[app]
        switch effect {
        case .report(.stateChanged(let id, let from, let to, .unloaded)):
            if from == .suspended {
                findings.check(
                    known.policy.unloadAfter.map { now - known.since >= $0.microseconds } ?? false, .unloadsAreDue,
                    "\(id) is unloaded after \(now - known.since) µs of \(known.policy.unloadAfter ?? .zero)")
                findings.check(
                    known.isNotifiedOfEnd == (to == .background), .suspendedAreNotifiedOfEnd,
                    "\(id) is unloaded, and \(to == .background ? "" : "not ")notified of its end")
            }
            if to == .terminating { isUnloaded[app] = true }
        case .spawn(let id, _, let launch):
            findings.check(
                !isUnloaded[app] || launch.reason != .relaunch || !launch.isUnrequested, .unloadedStayEnded,
                "\(id) was unloaded, and is launched again by itself")
            isUnloaded[app] = false
        case .report(.relaunchScheduled(let id, _, _)), .report(.memoryAwaited(let id, _)):
            findings.check(!isUnloaded[app], .unloadedStayEnded, "\(id) was unloaded, and is to be launched again")
        case .removeInstance: isUnloaded[app] = false
        default: break
        }
    }

    /// Checks after `deadlineReached` that no app is suspended which should be unloaded. One that has input is about to be woken.
    /// While the user is away, a suspended app may wait for the foreground.
    func verifyAll<Core: DecidingCore>(
        _ model: CoreModel, _ world: World, _ core: Core, at now: Microseconds, _ findings: inout Findings
    ) {
        if model.isShuttingDown || world.scenario.hasAbsences { return }
        for app in model.apps.indices where Self.isDue(model.apps[app], at: now) {
            let known = model.apps[app]
            guard let run = known.run.flatMap({ world.index(of: $0) }), world.traffic.runs[run].measured.isEmpty,
                !world.hasUnread(app), core.view(of: known.id, at: Instant(now))?.deferredWake == nil
            else { continue }
            findings.check(
                false, .unloadsAreDue, "\(known.id) is suspended for \(now - known.since) µs, and is not unloaded")
        }
    }
}
