import LifecycleCore

/// L12: how many are in the foreground, and who has to leave it.
struct ForegroundChecker {
    /// By app: when it was last activated, counted in requests and launches.
    private var activated: [UInt64]
    private var count: UInt64 = 0
    /// Just asked for, and what had been before: a request that is refused activates nobody.
    private var asked: (request: RequestID, app: Int, before: UInt64)?

    init(apps: Int) {
        activated = Array(repeating: 0, count: apps)
    }

    mutating func note(_ event: Event, of app: Int?) {
        asked = nil
        guard let app, case .requested(let id, _, let request) = event else { return }
        switch request {
        case .activate, .launch(.foreground, _, _):
            asked = (id, app, activated[app])
            activate(app)
        case .launch, .background, .interrupt, .endInterruption, .terminate, .remove, .push, .send: break
        }
    }

    private mutating func activate(_ app: Int) {
        count += 1
        activated[app] = count
    }

    mutating func note(_ effect: Effect, of app: Int?, _ shadow: Shadow, _ findings: inout Findings) {
        if let asked, effect.refuses(asked.request) { activated[asked.app] = asked.before }
        guard let app else { return }
        if case .spawn(_, _, let launch) = effect, launch.state == .foreground { activate(app) }
        guard case .report(.stateChanged(let id, _, .background, .displaced)) = effect else { return }
        for other in shadow.apps.indices where other != app && Self.isForeground(shadow.apps[other]) {
            findings.check(
                activated[app] <= activated[other], .longestAgoIsDisplaced,
                "\(id) is displaced, though \(shadow.apps[other].id) was activated longer ago")
        }
    }

    private static func isForeground(_ app: ShadowApp) -> Bool { app.state == .active || app.state == .inactive }

    func settle(_ shadow: Shadow, _ findings: inout Findings) {
        var present = 0
        for app in shadow.apps where Self.isForeground(app) { present += 1 }
        findings.check(
            present <= shadow.manager.foregroundLimit, .foregroundIsLimited,
            "\(present) apps are in the foreground; \(shadow.manager.foregroundLimit) may be")
    }

    /// With all views: who is on the way there counts too.
    func settleAll(_ views: [AppView], _ shadow: Shadow, _ findings: inout Findings) {
        let coming = views.count { $0.isForeground }
        findings.check(
            coming <= shadow.manager.foregroundLimit, .foregroundIsLimited,
            "\(coming) apps are in the foreground or on the way there; \(shadow.manager.foregroundLimit) may be")
        for view in views where view.state == .active || view.state == .inactive {
            findings.check(
                view.isForeground, .foregroundIsLimited, "\(view.id) is \(view.state), but holds no place there")
        }
    }
}

extension Effect {
    fileprivate func refuses(_ request: RequestID) -> Bool {
        if case .answer(request, .refused) = self { true } else { false }
    }
}
