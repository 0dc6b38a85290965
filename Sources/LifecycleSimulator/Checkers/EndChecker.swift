import LifecycleCore

/// Checks how apps are ended, and that those that were asked to end, or were unloaded, are not launched again by themselves.
struct EndChecker {
    private struct App {
        /// A request asked it to end, and no later request asked for anything else.
        var isEndRequested = false
        /// Its last run was ended for `UnloadAfterSec=`.
        var isUnloaded = false
        /// Its manifest was read again during a shutdown, which has its order already.
        var isChangedLate = false
    }

    private var apps: [App]
    /// The request that is being handled, and the value before it: a refused request changes nothing.
    private var current: (request: RequestID, app: Int, wasEndRequested: Bool)?

    init(apps count: Int) { apps = Array(repeating: App(), count: count) }

    mutating func record(_ event: Event, of app: Int?, _ model: CoreModel) {
        current = nil
        if let app, case .configuration(.registered) = event, model.isShuttingDown { apps[app].isChangedLate = true }
        guard let app, case .requested(let id, _, let request, by: _) = event else { return }
        current = (id, app, apps[app].isEndRequested)
        switch request {
        case .terminate, .remove: apps[app].isEndRequested = true
        case .push, .launch, .activate, .open, .background, .scene: apps[app].isEndRequested = false
        case .interrupt, .interruptWhileConnected, .endInterruption, .send, .cancelTask: break
        }
    }

    mutating func record(
        _ effect: Effect, of app: Int?, in event: Event, _ model: CoreModel, at now: Microseconds,
        _ findings: inout Findings
    ) {
        if case .answer(let request, .refused) = effect, let current, current.request == request {
            apps[current.app].isEndRequested = current.wasEndRequested
        }
        guard let app else { return }
        let known = model.apps[app]
        switch effect {
        case .spawn(let id, _, let launch):
            // The home app comes back to the foreground for the end of another app (L49).
            let isByItself = launch.reason == .relaunch && known.policy.role != .home
            findings.check(
                !isByItself || !apps[app].isEndRequested, .endedStaysEnded,
                "\(id) is relaunched although it was asked to end")
            findings.check(
                !isByItself || !apps[app].isUnloaded || !launch.isUnrequested, .endedStaysEnded,
                "\(id) was unloaded, and is launched again by itself")
            apps[app] = App()
        case .removeInstance: apps[app] = App()
        case .report(.stateChanged(let id, let from, let to, .unloaded)):
            if to == .terminating { apps[app].isUnloaded = true }
            guard from == .suspended else { return }
            findings.check(
                known.policy.unloadAfter.map { now - known.asleepSince >= $0.microseconds } ?? false, .unloadsAreDue,
                "\(id) is unloaded after \(now - known.asleepSince) µs of \(known.policy.unloadAfter ?? .zero)")
        case .run(_, .kill): checkKill(app, event, known, &findings)
        case .run(_, .notify(.willTerminate)):
            findings.check(
                known.phase != .suspended && known.phase != .suspending, .appsAreNotifiedOfEnd,
                "\(known.id) is notified of its end while it is \(known.phase)")
            checkEssential(app, model, &findings)
        default: break
        }
    }

    /// Checks that an app which is asked to end is notified before it is killed, if it runs or took no part before.
    private func checkKill(_ app: Int, _ event: Event, _ known: AppModel, _ findings: inout Findings) {
        switch event {
        case .requested(_, _, .terminate, by: _), .shutdownRequested(immediately: false): break
        default: return
        }
        let mustBeNotified =
            switch known.phase {
            case .foreground, .running, .entering: true
            case .suspended, .suspending: known.isNotifiedOfEnd
            case .unknown, .notRunning, .launching, .waking, .terminating, .ending, .past: false
            }
        findings.check(
            !mustBeNotified, .appsAreNotifiedOfEnd, "\(known.id) is killed while it is \(known.phase), without notice")
    }

    /// Checks that an app which others depend on is not notified before they have ended.
    private func checkEssential(_ app: Int, _ model: CoreModel, _ findings: inout Findings) {
        guard model.isShuttingDown, model.apps[app].policy.isEssential, !apps[app].isEndRequested else { return }
        let other = model.apps.indices.first { index in
            model.apps[index].run != nil && !model.apps[index].policy.isEssential && !apps[index].isChangedLate
        }
        findings.check(
            other == nil, .essentialEndsLast,
            "\(model.apps[app].id) is notified of its end while \(other.map { model.apps[$0].id.name } ?? "") runs")
    }

    // MARK: Unloading

    /// Whether a suspended app may be unloaded.
    static func isDue(_ app: AppModel, at now: Microseconds) -> Bool {
        isDue(app, asleepSince: app.asleepSince, at: now)
    }

    /// Whether it has to be: what a moment has given it to do is not seen here.
    private static func isOverdue(_ app: AppModel, at now: Microseconds) -> Bool {
        isDue(app, asleepSince: app.since, at: now)
    }

    private static func isDue(_ app: AppModel, asleepSince: Microseconds, at now: Microseconds) -> Bool {
        app.phase == .suspended && (app.policy.unloadAfter.map { now - asleepSince >= $0.microseconds } ?? false)
    }

    /// Checks after `deadlineReached` that no app is suspended which should be unloaded. One that has input is about to be woken.
    /// While the user is away, a suspended app may wait for the foreground.
    func verifyAll<Core: DecidingCore>(
        _ model: CoreModel, _ world: World, _ core: Core, at now: Microseconds, _ findings: inout Findings
    ) {
        if model.isShuttingDown || world.scenario.hasAbsences { return }
        for app in model.apps.indices where Self.isOverdue(model.apps[app], at: now) {
            let known = model.apps[app]
            guard let run = known.run.flatMap({ world.index(of: $0) }), world.traffic.runs[run].measured.isEmpty,
                !world.hasUnread(app), core.view(of: known.id, at: Instant(now))?.deferredWake == nil
            else { continue }
            findings.check(
                false, .unloadsAreDue, "\(known.id) is suspended for \(now - known.since) µs, and is not unloaded")
        }
    }
}
