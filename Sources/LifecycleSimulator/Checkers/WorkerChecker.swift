import LifecycleCore

/// Checks that workers run in the background only, without a budget and at normal weight (L49).
struct WorkerChecker {
    func record(_ effect: Effect, of app: Int?, _ model: CoreModel, _ findings: inout Findings) {
        guard let app, model.apps[app].policy.role == .worker else { return }
        let problem: String?
        switch effect {
        case .spawn(_, _, let launch): problem = launch.state == .foreground ? "is launched into the foreground" : nil
        // Its manifest may make it a worker while it is active.
        case .report(.stateChanged(_, .active, .inactive, _)): problem = nil
        case .report(.stateChanged(_, _, .active, _)), .report(.stateChanged(_, _, .inactive, _)):
            problem = "enters the foreground"
        case .report(.deadlineStarted(_, .backgroundTime, _, _)): problem = "has a background budget"
        default: return
        }
        findings.check(
            problem == nil, .workersRunInBackground, "\(model.apps[app].id) is a worker, and \(problem ?? "")")
    }

    func verify(of app: Int, _ model: CoreModel, _ world: World, _ findings: inout Findings) {
        let known = model.apps[app]
        guard known.policy.role == .worker, known.state == .background, known.phase == .running,
            let run = known.run.flatMap({ world.index(of: $0) })
        else { return }
        // Unless it uses too much processor time (L44).
        let isLimited = world.runs[run].processor.limit != nil
        findings.check(
            world.runs[run].isThrottled == isLimited, .workersRunInBackground,
            "\(known.id) is a worker, and is throttled: \(world.runs[run].isThrottled)")
    }

    func verifyAll(_ views: [AppView], _ model: CoreModel, _ findings: inout Findings) {
        for view in views where view.isForeground {
            let isWorker = model.indexes[view.id].map { model.apps[$0].policy.role == .worker } ?? false
            findings.check(!isWorker, .workersRunInBackground, "\(view.id) is a worker, and has a foreground slot")
        }
    }
}
