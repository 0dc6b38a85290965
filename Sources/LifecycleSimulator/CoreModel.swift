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
    var phase = AppPhase.unknown
    var run: RunID?
    /// Its program was executed.
    var isExecuted = false
    /// When the run counts as ready, and `StartupSec=` when its program was executed.
    var readiness = AppPolicy.Readiness.executed
    var startUpTime: Duration? = .zero
    /// The processes of the run were notified of their end.
    var isNotifiedToTerminate = false
    /// The main process has exited, and the others have the rest of the terminate deadline (L46).
    var awaitsRemaining = false
    /// The run was notified that it is in the background, or said that it is.
    var takesPart = false
    /// The last size that was reported to the core, in bytes. That of a frozen app does not change.
    var size = SizeRecord()
    var memory: UInt64 { size.bytes }
    /// Its size when it was notified of its end, in bytes; 0: it was not, or was not measured.
    var memoryBeforeEnd: UInt64 = 0
    /// The main process stopped itself and was not continued.
    var isStopped = false
    /// It has begun a scene, or was asked for one, in any of its runs (L34).
    var hasScenes = false
    /// The wakes that have not ended.
    var wakes = ModelWakes()
    /// For `JetsamOrder=balanced`: its uses, and the level at the last one.
    var uses: UInt64 = 0
    var useLevel: UInt64 = 0
    /// Of the last freeze.
    var freezeAttempt = 0
    var hooks = ModelHooks()
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
    /// The request of the event that is being handled, unless it was refused: it wakes an app, for others or for the app itself.
    private var wakeRequest: (request: RequestID, app: Int, wake: ModelWake, phase: AppPhase)?
    /// The app that answers with the event that is being handled that it is in the background.
    private(set) var answering: Int?
    /// The apps whose hooks end with this event.
    var hookEnds: [Int] = []
    /// For `JetsamOrder=balanced`: the credit of the last victim.
    var jetsamLevel: UInt64 = 0
    let indexes: [AppID: Int]
    let firstRun: UInt64
    /// The size in the `frozen` event that is being handled.
    private var frozenMemory: (bytes: UInt64, uncertainty: UInt64) = (0, 0)
    /// When the measurement in progress was requested, and when the one that is being handled was.
    private var measuringSince: Microseconds?
    private var measuredSince: Microseconds?
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
        case .registered(let id, _, _), .unregistered(let id), .requested(_, let id, _, by: _),
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
        case .spawn(let id, _, _), .recordLaunch(let id, _), .dropRestorationState(let id, _), .watchSockets(let id),
            .stopWatchingSockets(let id), .rejectConnections(let id), .removeInstance(let id),
            .scheduleTimers(let id), .subscribe(let id, _):
            indexes[id]
        case .notify(let run, _), .freeze(let run, _), .thaw(let run, _), .continueStopped(let run), .inspect(let run),
            .measureActivity(let run, _),
            .kill(let run), .throttle(let run), .unthrottle(let run), .setOOMClass(let run, _), .deliver(let run, _),
            .warn(let run, _), .watchInput(let run, _, _), .stopWatchingInput(let run), .measureWork(let run, _),
            .measureProcessor(let run), .limitProcessor(let run, _), .measureSize(let run), .runHook(let run, _, _),
            .watchGPU(let run, _),
            .killHook(let run, _), .reclaim(let run, _, _), .stopReclaim(let run):
            app(of: run)
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
            .deadlineDeferred(let id, _, _, _), .taskBegan(let id, _), .taskEnded(let id, _), .taskRefused(let id, _),
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
        recordWakes(event)
        switch event {
        case .registered(let id, let policy, _):
            guard let app = indexes[id] else { return }
            apps[app].policy = policy
            apps[app].isRegistered = true
            recordBudget(app)
            if apps[app].phase == .unknown {
                apps[app].phase = .notRunning
                apps[app].uses = 0
            }
        case .unregistered(let id):
            guard let app = indexes[id] else { return }
            apps[app].isRegistered = false
            if apps[app].phase == .notRunning { apps[app].phase = .unknown }
        case .configured(let policy):
            manager = policy
            // A limit below 1 means 1.
            manager.foregroundLimit = max(1, policy.foregroundLimit)
        case .shutdownRequested: isShuttingDown = true
        case .requested(let request, let id, .push, by: let requester): recordWake(request, id, .push, requester)
        case .requested(let request, let id, .launch(.background, let reason, _, _), by: let requester):
            recordWake(request, id, reason, requester)
        case .requested(let request, let id, .launch(.foreground, let reason, _, _), by: let requester):
            guard let app = indexes[id], apps[app].policy.role == .worker else { return }
            recordWake(request, id, reason, requester)
        case .run(let run, .exited(_, _, _, let remaining)):
            guard let app = currentApp(of: run), !apps[app].awaitsRemaining else { return }
            if apps[app].mayAwait(remaining) { apps[app].awaitsRemaining = true } else { apps[app].phase = .ending }
        case .run(let run, .hookEnded(let number, _)):
            if let app = currentApp(of: run) { endHook(app, number) }
        case .run(let run, .executed):
            guard let app = currentApp(of: run), !apps[app].isExecuted else { return }
            apps[app].isExecuted = true
            apps[app].startUpTime = apps[app].policy.startUpTime
        case .run(let run, .spawnFailed), .run(let run, .emptied):
            if let app = currentApp(of: run) { apps[app].phase = .ending }
        case .run(let run, .inspected(let inspection)):
            guard let app = currentApp(of: run), apps[app].phase != .suspended, apps[app].phase != .ending else {
                return
            }
            apps[app].size.setEstimate(inspection.memory, doubt: inspection.uncertainty)
        case .run(let run, .backgroundEntered), .run(let run, .notified(.didEnterBackground, delivered: true, _)):
            if let app = currentApp(of: run) { apps[app].takesPart = true }
        case .run(let run, .scene): if let app = currentApp(of: run) { apps[app].hasScenes = true }
        case .requested(_, let id, .scene, by: _): if let app = indexes[id] { apps[app].hasScenes = true }
        case .run(let run, .attached(let handled)):
            if let app = currentApp(of: run), handled.contains(.didEnterBackground) { apps[app].takesPart = true }
        case .memoryMeasured(let reading):
            (measuredSince, measuringSince) = (measuringSince, nil)
            for size in reading.sizes { record(size) }
        case .run(_, .frozen(_, let memory, let uncertainty)): frozenMemory = (memory, uncertainty)
        case .run(let run, .footprintMeasured(let attempt, let memory)):
            guard let app = currentApp(of: run), apps[app].phase == .suspended, apps[app].freezeAttempt == attempt
            else { return }
            apps[app].size.setExact(memory, at: .origin)
        case .run(let run, .sizeMeasured(let bytes, let estimate)):
            if let app = currentApp(of: run), apps[app].phase != .ending {
                apps[app].size.setExact(bytes, estimate: estimate, at: .origin)
            }
        case .run, .started, .requested, .requestAbandoned, .sleepRequested, .awoke, .locked, .unlocked,
            .deadlineReached, .pressureStalled, .pressureSimulated, .recovered, .socketsReady, .timer, .observed:
            break
        }
    }

    private mutating func recordWake(
        _ request: RequestID, _ id: AppID, _ reason: LaunchReason, _ requester: Requester
    ) {
        guard let app = indexes[id] else { return }
        let isForOthers: Bool
        switch reason {
        case .push, .socket, .accessory, .location: isForOthers = requester == .user
        case .fetch, .timer: isForOthers = false
        case .user, .url, .relaunch: return
        }
        wakeRequest = (request, app, ModelWake(reason: reason, isForOthers: isForOthers), apps[app].phase)
    }

    private mutating func recordWakes(_ event: Event) {
        switch event {
        case .shutdownRequested: for app in apps.indices { apps[app].wakes.dropNext() }
        case .requested(_, let id, .terminate, by: _), .requested(_, let id, .remove, by: _):
            if let app = indexes[id] { apps[app].wakes.discard(hasRun: apps[app].run != nil) }
        case .unregistered(let id):
            if let app = indexes[id], apps[app].run == nil { apps[app].wakes.discard(hasRun: false) }
        case .run(let run, .notificationDelayed(let wake)):
            if let app = currentApp(of: run) { apps[app].wakes.excuse(wake) }
        case .run(let run, .reattached(messagesKept: false, noticesDelayed: _)):
            guard let app = currentApp(of: run) else { return }
            switch apps[app].phase {
            case .launching, .waking, .running, .entering: apps[app].wakes.doubt()
            case .unknown, .notRunning, .foreground, .suspending, .suspended, .terminating, .ending, .past:
                break
            }
        default: break
        }
    }

    private mutating func record(_ size: MemoryReading.Size) {
        guard let app = currentApp(of: size.run) else { return }
        switch apps[app].phase {
        case .launching, .foreground, .entering, .running, .waking, .terminating:
            apps[app].size.setEstimate(size.bytes, doubt: size.uncertainty)
        // It was suspended all the time.
        case .suspended:
            if let measuredSince, apps[app].since < measuredSince {
                apps[app].size.setEstimate(size.bytes, doubt: size.uncertainty)
            }
        case .unknown, .notRunning, .suspending, .ending, .past: break
        }
    }

    // MARK: Effects

    mutating func record(_ effect: Effect, of app: Int?, at now: Microseconds) {
        recordUse(effect, app)
        switch effect {
        case .spawn(_, let run, let launch):
            guard let app else { return }
            apps[app].wakes.begin(launch)
            appsByRun.append(app)
            apps[app].run = run
            apps[app].isNotifiedToTerminate = false
            apps[app].awaitsRemaining = false
            apps[app].takesPart = false
            apps[app].isExecuted = false
            apps[app].isStopped = false
            apps[app].readiness = apps[app].policy.readiness
            apps[app].startUpTime = .zero
            apps[app].size = SizeRecord()
            apps[app].memoryBeforeEnd = 0
            apps[app].phase = .launching
            apps[app].longestBudget = .zero
            apps[app].hooks = ModelHooks()
            recordBudget(app)
        case .runHook, .killHook: if let app { recordHook(effect, of: app, now) }
        case .notify(let run, let notice): record(notice, of: run)
        case .freeze(let run, let attempt):
            set(.suspending, run)
            if let app = currentApp(of: run) {
                (apps[app].freezeAttempt, apps[app].hooks.isSettling) = (attempt, false)
            }
        case .thaw(let run, _): set(.waking, run)
        case .kill(let run):
            set(.ending, run)
            if let app { apps[app].hooks.running = nil }
        case .throttle(let run):
            if let app = currentApp(of: run), apps[app].phase == .entering, !apps[app].hooks.isRunning {
                set(.running, run)
            }
        case .continueStopped(let run): if let app = currentApp(of: run) { apps[app].isStopped = false }
        case .report(.stateChanged(_, _, let state, _)):
            guard let app else { return }
            change(app, to: state, now)
        case .report(.deadlineMet(_, .thaw, _, _)):
            guard let app else { return }
            if apps[app].phase == .waking { apps[app].phase = .running }
        case .report(.deadlineMet(_, .background, _, _)):
            guard let app else { return }
            answered(app)
        case .report(.deadlineStarted(_, .wake, _, let wake)): if let app { wakeBegan(app, wake) }
        case .report(.deadlineMet(_, .wake, _, let wake)), .report(.deadlineCancelled(_, .wake, let wake)),
            .report(.deadlineMissed(_, .wake, let wake)):
            if let app { apps[app].wakes.ended(wake) }
        case .report(.wakeCompleted(_, _, let wake)): if let app { apps[app].wakes.completed(wake) }
        case .report(.inputArrived(_, let input)):
            if let app, apps[app].policy.wakesOnTraffic || input.isAtHeldSocket, apps[app].policy.role != .worker {
                apps[app].wakes.addByInput(isForOthers: input.isFromOutside)
            }
        case .identify(let request, let event): if wakeRequest?.request == request { wakeRequest?.wake.number = event }
        case .answer(let request, .refused): if wakeRequest?.request == request { wakeRequest = nil }
        case .measureMemory: measuringSince = now
        case .removeInstance:
            guard let app else { return }
            apps[app].isRegistered = false
            apps[app].phase = .unknown
            apps[app].wakes.discard(hasRun: false)
        case .inspect, .measureActivity, .watchInput, .stopWatchingInput, .measureWork, .measureProcessor, .measureSize,
            .watchGPU, .reclaim, .stopReclaim, .limitProcessor, .unthrottle, .setOOMClass, .deliver, .warn,
            .recordLaunch, .writeReceipt, .dropRestorationState, .answer, .report, .allowSleep, .watchSockets,
            .stopWatchingSockets, .rejectConnections, .scheduleTimers, .subscribe, .finish:
            break
        }
    }

    private mutating func wakeBegan(_ app: Int, _ number: UInt64) {
        // That of a request to an app which runs begins at once.
        if let request = wakeRequest, request.app == app, request.phase == .entering || request.phase == .running {
            wakeRequest?.wake.begin(number, apps[app].policy)
        } else {
            apps[app].wakes.began(number, apps[app].policy)
        }
    }

    /// Finishes an event after all its effects: an app that has answered is in the background, whatever the core did.
    mutating func finish(_ event: Event) {
        if let (_, app, wake, phase) = wakeRequest {
            switch phase {
            case .foreground, .past: break
            case .terminating, .ending: apps[app].wakes.addForNext(wake)
            case .unknown, .notRunning, .launching, .entering, .running, .suspending, .suspended, .waking:
                apps[app].wakes.add(wake)
            }
        }
        wakeRequest = nil
        for app in hookEnds where apps[app].hooks.hasAnswered { answered(app) }
        guard let app = answering else { return }
        answering = nil
        answered(app)
    }

    private func answeringApp(_ event: Event) -> Int? {
        switch event {
        case .run(let run, .backgroundEntered), .run(let run, .stopped),
            .run(let run, .notified(.didEnterBackground, delivered: false, _)):
            currentApp(of: run)
        default: nil
        }
    }

    private mutating func recordStop(_ event: Event) {
        switch event {
        case .run(let run, .stopped): if let app = currentApp(of: run) { apps[app].isStopped = true }
        case .run(let run, .continued), .run(let run, .mainProcessChanged):
            if let app = currentApp(of: run) { apps[app].isStopped = false }
        default: break
        }
    }

    private mutating func change(_ app: Int, to state: AppState, _ now: Microseconds) {
        apps[app].state = state
        apps[app].since = now
        switch state {
        case .notRunning:
            apps[app].wakes.clear()
            // The core does not know the app any more.
            if !apps[app].isRegistered { apps[app].wakes.dropNext() }
            apps[app].run = nil
            apps[app].size = SizeRecord()
            apps[app].phase = apps[app].isRegistered ? .notRunning : .unknown
        case .active, .inactive:
            apps[app].wakes.clear()
            apps[app].phase = .foreground
        case .suspended:
            apps[app].wakes.clear()
            apps[app].phase = .suspended
            apps[app].size.setEstimate(frozenMemory.bytes, doubt: frozenMemory.uncertainty)
        case .terminating:
            apps[app].wakes.clear()
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
                apps[app].memoryBeforeEnd = apps[app].memory
            }
        case .willResignActive, .willEnterForeground, .didBecomeActive, .memoryWarning, .tasksExpiring, .openURL,
            .willSuspend, .didResume, .scene, .takeSnapshot:
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
