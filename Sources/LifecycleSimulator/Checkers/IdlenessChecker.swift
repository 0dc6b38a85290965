import LifecycleCore

/// Checks when workers, and apps that input has woken, are looked at and found idle (L51). The world knows what they really have
/// to do.
struct IdlenessChecker {
    private struct App {
        var tasks = 0
        /// Since when nothing but its work keeps a worker awake; `nil`: something else does, or it is suspended.
        var since: Microseconds?
        var lateness: Microseconds = 0
        /// A timer has thawed it, and nothing else keeps it awake.
        var isMoment = false
        /// A timer of it is due soon, so it is looked at when that is over.
        var timerDue: Microseconds = 0
        /// The last measurement was incomplete, which counts from the first look that finds it.
        var isIncomplete = false
        /// The last look; `nil`: since then something else has kept it awake, or may have.
        var lastLook: Microseconds?
        /// It holds file locks, and is frozen again 5 s later (L43).
        var hasLocks = false
        var suspendedAt: Microseconds?
        /// How often in a row input has woken it within a second of its suspension.
        var quickTurns = 0
        /// For how long it stays awake because of it, and until when at least.
        var staysAwake: Microseconds = 0
        var awakeUntil: Microseconds = 0
        /// Since when nothing keeps an app that is no worker awake.
        var quietSince: Microseconds?
        /// When it said that it has nothing to do; `nil`: it did not, or something that concerns it has happened since.
        var hintedAt: Microseconds?
        /// The last look has no answer yet.
        var isAsked = false
        /// The answer to the last look was of the processor time only.
        var wasBrief = false
        /// When its manifest changed `IdleSec=`.
        var changedAt: Microseconds = 0
    }

    private var apps: [App]
    /// Apps of this event: that is looked at, that left suspension (a deadline can wake several), and that input woke.
    private var looked: Int?
    private var left: [Int] = []
    private var woken: Int?
    /// The app that was found in a call that cannot be watched while it is suspended.
    private var unwatched: Int?
    /// For how long the app that input woke in this event stays awake; `nil`: that was not reported.
    private var stay: Duration?

    /// A measurement and a thaw take some milliseconds, and the daemon may have other work.
    private static let slack: Microseconds = 1 * .second
    private static let lockRetry: Microseconds = 5 * .second
    /// An app that hints that it is idle is looked at again after this time.
    private static let shortestHintedLook = 100 * Microseconds.millisecond
    private static let quickTime: Microseconds = 1 * .second
    /// When it is known that a program waits in ticks, at least.
    private static let timeToLearn: Microseconds = 10 * .second
    /// So many quick turns have no consequence.
    private static let toleratedTurns = 2
    private static let longestStay = Duration.seconds(300)

    init(apps count: Int) { apps = Array(repeating: App(), count: count) }

    /// Records an event. Called before the core handles it.
    mutating func record(_ event: Event, of app: Int?, _ model: CoreModel, at now: Microseconds) {
        (looked, left, woken, stay, unwatched) = (nil, [], nil, nil, nil)
        if case .recovered = event {
            for app in apps.indices {
                apps[app].lastLook = nil
                apps[app].since = nil
                apps[app].hintedAt = nil
            }
        }
        guard let app else { return }
        recordHint(event, of: app, model, at: now)
        if case .run(_, .workMeasured(let work)) = event {
            apps[app].isIncomplete = work.isIncomplete
            let isFrozen = model.apps[app].phase == .suspended && model.apps[app].policy.role == .worker
            let isWatched = work.wait == nil || work.wait == .short
            if isFrozen, !isWatched, !model.isShuttingDown { unwatched = app }
            // A brief look knows of no timer.
            if !work.isBrief { apps[app].timerDue = work.due?.sinceOrigin.microseconds ?? 0 }
            // A look that began before the last one may be answered first, and counts as its answer.
            if apps[app].isAsked { apps[app].wasBrief = work.isBrief }
            apps[app].isAsked = false
        }
        if case .registered(_, let policy, _) = event,
            policy.idleTime != model.apps[app].policy.idleTime || policy.role != model.apps[app].policy.role
        {
            apps[app].changedAt = now
        }
        switch event {
        case .run(let run, .locksFound): if model.apps[app].run == run { apps[app].hasLocks = true }
        // What comes from an app or a user may begin or end what keeps the app awake; its measurement does not.
        case .run(_, .workMeasured), .run(_, .inspected), .run(_, .footprintMeasured), .run(_, .sizeMeasured),
            .run(_, .processorMeasured), .run(_, .gpuUsed):
            break
        case .run, .registered, .unregistered, .requested: apps[app].lastLook = nil
        default: break
        }
    }

    private mutating func recordHint(_ event: Event, of app: Int, _ model: CoreModel, at now: Microseconds) {
        switch event {
        case .run(_, .workMeasured), .run(_, .inspected), .run(_, .footprintMeasured), .run(_, .sizeMeasured),
            .run(_, .processorMeasured), .run(_, .gpuUsed):
            break
        case .run(let run, .idleHinted(true)): if model.apps[app].run == run { apps[app].hintedAt = now }
        default: apps[app].hintedAt = nil
        }
    }

    // MARK: Effects

    mutating func record(
        _ effect: Effect, of app: Int?, in event: Event, _ model: CoreModel, _ world: World, at now: Microseconds,
        _ findings: inout Findings
    ) {
        guard let app else { return }
        switch effect {
        case .spawn: apps[app] = App()
        case .measureWork(_, let kind): checkLook(app, kind, model, world, now, &findings)
        case .freeze:
            checkFreeze(app, event, model, world, now, &findings)
            apps[app].lastLook = nil
        case .thaw:
            apps[app].lastLook = nil
            apps[app].isMoment = event == .deadlineReached
        case .notify, .deliver: apps[app].hintedAt = nil
        case .runHook, .killHook: apps[app].lastLook = nil
        case .report(.deadlineCancelled(let id, .wake, _)):
            apps[app].lastLook = nil
            findings.check(
                !Self.hadWork(event, world), .workKeepsAwake,
                "\(id) was woken, and has something to do, but its wake ends")
        case .report(let report): record(report, of: app, model, now, &findings)
        default: break
        }
    }

    private mutating func checkLook(
        _ app: Int, _ kind: WorkLookKind, _ model: CoreModel, _ world: World, _ now: Microseconds,
        _ findings: inout Findings
    ) {
        let id = model.apps[app].id
        let isFirst = kind == .first
        defer { if kind == .full { apps[app].isMoment = false } }
        findings.check(looked != app, .looksAreRare, "\(id) is looked at twice in one event")
        looked = app
        // In a dry run it is looked at anew each time that it would be suspended (L58).
        if let last = apps[app].lastLook, model.apps[app].policy.effectiveSuspension == .yes {
            findings.check(!isFirst, .looksAreRare, "\(id) is looked at for the first time once more")
            // It may be looked at when the time is over for which something else keeps it awake.
            let isTimerOver = apps[app].timerDue > 0 && now >= apps[app].timerDue && last <= apps[app].timerDue
            let isKept =
                apps[app].staysAwake > 0 || apps[app].hasLocks || isTimerOver || apps[app].isMoment
            // The app has said that it has nothing to do, and that is not judged by its processor time alone.
            let run = model.apps[app].run.flatMap { world.index(of: $0) }
            let isHinted = apps[app].wasBrief && run.map { world.traffic.runs[$0].hintedAt != nil } ?? false
            let pause =
                isHinted ? Self.shortestHintedLook : model.apps[app].policy.idleTime.microseconds
            findings.check(
                now - last >= pause || isKept, .looksAreRare,
                "\(id) is looked at again after \(now - last) µs")
        }
        apps[app].lastLook = now
        apps[app].isAsked = true
    }

    private func checkFreeze(
        _ app: Int, _ event: Event, _ model: CoreModel, _ world: World, _ now: Microseconds,
        _ findings: inout Findings
    ) {
        let known = model.apps[app]
        // One that others have continued is frozen again.
        if known.phase == .suspended { return }
        findings.check(
            now >= apps[app].awakeUntil, .quickTurnsAreBounded,
            "\(known.id) was woken too often, but is suspended \(apps[app].awakeUntil - now) µs too early")
        // It had nothing to do when its hook was started, and is looked at once it is frozen.
        guard known.policy.role == .worker, !known.hooks.isSettling else { return }
        guard case .run(let run, .workMeasured) = event, known.run == run else {
            return findings.check(false, .workKeepsAwake, "\(known.id) is suspended without a look at what it does")
        }
        findings.check(
            !Self.hadWork(event, world), .workKeepsAwake,
            "\(known.id) is suspended, but it had something to do when it was looked at")
    }

    /// Whether the event is a look that found work, whatever the core makes of it.
    private static func hadWork(_ event: Event, _ world: World) -> Bool {
        guard case .run(let run, .workMeasured) = event, let index = world.index(of: run) else { return false }
        return world.traffic.runs[index].hadWork
    }

    private mutating func record(
        _ report: Report, of app: Int, _ model: CoreModel, _ now: Microseconds, _ findings: inout Findings
    ) {
        switch report {
        case .taskBegan:
            apps[app].tasks += 1
            apps[app].lastLook = nil
        case .taskEnded:
            apps[app].tasks = max(0, apps[app].tasks - 1)
            apps[app].lastLook = nil
        case .deadlineStarted(_, .wake, _, _): apps[app].lastLook = nil
        case .deadlineMet(_, .wake, _, _): apps[app].lastLook = nil
        case .stateChanged(_, let from, let to, let reason):
            apps[app].lastLook = nil
            apps[app].isMoment = reason == .timer
            // One that others have continued is frozen again, and not woken.
            if from == .suspended, reason != .continued { left.append(app) }
            enter(to, app, now)
        case .inputArrived(_, let input):
            woken = app
            countTurn(app, model.apps[app].policy.wakesOnTraffic || input.isAtHeldSocket, now)
        case .wokenTooOften(let id, let time):
            findings.check(woken == app, .quickTurnsAreBounded, "\(id) stays awake, but input has not woken it")
            stay = time
            apps[app].staysAwake = time.microseconds
            apps[app].awakeUntil = now + time.microseconds
        default: break
        }
    }

    private mutating func enter(_ state: AppState, _ app: Int, _ now: Microseconds) {
        switch state {
        case .suspended:
            apps[app].suspendedAt = now
            apps[app].hasLocks = false
            apps[app].staysAwake = 0
            apps[app].awakeUntil = 0
        case .active, .inactive:
            endTurns(app)
            apps[app].hasLocks = false
            apps[app].staysAwake = 0
            apps[app].awakeUntil = 0
        case .terminating: apps[app].tasks = 0
        case .notRunning, .launching, .background: break
        }
    }

    private mutating func countTurn(_ app: Int, _ counts: Bool, _ now: Microseconds) {
        let isQuick = apps[app].suspendedAt.map { now - $0 < Self.quickTime } ?? false
        apps[app].suspendedAt = nil
        if isQuick, counts {
            apps[app].quickTurns += 1
        } else {
            endTurns(app)
        }
    }

    private mutating func endTurns(_ app: Int) { apps[app].quickTurns = 0 }

    /// For how long an app stays awake after so many quick turns in a row: 2 s, 4 s, 8 s …
    private static func stay(after turns: Int) -> Duration? {
        if turns <= toleratedTurns { return nil }
        var stay = Duration.seconds(2)
        for _ in toleratedTurns + 1..<turns where stay < longestStay { stay *= 2 }
        return min(stay, longestStay)
    }

    // MARK: After all effects of an event

    /// Checks the timers that workers have served in this event.
    func verifyTimers(_ model: CoreModel, _ world: World, at now: Microseconds, _ findings: inout Findings) {
        for served in world.traffic.served {
            let app = world.runs[served.run].app
            let known = model.apps[app]
            guard known.policy.role == .worker, known.policy.keepsTimers, !model.isShuttingDown,
                apps[app].changedAt < served.since
            else { continue }
            let late = served.at - served.due
            let excuse = Self.slack + world.lateness - served.lateness
            findings.check(
                late <= 1 * .second + excuse, .ownTimersAreServed, "a timer of \(known.id) was served \(late) µs late")
        }
    }

    mutating func verify(
        of app: Int, _ model: CoreModel, _ world: World, _ deadlines: DeadlineChecker, _ startUps: StartUpChecker,
        at now: Microseconds, _ findings: inout Findings
    ) {
        let known = model.apps[app]
        // A request may have come between the last look at a worker and its freeze.
        let isFreezeComplete = known.phase == .suspended && known.policy.role == .worker
        if woken != app, left.contains(app) { endTurns(app) }
        findings.check(
            unwatched != app || known.phase != .suspended, .frozenWaitsAreWatched,
            "\(known.id) stays frozen in a call that cannot be watched")
        if woken == app {
            let turns = apps[app].quickTurns
            findings.check(
                stay == Self.stay(after: turns), .quickTurnsAreBounded,
                "\(known.id) was woken soon after each of its last \(turns) suspensions, and stays awake for "
                    + "\(stay ?? .zero)")
        }
        findings.check(
            looked != app || known.phase == .running || isFreezeComplete, .looksAreRare,
            "\(known.id) is looked at while it is \(known.phase)")
        let isQuiet =
            known.phase == .running && apps[app].tasks == 0 && !deadlines.isOpen(.wake, of: app)
            && !startUps.isStartingUp(app) && !world.isLeftAwake(app) && !known.hooks.isRunning
            && known.policy.effectiveSuspension == .yes
        let isIdle = isQuiet && known.policy.role == .worker
        apps[app].quietSince = isQuiet && !isIdle ? apps[app].quietSince ?? now : nil
        if !isIdle {
            apps[app].since = nil
        } else if apps[app].since == nil {
            apps[app].since = now
            apps[app].lateness = world.pastLateness
        }
    }

    /// Checks after `deadlineReached` that no idle worker is awake which should be suspended.
    func verifyAll(_ model: CoreModel, _ world: World, at now: Microseconds, _ findings: inout Findings) {
        if model.isShuttingDown { return }
        for app in apps.indices {
            let policy = model.apps[app].policy
            // A hook may run when the time is over (L57).
            if policy.effectiveSuspension == .yes, policy.hooks.isEmpty { checkStay(app, model, now, &findings) }
            guard let since = apps[app].since, let run = model.apps[app].run.flatMap({ world.index(of: $0) }) else {
                continue
            }
            let looks = 2 * model.apps[app].policy.idleTime.microseconds
            var waits = apps[app].hasLocks ? Self.lockRetry : 0
            let idleTime = model.apps[app].policy.idleTime.microseconds
            if world.tick(of: app) != nil { waits += max(6 * idleTime, Self.timeToLearn) + idleTime }
            if apps[app].isIncomplete { waits += idleTime }
            let slack = Self.slack + world.lateness - apps[app].lateness
            let lastWork = max(world.lastWork(of: run), timerWork(app, now))
            if let hintedAt = apps[app].hintedAt, hintedAt > lastWork {
                let time = now - max(hintedAt, since)
                findings.check(
                    time <= Self.slack + slack || now <= apps[app].awakeUntil + slack || apps[app].hasLocks,
                    .hintsSuspend,
                    "\(model.apps[app].id) said \(time) µs ago that it has nothing to do, but is not suspended")
            }
            let idle = now - max(since, lastWork, apps[app].changedAt)
            findings.check(
                idle <= looks + waits + slack || now <= apps[app].awakeUntil + slack, .idleIsSuspended,
                "\(model.apps[app].id) has had nothing to do for \(idle) µs, but is not suspended")
        }
    }

    /// Until a timer is over that is due soon, the app stays awake. It may be a timer that the app has ended since.
    private func timerWork(_ app: Int, _ now: Microseconds) -> Microseconds {
        let due = apps[app].timerDue
        return due <= now ? due : due - now <= 3 * .second ? now : 0
    }

    /// An app that stays awake because it was woken too often is suspended when that time is over, if nothing else keeps it
    /// awake.
    private func checkStay(_ app: Int, _ model: CoreModel, _ now: Microseconds, _ findings: inout Findings) {
        guard let since = apps[app].quietSince, apps[app].awakeUntil > 0 else { return }
        let retry = apps[app].hasLocks ? Self.lockRetry : 0
        let delay = max(1, retry, model.apps[app].policy.suspendDelay.microseconds)
        findings.check(
            now < max(apps[app].awakeUntil, since + delay), .quickTurnsAreBounded,
            "\(model.apps[app].id) was woken too often, and is awake \(now - apps[app].awakeUntil) µs too long")
    }
}
