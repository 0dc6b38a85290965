/// What is due, and when: per app from its phase and run, so that no timer can outlive what it was for.
extension LifecycleCore {
    enum TimerKind: Hashable, Sendable {
        case deadline, backgroundTime, wake, expirationNotice, taskEnd, suspend, freezeLimit, endingTakesLong, relaunch
    }

    /// The nearest thing to do for an app. Of several at the same instant the first listed comes first: an answer that is
    /// late is late, whatever else ends then.
    func nextTimer(_ slot: Int) -> (at: Instant, kind: TimerKind)? {
        var next: (at: Instant, kind: TimerKind)?
        func consider(_ at: Instant?, _ kind: TimerKind) {
            guard let at, next.map({ at < $0.at }) ?? true else { return }
            next = (at, kind)
        }
        let phase = self[app: slot].phase
        consider(phaseDeadline(phase)?.due, .deadline)
        switch phase {
        case .running(let running):
            considerAssertions(slot, consider)
            consider(suspensionDue(slot, running), .suspend)
        case .entering: considerAssertions(slot, consider)
        case .suspending(let suspending): consider(suspending.giveUpAt, .freezeLimit)
        case .ending(let ending): consider(ending.complainAt, .endingTakesLong)
        case .notRunning(let notRunning): consider(notRunning.relaunch?.at, .relaunch)
        case .waking, .launching, .foreground, .suspended, .terminating: break
        }
        return next
    }

    private func considerAssertions(_ slot: Int, _ consider: (Instant?, TimerKind) -> Void) {
        consider(self[run: slot].wake?.deadline.due, .wake)
        let time = self[run: slot].backgroundTime
        if !self[run: slot].tasks.isEmpty {
            for task in self[run: slot].tasks { consider(task.end, .taskEnd) }
            if !self[run: slot].noticeGiven, let time {
                // Not before the stay begins, however short the budget.
                let notice = self[app: slot].policy.expirationNotice
                consider(max(time.start, time.start + (time.allowed - notice)), .expirationNotice)
            }
        }
        consider(time?.due, .backgroundTime)
    }

    private func suspensionDue(_ slot: Int, _ running: Running) -> Instant? {
        guard let quiet = running.quietSince else { return nil }
        if let retry = running.retryDelay { return quiet + retry }
        return self[run: slot].isBackgroundTimeOver ? quiet : quiet + self[app: slot].policy.suspendDelay
    }

    func phaseDeadline(_ phase: Phase) -> Deadline? {
        switch phase {
        case .launching(let launching): launching.deadline
        case .foreground(let foreground): foreground.watchdog
        case .entering(let entering): entering.deadline
        case .waking(let waking): waking.deadline
        case .terminating(let terminating): terminating.deadline
        case .notRunning, .running, .suspending, .suspended, .ending: nil
        }
    }

    private mutating func setPhaseDeadline(_ slot: Int, _ deadline: Deadline?) {
        switch self[app: slot].phase {
        case .launching(var launching):
            launching.deadline = deadline
            self[app: slot].phase = .launching(launching)
        case .foreground(var foreground):
            foreground.watchdog = deadline
            self[app: slot].phase = .foreground(foreground)
        case .entering(var entering):
            entering.deadline = deadline
            self[app: slot].phase = .entering(entering)
        case .waking(var waking):
            waking.deadline = deadline
            self[app: slot].phase = .waking(waking)
        case .terminating(var terminating):
            terminating.deadline = deadline
            self[app: slot].phase = .terminating(terminating)
        case .notRunning, .running, .suspending, .suspended, .ending: break
        }
    }

    // MARK: The time has come

    mutating func deadlineReached(_ now: Instant) {
        while let (at, slot) = timers.first, at <= now {
            touch(slot)
            while let timer = nextTimer(slot), timer.at <= now { fire(slot, timer.kind, now) }
            refresh(slot)
        }
        memoryDeadlineReached(now)
    }

    private mutating func fire(_ slot: Int, _ kind: TimerKind, _ now: Instant) {
        switch kind {
        case .deadline:
            guard var deadline = phaseDeadline(self[app: slot].phase) else { return }
            deadline.isInspected = true
            setPhaseDeadline(slot, deadline)
            effects.append(.inspect(self[run: slot].id))
        case .backgroundTime: backgroundTimeOver(slot, now)
        case .wake: wakeOver(slot, now)
        case .expirationNotice: giveExpirationNotice(slot)
        case .taskEnd: endTasksDue(slot, now)
        case .suspend:
            guard case .running(let running) = self[app: slot].phase else { return }
            suspend(slot, running, now)
        case .freezeLimit:
            guard case .suspending(let suspending) = self[app: slot].phase else { return }
            freezeTimedOut(slot, suspending, now)
        case .endingTakesLong: endingTakesLong(slot, now)
        case .relaunch: relaunchDue(slot, now)
        }
    }

    /// What was found of an app whose deadline has passed (L48): with a debugger attached it starts anew, else it is missed.
    mutating func inspected(_ slot: Int, _ inspection: Inspection, _ now: Instant) {
        if !isMemoryKnown(slot) { setMemory(slot, inspection.memory) }
        while let deadline = lookedInto(slot) {
            if inspection.traced {
                report(.deadlineDeferred(self[app: slot].id, deadline.kind))
                var anew = deadline
                anew.start = now
                anew.isInspected = false
                replace(slot, deadline, by: anew)
            } else if deadline.isDoubtful {
                assumeAnswered(slot, deadline.kind, now)
            } else if deadline.kind == .backgroundTime, !dropDoubtfulTasks(slot) {
                backgroundTimeOver(slot, now)
                assertionEnded(slot, now)
            } else {
                return miss(slot, deadline, cpu: inspection.cpu, now)
            }
        }
    }

    /// A deadline that has passed and may be missed.
    func lookedInto(_ slot: Int) -> Deadline? {
        let all = [
            phaseDeadline(self[app: slot].phase), self[run: slot].backgroundTime, self[run: slot].wake?.deadline,
        ]
        return all.compactMap { $0 }.first { $0.isInspected }
    }

    /// A suspended app's size is known from when it was frozen.
    private func isMemoryKnown(_ slot: Int) -> Bool {
        if case .suspended = self[app: slot].phase { true } else { false }
    }

    mutating func replace(_ slot: Int, _ deadline: Deadline, by other: Deadline?) {
        switch deadline.kind {
        case .launch, .background, .terminate, .watchdog, .resume: setPhaseDeadline(slot, other)
        case .backgroundTime: self[run: slot].backgroundTime = other
        case .wake: if let other { self[run: slot].wake?.deadline = other } else { self[run: slot].wake = nil }
        }
    }

    /// The end for missing a deadline. `cpu`: what the app has used of the processor, where it was looked up.
    mutating func miss(_ slot: Int, _ deadline: Deadline, cpu: Duration?, _ now: Instant) {
        report(.deadlineMissed(self[app: slot].id, deadline.kind))
        let tasks = self[run: slot].tasks.map(\.name)
        let reason = self[run: slot].wake?.reason
        let phase = self[app: slot].phase
        replace(slot, deadline, by: nil)
        let use = deadlineUse(slot, deadline, cpu: cpu, now)
        switch deadline.kind {
        case .launch, .background, .watchdog, .resume: kill(slot, .missedDeadline(use), .missedDeadline, now)
        case .backgroundTime: kill(slot, .leakedTasks(tasks, use), .missedDeadline, now)
        case .wake: kill(slot, .wakeNotCompleted(reason ?? .push, use), .missedDeadline, now)
        case .terminate:
            guard case .terminating(let terminating) = phase else { return }
            kill(slot, .terminationIgnored(terminating.cause, use), .missedDeadline, now)
        }
    }

    func deadlineUse(_ slot: Int, _ deadline: Deadline, cpu: Duration?, _ now: Instant) -> Receipt.DeadlineUse {
        let before = deadline.kind == .launch ? .zero : self[run: slot].cpuWhenTold
        return Receipt.DeadlineUse(
            what: deadline.kind, allowed: deadline.allowed, wall: deadline.used(at: now),
            cpu: cpu.map { max(.zero, $0 - before) })
    }

    // MARK: Each deadline that starts is met, missed or cancelled, once

    mutating func begin(_ slot: Int, _ kind: DeadlineKind, _ allowed: Duration?, _ now: Instant) -> Deadline? {
        guard let allowed else { return nil }
        report(.deadlineStarted(self[app: slot].id, kind, allowed))
        return Deadline(kind: kind, start: now, allowed: allowed)
    }

    mutating func met(_ slot: Int, _ deadline: Deadline?, _ now: Instant) {
        guard let deadline else { return }
        report(.deadlineMet(self[app: slot].id, deadline.kind, used: deadline.used(at: now)))
    }

    /// What the phase waited for has come: its deadline no longer counts, whatever comes next.
    mutating func metPhaseDeadline(_ slot: Int, _ now: Instant) {
        met(slot, phaseDeadline(self[app: slot].phase), now)
        setPhaseDeadline(slot, nil)
    }

    mutating func cancel(_ slot: Int, _ deadline: Deadline?) {
        guard let deadline else { return }
        report(.deadlineCancelled(self[app: slot].id, deadline.kind))
    }

    /// At the end of a run, or on the way there: none is left.
    mutating func cancelDeadlines(_ slot: Int) {
        cancel(slot, phaseDeadline(self[app: slot].phase))
        setPhaseDeadline(slot, nil)
        cancel(slot, self[run: slot].backgroundTime)
        self[run: slot].backgroundTime = nil
        self[run: slot].backgroundTimeLeft = nil
        endWake(slot)
    }
}
