import LifecycleCore

/// Checks that what a manifest says when it is read again applies from then on: `Role=` and `IdleSec=` (L49, L51).
/// `TrafficChecker` checks that input wakes by the new `Traffic=` and `WakeThreshold=`, and that no watch of the old ones is
/// left (L50).
struct ReloadChecker {
    private struct App {
        /// The look that is under way.
        var asked: (at: Microseconds, isFirst: Bool)?
        /// When the last two looks that were answered were asked for.
        var last: Microseconds?
        var before: Microseconds?
        var tasks = 0
        /// Until then it may be looked at sooner: it stays awake for another reason.
        var keptUntil: Microseconds = 0
        /// It has said since the last thaw that it has nothing to do.
        var isHinted = false
        /// A timer has thawed it for a moment.
        var isMoment = false
    }

    private var apps: [App]
    /// The app that this event makes another than a worker, and the one that it makes a worker.
    private var freed: Int?
    private var bound: Int?

    /// When an app that holds file locks is frozen again (L43).
    private static let lockRetry: Microseconds = 5 * .second

    init(apps count: Int) { apps = Array(repeating: App(), count: count) }

    /// Records an event. Called before the core handles it.
    mutating func record(_ event: Event, of app: Int?, _ model: CoreModel, at now: Microseconds) {
        (freed, bound) = (nil, nil)
        guard let app else { return }
        switch event {
        case .registered(_, let policy, _):
            let known = model.apps[app]
            if known.policy.role == .worker, policy.role != .worker, known.run != nil { freed = app }
            if known.policy.role != .worker, policy.role == .worker { bound = app }
        case .run(_, .idleHinted(true)): apps[app].isHinted = true
        case .run(_, .workMeasured(let work)):
            // A timer that is due soon is waited for.
            if let due = work.due, due.sinceOrigin.microseconds - now < 3 * .second {
                let idle = model.apps[app].policy.idleTime.microseconds
                apps[app].keptUntil = max(apps[app].keptUntil, now + 2 * idle + 4 * .second)
            }
            // A look that a dead daemon has not answered is compared with nothing.
            guard let asked = apps[app].asked else { break }
            apps[app].asked = nil
            apps[app].before = asked.isFirst ? nil : apps[app].last
            apps[app].last = asked.at
        case .run(_, .locksFound): apps[app].keptUntil = max(apps[app].keptUntil, now + 2 * Self.lockRetry)
        default: break
        }
    }

    mutating func record(
        _ effect: Effect, of app: Int?, in event: Event, _ model: CoreModel, at now: Microseconds,
        _ findings: inout Findings
    ) {
        guard let app else { return }
        switch effect {
        case .spawn: apps[app] = App()
        case .thaw:
            apps[app].isHinted = false
            apps[app].isMoment = event == .deadlineReached
        case .measureWork(_, let kind):
            apps[app].asked = (now, kind == .first)
            if kind == .full { apps[app].isMoment = false }
        case .report(.stateChanged(_, .suspended, _, .timer)): apps[app].isMoment = true
        case .freeze:
            guard case .run(_, .workMeasured) = event, let last = apps[app].last, let before = apps[app].before,
                now >= apps[app].keptUntil, !apps[app].isHinted, !apps[app].isMoment,
                model.apps[app].policy.role == .worker
            else { return }
            findings.check(
                last - before >= model.apps[app].policy.idleTime.microseconds, .reloadsTakeEffect,
                "\(model.apps[app].id) is suspended, but was idle for \(last - before) µs only")
        case .report(.taskBegan): apps[app].tasks += 1
        case .report(.taskEnded): apps[app].tasks = max(0, apps[app].tasks - 1)
        case .report(.stateChanged(_, _, .terminating, _)): apps[app].tasks = 0
        case .report(.wokenTooOften(_, let time)):
            // The look at the end of that time may come sooner than others.
            let idle = model.apps[app].policy.idleTime.microseconds
            apps[app].keptUntil = max(apps[app].keptUntil, now + time.microseconds + 2 * idle + 1 * .second)
        default: break
        }
    }

    // MARK: After all effects of an event

    /// A worker has no background budget (L49); an app that is no worker any more has one for its tasks, like any other (L21).
    func verify(_ model: CoreModel, _ deadlines: DeadlineChecker, _ findings: inout Findings) {
        if let bound {
            findings.check(
                !deadlines.isOpen(.backgroundTime, of: bound), .reloadsTakeEffect,
                "\(model.apps[bound].id) is a worker now, but has a background budget")
        }
        guard let app = freed, apps[app].tasks > 0, model.apps[app].policy.backgroundTime != nil else { return }
        switch model.apps[app].phase {
        case .entering, .running:
            findings.check(
                deadlines.isOpen(.backgroundTime, of: app), .reloadsTakeEffect,
                "\(model.apps[app].id) is no worker any more, but has no background budget")
        case .unknown, .notRunning, .launching, .foreground, .suspending, .suspended, .waking, .terminating, .ending,
            .past:
            break
        }
    }
}
