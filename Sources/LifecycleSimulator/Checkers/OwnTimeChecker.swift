import LifecycleCore

/// Checks input for which an app needs background time (L53): of a local peer that waits although `Traffic=` is no, and of
/// its own timers and event descriptors (L50).
struct OwnTimeChecker {
    private struct App {
        /// Since when there is such input that wakes it, and how late events were then.
        var waitsSince: Microseconds?
        var lateness: Microseconds = 0
        /// Such input has woken it, and no user has asked for it since.
        var isCounted = false
    }

    private var apps: [App]
    /// The apps with `waitsSince`.
    private var waiting: [Int] = []
    /// The app to which this event brings such input, and whether it has background time left.
    private var arrived: (app: Int, hasTime: Bool)?

    /// As in `TrafficChecker`.
    private static let longestWait: Microseconds = 500 * .millisecond
    /// For so long a look at the account is into the future.
    private static let step: Microseconds = 1 * .millisecond

    init(apps count: Int) { apps = Array(repeating: App(), count: count) }

    /// Records an event. Called before the core handles it.
    mutating func record<Core: DecidingCore>(
        _ event: Event, of app: Int?, _ model: CoreModel, _ core: Core, at now: Microseconds
    ) {
        arrived = nil
        switch event {
        // What brings apps to the foreground, or takes their deadlines back.
        case .unlocked, .awoke, .started, .configured, .recovered:
            for app in apps.indices { apps[app].isCounted = false }
        default: break
        }
        guard let app else { return }
        switch event {
        case .run(let run, .inputArrived(let attempt, let input)):
            let known = model.apps[app]
            guard known.run == run, known.phase == .suspended, known.freezeAttempt == attempt, !model.isShuttingDown,
                Self.needsTime(input, known.policy)
            else { return }
            arrived = (app, Self.hasTime(known, core, now))
        // What a worker does for its clients is not its own (L49).
        case .run(_, .workMeasured): if model.apps[app].policy.role == .worker { apps[app].isCounted = false }
        case .run(_, .inputWatched), .run(_, .inspected), .run(_, .thawed), .run(_, .footprintMeasured),
            .run(_, .sizeMeasured):
            break
        default: apps[app].isCounted = false
        }
    }

    mutating func record(_ effect: Effect, of app: Int?, _ model: CoreModel, _ findings: inout Findings) {
        guard let app else { return }
        switch effect {
        case .spawn: apps[app] = App()
        case .thaw:
            // The home app comes to the foreground when others leave it (L49).
            apps[app].isCounted = arrived?.app == app && model.apps[app].policy.role != .home
            guard let arrived, arrived.app == app else { return }
            findings.check(
                arrived.hasTime, .drainsAreCounted,
                "\(model.apps[app].id) is woken for itself, but its background time is used up")
        default: break
        }
    }

    // MARK: After all effects of an event

    mutating func verify<Core: DecidingCore>(
        _ model: CoreModel, _ world: World, _ core: Core, at now: Microseconds, _ findings: inout Findings
    ) {
        var due: [Int] = []
        for run in world.traffic.waiting {
            guard let rule = rule(for: run, model, world), Self.hasTime(model.apps[world.runs[run].app], core, now)
            else { continue }
            let app = world.runs[run].app
            due.append(app)
            if apps[app].waitsSince == nil {
                apps[app].waitsSince = now
                apps[app].lateness = world.pastLateness
            }
            let time = now - (apps[app].waitsSince ?? now)
            findings.check(
                time <= Self.longestWait + world.lateness - apps[app].lateness, rule,
                "\(model.apps[app].id) is suspended, has background time, and its input has waited for \(time) µs")
        }
        for app in waiting where !due.contains(app) { apps[app].waitsSince = nil }
        waiting = due
    }

    /// Checks that the account of an app that was woken for itself grows.
    mutating func verify<Core: DecidingCore>(
        of app: Int, _ model: CoreModel, _ core: Core, at now: Microseconds, _ findings: inout Findings
    ) {
        guard apps[app].isCounted else { return }
        switch model.apps[app].phase {
        case .waking, .running, .suspending: break
        case .unknown, .notRunning, .launching, .foreground, .entering, .suspended, .terminating, .ending, .past:
            return apps[app].isCounted = false
        }
        let minute = 60 * Microseconds.second
        let id = model.apps[app].id
        guard now / minute == (now + Self.step) / minute, let view = core.view(of: id, at: Instant(now)),
            let later = core.view(of: id, at: Instant(now + Self.step))
        else { return }
        findings.check(
            later.unrequestedTime - view.unrequestedTime == Self.step.duration, .drainsAreCounted,
            "\(id) was woken for itself, and its background time is not counted")
    }

    /// The rule for what waits at a suspended app; `nil`: no such input does.
    private func rule(for run: Int, _ model: CoreModel, _ world: World) -> Rule? {
        let known = model.apps[world.runs[run].app]
        guard known.phase == .suspended, known.run == world.runs[run].id, world.runs[run].freezer == .frozen,
            world.runs[run].program == .running, world.sleep == nil, !model.isShuttingDown,
            !world.traffic.runs[run].isBlind
        else { return nil }
        for unread in world.traffic.runs[run].unread where Self.needsTime(unread.input, known.policy) {
            if !known.policy.wakesOnTraffic { return .peersAreDrained }
            // What the app has sent to itself may be less than its threshold.
            if !unread.input.kind.isFromOutside { return .timersWake }
        }
        return nil
    }

    /// Whether input wakes an app only while it has background time.
    private static func needsTime(_ input: Input, _ policy: AppPolicy) -> Bool {
        // Timers of workers are never deferred (L53).
        if policy.role == .worker, input.kind == .timer { return false }
        return policy.wakesOnTraffic ? !input.isFromOutside : input.isHalfFull
    }

    private static func hasTime<Core: DecidingCore>(_ known: AppModel, _ core: Core, _ now: Microseconds) -> Bool {
        guard let limit = known.policy.backgroundTimePerHour else { return true }
        return core.view(of: known.id, at: Instant(now)).map { $0.unrequestedTime < limit } ?? false
    }
}
