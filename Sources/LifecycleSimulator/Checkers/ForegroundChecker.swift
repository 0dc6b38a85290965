import LifecycleCore

/// Checks how many apps are in the foreground and which app is displaced (L12).
struct ForegroundChecker {
    /// By app: the number of its last activation. Requests and launches are counted.
    private var activated: [UInt64]
    private var count: UInt64 = 0
    /// The request that is being handled, and the value before it: a refused request activates no app.
    private var current: (request: RequestID, app: Int, before: UInt64)?

    init(apps: Int) {
        activated = Array(repeating: 0, count: apps)
    }

    mutating func record(_ event: Event, of app: Int?) {
        current = nil
        guard let app, case .requested(let id, _, let request, by: _) = event else { return }
        switch request {
        case .activate, .open, .launch(.foreground, _, _, _), .scene(_, .activate):
            current = (id, app, activated[app])
            activate(app)
        case .launch, .background, .interrupt, .interruptWhileConnected, .endInterruption, .terminate, .remove, .push,
            .send, .scene(_, .background):
            break
        }
    }

    private mutating func activate(_ app: Int) {
        count += 1
        activated[app] = count
    }

    mutating func record(_ effect: Effect, of app: Int?, _ model: CoreModel, _ findings: inout Findings) {
        if let current, effect.refuses(current.request) { activated[current.app] = current.before }
        guard let app else { return }
        if case .spawn(_, _, let launch) = effect, launch.state == .foreground { activate(app) }
        guard case .report(.stateChanged(let id, _, .background, .displaced)) = effect else { return }
        // Of an app with several scenes one may stay.
        if model.apps[app].hasScenes { return }
        for other in model.apps.indices
        where other != app && Self.isForeground(model.apps[other].state) && !model.apps[other].hasScenes {
            findings.check(
                activated[app] <= activated[other], .leastRecentIsDisplaced,
                "\(id) is displaced, but \(model.apps[other].id) was activated longer ago")
        }
    }

    private static func isForeground(_ state: AppState) -> Bool { state == .active || state == .inactive }

    func verify(_ model: CoreModel, _ findings: inout Findings) {
        // By index: this is done after every event, and a copy of each of 1,000 apps would take most of the time.
        var present = 0
        for app in model.apps.indices where Self.isForeground(model.apps[app].state) && !model.apps[app].hasScenes {
            present += 1
        }
        findings.check(
            present <= model.manager.foregroundLimit, .foregroundIsLimited,
            "\(present) apps are in the foreground; the limit is \(model.manager.foregroundLimit)")
    }

    /// Checks all views: apps on the way to the foreground count too, and each window in the foreground.
    func verifyAll(_ views: [AppView], _ model: CoreModel, _ findings: inout Findings) {
        let coming = views.reduce(0) { $0 + $1.windows }
        findings.check(
            coming <= model.manager.foregroundLimit, .foregroundIsLimited,
            "\(coming) windows are in the foreground or on the way there; the limit is \(model.manager.foregroundLimit)"
        )
        for view in views where view.state == .active || view.state == .inactive {
            findings.check(
                view.isForeground, .foregroundIsLimited, "\(view.id) is \(view.state), but has no foreground slot")
        }
    }
}

extension AppView {
    /// The windows that take slots.
    fileprivate var windows: Int {
        if !isForeground { return 0 }
        return ownScenes.isEmpty ? 1 : ownScenes.count { $0.role == .window && $0.state >= .foregroundInactive }
    }
}

extension Effect {
    fileprivate func refuses(_ request: RequestID) -> Bool {
        if case .answer(request, .refused) = self { true } else { false }
    }
}
