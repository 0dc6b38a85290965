import LifecycleCore

/// Checks that the processes of an app run in the background, in any hour, for no longer than `BackgroundTimePerHourSec=` and
/// what users asked for (L53). It counts what the kernel does not freeze, whatever the core counts.
struct UnrequestedTimeChecker {
    /// A part of the last 61 minutes.
    private struct Slice {
        var start: Microseconds
        var end: Microseconds
        /// Time in the background in which processes ran.
        var ran: Microseconds = 0
        /// Time in which they were not reported as frozen.
        var span: Microseconds = 0
        /// What a user's request or a late event allows beyond the limit.
        var allowed: Microseconds = 0
    }

    private struct App {
        var slices: [Slice] = []
        /// When the app was last looked at; the values below are of that instant.
        var since: Microseconds = 0
        var isRunning = false
        var isUnfrozen = false
        var frozenTime: Microseconds = 0
        var lateness: Microseconds = 0
        /// Until when nothing is checked: the app had a deadline without an end, or another limit.
        var exemptUntil: Microseconds = 0
        /// The launch of the run.
        var isRelaunch = false
        /// A mode keeps it awake, which its manifest declares (L28).
        var isInMode = false
    }

    private var apps: [App]
    private static let hour: Microseconds = 3600 * .second
    /// The timeout of a thaw (5s), the warning of a freeze (2s), and 1s for the daemon.
    private static let slack: Microseconds = 8 * .second

    init(apps count: Int) { apps = Array(repeating: App(), count: count) }

    // MARK: What users ask for

    mutating func record(_ event: Event, of app: Int?, _ model: CoreModel, at now: Microseconds) {
        if case .configuration(.started) = event {
            for app in model.apps.indices where model.apps[app].policy.launchAtStart != nil {
                allowStay(app, model, now)
            }
        }
        guard let app else { return }
        switch event {
        case .requested(_, _, let request, by: .user):
            switch request {
            case .launch, .activate, .open, .background, .push, .scene: allowStay(app, model, now)
            case .interrupt, .interruptWhileConnected, .endInterruption, .terminate, .remove, .send, .cancelTask: break
            }
        case .socketsReady: allowStay(app, model, now)
        // It is thawed, and frozen again 5 s later (L43).
        case .run(_, .suspension(.locksFound)):
            allow(app, 6 * .second + model.apps[app].policy.suspendDelay.microseconds + Self.slack, now)
        // The limit may be another one.
        case .configuration(.registered), .configuration(.unregistered): if now > 0 { exempt(app, now) }
        default: break
        }
    }

    mutating func record(
        _ effect: Effect, of app: Int?, _ model: CoreModel, at now: Microseconds, _ findings: inout Findings
    ) {
        guard let app else { return }
        switch effect {
        case .spawn(_, _, let launch):
            apps[app].isRelaunch = launch.reason == .relaunch && launch.state == .background
            if !launch.isUnrequested { allowStay(app, model, now) }
        case .report(.stateChanged(_, .active, .background, _)), .report(.stateChanged(_, .inactive, .background, _)):
            let policy = model.apps[app].policy
            guard let deadline = policy.backgroundDeadline else { return exempt(app, now) }
            allow(app, (deadline + policy.suspendDelay).microseconds, now)
        case .report(.deadlineDeferred): allowStay(app, model, now)
        case .report(.wokenTooOften(_, let time)): allow(app, time.microseconds, now)
        // What others send to an app is no time of its own.
        case .report(.inputArrived(_, let input)):
            if input.isFromOutside, model.apps[app].policy.wakesOnTraffic || input.isAtHeldSocket {
                allowStay(app, model, now)
            }
        case .report(.unrequestedTimeUsedUp(let id, limit: _)):
            guard now >= apps[app].exemptUntil, let limit = model.apps[app].policy.backgroundTimePerHour else { return }
            let span = apps[app].slices.reduce(0) { $0 + $1.span } + (apps[app].isUnfrozen ? now - apps[app].since : 0)
            findings.check(
                span >= limit.microseconds, .unrequestedTimeIsLimited,
                "\(id) has used up \(limit), but was awake for \(span) µs")
        default: break
        }
    }

    /// A user's request, or what follows from one, gives an app the time of a stay in the background.
    private mutating func allowStay(_ app: Int, _ model: CoreModel, _ now: Microseconds) {
        guard let stay = Self.longestStay(model.apps[app]) else { return exempt(app, now) }
        allow(app, stay, now)
    }

    private mutating func allow(_ app: Int, _ time: Microseconds, _ now: Microseconds) {
        apps[app].slices.append(Slice(start: now, end: now, allowed: time))
    }

    private mutating func exempt(_ app: Int, _ now: Microseconds) {
        apps[app].exemptUntil = now + Self.hour + 60 * .second
    }

    /// The longest stay of an app in the background, from its launch to its end; `nil`: it is unlimited.
    private static func longestStay(_ app: AppModel) -> Microseconds? {
        let policy = app.policy
        guard let launch = policy.launchDeadline, let background = policy.backgroundDeadline,
            let terminate = policy.terminateDeadline, let extended = policy.extendedDeadlineMax,
            let budget = app.longestBudget
        else { return nil }
        // A wake renews a budget that ends earlier (L26).
        let stay = max(launch, extended) + background + max(budget, .seconds(30)) + policy.suspendDelay
        return (stay + max(terminate, extended)).microseconds
    }

    // MARK: What runs

    mutating func verify(
        of app: Int, _ model: CoreModel, _ world: World, _ continued: ContinuedTasks, at now: Microseconds,
        _ findings: inout Findings
    ) {
        let run = model.apps[app].run.flatMap { world.index(of: $0) }.map { world.runs[$0] }
        addSlice(app, run, world, now)
        apps[app].since = now
        apps[app].frozenTime = run?.frozenTime(at: now) ?? 0
        apps[app].lateness = world.lateness
        apps[app].isUnfrozen = run != nil && isAwake(model.apps[app])
        let isInMode = model.apps[app].isHeldByMode
        // Its background time is whole again after the last mode.
        if apps[app].isInMode, !isInMode { allowStay(app, model, now) }
        apps[app].isInMode = isInMode
        apps[app].isRunning =
            apps[app].isUnfrozen && isInBackground(app, model.apps[app]) && !isInMode
            && run.map { $0.killedAt == nil && !$0.isEmpty && !$0.isFreezeStuck } ?? false
        // A worker works for others, and an app that cannot be watched is awake for them.
        // What is never frozen counts for none of it.
        let isSuspendable = model.apps[app].policy.effectiveSuspension == .yes
        if model.apps[app].policy.role == .worker || world.isLeftAwake(app) || !isSuspendable { exempt(app, now) }
        // The user began it.
        if continued.mayContinue(app, model.apps[app].policy, at: now) { exempt(app, now) }
        guard let limit = model.apps[app].policy.backgroundTimePerHour, now >= apps[app].exemptUntil,
            let stay = Self.longestStay(model.apps[app])
        else { return }
        let ran = apps[app].slices.reduce(0) { $0 + ($1.start >= now - Self.hour ? $1.ran : 0) }
        let allowed = apps[app].slices.reduce(0) { $0 + $1.allowed }
        findings.check(
            ran <= limit.microseconds + stay + Self.slack + allowed, .unrequestedTimeIsLimited,
            "\(model.apps[app].id) ran for \(ran) µs of an hour in the background; \(limit) are allowed, and \(allowed) µs for "
                + "requests of users")
    }

    private mutating func addSlice(_ app: Int, _ run: FakeRun?, _ world: World, _ now: Microseconds) {
        let known = apps[app]
        apps[app].slices.removeAll { $0.end <= now - Self.hour - 60 * .second }
        guard now > known.since, known.isUnfrozen else { return }
        var slice = Slice(start: known.since, end: now)
        slice.span = now - known.since
        // Of a run that is over nothing runs.
        if known.isRunning, let run {
            slice.ran = now - known.since - max(0, run.frozenTime(at: now) - known.frozenTime)
        }
        slice.allowed = world.lateness - known.lateness
        apps[app].slices.append(slice)
    }

    /// Whether it is neither suspended nor in the foreground.
    private func isAwake(_ known: AppModel) -> Bool {
        switch known.state {
        case .background, .launching: true
        case .terminating: known.phase == .terminating
        case .notRunning, .inactive, .active, .suspended: false
        }
    }

    /// Whether it is in the background, or on the way there or from there without a user's request.
    private func isInBackground(_ app: Int, _ known: AppModel) -> Bool {
        switch known.state {
        case .background: true
        case .launching: apps[app].isRelaunch
        // The app ends by itself.
        case .terminating: !known.isNotifiedToTerminate
        case .notRunning, .inactive, .active, .suspended: false
        }
    }
}
