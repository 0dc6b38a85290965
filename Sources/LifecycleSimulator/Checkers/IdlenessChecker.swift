import LifecycleCore

/// Checks that workers are suspended when they have nothing to do, and not before (L51). The world knows what they really have to
/// do.
struct IdlenessChecker {
    private struct App {
        var tasks = 0
        /// Since when nothing but its work keeps a worker awake; `nil`: something else does, or it is suspended.
        var since: Microseconds?
        var lateness: Microseconds = 0
        /// A timer of it is due soon, so it is looked at when that is over.
        var timerDue: Microseconds = 0
        /// The last measurement was incomplete, which counts from the first look that finds it.
        var isIncomplete = false
        /// It holds file locks, and is frozen again 5 s later (L43).
        var hasLocks = false
        /// Until when it stays awake, because input has woken it too often.
        var awakeUntil: Microseconds = 0
        /// When it said that it has nothing to do; `nil`: it did not, or something that concerns it has happened since.
        var hintedAt: Microseconds?
        /// When its manifest changed `IdleSec=`.
        var changedAt: Microseconds = 0
        /// It was a worker when it was frozen, so it is looked at again.
        var isFrozenAsWorker = false
    }
    /// A worker that is frozen while a thread of it is in a call that cannot be watched.
    private struct FrozenInCall {
        let app: Int
        let run: Int
        let attempt: Int
        /// Since when the core knows that it is frozen, and how late events were then.
        let since: Microseconds
        let lateness: Microseconds
    }

    private var apps: [App]
    private var frozenInCall: [FrozenInCall] = []

    /// A measurement and a thaw take some milliseconds, and the daemon may have other work.
    private static let slack: Microseconds = 1 * .second
    private static let lockRetry: Microseconds = 5 * .second
    /// A look at frozen threads takes milliseconds.
    private static let longestLook: Microseconds = 100 * .millisecond
    /// When it is known that a program waits in ticks, at least.
    private static let timeToLearn: Microseconds = 10 * .second

    init(apps count: Int) { apps = Array(repeating: App(), count: count) }

    /// Records an event. Called before the core handles it.
    mutating func record(_ event: Event, of app: Int?, _ model: CoreModel, _ world: World, at now: Microseconds) {
        if case .recovered = event { for app in apps.indices { (apps[app].since, apps[app].hintedAt) = (nil, nil) } }
        guard let app else { return }
        switch event {
        case .run(_, .deadline(.inspected)), .run(_, .suspension(.footprintMeasured)), .run(_, .memory(.sizeMeasured)),
            .run(_, .processor(.measured)),
            .run(_, .processor(.gpuUsed)):
            break
        case .run(_, .traffic(.workMeasured(let work))):
            apps[app].isIncomplete = work.isIncomplete
            // A brief look knows of no timer.
            if !work.isBrief { apps[app].timerDue = work.due?.sinceOrigin.microseconds ?? 0 }
        case .run(let run, .traffic(.idleHinted(true))): if model.apps[app].run == run { apps[app].hintedAt = now }
        case .run(let run, .suspension(.locksFound)):
            apps[app].hintedAt = nil
            if model.apps[app].run == run { apps[app].hasLocks = true }
        case .configuration(.registered(_, let policy, _)):
            apps[app].hintedAt = nil
            let known = model.apps[app].policy
            if policy.idleTime != known.idleTime || policy.role != known.role { apps[app].changedAt = now }
        case .run(let run, .suspension(.frozen(let attempt, _, _))):
            apps[app].hintedAt = nil
            if model.apps[app].run == run { recordFrozen(app, attempt, model, world, at: now) }
        default: apps[app].hintedAt = nil
        }
    }

    mutating func record(
        _ effect: Effect, of app: Int?, in event: Event, _ model: CoreModel, _ world: World, at now: Microseconds,
        _ findings: inout Findings
    ) {
        guard let app else { return }
        switch effect {
        case .spawn: apps[app] = App()
        case .run(_, .suspension(.freeze)):
            apps[app].isFrozenAsWorker = model.apps[app].policy.role == .worker
            checkFreeze(app, event, model, world, &findings)
        case .run(_, .traffic(.measureWork)):
            // A worker is looked at once more when it is frozen.
            findings.check(
                model.apps[app].phase != .suspended || model.apps[app].policy.role == .worker, .inputCostsLittle,
                "\(model.apps[app].id) is looked at while it is suspended")
        case .run(_, .notify), .run(_, .deliver): apps[app].hintedAt = nil
        case .report(.deadlineCancelled(let id, .wake, _)):
            findings.check(
                !Self.hadWork(event, world), .workKeepsAwake,
                "\(id) was woken, and has something to do, but its wake ends")
        case .report(.taskBegan): apps[app].tasks += 1
        case .report(.taskEnded): apps[app].tasks = max(0, apps[app].tasks - 1)
        case .report(.stateChanged(_, _, let state, _)):
            switch state {
            case .suspended, .active, .inactive: (apps[app].hasLocks, apps[app].awakeUntil) = (false, 0)
            case .terminating: apps[app].tasks = 0
            case .notRunning, .launching, .background: break
            }
        case .report(.wokenTooOften(_, let time)): apps[app].awakeUntil = now + time.microseconds
        default: break
        }
    }

    private func checkFreeze(
        _ app: Int, _ event: Event, _ model: CoreModel, _ world: World, _ findings: inout Findings
    ) {
        let known = model.apps[app]
        // One that others have continued is frozen again. One with a hook had nothing to do when that was started, and is looked at
        // once it is frozen.
        guard known.phase != .suspended, known.policy.role == .worker, !known.hooks.isSettling else { return }
        guard case .run(let run, .traffic(.workMeasured)) = event, known.run == run else {
            return findings.check(false, .workKeepsAwake, "\(known.id) is suspended without a look at what it does")
        }
        findings.check(
            !Self.hadWork(event, world), .workKeepsAwake,
            "\(known.id) is suspended, but it had something to do when it was looked at")
    }

    /// Whether the event is a look that found work, whatever the core makes of it.
    private static func hadWork(_ event: Event, _ world: World) -> Bool {
        guard case .run(let run, .traffic(.workMeasured)) = event, let index = world.index(of: run) else {
            return false
        }
        return world.traffic.runs[index].hadWork
    }

    // MARK: Frozen threads

    /// The core learns that a worker is frozen. What its threads do does not change from then on.
    private mutating func recordFrozen(
        _ app: Int, _ attempt: Int, _ model: CoreModel, _ world: World, at now: Microseconds
    ) {
        let known = model.apps[app]
        guard known.phase == .suspending, known.freezeAttempt == attempt, apps[app].isFrozenAsWorker,
            known.policy.role == .worker, let run = known.run.flatMap({ world.index(of: $0) }),
            world.isInUnwatchedCall(run)
        else { return }
        frozenInCall.append(
            FrozenInCall(app: app, run: run, attempt: attempt, since: now, lateness: world.pastLateness))
    }

    /// Checks that no worker stays frozen with a thread in a call whose end would not be seen.
    mutating func verifyFrozen(_ model: CoreModel, _ world: World, at now: Microseconds, _ findings: inout Findings) {
        if frozenInCall.isEmpty { return }
        frozenInCall.removeAll { frozen in
            let known = model.apps[frozen.app]
            return model.isShuttingDown || known.phase != .suspended || known.freezeAttempt != frozen.attempt
                || known.run != world.runs[frozen.run].id || world.runs[frozen.run].freezer != .frozen
                || world.runs[frozen.run].program != .running
        }
        for frozen in frozenInCall {
            let time = now - frozen.since
            findings.check(
                time <= Self.longestLook + world.lateness - frozen.lateness, .frozenThreadsAreWatched,
                "\(model.apps[frozen.app].id) is frozen in a call that cannot be watched, for \(time) µs")
        }
    }

    // MARK: After all effects of an event

    /// Checks the timers that workers have served in this event, the pieces that they have sent, and the writes that have ended.
    func verifyTimers(_ model: CoreModel, _ world: World, at now: Microseconds, _ findings: inout Findings) {
        for served in world.traffic.served {
            let app = world.runs[served.run].app
            let known = model.apps[app]
            guard known.policy.role == .worker, known.policy.keepsTimers, !model.isShuttingDown,
                apps[app].changedAt < served.since
            else { continue }
            let late = served.at - served.due
            let limit = 1 * .second + Self.slack + world.lateness - served.lateness + served.excuse
            switch served.kind {
            case .timer:
                findings.check(
                    late <= limit, .ownTimersAreServed, "a timer of \(known.id) was served \(late) µs late")
            case .piece:
                // Other short waits may be ticks, or what an app that has nothing to do waits for.
                let isHinted = world.traffic.runs[served.run].hintedAt != nil
                let isKept = known.policy.keepAwake.contains(.requests) && !isHinted
                findings.check(
                    late <= limit || !isKept, .workContinues,
                    "\(known.id) has sent a piece of a stream \(late) µs late")
            case .write:
                findings.check(
                    late <= limit, .workContinues,
                    "\(known.id) continues \(late) µs after the peer of its blocked write has read")
            }
        }
    }

    mutating func verify(
        of app: Int, _ model: CoreModel, _ world: World, _ deadlines: DeadlineChecker, _ startUps: StartUpChecker,
        at now: Microseconds
    ) {
        let known = model.apps[app]
        let isIdle =
            known.phase == .running && apps[app].tasks == 0 && !deadlines.isOpen(.wake, of: app)
            && !startUps.isStartingUp(app) && !world.isLeftAwake(app) && !known.hooks.isRunning && !known.isHeldByMode
            && known.policy.effectiveSuspension == .yes && known.policy.role == .worker
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
            guard let since = apps[app].since, let run = model.apps[app].run.flatMap({ world.index(of: $0) }) else {
                continue
            }
            let slack = Self.slack + world.lateness - apps[app].lateness
            let lastWork = max(world.lastWork(of: run), timerWork(app, now))
            let idleTime = model.apps[app].policy.idleTime.microseconds
            let isExcused = now <= apps[app].awakeUntil + slack
            if let hintedAt = apps[app].hintedAt, hintedAt > lastWork {
                let time = now - max(hintedAt, since)
                findings.check(
                    time <= Self.slack + slack || isExcused || apps[app].hasLocks, .idleIsSuspended,
                    "\(model.apps[app].id) said \(time) µs ago that it has nothing to do, but is not suspended")
            }
            var limit = 2 * idleTime + slack
            if apps[app].hasLocks { limit += Self.lockRetry }
            if world.tick(of: app) != nil { limit += max(6 * idleTime, Self.timeToLearn) + idleTime }
            if apps[app].isIncomplete { limit += idleTime }
            let idle = now - max(since, lastWork, apps[app].changedAt)
            findings.check(
                idle <= limit || isExcused, .idleIsSuspended,
                "\(model.apps[app].id) has had nothing to do for \(idle) µs, but is not suspended")
        }
    }

    /// Until a timer is over that is due soon, the app stays awake. It may be a timer that the app has ended since.
    private func timerWork(_ app: Int, _ now: Microseconds) -> Microseconds {
        let due = apps[app].timerDue
        return due <= now ? due : due - now <= 3 * .second ? now : 0
    }
}
