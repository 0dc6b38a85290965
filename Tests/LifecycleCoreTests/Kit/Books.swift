import LifecycleCore
import Testing

/// What must hold in any harness at any time, whatever happens in it; kept by every test.
struct Books {
    /// One run, as its effects have made it.
    private struct Run {
        enum Told { case nothing, inactive, active, background, terminating }
        var app: AppID
        var told = Told.nothing
        var isKilled = false
        var isFreezing = false
        var isThrottled = false
        var attempt = 0
    }

    private var asked: Set<RequestID> = []
    private var answered: Set<RequestID> = []
    private var states: [AppID: AppState] = [:]
    private var runs: [RunID: Run] = [:]
    private var current: [AppID: RunID] = [:]
    private var deadlines: [AppID: Set<DeadlineKind>] = [:]
    private var hasFinished = false
    private var isSound = true
    private var lastEvent: Event?

    mutating func asked(_ request: RequestID) { asked.insert(request) }

    mutating func enter(
        _ event: Event, _ effects: [Effect], _ core: LifecycleCore, _ manager: ManagerPolicy, at now: Instant
    ) {
        lastEvent = event
        if case .requestAbandoned(let request) = event { answered.insert(request) }
        if case .recovered = event { answered.formUnion(asked) }
        for effect in effects where !isAskedAgain(effect, event) { enter(effect) }
        check(event, core, manager, at: now)
    }

    /// The first is enough: what follows from it would only hide it.
    private mutating func fault(_ sentence: String) {
        if !isSound { return }
        isSound = false
        Issue.record("the books do not add up at \(lastEvent.map { "\($0)" } ?? "the start"): \(sentence)")
    }

    /// After a crash nobody knows what came of what was under way: it is asked for a second time.
    private func isAskedAgain(_ effect: Effect, _ event: Event) -> Bool {
        guard case .run(_, .reattached) = event else { return false }
        switch effect {
        case .freeze(let run, let attempt): return runs[run]?.isFreezing == true && runs[run]?.attempt == attempt
        case .thaw(let run, let attempt): return runs[run]?.isFreezing == false && runs[run]?.attempt == attempt
        case .kill(let run): return runs[run]?.isKilled == true
        default: return false
        }
    }

    // MARK: Each effect

    private mutating func enter(_ effect: Effect) {
        switch effect {
        case .spawn(let app, let run, _): spawned(app, run)
        case .notify(let run, let notice): tell(run, notice)
        case .freeze(let run, let attempt):
            guard let known = live(run, effect) else { return }
            if known.isFreezing { fault("\(effect) of what is frozen already") }
            if attempt != known.attempt + 1 { fault("\(effect) after attempt \(known.attempt)") }
            runs[run]?.isFreezing = true
            runs[run]?.attempt = attempt
        case .thaw(let run, let attempt):
            guard let known = live(run, effect) else { return }
            if !known.isFreezing || attempt != known.attempt { fault("\(effect) of what was not frozen") }
            runs[run]?.isFreezing = false
        case .continueStopped(let run), .inspect(let run), .deliver(let run, _): _ = live(run, effect)
        case .throttle(let run):
            if live(run, effect)?.isThrottled == true { fault("\(effect) twice") }
            runs[run]?.isThrottled = true
        case .unthrottle(let run):
            if live(run, effect)?.isThrottled == false { fault("\(effect) of what was not") }
            runs[run]?.isThrottled = false
        case .kill(let run):
            if runs[run] == nil || current[runs[run]!.app] != run { fault("\(effect) of a run that is over") }
            runs[run]?.isKilled = true
        case .answer(let request, _):
            if !asked.contains(request) { fault("\(effect), which nobody asked") }
            if !answered.insert(request).inserted { fault("\(effect) is a second answer") }
        case .report(let report): enter(report)
        case .finish:
            if hasFinished { fault("finished twice") }
            hasFinished = true
        case .recordLaunch, .writeReceipt, .dropRestorationState, .measureMemory, .allowSleep: break
        }
    }

    private mutating func live(_ run: RunID, _ effect: Effect) -> Run? {
        guard let known = runs[run], current[known.app] == run, !known.isKilled else {
            fault("\(effect) for a run that is over")
            return nil
        }
        return known
    }

    private mutating func spawned(_ app: AppID, _ run: RunID) {
        if let other = current[app] { fault("\(app) is spawned while its run \(other) lives") }
        if runs[run] != nil { fault("run \(run) is used twice") }
        if hasFinished { fault("\(app) is spawned after the end of the harness") }
        runs[run] = Run(app: app)
        current[app] = run
    }

    /// L3: in this order, and nothing skipped.
    private mutating func tell(_ run: RunID, _ notice: Notice) {
        guard let known = live(run, .notify(run, notice)) else { return }
        if known.isFreezing { fault("\(known.app) is told \(notice) while it is frozen") }
        if known.told == .terminating { fault("\(known.app) is told \(notice) after willTerminate") }
        let expected: [Run.Told]
        let next: Run.Told?
        switch notice {
        case .willResignActive: (expected, next) = ([.active], .inactive)
        case .didEnterBackground: (expected, next) = ([.nothing, .inactive], .background)
        case .willEnterForeground: (expected, next) = ([.background], .inactive)
        case .didBecomeActive: (expected, next) = ([.nothing, .inactive], .active)
        case .willTerminate: (expected, next) = ([.nothing, .inactive, .active, .background], .terminating)
        case .tasksExpiring: (expected, next) = ([.background], nil)
        case .memoryWarning: (expected, next) = ([.nothing, .inactive, .active, .background], nil)
        }
        if !expected.contains(known.told) { fault("\(known.app) is told \(notice) when \(known.told)") }
        if let next { runs[run]?.told = next }
    }

    private mutating func enter(_ report: Report) {
        switch report {
        case .stateChanged(let app, let from, let to, _):
            if states[app] ?? .notRunning != from { fault("\(report) after \(states[app] ?? .notRunning)") }
            if from == to { fault("\(report) is no change") }
            states[app] = to
            if to == .notRunning { current[app] = nil }
        case .deadlineStarted(let app, let kind, _):
            if !deadlines[app, default: []].insert(kind).inserted { fault("\(report), which counts already") }
        case .deadlineMet(let app, let kind, _), .deadlineCancelled(let app, let kind),
            .deadlineMissed(let app, let kind):
            if deadlines[app, default: []].remove(kind) == nil { fault("\(report), which does not count") }
        case .deadlineExtended(let app, let kind, _), .deadlineDeferred(let app, let kind, _):
            if !deadlines[app, default: []].contains(kind) { fault("\(report), which does not count") }
        case .taskBegan, .taskEnded, .taskRefused, .tasksExpiring, .freezeTimedOut, .killTakesLong, .stoppedItself,
            .wakeCompleted, .relaunchScheduled, .memoryLevelChanged, .ended:
            break
        }
    }

    // MARK: After each event

    private mutating func check(_ event: Event, _ core: LifecycleCore, _ manager: ManagerPolicy, at now: Instant) {
        var foreground = 0
        var areAllSuspended = true
        for app in core.appIDs {
            let state = core.state(of: app)!
            if states[app] ?? .notRunning != state {
                fault("\(app) is \(state), but was reported \(states[app] as Any)")
            }
            if state != .suspended { areAllSuspended = false }
            if state == .active || state == .inactive { foreground += 1 }
            checkRun(of: app, state, core)
            if state == .notRunning, !deadlines[app, default: []].isEmpty {
                fault("\(app) is not running, and \(deadlines[app]!) count")
            }
        }
        if foreground > max(1, manager.foregroundLimit) { fault("\(foreground) apps are in the foreground") }
        if areAllSuspended, core.memory.level == .normal, let next = core.nextDeadline {
            fault("all is suspended, and the core wants to look again in \(next - now)")
        }
        if case .deadlineReached = event, let next = core.nextDeadline, next <= now { fault("\(next) is due still") }
    }

    private mutating func checkRun(of app: AppID, _ state: AppState, _ core: LifecycleCore) {
        guard let number = core.run(of: app), let run = runs[number] else {
            if state != .notRunning { fault("\(app) is \(state) without a run") }
            return
        }
        if core.app(of: number) != app { fault("run \(number) is not found") }
        switch state {
        case .notRunning: fault("\(app) is not running, but has a run")
        case .suspended:
            if !run.isFreezing || !run.isThrottled { fault("\(app) is suspended, but not frozen or not throttled") }
        case .active, .inactive:
            if run.isThrottled { fault("\(app) is throttled in the foreground") }
            let expected: Run.Told = state == .active ? .active : .inactive
            if run.told != expected, !(state == .inactive && run.told == .nothing) {
                fault("\(app) is \(state), but was told that it is \(run.told)")
            }
        case .background:
            if run.told != .background { fault("\(app) is in the background, but was told that it is \(run.told)") }
        case .launching:
            if run.told != .nothing { fault("\(app) is launching, but was told that it is \(run.told)") }
        case .terminating: break
        }
    }

    /// Requests that were never answered.
    var unanswered: Set<RequestID> { asked.subtracting(answered) }
}
