import LifecycleCore
import Testing

/// Checks the invariants of a core after each event, in every test that uses a `Harness`.
struct InvariantChecker {
    /// The state of one run, derived from the effects.
    private struct Run {
        enum LastNotice { case nothing, inactive, active, background, terminating }
        var app: AppID
        var lastNotice = LastNotice.nothing
        var isKilled = false
        var isFreezing = false
        var isThrottled = false
        /// Its processor time is limited (L44).
        var isLimited = false
        var isWatched = false
        /// Input has not woken it yet: its time is due.
        var hasInput = false
        var attempt = 0
    }

    private var requested: Set<RequestID> = []
    private var answered: Set<RequestID> = []
    private var states: [AppID: AppState] = [:]
    private var runs: [RunID: Run] = [:]
    private var current: [AppID: RunID] = [:]
    private var deadlines: [AppID: Set<DeadlineKind>] = [:]
    /// How many wakes of an app are open: each has its own deadline.
    private var openWakes: [AppID: Set<UInt64>] = [:]
    /// The modes that apps assert.
    private var modes: [AppID: BackgroundModes] = [:]
    private var workers: Set<AppID> = []
    private var seats: [AppID: String] = [:]
    /// The run of which memory is being pushed out: one at a time, and frozen.
    private var reclaiming: RunID?
    /// Apps for which the daemon holds sockets, and those whose sockets it watches.
    private var holders: Set<AppID> = []
    private var watched: Set<AppID> = []
    /// At most half of the memory was available at the last reading: other programs may be filling it.
    private var isHalfUsed = false
    /// The machine has swap: an app may be pushed out some seconds after its suspension (L37).
    private var hasSwap = false
    private var hasFinished = false
    private var isConsistent = true
    private var lastEvent: Event?

    mutating func recordRequest(_ request: RequestID) { requested.insert(request) }

    mutating func record(
        _ event: Event, _ effects: [Effect], _ core: LifecycleCore, _ manager: ManagerPolicy, at now: Instant
    ) {
        lastEvent = event
        if case .run(let run, .memory(.reclaimed)) = event, run == reclaiming { reclaiming = nil }
        if case .requestAbandoned(let request) = event { answered.insert(request) }
        if case .recovered = event {
            answered.formUnion(requested)
            reclaiming = nil
            watched = []
        }
        if case .memory(.measured(let reading)) = event {
            hasSwap = reading.swapTotal > 0
            isHalfUsed =
                reading.available <= reading.total / 2
                || (reading.limit.map { $0.available <= $0.total / 2 } ?? false)
        }
        if case .socketsReady(let app, _) = event { watched.remove(app) }
        if case .configuration(.unregistered(let app)) = event { holders.remove(app) }
        if case .configuration(.registered(let app, let policy, _)) = event {
            if policy.role == .worker { workers.insert(app) } else { workers.remove(app) }
            seats[app] = policy.seat
            if policy.holdsSockets { holders.insert(app) } else { holders.remove(app) }
        }
        if case .run(let run, .traffic(.inputArrived)) = event { runs[run]?.hasInput = true }
        if case .run(let run, .suspension(.freezeLost(let attempt))) = event, let known = runs[run],
            states[known.app] == .suspended,
            known.attempt == attempt
        {
            runs[run]?.isFreezing = false
        }
        for effect in effects where !isRepeated(effect, event) { record(effect) }
        check(event, core, manager, at: now)
    }

    /// Records a violation. Only the first one, because later ones follow from it.
    private mutating func fail(_ sentence: String) {
        if !isConsistent { return }
        isConsistent = false
        Issue.record("invariant violated by \(lastEvent.map { "\($0)" } ?? "the start"): \(sentence)")
    }

    /// Whether a recovered core repeats an effect whose outcome may be lost.
    private func isRepeated(_ effect: Effect, _ event: Event) -> Bool {
        guard case .run(_, .process(.reattached)) = event else { return false }
        switch effect {
        case .run(let run, .suspension(.freeze(let attempt))):
            return runs[run]?.isFreezing == true && runs[run]?.attempt == attempt
        case .run(let run, .suspension(.thaw(let attempt))):
            return runs[run]?.isFreezing == false && runs[run]?.attempt == attempt
        case .run(let run, .kill): return runs[run]?.isKilled == true
        case .run(let run, .traffic(.watchInput(let attempt, _))):
            return runs[run]?.isWatched == true && runs[run]?.attempt == attempt
        default: return false
        }
    }

    // MARK: Each effect

    private mutating func record(_ effect: Effect) {
        switch effect {
        case .spawn(let app, let run, _): spawned(app, run)
        case .run(let run, .notify(let notice)): notify(run, notice)
        case .run(let run, .suspension(.freeze(let attempt))):
            guard let known = handleEverything(run, effect) else { return }
            if known.isFreezing { fail("\(effect) of a frozen run") }
            if modes[known.app] ?? [] != [] { fail("\(effect) in a mode (L28)") }
            if attempt != known.attempt + 1 { fail("\(effect) after attempt \(known.attempt)") }
            runs[run]?.isFreezing = true
            runs[run]?.attempt = attempt
        case .run(let run, .suspension(.thaw(let attempt))):
            guard let known = handleEverything(run, effect) else { return }
            if !known.isFreezing || attempt != known.attempt { fail("\(effect) of a run that is not frozen") }
            if known.isWatched { fail("\(effect) of a run that is watched") }
            if reclaiming == run { fail("\(effect) of a run that is being pushed out") }
            runs[run]?.isFreezing = false
            runs[run]?.hasInput = false
        case .run(let run, .traffic(.watchInput(let attempt, _))):
            guard let known = handleEverything(run, effect) else { return }
            if known.isWatched || !known.isFreezing || attempt != known.attempt || states[known.app] != .suspended {
                fail("\(effect) of a run that is not suspended, or is watched")
            }
            runs[run]?.isWatched = true
        case .run(let run, .memory(.reclaim)), .run(let run, .memory(.stopReclaim)):
            recordReclaim(effect, of: run)
        case .run(let run, .traffic(.stopWatchingInput)):
            if handleEverything(run, effect)?.isWatched == false { fail("\(effect) of a run that is not watched") }
            runs[run]?.isWatched = false
        case .run(let run, .traffic(.measureWork)):
            guard let known = handleEverything(run, effect) else { return }
            if states[known.app] != .background, states[known.app] != .suspended {
                fail("\(effect) in \(states[known.app] as Any)")
            }
        case .run(let run, .hook(.run)):
            if handleEverything(run, effect)?.isFreezing == true { fail("\(effect) in a frozen group") }
        case .run(let run, .hook(.kill)), .run(let run, .continueStopped), .run(let run, .deadline),
            .run(let run, .deliver),
            .run(let run, .memory), .run(let run, .warn):
            _ = handleEverything(run, effect)
        case .run(let run, .processor(let what)): record(what, effect, of: run)
        case .run(let run, .kill):
            if runs[run] == nil || current[runs[run]!.app] != run { fail("\(effect) of a run that is over") }
            if runs[run]?.isWatched == true { fail("\(effect) of a run that is watched") }
            runs[run]?.isKilled = true
        case .answer(let request, _):
            if !requested.contains(request) { fail("\(effect) of an unknown request") }
            if !answered.insert(request).inserted { fail("\(effect) is a second answer") }
        case .report(let report): record(report)
        case .sockets(let app, _), .removeInstance(let app):
            recordSockets(effect, of: app)
        case .finish:
            if hasFinished { fail("finished twice") }
            hasFinished = true
        case .identify(let request, _):
            if answered.contains(request) { fail("\(effect) after the answer") }
        case .recordLaunch, .writeReceipt, .dropRestorationState, .measureMemory, .allowSleep, .scheduleTimers,
            .subscribe:
            break
        }
    }

    private mutating func record(_ what: ProcessorEffect, _ effect: Effect, of run: RunID) {
        guard let known = handleEverything(run, effect) else { return }
        switch what {
        case .throttle, .unthrottle:
            if known.isThrottled == (what == .throttle) { fail("\(effect) changes nothing") }
            runs[run]?.isThrottled = what == .throttle
        case .limit(let limit):
            if known.isLimited == (limit != nil) { fail("\(effect) changes nothing") }
            runs[run]?.isLimited = limit != nil
        case .watchGPU(false): break
        case .measure, .watchGPU(true):
            if states[known.app] != .background { fail("\(effect) in \(states[known.app] as Any)") }
        }
    }

    private mutating func recordReclaim(_ effect: Effect, of run: RunID) {
        guard case .run(_, .memory(.reclaim(let attempt, _))) = effect else {
            if reclaiming != run { fail("\(effect) of a run that is not pushed out") }
            return reclaiming = nil
        }
        guard let known = handleEverything(run, effect) else { return }
        if !known.isFreezing || attempt != known.attempt { fail("\(effect) of a run that is not frozen") }
        if reclaiming != nil { fail("\(effect) beside that of \(reclaiming as Any)") }
        reclaiming = run
    }

    private mutating func recordSockets(_ effect: Effect, of app: AppID) {
        switch effect {
        case .sockets(_, .watch): if !watched.insert(app).inserted { fail("\(effect) twice") }
        case .sockets(_, .stopWatching):
            if watched.remove(app) == nil { fail("\(effect) of sockets that are not watched") }
        default:
            if states[app] ?? .notRunning != .notRunning { fail("\(effect) while it is \(states[app]!)") }
            if case .removeInstance = effect { holders.remove(app) }
        }
    }

    private mutating func handleEverything(_ run: RunID, _ effect: Effect) -> Run? {
        guard let known = runs[run], current[known.app] == run, !known.isKilled else {
            fail("\(effect) for a run that is over")
            return nil
        }
        return known
    }

    private mutating func spawned(_ app: AppID, _ run: RunID) {
        modes[app] = nil
        if let other = current[app] { fail("\(app) is spawned while its run \(other) is not over") }
        if runs[run] != nil { fail("run \(run) is used twice") }
        if hasFinished { fail("\(app) is spawned after the shutdown") }
        runs[run] = Run(app: app)
        current[app] = run
    }

    /// Checks the order of the notices (L3).
    private mutating func notify(_ run: RunID, _ notice: Notice) {
        guard let known = handleEverything(run, .run(run, .notify(notice))) else { return }
        // Of its scenes an app reads when it is thawed, which follows.
        var isOfScene = false
        switch notice {
        case .scene, .sceneClosed: isOfScene = true
        default: break
        }
        if known.isFreezing, !isOfScene { fail("\(known.app) gets \(notice) while it is frozen") }
        if known.lastNotice == .terminating { fail("\(known.app) gets \(notice) after willTerminate") }
        let expected: [Run.LastNotice]
        let next: Run.LastNotice?
        switch notice {
        case .willResignActive: (expected, next) = ([.active], .inactive)
        case .didEnterBackground: (expected, next) = ([.nothing, .inactive], .background)
        case .willEnterForeground: (expected, next) = ([.background], .inactive)
        case .didBecomeActive: (expected, next) = ([.nothing, .inactive], .active)
        case .willTerminate: (expected, next) = ([.nothing, .inactive, .active, .background], .terminating)
        // A user may cancel a task at any time.
        case .tasksExpiring, .memoryWarning: (expected, next) = ([.nothing, .inactive, .active, .background], nil)
        case .openURL: (expected, next) = ([.nothing, .inactive, .active], nil)
        case .withdraw, .willSuspend, .didResume, .takeSnapshot: (expected, next) = ([.background], nil)
        case .scene, .sceneClosed, .didDiscardScenes, .takeSceneSnapshot:
            (expected, next) = ([.nothing, .inactive, .active, .background], nil)
        }
        if !expected.contains(known.lastNotice) { fail("\(known.app) gets \(notice) after \(known.lastNotice)") }
        if let next { runs[run]?.lastNotice = next }
    }

    private mutating func record(_ report: Report) {
        switch report {
        case .stateChanged(let app, let from, let to, _):
            if states[app] ?? .notRunning != from { fail("\(report) after \(states[app] ?? .notRunning)") }
            if from == to { fail("\(report) is no change") }
            states[app] = to
            if to == .notRunning { current[app] = nil }
        case .deadlineStarted(let app, .wake, _, let wake):
            if !openWakes[app, default: []].insert(wake).inserted { fail("\(report), but it is open already") }
            deadlines[app, default: []].insert(.wake)
            if openWakes[app, default: []].count > 64 { fail("\(app) has \(openWakes[app]!.count) wakes") }
        case .deadlineMet(let app, .wake, _, let wake), .deadlineCancelled(let app, .wake, let wake),
            .deadlineMissed(let app, .wake, let wake):
            if openWakes[app, default: []].remove(wake) == nil { fail("\(report), but it is not open") }
            if openWakes[app, default: []].isEmpty { deadlines[app, default: []].remove(.wake) }
        case .deadlineStarted(let app, let kind, _, _):
            if !deadlines[app, default: []].insert(kind).inserted { fail("\(report), but it is open already") }
        case .deadlineMet(let app, let kind, _, _), .deadlineCancelled(let app, let kind, _),
            .deadlineMissed(let app, let kind, _):
            if deadlines[app, default: []].remove(kind) == nil { fail("\(report), but it is not open") }
        case .deadlineExtended(let app, let kind, _), .deadlineDeferred(let app, let kind, _, _),
            .deadlineCredited(let app, let kind, _):
            if !deadlines[app, default: []].contains(kind) { fail("\(report), but it is not open") }
        case .modeBegan(let app, let mode): modes[app, default: []].insert(mode)
        case .modeEnded(let app, let mode): modes[app, default: []].remove(mode)
        case .taskBegan, .taskEnded, .taskRefused, .taskProgressed, .taskExpires, .tasksExpiring,
            .freezeTakesLong, .killTakesLong, .stoppedItself,
            .sceneChanged,
            .wakeCompleted, .relaunchScheduled, .unrequestedTimeUsedUp, .memoryAwaited, .memoryLevelChanged, .ended,
            .inputArrived, .inputNotWatched, .wokenTooOften, .locksHeld, .processorUseHigh, .processorThrottled,
            .processorThrottleEnded, .connectionsRejected, .wouldSuspend, .wouldResume, .hookFailed, .hookKilled,
            .suspensionRefused, .memoryReclaimed:
            break
        }
    }

    // MARK: After each event

    /// L29: sockets are watched only while the app cannot accept, and always while it is suspended.
    private mutating func checkSockets(_ core: LifecycleCore) {
        if watched.isEmpty, holders.isEmpty { return }
        for app in watched where !holders.contains(app) { fail("the sockets of \(app) are watched, which has none") }
        for app in holders {
            let isWatched = watched.contains(app)
            switch core.state(of: app) {
            case .notRunning: continue
            case .suspended: if !isWatched, !core.isShuttingDown { fail("the sockets of \(app) are not watched") }
            case let state: if isWatched { fail("the sockets of \(app) are watched: \(state as Any)") }
            }
        }
    }

    private mutating func check(_ event: Event, _ core: LifecycleCore, _ manager: ManagerPolicy, at now: Instant) {
        var foreground: [String: Int] = [:]
        var areAllSuspended = true
        for app in core.appIDs {
            let state = core.state(of: app)!
            if states[app] ?? .notRunning != state {
                fail("\(app) is \(state), but was reported \(states[app] as Any)")
            }
            if state != .suspended { areAllSuspended = false }
            if state == .active || state == .inactive {
                let scenes = core.view(of: app, at: now)?.ownScenes ?? []
                foreground[seats[app] ?? "seat0", default: 0] +=
                    scenes.isEmpty ? 1 : scenes.count { $0.role == .window && $0.state >= .foregroundInactive }
                if workers.contains(app) { fail("the worker \(app) is in the foreground") }
            }
            checkRun(of: app, state, core)
            if state == .notRunning, !deadlines[app, default: []].isEmpty {
                fail("\(app) is not running, but has open deadlines: \(deadlines[app]!)")
            }
        }
        checkSockets(core)
        for (seat, count) in foreground where count > max(1, manager.foregroundLimit) {
            fail("\(count) windows are in the foreground of \(seat)")
        }
        let hasInput = current.values.contains { runs[$0]?.hasInput == true }
        if areAllSuspended, !hasInput, core.memory.level == .normal, let next = core.nextDeadline,
            !isHalfUsed || next - now > .milliseconds(25), !hasSwap || next - now > .seconds(10),
            !core.appIDs.contains(where: { id in
                let view = core.view(of: id, at: now)
                if TimerPurpose.allCases.contains(where: { core.isTimerPostponed(id, $0) }) { return true }
                return view?.deferredWake != nil || view?.unloadsIn != nil || view?.timerIn != nil
                    || view?.pulseIn != nil
            })
        {
            fail("all apps are suspended, but a timer is armed in \(next - now)")
        }
        if case .deadlineReached = event, let next = core.nextDeadline, next <= now { fail("\(next) is still due") }
    }

    private mutating func checkRun(of app: AppID, _ state: AppState, _ core: LifecycleCore) {
        guard let number = core.run(of: app), let run = runs[number] else {
            if state != .notRunning { fail("\(app) is \(state) without a run") }
            return
        }
        if core.app(of: number) != app { fail("run \(number) has no app") }
        switch state {
        case .notRunning: fail("\(app) is not running, but has a run")
        case .suspended:
            if !run.isFreezing { fail("\(app) is suspended, but not frozen") }
            // Workers run at normal weight whenever they run (L19), unless they use too much processor time (L44).
            if run.isLimited ? !run.isThrottled : run.isThrottled && workers.contains(app) {
                fail("\(app) is suspended with the wrong weight")
            }
        case .active, .inactive:
            if run.isThrottled || run.isLimited { fail("\(app) is throttled in the foreground") }
            let expected: Run.LastNotice = state == .active ? .active : .inactive
            if run.lastNotice != expected, !(state == .inactive && run.lastNotice == .nothing) {
                fail("\(app) is \(state), but its last notice was \(run.lastNotice)")
            }
        case .background:
            if run.lastNotice != .background {
                fail("\(app) is in the background, but its last notice was \(run.lastNotice)")
            }
        case .launching:
            if run.lastNotice != .nothing { fail("\(app) is launching, but its last notice was \(run.lastNotice)") }
        case .terminating: break
        }
    }

    /// The requests without an answer.
    var unanswered: Set<RequestID> { requested.subtracting(answered) }
}
