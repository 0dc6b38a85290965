import LifecycleCore

/// Checks how apps are ended and when they are relaunched.
struct EndChecker {
    /// By app: when its last run ended.
    private var ended: [Microseconds]
    /// By app: the scheduled relaunch.
    private var relaunch: [(deaths: Int, at: Microseconds)?]
    /// By app: whether it has completed all its wakes.
    private var hasCompleted: [Bool]
    /// By app: the wakes of its run whose pushes could not be written.
    private var unread: [Set<UInt64>]
    /// By app: whether a request asked it to end and no later request asked for anything else.
    private var isEndRequested: [Bool]
    /// By app: whether a client requested a launch that has not begun: it may wait for others (L52).
    private var isLaunchRequested: [Bool]
    /// The request that is being handled, and the value before it: a refused request changes nothing.
    private var current: (request: RequestID, app: Int, wasEndRequested: Bool)?

    init(apps: Int) {
        ended = Array(repeating: 0, count: apps)
        relaunch = Array(repeating: nil, count: apps)
        hasCompleted = Array(repeating: false, count: apps)
        unread = Array(repeating: [], count: apps)
        isEndRequested = Array(repeating: false, count: apps)
        isLaunchRequested = Array(repeating: false, count: apps)
    }

    mutating func record(_ event: Event, of app: Int?, _ model: CoreModel, at now: Microseconds) {
        current = nil
        guard let app else { return }
        switch event {
        case .run(let run, .exited), .run(let run, .spawnFailed): if model.apps[app].run == run { ended[app] = now }
        case .requested(let id, _, let request, by: _):
            current = (id, app, isEndRequested[app])
            record(request.reached(by: model.apps[app].policy), of: app)
            // The relaunch that was scheduled is cancelled. The home app may come for another reason.
            if isEndRequested[app], model.apps[app].phase == .notRunning { relaunch[app] = nil }
        case .run(let run, .notificationDelayed(let wake)):
            if model.apps[app].run == run { unread[app].insert(wake) }
        case .run(let run, .wakeCompleted(_, let id)):
            guard model.apps[app].run == run else { return }
            switch model.apps[app].phase {
            case .waking, .running, .entering, .foreground:
                hasCompleted[app] = model.apps[app].wakes.isComplete(with: id)
            // Sent before the freeze, or before the app was ready: it does not belong to this wake.
            case .unknown, .notRunning, .launching, .suspending, .suspended, .terminating, .ending, .past: break
            }
        default: break
        }
    }

    private mutating func record(_ request: Request, of app: Int) {
        switch request {
        case .terminate, .remove:
            isEndRequested[app] = true
            isLaunchRequested[app] = false
        case .push, .launch(.background, _, _, _):
            isLaunchRequested[app] = true
            hasCompleted[app] = false
            isEndRequested[app] = false
        case .activate, .open, .launch(.foreground, _, _, _), .background, .scene: isEndRequested[app] = false
        case .interrupt, .interruptWhileConnected, .endInterruption, .send: break
        }
    }

    mutating func record(
        _ effect: Effect, of app: Int?, in event: Event, _ model: CoreModel, at now: Microseconds,
        _ findings: inout Findings
    ) {
        if case .answer(let request, .refused) = effect, let current, current.request == request {
            isEndRequested[current.app] = current.wasEndRequested
        }
        guard let app else { return }
        let known = model.apps[app]
        switch effect {
        case .report(.relaunchScheduled(_, let time, let deaths)):
            relaunch[app] = (deaths, now + time.microseconds)
            findings.check(
                now + time.microseconds - ended[app] >= Self.postponement(deaths), .relaunchesWait,
                "\(known.id) is to be relaunched \(time) after \(deaths) early ends")
        case .spawn(let id, _, let launch): checkSpawn(app, id, launch, event, model, now, &findings)
        case .report(.deadlineMissed(let id, .wake, let wake)):
            findings.check(
                !hasCompleted[app], .wakesAreCompleted, "\(id) is killed for a wake that it has completed")
            findings.check(
                !unread[app].contains(wake), .unreadWakesAreExcused,
                "\(id) is killed for wake \(wake), which it cannot read")
        case .kill: checkKill(app, event, model, &findings)
        case .thaw:
            guard isOrderlyEnd(of: known.id, event) else { return }
            findings.check(
                known.isNotifiedOfEnd, .suspendedAreNotifiedOfEnd,
                "\(known.id) is thawed for its end, although it takes part or is to be killed without notice")
        case .notify(_, .willTerminate):
            findings.check(
                known.phase != .suspended && known.phase != .suspending, .runningAppsAreNotifiedOfEnd,
                "\(known.id) is notified of its end while it is \(known.phase)")
        default: break
        }
    }

    private mutating func checkSpawn(
        _ app: Int, _ id: AppID, _ launch: Launch, _ event: Event, _ model: CoreModel, _ now: Microseconds,
        _ findings: inout Findings
    ) {
        // A launch that a client requests is not postponed, whatever its reason.
        let isAsked = if case .requested = event { true } else { isLaunchRequested[app] }
        if launch.reason == .relaunch, !isAsked, let scheduled = relaunch[app] {
            findings.check(
                now >= scheduled.at, .relaunchesWait,
                "\(id) is relaunched \(scheduled.at - now) µs too early")
        }
        // The home app comes back to the foreground for the end of another app, also if that is postponed (L49).
        let isHome = model.apps[app].policy.role == .home
        findings.check(
            launch.reason != .relaunch || !isEndRequested[app] || isHome, .endedStaysEnded,
            "\(id) is relaunched although it was asked to end")
        relaunch[app] = nil
        isLaunchRequested[app] = false
        isEndRequested[app] = false
        hasCompleted[app] = false
        unread[app] = []
    }

    /// L11: 10s, doubling, up to 5min.
    private static func postponement(_ deaths: Int) -> Microseconds {
        guard deaths > 0 else { return 0 }
        return min(300 * .second, (10 * .second) << Microseconds(min(deaths - 1, 20)))
    }

    /// Checks how many apps the request of a shutdown ends.
    func verify(_ event: Event, _ effects: [Effect], _ findings: inout Findings) {
        guard case .shutdownRequested = event else { return }
        let ended = effects.count { effect in
            switch effect {
            case .kill, .notify(_, .willTerminate): true
            default: false
            }
        }
        findings.check(
            ended <= LifecycleCore.endedAtOnce, .shutdownIsInSteps,
            "a shutdown ends \(ended) apps in one event; the limit is \(LifecycleCore.endedAtOnce)")
    }

    /// The end of another app may thaw the home app.
    private func isOrderlyEnd(of app: AppID, _ event: Event) -> Bool {
        switch event {
        case .requested(_, app, .terminate, by: _), .shutdownRequested(immediately: false): true
        default: false
        }
    }

    /// Checks that an awake app which is asked to end is notified before it is killed.
    private func checkKill(_ app: Int, _ event: Event, _ model: CoreModel, _ findings: inout Findings) {
        let phase = model.apps[app].phase
        let isAwake = phase == .foreground || phase == .running || phase == .entering
        switch event {
        case .run(_, .exited):
            findings.check(
                !model.apps[app].awaitsRemaining, .remainingAreAwaited,
                "processes of \(model.apps[app].id) are killed with the main process, although they have time left")
        case .requested(_, _, .terminate, by: _), .shutdownRequested(immediately: false):
            findings.check(
                !isAwake, .runningAppsAreNotifiedOfEnd,
                "\(model.apps[app].id) is killed while it is \(phase), without notice")
            let isSuspended = phase == .suspended || phase == .suspending
            findings.check(
                !isSuspended || !model.apps[app].isNotifiedOfEnd, .suspendedAreNotifiedOfEnd,
                "\(model.apps[app].id) is killed while it is \(phase), although it was never notified of anything")
        default: break
        }
    }
}
