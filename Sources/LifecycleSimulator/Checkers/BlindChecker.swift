import LifecycleCore

/// Checks what becomes of an app whose descriptors cannot be watched (L50).
struct BlindChecker {
    private struct App {
        /// What was reported last.
        var reported: [InputWatch.Unwatched] = []
        /// Since when it is awake because it cannot be watched; `nil`: it is not.
        var since: Microseconds?
        /// Until then at least it stays awake; `nil`: until its end.
        var until: Microseconds?
    }

    /// What follows from the watch of this event.
    private struct Expected {
        let app: Int
        let watch: InputWatch
        let isReported: Bool
        let isThawed: Bool
    }

    private var apps: [App]
    private var expected: Expected?
    private var isThawed = false
    private var reported: InputWatch?

    private static let retry: Microseconds = 60 * .second

    init(apps count: Int) { apps = Array(repeating: App(), count: count) }

    /// Records an event. Called before the core handles it.
    mutating func record(_ event: Event, of app: Int?, _ model: CoreModel, at now: Microseconds) {
        (expected, isThawed, reported) = (nil, false, nil)
        guard let app else { return }
        switch event {
        case .registered(_, let policy, _): if !policy.wakesOnTraffic { apps[app].since = nil }
        // Another daemon tries once.
        case .run(let run, .reattached): if model.apps[app].run == run { apps[app].since = nil }
        case .run(let run, .inputWatched(let attempt, let watch)):
            let known = model.apps[app]
            guard known.run == run, known.phase == .suspended, known.freezeAttempt == attempt,
                known.policy.wakesOnTraffic
            else { return }
            let isNew = watch.unwatched != apps[app].reported
            apps[app].reported = watch.unwatched
            let isThawed = watch.isBlind && !model.isShuttingDown
            expected = Expected(
                app: app, watch: watch, isReported: isNew && !watch.unwatched.isEmpty, isThawed: isThawed)
            guard isThawed else { return }
            apps[app].since = now
            apps[app].until = watch.isTransient ? now + Self.retry : nil
        default: break
        }
    }

    mutating func record(
        _ effect: Effect, of app: Int?, _ model: CoreModel, at now: Microseconds, _ findings: inout Findings
    ) {
        guard let app else { return }
        let id = model.apps[app].id
        switch effect {
        case .spawn: apps[app] = App()
        case .thaw: if expected?.app == app { isThawed = true }
        case .report(.inputNotWatched(_, let watch)):
            findings.check(
                expected?.app == app, .blindAppsAreShown, "\(id) is reported as not watched without a cause")
            reported = watch
        case .report(.stateChanged(_, _, .terminating, _)), .report(.stateChanged(_, _, .notRunning, _)):
            apps[app].since = nil
        case .freeze:
            let isHeld = apps[app].since != nil && apps[app].until.map { now < $0 } ?? true
            findings.check(
                !isHeld, .blindAppsAreAwake, "\(id) is suspended, but its descriptors cannot be watched")
            apps[app].since = nil
        default: break
        }
    }

    // MARK: After all effects of an event

    func verify<Core: DecidingCore>(_ model: CoreModel, _ core: Core, at now: Microseconds, _ findings: inout Findings)
    {
        guard let expected else { return }
        let id = model.apps[expected.app].id
        findings.check(
            isThawed == expected.isThawed, .blindAppsAreAwake,
            expected.isThawed
                ? "\(id) cannot be watched, but is left suspended" : "\(id) is thawed although it is watched")
        findings.check(
            reported == (expected.isReported ? expected.watch : nil), .blindAppsAreShown,
            "\(id): \(reported?.unwatched.count ?? 0) kinds of descriptors are reported as not watched; there are "
                + "\(expected.watch.unwatched.count)")
        guard !expected.isThawed, model.apps[expected.app].phase == .suspended else { return }
        let shown = core.view(of: id, at: Instant(now))?.watch
        findings.check(shown == expected.watch, .blindAppsAreShown, "\(id) does not show what is watched")
    }

    /// Checks that an app says why it is awake.
    func verify<Core: DecidingCore>(
        of app: Int, _ model: CoreModel, _ core: Core, at now: Microseconds, _ findings: inout Findings
    ) {
        guard apps[app].since != nil, apps[app].until.map({ now < $0 }) ?? true, model.apps[app].phase == .running
        else { return }
        let id = model.apps[app].id
        let reasons = core.view(of: id, at: Instant(now))?.awakeReasons ?? []
        findings.check(
            reasons.contains(.notWatchable), .blindAppsAreShown,
            "\(id) is awake because it cannot be watched, but shows \(reasons)")
    }
}
