import LifecycleCore

/// Checks when the wake of an app that is no worker ends, if input has woken it and nothing else keeps it awake (L50).
struct TrafficWakeChecker {
    private struct Wake {
        let number: UInt64
        let start: Microseconds
        /// Another wake was open with it, or its time began once more.
        var isDisturbed = false
        /// Since when nothing but this wake keeps the app awake, and how late events were then.
        var aloneSince: Microseconds?
        var lateness: Microseconds = 0
    }

    private struct App {
        /// Input has woken it, and the thaw is not complete.
        var isWoken = false
        var wake: Wake?
        var tasks = 0
        /// The last measurement found what counts from the first look that finds it.
        var waitsUnusually = false
        /// It has said since its last suspension that it has nothing to do.
        var isHinted = false
        /// The core has received its manifest, so looks have another time.
        var registeredAt: Microseconds = 0
    }

    private var apps: [App]
    /// Whether the event is a measurement.
    private var isLook = false

    private static let longest: Microseconds = 30 * .second
    /// As in `IdlenessChecker`.
    private static let slack: Microseconds = 1 * .second

    init(apps count: Int) { apps = Array(repeating: App(), count: count) }

    /// Records an event. Called before the core handles it.
    mutating func record(_ event: Event, of app: Int?, _ model: CoreModel, at now: Microseconds) {
        isLook = false
        // Measurements are lost with a daemon, and its looks begin later.
        if case .recovered = event { for app in apps.indices { apps[app].wake?.isDisturbed = true } }
        guard let app else { return }
        switch event {
        case .registered: apps[app].registeredAt = now
        case .run(_, .idleHinted(true)): apps[app].isHinted = true
        case .run(let run, .workMeasured(let work)):
            guard model.apps[app].run == run else { return }
            isLook = true
            apps[app].waitsUnusually = work.wait != nil || work.tick != nil
        default: break
        }
    }

    mutating func record(
        _ effect: Effect, of app: Int?, _ model: CoreModel, at now: Microseconds, _ findings: inout Findings
    ) {
        guard let app else { return }
        switch effect {
        case .spawn: apps[app] = App()
        case .report(let report): record(report, of: app, model, now, &findings)
        default: break
        }
    }

    private mutating func record(
        _ report: Report, of app: Int, _ model: CoreModel, _ now: Microseconds, _ findings: inout Findings
    ) {
        let policy = model.apps[app].policy
        switch report {
        case .taskBegan: apps[app].tasks += 1
        case .taskEnded: apps[app].tasks = max(0, apps[app].tasks - 1)
        case .inputArrived(_, let input):
            apps[app].isWoken = (policy.wakesOnTraffic || input.isAtHeldSocket) && policy.role != .worker
        // It was completed before the thaw was reported: those that begin are for something else.
        case .wakeCompleted: if apps[app].wake == nil { apps[app].isWoken = false }
        case .deadlineStarted(_, .wake, _, let number):
            let isFirst = apps[app].isWoken && apps[app].wake == nil
            apps[app].wake = isFirst ? Wake(number: number, start: now) : apps[app].wake
            if !isFirst { apps[app].wake?.isDisturbed = true }
        case .deadlineDeferred(_, .wake, _, _): apps[app].wake?.isDisturbed = true
        case .deadlineMissed(let id, .wake, let number):
            findings.check(
                apps[app].wake?.number != number || apps[app].wake?.isDisturbed ?? true, .trafficWakesEnd,
                "\(id) is killed for a wake by input")
        case .deadlineCancelled(let id, .wake, let number): end(number, app, id, policy, now, &findings)
        case .deadlineMet(let id, .wake, _, let number):
            // The app may complete it itself.
            if isLook { end(number, app, id, policy, now, &findings) }
            if apps[app].wake?.number == number { apps[app].wake = nil }
        case .stateChanged(_, _, let state, _):
            switch state {
            case .background: break
            case .notRunning, .launching, .inactive, .active, .suspended, .terminating:
                (apps[app].isWoken, apps[app].wake) = (false, nil)
                if state == .terminating { apps[app].tasks = 0 }
                if state == .suspended { apps[app].isHinted = false }
            }
        default: break
        }
    }

    private mutating func end(
        _ number: UInt64, _ app: Int, _ id: AppID, _ policy: AppPolicy, _ now: Microseconds,
        _ findings: inout Findings
    ) {
        guard let wake = apps[app].wake, wake.number == number else { return }
        apps[app].wake = nil
        guard isLook, !wake.isDisturbed, wake.start > apps[app].registeredAt else { return }
        findings.check(
            now - wake.start >= policy.idleTime.microseconds || apps[app].isHinted, .trafficWakesEnd,
            "\(id) was woken by input, and its wake ends after \(now - wake.start) µs")
    }

    // MARK: After all effects of an event

    mutating func verify(
        of app: Int, _ model: CoreModel, _ world: World, _ startUps: StartUpChecker, at now: Microseconds
    ) {
        let known = model.apps[app]
        if known.phase == .running { apps[app].isWoken = false }
        guard let wake = apps[app].wake else { return }
        let isAlone =
            known.phase == .running && !wake.isDisturbed && apps[app].tasks == 0 && !startUps.isStartingUp(app)
            && !world.isLeftAwake(app) && (known.policy.wakesOnTraffic || known.policy.holdsSockets)
            && known.policy.role != .worker && !known.hooks.isRunning
        if !isAlone {
            apps[app].wake?.aloneSince = nil
        } else if wake.aloneSince == nil {
            apps[app].wake?.aloneSince = now
            apps[app].wake?.lateness = world.pastLateness
        }
    }

    /// Checks after `deadlineReached` that no wake is open which should have ended.
    func verifyAll(_ model: CoreModel, _ world: World, at now: Microseconds, _ findings: inout Findings) {
        if model.isShuttingDown { return }
        for app in apps.indices {
            guard let wake = apps[app].wake, let since = wake.aloneSince,
                let run = model.apps[app].run.flatMap({ world.index(of: $0) })
            else { continue }
            let (id, policy) = (model.apps[app].id, model.apps[app].policy)
            findings.check(
                now - wake.start < Self.longest, .trafficWakesEnd,
                "\(id) was woken by input \(now - wake.start) µs ago, and its wake is open still")
            let learning = max(6 * policy.idleTime.microseconds, 10 * .second)
            let waits = apps[app].waitsUnusually ? policy.requestTime.microseconds + learning : 0
            let limit =
                2 * policy.idleTime.microseconds + waits + Self.slack + world.lateness - wake.lateness
            let idle = now - max(since, world.lastWork(of: run), apps[app].registeredAt)
            findings.check(
                idle <= limit, .trafficWakesEnd,
                "\(id) was woken by input, has had nothing to do for \(idle) µs, and its wake is open still")
        }
    }
}
