import LifecycleCore

/// The phase of an app, derived from the events and effects of the core. More detailed than `AppState`.
package enum AppPhase: Int, CaseIterable, Sendable {
    case unknown, notRunning, launching, foreground, entering, running, suspending, suspended, waking, terminating
    case ending
    /// The run of the event is over. Only events have this phase.
    case past

    package var name: String { String(describing: self) }
}

/// One app, as the events and effects of the core describe it.
struct AppModel {
    let id: AppID
    var policy = AppPolicy()
    var isRegistered = false
    var state = AppState.notRunning
    /// When the state was entered.
    var since: Microseconds = 0
    /// Since when it is suspended, apart from moments in which its timers ran.
    var asleepSince: Microseconds = 0
    var phase = AppPhase.unknown
    var run: RunID?
    /// Its program was executed.
    var isExecuted = false
    /// It has finished launching, or the daemon that knew has ended.
    var isReady = false
    /// When the run counts as ready, and `StartupSec=` when its program was executed.
    var readiness = AppPolicy.Readiness.executed
    var startUpTime: Duration? = .zero
    /// The processes of the run were notified of their end.
    var isNotifiedToTerminate = false
    /// The main process has exited, and the others have the rest of the terminate deadline (L46).
    var awaitsRemaining = false
    /// The run was notified that it is in the background, or said that it is.
    var takesPart = false
    /// The main process stopped itself and was not continued.
    var isStopped = false
    /// It has begun a scene, or was asked for one, in any of its runs (L34).
    var hasScenes = false
    /// Of the last freeze.
    var freezeAttempt = 0
    var hooks = ModelHooks()
    var modes = ModelModes(AppPolicy())
    /// The longest background budget of all its manifests in this run; `nil`: infinite.
    var longestBudget: Duration? = .zero

    /// Whether it is thawed and notified before it is terminated, if it is suspended (L46).
    var isNotifiedOfEnd: Bool {
        switch policy.terminateSuspended {
        case .auto: !takesPart
        case .notify: true
        case .kill: false
        }
    }

    /// Whether the processes that the main process leaves behind have the rest of the terminate deadline (L46).
    func mayAwait(_ remaining: RemainingProcesses?) -> Bool {
        remaining != nil && phase == .terminating && isNotifiedToTerminate && policy.killMode == .controlGroup
    }
}

/// A model of the core, derived from its events and effects. The checkers compare it with the actual state in `World`.
struct CoreModel {
    var apps: [AppModel]
    var manager = ManagerPolicy()
    var isShuttingDown = false
    /// The app that answers with the event that is being handled that it is in the background.
    private(set) var answering: Int?
    /// The apps whose hooks end with this event.
    var hookEnds: [Int] = []
    let indexes: [AppID: Int]
    let firstRun: UInt64
    /// The app of each run, by run number.
    private var appsByRun: [Int] = []

    init(apps: [AppID], indexes: [AppID: Int], firstRun: UInt64) {
        self.apps = apps.map { AppModel(id: $0) }
        self.indexes = indexes
        self.firstRun = firstRun
    }

    func app(of run: RunID) -> Int? {
        guard run.number >= firstRun, run.number - firstRun < UInt64(appsByRun.count) else { return nil }
        return appsByRun[Int(run.number - firstRun)]
    }

    /// The app of a run; `nil` if the run is over.
    func currentApp(of run: RunID) -> Int? {
        app(of: run).flatMap { apps[$0].run == run ? $0 : nil }
    }

    /// The app of an event.
    func app(of event: Event) -> Int? {
        if let run = event.run { return app(of: run) }
        switch event {
        case .configuration(.registered(let id, _, _)), .configuration(.unregistered(let id)),
            .requested(_, let id, _, by: _),
            .socketsReady(let id, _), .timer(let id, _):
            return indexes[id]
        default: return nil
        }
    }

    /// The phase of the event's app, or `.past` if the event belongs to an earlier run.
    func phase(of event: Event, _ app: Int?) -> AppPhase {
        guard let app else { return .unknown }
        return event.run.map { $0 == apps[app].run } ?? true ? apps[app].phase : .past
    }

    /// The app of an effect.
    func app(of effect: Effect) -> Int? {
        switch effect {
        case .spawn(let id, _, _), .recordLaunch(let id, _), .dropRestorationState(let id, _), .sockets(let id, _),
            .removeInstance(let id), .scheduleTimers(let id), .subscribe(let id, _):
            indexes[id]
        case .run(let run, _): app(of: run)
        case .writeReceipt(let receipt): indexes[receipt.app]
        case .report(let report): app(of: report)
        case .identify, .answer, .measureMemory, .allowSleep, .finish: nil
        }
    }

    private func app(of report: Report) -> Int? {
        switch report {
        case .stateChanged(let id, _, _, _), .deadlineStarted(let id, _, _, _), .deadlineExtended(let id, _, _),
            .deadlineCredited(let id, _, _),
            .deadlineMet(let id, _, _, _), .deadlineCancelled(let id, _, _), .deadlineMissed(let id, _, _),
            .deadlineDeferred(let id, _, _, _), .taskBegan(let id, _), .taskEnded(let id, _, _),
            .taskRefused(let id, _),
            .taskProgressed(let id, _, _), .taskExpires(let id, _, _),
            .modeBegan(let id, _), .modeEnded(let id, _), .sceneChanged(let id, _, _, _),
            .tasksExpiring(let id, _), .freezeTakesLong(let id), .killTakesLong(let id), .stoppedItself(let id, _),
            .wakeCompleted(let id, _, _), .relaunchScheduled(let id, _, _), .unrequestedTimeUsedUp(let id, _),
            .memoryAwaited(let id, _), .inputArrived(let id, _), .inputNotWatched(let id, _), .wokenTooOften(let id, _),
            .locksHeld(let id, _, _), .processorUseHigh(let id, _), .processorThrottled(let id, _),
            .processorThrottleEnded(let id), .connectionsRejected(let id, _), .wouldSuspend(let id),
            .wouldResume(let id, _), .hookFailed(let id, _, _), .hookKilled(let id, _, _), .suspensionRefused(let id),
            .memoryReclaimed(let id, _):
            indexes[id]
        case .ended(let receipt): indexes[receipt.app]
        case .memoryLevelChanged: nil
        }
    }

    // MARK: Events

    mutating func record(_ event: Event) {
        answering = answeringApp(event)
        hookEnds = []
        recordStop(event)
        recordReadiness(event)
        recordMode(event)
        switch event {
        case .configuration(.registered(let id, let policy, _)):
            guard let app = indexes[id] else { return }
            apps[app].policy = policy
            apps[app].isRegistered = true
            recordBudget(app)
            if apps[app].phase == .unknown { apps[app].phase = .notRunning }
        case .configuration(.unregistered(let id)):
            guard let app = indexes[id] else { return }
            apps[app].isRegistered = false
            if apps[app].phase == .notRunning { apps[app].phase = .unknown }
        case .configuration(.configured(let policy)):
            manager = policy
            // A limit below 1 means 1.
            manager.foregroundLimit = max(1, policy.foregroundLimit)
        case .shutdownRequested: isShuttingDown = true
        case .run(let run, .process(.exited(_, _, _, let remaining))):
            guard let app = currentApp(of: run), !apps[app].awaitsRemaining else { return }
            if apps[app].mayAwait(remaining) { apps[app].awaitsRemaining = true } else { apps[app].phase = .ending }
        case .run(let run, .hookEnded(let number, _)):
            if let app = currentApp(of: run) { endHook(app, number) }
        case .run(let run, .process(.executed)):
            guard let app = currentApp(of: run), !apps[app].isExecuted else { return }
            apps[app].isExecuted = true
            apps[app].startUpTime = apps[app].policy.startUpTime
        case .run(let run, .process(.spawnFailed)), .run(let run, .process(.emptied)):
            if let app = currentApp(of: run) { apps[app].phase = .ending }
        case .run(let run, .transition(.backgroundEntered)),
            .run(let run, .transition(.notified(.didEnterBackground, delivered: true, _))):
            if let app = currentApp(of: run) { apps[app].takesPart = true }
        case .run(let run, .scene): if let app = currentApp(of: run) { apps[app].hasScenes = true }
        case .requested(_, let id, .scene, by: _): if let app = indexes[id] { apps[app].hasScenes = true }
        case .run(let run, .connection(.attached(let handled))):
            if let app = currentApp(of: run), handled.contains(.didEnterBackground) { apps[app].takesPart = true }
        case .run, .configuration(.started), .requested, .requestAbandoned, .absence,
            .deadlineReached, .memory, .recovered, .socketsReady, .timer, .observed:
            break
        }
    }

    // MARK: Effects

    mutating func record(_ effect: Effect, of app: Int?, at now: Microseconds) {
        switch effect {
        case .spawn(_, let run, _):
            guard let app else { return }
            appsByRun.append(app)
            apps[app].run = run
            apps[app].isNotifiedToTerminate = false
            apps[app].awaitsRemaining = false
            apps[app].takesPart = false
            apps[app].isExecuted = false
            apps[app].isReady = false
            apps[app].isStopped = false
            apps[app].readiness = apps[app].policy.readiness
            apps[app].startUpTime = .zero
            apps[app].phase = .launching
            apps[app].longestBudget = .zero
            apps[app].hooks = ModelHooks()
            apps[app].modes = ModelModes(apps[app].policy)
            recordBudget(app)
        case .run(_, .hook): if let app { recordHook(effect, of: app, now) }
        case .run(let run, .notify(let notice)): record(notice, of: run)
        case .run(let run, .suspension(.freeze(let attempt))):
            set(.suspending, run)
            if let app = currentApp(of: run) {
                (apps[app].freezeAttempt, apps[app].hooks.isSettling) = (attempt, false)
            }
        case .run(let run, .suspension(.thaw)): set(.waking, run)
        case .run(let run, .kill):
            set(.ending, run)
            if let app { apps[app].hooks.running = nil }
        case .run(let run, .processor(.throttle)):
            if let app = currentApp(of: run), apps[app].phase == .entering, !apps[app].hooks.isRunning {
                set(.running, run)
            }
        case .run(let run, .continueStopped): if let app = currentApp(of: run) { apps[app].isStopped = false }
        case .report(.stateChanged(_, let before, let state, let reason)):
            guard let app else { return }
            // From one moment to the next the sleep continues.
            if reason != .timer || before != .suspended && state != .suspended { apps[app].asleepSince = now }
            change(app, to: state, now)
        case .report(.deadlineMet(_, .thaw, _, _)):
            guard let app else { return }
            if apps[app].phase == .waking { apps[app].phase = .running }
        case .report(.deadlineMet(_, .background, _, _)):
            guard let app else { return }
            answered(app)
        case .removeInstance:
            guard let app else { return }
            apps[app].isRegistered = false
            apps[app].phase = .unknown
        case .run, .recordLaunch, .writeReceipt, .dropRestorationState, .answer, .identify, .report, .measureMemory,
            .allowSleep, .sockets, .scheduleTimers, .subscribe, .finish:
            break
        }
    }

    /// Finishes an event after all its effects: an app that has answered is in the background, whatever the core did.
    mutating func finish(_ event: Event) {
        for app in hookEnds where apps[app].hooks.hasAnswered { answered(app) }
        guard let app = answering else { return }
        answering = nil
        answered(app)
    }

    private func answeringApp(_ event: Event) -> Int? {
        switch event {
        case .run(let run, .transition(.backgroundEntered)), .run(let run, .process(.stopped)),
            .run(let run, .transition(.notified(.didEnterBackground, delivered: false, _))):
            currentApp(of: run)
        default: nil
        }
    }

    private mutating func recordReadiness(_ event: Event) {
        if case .recovered = event {
            for app in apps.indices { apps[app].isReady = true }
        }
        guard case .run(let run, let what) = event, let app = currentApp(of: run) else { return }
        switch (what, apps[app].readiness) {
        case (.process(.executed), .executed), (.transition(.ready), _), (.process(.exited), .forked):
            apps[app].isReady = true
        case (.deadline(.activityMeasured(let activity)), .listening):
            if activity.listens ?? false { apps[app].isReady = true }
        default: break
        }
    }

    private mutating func recordStop(_ event: Event) {
        switch event {
        case .run(let run, .process(.stopped)): if let app = currentApp(of: run) { apps[app].isStopped = true }
        case .run(let run, .process(.continued)), .run(let run, .process(.mainProcessChanged)):
            if let app = currentApp(of: run) { apps[app].isStopped = false }
        default: break
        }
    }

    private mutating func change(_ app: Int, to state: AppState, _ now: Microseconds) {
        apps[app].state = state
        apps[app].since = now
        switch state {
        case .notRunning:
            apps[app].run = nil
            apps[app].phase = apps[app].isRegistered ? .notRunning : .unknown
        case .active, .inactive: apps[app].phase = .foreground
        case .suspended: apps[app].phase = .suspended
        case .terminating:
            apps[app].hooks.running = nil
            if apps[app].phase != .ending { apps[app].phase = .terminating }
        case .launching, .background: break
        }
    }

    private mutating func record(_ notice: Notice, of run: RunID) {
        switch notice {
        case .didEnterBackground:
            // A process that has stopped itself has answered.
            if let app = currentApp(of: run) {
                apps[app].hooks.hasAnswered = apps[app].isStopped
                set(apps[app].isStopped && !apps[app].hooks.isRunning ? .running : .entering, run)
            }
        case .willTerminate:
            set(.terminating, run)
            if let app = currentApp(of: run) {
                apps[app].isNotifiedToTerminate = true
            }
        case .willResignActive, .willEnterForeground, .didBecomeActive, .memoryWarning, .tasksExpiring, .openURL,
            .withdraw, .willSuspend, .didResume, .scene, .sceneClosed, .didDiscardScenes, .takeSnapshot,
            .takeSceneSnapshot:
            break
        }
    }

    private mutating func set(_ phase: AppPhase, _ run: RunID) {
        guard let app = currentApp(of: run), apps[app].phase != .ending else { return }
        apps[app].phase = phase
    }

    private mutating func recordBudget(_ app: Int) {
        guard let longest = apps[app].longestBudget else { return }
        // What a worker does has no budget (L49).
        let budget = apps[app].policy.role == .worker ? nil : apps[app].policy.backgroundTime
        apps[app].longestBudget = budget.map { max($0, longest) }
    }
}

extension Input {
    /// The daemon saw it at a socket that it holds.
    var isAtHeldSocket: Bool { pid == 0 }
}
