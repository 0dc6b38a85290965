import LifecycleCore

/// Checks that transient instances exist as long as something is left of them (L42).
struct InstanceChecker {
    private struct App {
        /// It was created for a request that has not come.
        var isFresh = false
        /// A user has removed it, and has not asked for it since.
        var isRemoveAsked = false
        /// The same, or what was asked for since was cancelled again.
        var mayBeRemoved = false
    }

    private var apps: [App]
    /// The request that is being handled, and what was asked before: a refused request changes nothing.
    private var current: (request: RequestID, app: Int, wasRemoveAsked: Bool)?

    init(apps count: Int) { apps = Array(repeating: App(), count: count) }

    /// Records an event. Called before the core handles it.
    mutating func record(_ event: Event, of app: Int?, _ model: CoreModel) {
        current = nil
        if case .recovered = event { for app in apps.indices { apps[app].isFresh = false } }
        guard let app else { return }
        switch event {
        case .configuration(.registered(_, let policy, _)):
            if model.apps[app].phase == .unknown { apps[app] = App(isFresh: policy.isTransient) }
        case .requested(let id, _, let request, by: _):
            current = (id, app, apps[app].isRemoveAsked)
            apps[app].isFresh = false
            switch request {
            case .remove: (apps[app].isRemoveAsked, apps[app].mayBeRemoved) = (true, true)
            case .launch, .activate, .open, .push: apps[app].isRemoveAsked = false
            case .background, .interrupt, .interruptWhileConnected, .endInterruption, .terminate, .send, .cancelTask,
                .scene:
                break
            }
        default: break
        }
    }

    mutating func record(_ effect: Effect, of app: Int?, _ model: CoreModel, _ findings: inout Findings) {
        if case .answer(let request, .refused) = effect, let current, current.request == request {
            apps[current.app].isRemoveAsked = current.wasRemoveAsked
        }
        guard let app else { return }
        let known = model.apps[app]
        switch effect {
        case .spawn: apps[app] = App()
        case .removeInstance(let id):
            findings.check(
                known.policy.isTransient && known.phase == .notRunning, .instancesGo,
                "\(id) is removed while it is \(known.phase)")
            findings.check(
                !known.policy.holdsSockets || apps[app].mayBeRemoved, .instancesGo,
                "\(id) is removed, but the daemon holds sockets for it")
        default: break
        }
    }

    // MARK: After all effects of an event

    func verify<Core: DecidingCore>(
        of app: Int, _ model: CoreModel, _ core: Core, at now: Microseconds, _ findings: inout Findings
    ) {
        let known = model.apps[app]
        guard known.isRegistered, known.policy.isTransient, known.phase == .notRunning else { return }
        guard let view = core.view(of: known.id, at: Instant(now)) else {
            return findings.check(false, .instancesGo, "\(known.id) is removed, and the daemon does not know it")
        }
        let isToLaunch = view.relaunchesIn != nil || view.launchWaiting != nil || view.memoryAwaited != nil
        // A return after jetsam that waits is shown only once memory was measured for it.
        findings.check(
            isToLaunch || apps[app].isFresh || known.policy.holdsSockets && !apps[app].isRemoveAsked, .instancesGo,
            "nothing is left of \(known.id), but it is not removed")
    }
}
