import LifecycleCore

/// The core's effects are carried out, or refused if they make no sense given what the core has been told. What crosses
/// something that the core could not know of yet is no fault of its and does nothing.
extension World {
    /// - Returns: what is wrong with the effect, in one sentence; `nil`: it was carried out.
    mutating func perform(_ effect: Effect) -> String? {
        switch effect {
        case .spawn(let app, let run, let launch): return performSpawn(app, run, launch)
        case .recordLaunch(let app, let count): return performRecord(app, count)
        case .measureMemory:
            if isMeasuring { return "a measurement is asked for while one is under way" }
            measure()
            return nil
        case .allowSleep: return performSleep()
        case .finish: return performFinish()
        case .notify(let id, _), .freeze(let id, _), .thaw(let id, _), .continueStopped(let id), .inspect(let id),
            .kill(let id), .throttle(let id), .unthrottle(let id), .deliver(let id, _):
            guard let run = index(of: id) else { return "there never was a run \(id)" }
            if let problem = problem(effect, for: runs[run]) { return "\(problem) (run \(id))" }
            perform(effect, on: run)
            return nil
        case .writeReceipt, .dropRestorationState, .answer, .report: return nil
        }
    }

    /// To be asked after all effects of one event.
    mutating func problemAfterAll() -> String? {
        if givenWhileFrozen.isEmpty { return nil }
        defer { givenWhileFrozen = [] }
        guard let run = givenWhileFrozen.first(where: { runs[$0].isAskedToFreeze }) else { return nil }
        return "notifications are delivered to a frozen run that is not thawed (run \(runs[run].id))"
    }

    private func problem(_ effect: Effect, for run: FakeRun) -> String? {
        let reported = run.reported
        if reported.isOver { return "the run is over" }
        switch effect {
        case .notify(_, let notice):
            if reported.isEnding { return "\(notice) is told to a run that has ended" }
            if run.isAskedToFreeze { return "\(notice) is told to a frozen run" }
            if run.killedAt != nil { return "\(notice) is told to a run that was killed" }
        case .freeze(_, let attempt):
            if reported.isEnding || run.killedAt != nil { return "a run that has ended is frozen" }
            if run.isAskedToFreeze { return "a frozen run is frozen again" }
            if attempt <= run.attempt { return "freeze \(attempt) comes after freeze \(run.attempt)" }
        case .thaw(_, let attempt):
            if !run.isAskedToFreeze { return "a run that is not frozen is thawed" }
            if attempt != run.attempt { return "thaw \(attempt) comes after freeze \(run.attempt)" }
        case .kill:
            if let killed = run.killedAt, now - killed < 5 * .second { return "the run is killed twice within 5 s" }
        case .inspect, .continueStopped, .throttle, .unthrottle, .deliver:
            if reported.isEnding || run.killedAt != nil { return "\(effect.verb) comes for a run that has ended" }
        case .spawn, .recordLaunch, .writeReceipt, .dropRestorationState, .answer, .report, .measureMemory,
            .allowSleep, .finish:
            break
        }
        return nil
    }

    private mutating func perform(_ effect: Effect, on run: Int) {
        switch effect {
        case .notify(_, let notice): tell(run, notice)
        case .freeze(_, let attempt): freeze(run, attempt)
        case .thaw(_, let attempt): thaw(run, attempt)
        case .continueStopped: continueStopped(run)
        case .inspect: inspect(run)
        case .kill: kill(run)
        case .throttle: runs[run].isThrottled = true
        case .unthrottle: runs[run].isThrottled = false
        case .deliver(_, let notifications): give(run, notifications)
        case .spawn, .recordLaunch, .writeReceipt, .dropRestorationState, .answer, .report, .measureMemory,
            .allowSleep, .finish:
            break
        }
    }

    private mutating func performSpawn(_ id: AppID, _ runID: RunID, _ launch: Launch) -> String? {
        guard let app = indexes[id] else { return "an app that nobody knows is spawned: \(id)" }
        guard runID.number == scenario.firstRun + UInt64(runs.count) else { return "run \(runID) is out of sequence" }
        if let last = apps[app].run, !runs[last].reported.isOver {
            return "\(id) is spawned while run \(runs[last].id) is not over"
        }
        if isShuttingDown { return "\(id) is spawned while everything shuts down" }
        if launch.isFirst != (apps[app].launches == 0) {
            return "\(id)'s first launch is not known for what it is (L9)"
        }
        let pid = Int32(truncatingIfNeeded: 1000 + runs.count % 30_000)
        spawn(FakeRun(id: runID, app: app, pid: pid, launch: launch, isAware: apps[app].personality.isAware))
        return nil
    }

    private mutating func performRecord(_ id: AppID, _ count: Int) -> String? {
        guard let app = indexes[id] else { return "a launch of an app that nobody knows is recorded: \(id)" }
        guard count == apps[app].launches + 1 else {
            return "launch \(count) of \(id) is recorded after launch \(apps[app].launches)"
        }
        switch apps[app].run.map({ runs[$0].program }) {
        case .unborn, .born, nil: return "a launch of \(id) is recorded before its program is executed (L9)"
        case .running, .ended: break
        }
        apps[app].launches = count
        return nil
    }

    private mutating func performFinish() -> String? {
        if isFinished { return "finished twice" }
        if !isShuttingDown { return "finished without having been asked to shut down" }
        isFinished = true
        if let run = runs.last(where: { !$0.isEmpty }) { return "finished while run \(run.id) has processes" }
        return nil
    }

    // MARK: Signals and looks

    private mutating func tell(_ run: Int, _ notice: Notice) {
        let isDelivered: Bool
        switch runs[run].program {
        case .unborn: isDelivered = false
        case .born, .running: isDelivered = runs[run].isAware || notice == .willTerminate
        // A zombie can be sent signals; one that is reaped cannot.
        case .ended: isDelivered = kernelRandom.chance(500)
        }
        if notice.isAnswered {
            let late = strikes(.toldLate) ? kernelRandom.within(0...3 * .second) : 0
            deliver(
                .run(runs[run].id, .notified(notice, delivered: isDelivered, cpu: cpu(of: run))),
                after: kernelRandom.within(0...300) + late)
        }
        if !isDelivered { return }
        switch runs[run].program {
        case .born: runs[run].isToldBeforeExec = true
        case .running: hear(run, notice)
        case .unborn, .ended: break
        }
    }

    private mutating func inspect(_ run: Int) {
        let late = strikes(.inspectedLate) ? kernelRandom.within(0...2 * .second) : 0
        if runs[run].tracesLeft == 0, strikes(.traced) { runs[run].tracesLeft = 1 + kernelRandom.below(3) }
        let isTraced = runs[run].tracesLeft > 0
        if isTraced { runs[run].tracesLeft -= 1 }
        let inspection = Inspection(traced: isTraced, cpu: cpu(of: run), memory: runs[run].memory)
        lateness += late
        deliver(.run(runs[run].id, .inspected(inspection)), after: kernelRandom.within(5...1000) + late)
    }

    private mutating func continueStopped(_ run: Int) {
        guard runs[run].isStopped else { return }
        runs[run].isStopped = false
        if runs[run].freezer != .frozen { say(run, .run(runs[run].id, .continued)) }
        resumeActs(run)
    }

    private mutating func give(_ run: Int, _ notifications: [Notification]) {
        if runs[run].isAskedToFreeze { givenWhileFrozen.append(run) }
        if notifications.contains(where: { $0.kind == Notification.push }) { planWake(run) }
    }
}

extension Effect {
    /// For sentences.
    var verb: String {
        let whole = String(describing: self)
        return String(whole.prefix { $0 != "(" })
    }
}
