import LifecycleCore

/// Checks that a program that takes no part is not suspended while it starts up: before it listens, is idle, or `StartupSec=`
/// is over (L18).
struct StartUpChecker {
    private struct StartUp {
        var run: RunID
        /// `nil`: `StartupSec=infinity`.
        var end: Microseconds?
        var used: Duration = .zero
        var measuredAt: Microseconds
        var activeAt: Microseconds
    }

    /// By app: the start-up in progress.
    private var apps: [StartUp?]
    /// The apps whose start-up ended with this event, although no effect concerns them.
    private(set) var ended: [Int] = []
    /// A program that uses less than 1% of a processor for this time is idle.
    private static let idleTime = 6 * Microseconds.second

    init(apps count: Int) { apps = Array(repeating: nil, count: count) }

    /// Whether the app may not be suspended yet, as far as the core knows.
    func isStartingUp(_ app: Int) -> Bool { apps[app] != nil }

    /// Records an event. Called before the core handles it.
    mutating func record(_ event: Event, of app: Int?, _ model: CoreModel, at now: Microseconds) {
        ended = []
        if case .deadlineReached = event { endAll(model, at: now) }
        guard let app, case .run(let run, let what) = event, model.apps[app].run == run else { return }
        switch what {
        case .process(.executed):
            let policy = model.apps[app].policy
            // In doubt an app may have counted as launched before its program was executed.
            guard model.apps[app].phase == .launching, apps[app]?.run != run, !model.apps[app].isExecuted else {
                return
            }
            switch model.apps[app].readiness {
            case .executed: if policy.startUpTime == .zero { return }
            // In doubt it counts as launched after its deadline, and may not listen yet.
            case .listening: break
            case .notified, .forked: return
            }
            let end = policy.startUpTime.map { now + $0.microseconds }
            apps[app] = StartUp(run: run, end: end, measuredAt: now, activeAt: now)
        case .deadline(.activityMeasured(let activity)):
            record(activity, of: app, isLaunching: model.apps[app].phase == .launching, at: now)
        case .transition(.backgroundEntered), .transition(.notified(.didEnterBackground, delivered: true, _)):
            apps[app] = nil
        case .traffic(.idleHinted(true)): if model.apps[app].phase != .launching { apps[app] = nil }
        case .connection(.attached(let handled)): if handled.contains(.didEnterBackground) { apps[app] = nil }
        default: break
        }
    }

    /// The end counts once the core has noticed it. In the foreground it makes no difference.
    private mutating func endAll(_ model: CoreModel, at now: Microseconds) {
        for app in apps.indices {
            guard let end = apps[app]?.end, end <= now else { continue }
            guard model.apps[app].phase == .running || model.apps[app].phase == .entering else { continue }
            apps[app] = nil
            ended.append(app)
        }
    }

    private mutating func record(
        _ activity: RunActivity, of app: Int, isLaunching: Bool, at now: Microseconds
    ) {
        guard var startUp = apps[app], let listens = activity.listens else { return }
        let used = activity.cpu + activity.waited
        if (used - startUp.used) * 100 >= (now - startUp.measuredAt).duration { startUp.activeAt = now }
        startUp.used = used
        startUp.measuredAt = now
        let isIdle = !isLaunching && now - startUp.activeAt >= Self.idleTime
        apps[app] = listens || isIdle ? nil : startUp
    }

    mutating func record(
        _ effect: Effect, of app: Int?, _ model: CoreModel, at now: Microseconds, _ findings: inout Findings
    ) {
        guard let app else { return }
        switch effect {
        case .spawn: apps[app] = nil
        case .run(_, .suspension(.freeze)):
            findings.check(
                !isStartingUp(app), .startUpIsAwaited,
                "\(model.apps[app].id) is suspended, but it neither listens nor is idle")
        default: break
        }
    }
}
