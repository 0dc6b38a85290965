/// What is due, and when: derived from what each run does, so that no timer can outlive its purpose.
extension LifecycleCore {
    enum TimerKind: Hashable, Sendable {
        case deadline, backgroundTime, wake, expirationNotice, taskEnd, taskProgress, suspend, freezeTakesLong,
            endTakesLong, relaunch
        case startUp, memoryLimit, input, appTimer, work, watchAgain, processor, sockets, unload, hook, timerRetry,
            reclaim
    }

    /// The nearest thing that is due for an app.
    private struct NextTimer {
        var next: (at: Instant, kind: TimerKind)?

        /// Of several at the same instant the first one counts: a late answer is late, whatever else ends then.
        mutating func consider(_ at: Instant?, _ kind: TimerKind) {
            guard let at else { return }
            if let next, next.at <= at { return }
            next = (at, kind)
        }

        /// - Returns: whether the suspension waits for a hook.
        mutating func considerHooks(_ stored: RunStorage) -> Bool {
            // Most apps have none.
            guard stored.run.hasHooks, let hooks = stored.run.hooks else { return false }
            consider(hooks.running?.due, .hook)
            consider(hooks.freezeAt, .suspend)
            return hooks.running != nil || hooks.freezeAt != nil
        }

        /// `notice`, `progressTime`: settings of the app. To pass its policy would copy all of it.
        mutating func consider(_ stored: RunStorage, notice: Duration, progressTime: Duration?) {
            var hasLimitedTasks = false
            if !stored.run.assertions.isEmpty {
                // Wakes first: of what is due at the same instant the first one counts.
                for assertion in stored.run.assertions.all {
                    if case .wake(let wake) = assertion.kind { consider(wake.deadline.due, .wake) }
                }
                for wake in stored.run.assertions.laterWakes { consider(wake.deadline.due, .wake) }
                for assertion in stored.run.assertions.all where assertion.isTask {
                    consider(assertion.end, .taskEnd)
                    guard assertion.isContinued else {
                        hasLimitedTasks = true
                        continue
                    }
                    consider(assertion.stalls(stored.run.budget, progressTime), .taskProgress)
                }
            }
            guard case .counting(let counting) = stored.run.budget else { return }
            let time = counting.deadline
            if hasLimitedTasks, !counting.isNoticeGiven {
                // Not before the stay in the background begins, however short the budget is.
                let given = time.start + (time.allowed - notice)
                consider(max(time.start, given), .expirationNotice)
            }
            consider(time.due, .backgroundTime)
        }
    }

    /// - Parameter forLifecycle: without measurements of processor time, which change nothing by themselves.
    func nextTimer(_ index: AppIndex, forLifecycle: Bool = false) -> (at: Instant, kind: TimerKind)? {
        var timer = NextTimer()
        if apps[index].hasTimers { timer.consider(apps[index].timers?.retry?.at, .timerRetry) }
        switch apps[index].life {
        case .notRunning(let notRunning):
            timer.consider(notRunning.relaunch?.at, .relaunch)
            timer.consider(clientsDue(index), .sockets)
        case .ending(let ending): timer.consider(ending.warnAt, .endTakesLong)
        case .running(let running):
            let stored = running.sharedStorage
            switch running.execution {
            case .background(let background):
                timer.consider(
                    stored, notice: apps[index].policy.expirationNotice,
                    progressTime: apps[index].policy.taskProgressTime)
                // What a hook does is not what the app does, and the suspension waits for it.
                if !timer.considerHooks(stored) {
                    timer.consider(suspensionDue(index, stored, background), .suspend)
                    if background.isLookedAt { timer.consider(background.look?.nextAt, .work) }
                }
                timer.consider(startUpDue(index, stored), .startUp)
                timer.consider(stored.run.traffic.watchAgainAt, .watchAgain)
                if !forLifecycle { timer.consider(processorLookDue(index, stored), .processor) }
            case .enteringBackground(let entering):
                timer.consider(entering.deadline?.due, .deadline)
                if stored.run.hasHooks { timer.consider(stored.run.hooks?.running?.due, .hook) }
                timer.consider(
                    stored, notice: apps[index].policy.expirationNotice,
                    progressTime: apps[index].policy.taskProgressTime)
                timer.consider(startUpDue(index, stored), .startUp)
                if !forLifecycle { timer.consider(processorLookDue(index, stored), .processor) }
            case .suspending(let suspending):
                timer.consider(suspending.warnAt, .freezeTakesLong)
                if keepsTimers(index) { timer.consider(suspending.look?.before?.due, .appTimer) }
            case .launching:
                timer.consider(running.execution.deadline?.due, .deadline)
                timer.consider(startUpDue(index, stored), .startUp)
            case .foreground:
                timer.consider(running.execution.deadline?.due, .deadline)
                if stored.run.hasHooks { timer.consider(stored.run.hooks?.running?.due, .hook) }
            case .waking, .terminating: timer.consider(running.execution.deadline?.due, .deadline)
            case .suspended(let suspended):
                timer.consider(suspendedLimitDue(index, stored), .memoryLimit)
                timer.consider(suspended.inputDue, .input)
                timer.consider(suspended.deferred?.due, .input)
                timer.consider(suspended.timerDue, .appTimer)
                timer.consider(suspended.pulseDue, .appTimer)
                timer.consider(unloadDue(index, suspended), .unload)
                timer.consider(reclaimDue(suspended), .reclaim)
            }
        }
        return timer.next
    }

    private func suspensionDue(_ index: AppIndex, _ stored: RunStorage, _ background: Background) -> Instant? {
        // A worker is suspended when it was found idle.
        guard let idleSince = background.idleSince, apps[index].policy.role != .worker, !isInDrySleep(index),
            suspension(index) != .no
        else { return nil }
        let due = stored.run.budget == .spent ? idleSince : idleSince + apps[index].policy.suspendDelay
        let snapshot = stored.run.snapshotDue.map { max($0, due) } ?? due
        let scenes = stored.run.sceneSnapshots?.due.map { max($0, snapshot) } ?? snapshot
        let end = stored.run.withdrawal?.due.map { max($0, scenes) } ?? scenes
        return staysAwakeUntil(index).map { max($0, end) } ?? end
    }

    // MARK: Something is due

    /// More than an app can have due at one instant: tasks and wakes of which each ends by itself.
    private static let mostTimersAtOnce = 10_000

    mutating func deadlineReached(_ now: Instant) {
        advanceShutdown(now)
        while let (at, index) = timers.first, at <= now {
            touch(index)
            var timer = nextTimer(index)
            var count = 0
            while let due = timer, due.at <= now {
                // Something that stays due is a fault of the core, at which tests and debug builds stop. A released daemon leaves this
                // event, so that it obeys SIGTERM; with WatchdogSec= the service manager restarts it.
                count += 1
                guard count <= Self.mostTimersAtOnce else {
                    assertionFailure("\(apps[index].id): \(due.kind) is due again and again")
                    timer = nil
                    break
                }
                fire(index, due.kind, due.at, now)
                timer = nextTimer(index)
            }
            timers.set(index, to: timer?.at)
            answerWaiters(index)
        }
        memoryDeadlineReached(now)
        returnCheckReached(now)
    }

    private mutating func fire(_ index: AppIndex, _ kind: TimerKind, _ due: Instant, _ now: Instant) {
        switch kind {
        case .deadline:
            apps[index].transitionDeadline?.isInspected = true
            effects.append(.run(self[run: index].id, .deadline(.inspect)))
        case .backgroundTime: backgroundTimeEnded(index, now)
        case .wake: wakeTimeEnded(index, now)
        case .expirationNotice: giveExpirationNotice(index, due: due, now)
        case .taskEnd: endTasksDue(index, now)
        case .taskProgress: progressStalled(index, due: due, now)
        case .suspend:
            guard case .background(let background)? = apps[index].execution else { return }
            suspend(index, background, now)
        case .freezeTakesLong: freezeTakesLong(index, now)
        case .endTakesLong: endTakesLong(index, now)
        case .relaunch: relaunchDue(index, now)
        case .startUp: checkStartUp(index, now)
        case .memoryLimit: suspendedLimitPassed(index, now)
        case .input: inputIsDue(index, now)
        case .appTimer: timerIsDue(index, now)
        case .work: lookIsDue(index, now)
        case .watchAgain: watchAgain(index, now)
        case .processor: processorLookIsDue(index, now)
        case .sockets: clientsAreDue(index, now)
        case .unload: unload(index, now)
        case .reclaim: reclaimIsDue(index)
        case .hook: hookIsDue(index, now)
        case .timerRetry: timerRetryIsDue(index, now)
        }
    }

    /// What was found of an app whose deadline has passed (L48): with a debugger attached the deadline starts again, else it
    /// is missed.
    mutating func inspected(_ index: AppIndex, _ inspection: Inspection, _ now: Instant) {
        // A suspended app's size is known from the freeze, and what an ending one has comes back.
        if apps[index].phase != .suspended, apps[index].phase != .ending {
            estimateSize(index, inspection.memory, inspection.uncertainty)
        }
        updateExit(index, inspection)
        if let exit = apps[index].execution?.exit, exit.remaining == nil {
            // The last process ended in time; that the group is empty is still to be reported.
            return endRun(index, exit, nil, now)
        }
        while let deadline = inspectedDeadline(index) {
            if inspection.traced, deferForDebugger(index, deadline, now) { continue }
            if credit(index, deadline, inspection.waited, now) { continue }
            if deadline.isDoubtful {
                assumeAnswered(index, deadline, now)
            } else if deadline.kind == .backgroundTime, !dropDoubtfulTasks(index) {
                backgroundTimeEnded(index, now)
                assertionEnded(index, now)
            } else {
                return miss(index, deadline, cpu: inspection.cpu, because: inspection.obstacle, now)
            }
        }
    }

    /// How long a debugger keeps one deadline from ending, in all.
    static let longestDebugging = Duration.seconds(3600)

    /// A debugger is attached. A shutdown does not wait for it.
    /// - Returns: whether the deadline starts again.
    private mutating func deferForDebugger(_ index: AppIndex, _ deadline: Deadline, _ now: Instant) -> Bool {
        var restarted = deadline
        guard shutdown == nil, restarted.restartForDebugger(at: now, limit: Self.longestDebugging) else { return false }
        report(.deadlineDeferred(apps[index].id, deadline.kind, .debuggerAttached, wake: wakeNumber(index, deadline)))
        replace(index, deadline, by: restarted)
        return true
    }

    /// The app was ready to run and got no processor for a part of the time: that is not its fault (L48).
    /// - Returns: whether the deadline is later now.
    private mutating func credit(_ index: AppIndex, _ deadline: Deadline, _ waited: Duration, _ now: Instant) -> Bool {
        var later = deadline
        guard let time = later.credit(waited, at: now) else { return false }
        report(.deadlineCredited(apps[index].id, deadline.kind, by: time))
        replace(index, deadline, by: later)
        return true
    }

    mutating func activityMeasured(_ index: AppIndex, _ activity: RunActivity, _ now: Instant) {
        slotMeasured(index, activity, now)
        startUpMeasured(index, activity, now)
    }

    /// Of the processes that a main process left behind, some may have ended since.
    private mutating func updateExit(_ index: AppIndex, _ inspection: Inspection) {
        guard case .terminating(var terminating)? = apps[index].execution, var exit = terminating.exit else { return }
        exit.remaining = inspection.remaining
        exit.cpu = max(exit.cpu, inspection.cpu)
        terminating.exit = exit
        update(index, .terminating(terminating))
    }

    /// A deadline that has passed and may be missed.
    func inspectedDeadline(_ index: AppIndex) -> Deadline? {
        if let deadline = apps[index].transitionDeadline, deadline.isInspected { return deadline }
        let stored = storage(index)
        if let deadline = stored.run.budget.deadline, deadline.isInspected { return deadline }
        guard stored.run.assertions.hasWakes else { return nil }
        return stored.run.assertions.wakes.first { $0.deadline.isInspected }?.deadline
    }

    mutating func replace(_ index: AppIndex, _ deadline: Deadline, by other: Deadline) {
        switch deadline.kind {
        case .launch, .background, .terminate, .watchdog, .thaw: apps[index].transitionDeadline = other
        case .backgroundTime: self[run: index].budget.deadline = other
        case .wake: self[run: index].assertions.replaceWakeDeadline(deadline, by: other)
        }
    }

    /// A deadline no longer counts.
    private mutating func remove(_ index: AppIndex, _ deadline: Deadline) {
        switch deadline.kind {
        case .launch, .background, .terminate, .watchdog, .thaw: apps[index].transitionDeadline = nil
        case .backgroundTime: self[run: index].budget = .idle
        case .wake: _ = self[run: index].assertions.removeWake { $0.deadline == deadline }
        }
    }

    /// Kills a run that missed a deadline. `cpu`: processor time that the run has used, if it was measured.
    /// `obstacle`: see `Inspection`.
    mutating func miss(
        _ index: AppIndex, _ deadline: Deadline, cpu: Duration?, because obstacle: String? = nil, _ now: Instant
    ) {
        invariant(deadline.end <= now && !deadline.isDoubtful, "a deadline is missed that has not passed", index)
        let missed = Report.deadlineMissed(apps[index].id, deadline.kind, wake: wakeNumber(index, deadline))
        let assertions = self[run: index].assertions
        let execution = apps[index].execution
        let awaited = awaited(index, deadline.kind, obstacle)
        remove(index, deadline)
        var use = deadlineUse(index, deadline, cpu: cpu, now)
        use.obstacle = awaited
        switch deadline.kind {
        case .launch, .background, .watchdog, .thaw:
            kill(index, .missedDeadline(use), .missedDeadline, reporting: missed, now)
        case .backgroundTime:
            kill(index, .leakedTasks(assertions.limitedTaskNames, use), .missedDeadline, reporting: missed, now)
        case .wake:
            let reason = assertions.wakes.first { $0.deadline == deadline }?.reason ?? .push
            kill(index, .wakeNotCompleted(reason, use), .missedDeadline, reporting: missed, now)
        case .terminate:
            guard case .terminating(let terminating)? = execution else { return report(missed) }
            kill(index, .terminationIgnored(terminating.cause, use), .missedDeadline, reporting: missed, now)
        }
    }

    /// What an app has not done by the end of a launch or background deadline, and the setting for a program that never does it, as the end
    /// of a sentence.
    private func awaited(_ index: AppIndex, _ kind: DeadlineKind, _ obstacle: String?) -> String? {
        switch (kind, apps[index].execution) {
        case (.launch, .launching(let launching)?):
            // That its sockets are hidden says more.
            let isHidden = isAwaitingListener(index) && self[run: index].startUp?.hiddenSockets != nil
            return isHidden ? nil : obstacle ?? launching.readiness.awaited
        case (.background, _):
            return self[run: index].handled.contains(.didEnterBackground)
                ? "it did not answer didEnterBackground: its handler has not returned"
                : "it did not answer EnterBackground= with X_GREENROOM_BACKGROUND=1: remove EnterBackground= if it never does"
        default: return nil
        }
    }

    func deadlineUse(_ index: AppIndex, _ deadline: Deadline, cpu: Duration?, _ now: Instant) -> Receipt.DeadlineUse {
        let before = deadline.kind == .launch ? .zero : self[run: index].cpuAtLastNotice
        var use = Receipt.DeadlineUse(
            what: deadline.kind, allowed: deadline.allowed, wall: deadline.used(at: now),
            cpu: cpu.map { max(.zero, $0 - before) }, credited: deadline.credited)
        if isAwaitingListener(index) { use.hiddenSockets = self[run: index].startUp?.hiddenSockets }
        return use
    }

    /// The number of the wake that has this deadline; 0: none has, or it has no number.
    func wakeNumber(_ index: AppIndex, _ deadline: Deadline) -> UInt64 {
        guard deadline.kind == .wake else { return 0 }
        return self[run: index].assertions.wakes.first { $0.deadline == deadline }?.id ?? 0
    }

    // MARK: Each deadline that starts is met, missed or cancelled, once

    /// - Returns: `nil` if the time is unlimited.
    mutating func begin(
        _ index: AppIndex, _ kind: DeadlineKind, _ allowed: Duration?, wake: UInt64 = 0, _ now: Instant
    ) -> Deadline? {
        guard let allowed else { return nil }
        report(.deadlineStarted(apps[index].id, kind, allowed, wake: wake))
        return Deadline(kind: kind, start: now, allowed: allowed)
    }

    mutating func met(_ index: AppIndex, _ deadline: Deadline?, wake: UInt64 = 0, _ now: Instant) {
        guard let deadline else { return }
        report(.deadlineMet(apps[index].id, deadline.kind, used: deadline.used(at: now), wake: wake))
    }

    /// The transition is over: its deadline no longer counts, whatever comes next.
    mutating func metTransitionDeadline(_ index: AppIndex, _ now: Instant) {
        guard let deadline = apps[index].transitionDeadline else { return }
        met(index, deadline, now)
        apps[index].transitionDeadline = nil
    }

    mutating func cancel(_ index: AppIndex, _ deadline: Deadline?, wake: UInt64 = 0) {
        guard let deadline else { return }
        report(.deadlineCancelled(apps[index].id, deadline.kind, wake: wake))
    }

    /// At the end of a run, and on the way there, no deadline is left.
    mutating func cancelDeadlines(_ index: AppIndex) {
        if let deadline = apps[index].transitionDeadline {
            cancel(index, deadline)
            apps[index].transitionDeadline = nil
        }
        cancel(index, self[run: index].budget.deadline)
        self[run: index].budget = .idle
        endWakes(index)
    }
}
