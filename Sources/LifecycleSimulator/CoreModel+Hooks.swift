import LifecycleCore

/// The hooks of an app (L57), as the events and effects of the core describe them.
struct ModelHooks {
    struct Running {
        var kind: HookKind
        var number: Int
        var began: Microseconds
        /// When it is to be killed.
        var due: Microseconds
    }

    var running: Running?
    /// `ExecBeforeSuspend=` is over, and the app is frozen soon, unless something comes in between.
    var isSettling = false
    /// The app has answered `didEnterBackground`.
    var hasAnswered = false

    var isRunning: Bool { running != nil }
}

extension CoreModel {
    /// It is in the background once its hook has ended, too.
    mutating func answered(_ app: Int) {
        apps[app].hooks.hasAnswered = true
        if apps[app].phase == .entering, !apps[app].hooks.isRunning { apps[app].phase = .running }
    }

    mutating func recordHook(_ effect: Effect, of app: Int, _ now: Microseconds) {
        switch effect {
        case .run(_, .hook(.run(let hook, let number))):
            let bound = apps[app].policy.backgroundDeadline?.microseconds ?? 60 * .second
            apps[app].hooks.isSettling = false
            apps[app].hooks.running = ModelHooks.Running(kind: hook.kind, number: number, began: now, due: now + bound)
            // It had stopped itself, which is the answer.
            if hook.kind == .enterBackground, apps[app].phase == .running { apps[app].phase = .entering }
            // It follows at once on the one for which its transition has waited.
            let isEntered = apps[app].phase == .entering && apps[app].hooks.hasAnswered
            if hook.kind == .beforeSuspend, isEntered { apps[app].phase = .running }
        case .run(_, .hook(.kill(let number))): endHook(app, number)
        default: break
        }
    }

    mutating func endHook(_ app: Int, _ number: Int) {
        guard let running = apps[app].hooks.running, running.number == number else { return }
        apps[app].hooks.isSettling = running.kind == .beforeSuspend
        apps[app].hooks.running = nil
        hookEnds.append(app)
    }

    /// Whether an app is in the background with the event that is being handled.
    func isEntered(_ app: Int) -> Bool {
        !apps[app].hooks.isRunning && (answering == app || hookEnds.contains(app) && apps[app].hooks.hasAnswered)
    }
}
