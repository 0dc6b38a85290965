import LifecycleCore

/// Checks that an app is frozen `SuspendDelaySec=` after its last assertion ended, not earlier and not much later
/// (L18).
struct SuspensionChecker {
    private struct IdleTime {
        /// The number of open tasks.
        var tasks = 0
        /// When its last assertion ended in the background.
        var since: Microseconds?
        /// Whether the budget is used up: then the app is suspended immediately.
        var isBudgetOver = false
        /// Whether the main process stopped itself and was not continued.
        var isStopped = false
        /// It holds file locks, and is frozen again 5 s later (L43).
        var hasLocks = false
        /// For how long it stays awake, because it was woken too often.
        var staysAwake: Microseconds = 0
        /// When its last dry run ended (L58).
        var resumedAt: Microseconds = 0
        /// The next daemon has found it: its connection has 3s to do the same.
        var isReattached = false
        /// It was left awake because it cannot be watched, so it is not known when its last assertion ended.
        var wasLeftAwake = false
        /// It was asked for a snapshot and has not answered: until when that may keep it awake.
        var snapshotUntil: Microseconds = 0
        /// It was asked to withdraw, and has not answered: until when that may keep it awake.
        var withdrawnUntil: Microseconds = 0
        /// Its scenes that were asked and have not answered, and until when that may keep it awake.
        var sceneSnapshots: Set<SceneID> = []
        var sceneSnapshotsUntil: Microseconds = 0
        /// It says in this event that the scene has ended.
        var endedScene: SceneID?
        /// Input has woken it, and the thaw is not complete.
        var isWokenByInput = false
    }

    private var apps: [IdleTime]
    /// When an app that holds file locks is frozen again (L43).
    private static let lockRetry: Microseconds = 5 * .second
    /// The app that received a notice or a wake in this event, so that it must run.
    private var mustRun: Int?
    /// Whether the event is a deadline of the core, and nothing that came from outside.
    private var isTimer = false
    /// Whether the event is that a process outside the daemon has continued a frozen run, which is frozen again.
    private var isFreezeLost = false

    init(apps count: Int) {
        apps = Array(repeating: IdleTime(), count: count)
    }

    mutating func record(_ event: Event, of app: Int?, _ model: CoreModel) {
        mustRun = nil
        // A step of a shutdown thaws apps to notify them of their end.
        isTimer = event == .deadlineReached && !model.isShuttingDown
        isFreezeLost = if case .run(_, .suspension(.freezeLost)) = event { true } else { false }
        guard let app else { return }
        switch event {
        case .run(let run, .process(.stopped)): if model.apps[app].run == run { apps[app].isStopped = true }
        case .run(let run, .process(.continued)): if model.apps[app].run == run { apps[app].isStopped = false }
        case .run(let run, .connection(.snapshotTaken)): if model.apps[app].run == run { apps[app].snapshotUntil = 0 }
        case .run(let run, .connection(.withdrawn)): if model.apps[app].run == run { apps[app].withdrawnUntil = 0 }
        case .run(let run, .scene(.snapshotTaken(let scene))):
            if model.apps[app].run == run { apps[app].sceneSnapshots.remove(scene) }
        case .run(let run, .scene(.ended(let scene))): if model.apps[app].run == run { apps[app].endedScene = scene }
        case .run(let run, .suspension(.locksFound)): if model.apps[app].run == run { apps[app].hasLocks = true }
        case .run(let run, .process(.reattached)): if model.apps[app].run == run { apps[app].isReattached = true }
        default: break
        }
    }

    /// `hasInput`: something arrived at the app that it has not read.
    mutating func record(
        _ effect: Effect, of app: Int?, _ model: CoreModel, _ deadlines: DeadlineChecker, hasInput: Bool,
        at now: Microseconds, _ findings: inout Findings
    ) {
        guard let app else { return }
        if case .report(let report) = effect { recordWaits(report, of: app, at: now) }
        switch effect {
        case .spawn: apps[app] = IdleTime()
        case .run(_, .notify(.willEnterForeground)), .run(_, .notify(.willTerminate)),
            .report(.deadlineStarted(_, .wake, _, _)):
            mustRun = app
        case .run(_, .continueStopped): apps[app].isStopped = false
        case .run(_, .notify(.takeSnapshot)): apps[app].snapshotUntil = now + 500 * .millisecond
        case .run(_, .notify(.takeSceneSnapshot(let scene))):
            apps[app].sceneSnapshots.insert(scene)
            apps[app].sceneSnapshotsUntil = now + 500 * .millisecond
        // Its main window cannot end while it is the only scene.
        case .run(_, .warn(.sceneNotOpen)): apps[app].endedScene = nil
        case .run(_, .notify(.withdraw)):
            let time = model.apps[app].policy.backgroundDeadline?.microseconds ?? 60 * .second
            apps[app].withdrawnUntil = now + time
        case .report(.taskBegan): apps[app].tasks += 1
        case .report(.taskEnded): apps[app].tasks = max(0, apps[app].tasks - 1)
        case .report(.stateChanged(_, _, .terminating, _)): apps[app].tasks = 0
        case .report(.stateChanged(_, _, .inactive, _)), .report(.stateChanged(_, _, .active, _)):
            apps[app].isBudgetOver = false
        // In a mode it has none (L28).
        case .report(.deadlineCancelled(_, .backgroundTime, _)): apps[app].isBudgetOver = !model.apps[app].isHeldByMode
        case .report(.deadlineStarted(_, .backgroundTime, _, _)): apps[app].isBudgetOver = false
        case .run(let run, .suspension(.thaw)):
            findings.check(
                !isTimer || model.apps[app].policy.role == .home || hasInput || model.apps[app].policy.role == .worker
                    || EndChecker.isDue(model.apps[app], at: now), .thawsHaveACause,
                "run \(run) is thawed by a timer, but nothing needs it to run")
        case .run(_, .suspension(.freeze)): checkFreeze(app, model, deadlines, now, &findings)
        default: break
        }
    }

    /// What moves the suspension beyond `SuspendDelaySec=`.
    private mutating func recordWaits(_ report: Report, of app: Int, at now: Microseconds) {
        switch report {
        case .stateChanged(_, _, .suspended, _), .stateChanged(_, _, .inactive, _), .stateChanged(_, _, .active, _):
            apps[app].hasLocks = false
            apps[app].staysAwake = 0
            apps[app].wasLeftAwake = false
        case .wokenTooOften(_, let time): apps[app].staysAwake = time.microseconds
        case .inputArrived: apps[app].isWokenByInput = true
        // Where it would have been woken, the time without an assertion begins anew, as after a real wake.
        case .wouldResume: apps[app].resumedAt = max(apps[app].resumedAt, now)
        default: break
        }
    }

    private func checkFreeze(
        _ app: Int, _ model: CoreModel, _ deadlines: DeadlineChecker, _ now: Microseconds, _ findings: inout Findings
    ) {
        let known = model.apps[app]
        if isFreezeLost, known.phase == .suspended { return }
        findings.check(
            known.phase == .running || known.phase == .entering && model.isEntered(app), .workKeepsAwake,
            "\(known.id) is frozen while it is \(known.phase)")
        findings.check(
            apps[app].tasks == 0 && !deadlines.isOpen(.wake, of: app) && !known.hooks.isRunning && !known.isHeldByMode,
            .workKeepsAwake,
            "\(known.id) is frozen with \(apps[app].tasks) open tasks, in a wake, in a mode, or while its hook runs")
        findings.check(
            known.policy.effectiveSuspension == .yes, .suspendedInTime,
            "\(known.id) is frozen with Suspend=\(known.policy.suspension.rawValue)")
        findings.check(
            !known.policy.exitsOnSuspend, .suspendedInTime, "\(known.id) is frozen, but must exit instead (L20)")
        // `IdlenessChecker` checks workers.
        guard let since = apps[app].since, !apps[app].isBudgetOver, !apps[app].hasLocks, known.policy.role != .worker,
            !apps[app].wasLeftAwake, !known.hooks.isSettling
        else { return }
        findings.check(
            now - since >= known.policy.suspendDelay.microseconds, .suspendedInTime,
            "\(known.id) is frozen \(now - since) µs after its last assertion ended")
    }

    /// Nothing keeps it awake but the time before its suspension.
    func isIdle(_ app: Int) -> Bool { apps[app].since != nil }

    /// `isLeftAwake`: its descriptors cannot be watched.
    mutating func verify(
        of app: Int, _ model: CoreModel, _ deadlines: DeadlineChecker, _ startUps: StartUpChecker, isLeftAwake: Bool,
        at now: Microseconds, _ findings: inout Findings
    ) {
        let known = model.apps[app]
        if let scene = apps[app].endedScene {
            apps[app].endedScene = nil
            apps[app].sceneSnapshots.remove(scene)
        }
        if isLeftAwake { apps[app].wasLeftAwake = true }
        let isQuiet =
            known.phase == .running && apps[app].tasks == 0 && !deadlines.isOpen(.wake, of: app)
            && !startUps.isStartingUp(app) && !isLeftAwake && !known.hooks.isRunning && !known.isHeldByMode
        if !isQuiet {
            apps[app].since = nil
        } else if apps[app].since == nil {
            apps[app].since = now
        }
        if apps[app].isReattached {
            apps[app].isReattached = false
            apps[app].resumedAt = now + 3 * .second
        }
        if apps[app].isWokenByInput, known.phase != .waking {
            apps[app].isWokenByInput = false
            if known.phase == .running { mustRun = app }
        }
        if mustRun == app {
            // An app that returns to the foreground, is woken or is notified of its end must run (L17).
            findings.check(
                !apps[app].isStopped, .foregroundRuns, "\(known.id) stopped itself and is not continued")
        }
    }

    /// Checks after `deadlineReached` that no app runs which should be frozen.
    func verifyAll(_ model: CoreModel, at now: Microseconds, _ findings: inout Findings) {
        for app in apps.indices {
            let policy = model.apps[app].policy
            guard var since = apps[app].since, policy.role != .worker, policy.effectiveSuspension == .yes else {
                continue
            }
            since = max(since, apps[app].resumedAt)
            let retry = apps[app].hasLocks ? Self.lockRetry : 0
            let settling = model.apps[app].hooks.isSettling ? 100 * Microseconds.millisecond : 0
            let delay = max(model.apps[app].policy.suspendDelay.microseconds, retry, settling) + apps[app].staysAwake
            // Those that it was asked for before it was in the background count from then.
            let scenesUntil = max(apps[app].sceneSnapshotsUntil, since + 500 * .millisecond)
            let isAsked =
                now < max(apps[app].snapshotUntil, apps[app].withdrawnUntil)
                || !apps[app].sceneSnapshots.isEmpty && now < scenesUntil
            findings.check(
                now - since < max(1, delay) || isAsked, .suspendedInTime,
                "\(model.apps[app].id) has had no assertion for \(now - since) µs, but is not frozen")
        }
    }
}
