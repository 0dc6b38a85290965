import LifecycleCore

/// Checks that an app is in the foreground if and only if one of its scenes is, and that each change of a scene is reported (L34).
struct SceneChecker {
    /// By app: what was reported of the scenes of its run.
    private var reported: [[SceneID: SceneState]]

    init(apps: Int) { reported = Array(repeating: [:], count: apps) }

    mutating func record(_ effect: Effect, of app: Int?, _ findings: inout Findings) {
        guard let app else { return }
        switch effect {
        case .spawn: reported[app] = [:]
        case .report(.sceneChanged(let id, let scene, let from, let to)):
            findings.check(
                reported[app][scene].map { $0 == from } ?? true, .scenesFollowApps,
                "the scene \(scene) of \(id) changes from \(from), but was \(reported[app][scene]?.name ?? "")")
            reported[app][scene] = to
        default: break
        }
    }

    mutating func verify<Core: DecidingCore>(
        of app: Int, _ model: CoreModel, _ core: Core, at now: Microseconds, _ findings: inout Findings
    ) {
        let known = model.apps[app]
        guard known.hasScenes, let view = core.view(of: known.id, at: Instant(now)) else { return }
        if view.ownScenes.isEmpty { return reported[app] = [:] }
        for scene in view.ownScenes {
            findings.check(
                reported[app][scene.id].map { $0 == scene.state } ?? true, .scenesFollowApps,
                "the scene \(scene.id) of \(known.id) is \(scene.state), but was reported as another")
        }
        let most = view.ownScenes.map(\.state).max() ?? .unattached
        let fits: Bool
        switch view.state {
        case .active: fits = most == .foregroundActive
        case .inactive: fits = most == .foregroundInactive
        case .notRunning, .launching, .background, .suspended, .terminating: fits = most <= .background
        }
        findings.check(
            fits && view.ownScenes.count <= 32, .scenesFollowApps,
            "\(known.id) is \(view.state), and the most active of its \(view.ownScenes.count) scenes is \(most)")
    }
}
