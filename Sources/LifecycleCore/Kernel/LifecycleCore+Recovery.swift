/// After a daemon died: this core is what the dead daemon's core was. What it decided stands, and outcomes that it waited
/// for are asked for again.
extension LifecycleCore {
    /// Comes once, before any other event. The clients of the dead daemon are gone. Starting a daemon cancels a shutdown in
    /// progress.
    mutating func recovered(_ now: Instant) {
        for index in apps.indices {
            apps[index].waiters = []
            discardURLRequesters(index)
            for request in apps[index].run?.tiedInterruptions ?? [] { requestAbandoned(request, now) }
        }
        requests = NumberTable()
        shutdown = nil
        recoverSockets()
        recoverSubscriptions()
        // The dead daemon cannot have received the report that the machine is awake.
        awoke(now)
        cancelReclaimOfLastDaemon()
        if memoryState.isMeasuring {
            memoryState.isMeasuring = false
            measureMemory(now)
        }
    }

    /// A run was found again. `messagesKept`: its notify messages were kept; else an answer of the app may be lost. `noticesDelayed`: it is notified of its state only now.
    mutating func reattached(_ index: AppIndex, _ messagesKept: Bool, _ noticesDelayed: Bool, _ now: Instant) {
        let id = self[run: index].id
        if !messagesKept { giveBenefitOfDoubt(index, now) }
        if noticesDelayed { restartDeadlines(index, now) }
        giveTimeForNotice(index, .daemonRestarted, now)
        renewProgress(index, now)
        switch apps[index].execution {
        // What the dead daemon compares a look at the frozen threads with has ended with it, and one may have been stopped at the end
        // of a read: the worker runs until it is found idle again (L51).
        case .suspending(let suspending)? where suspending.look != nil:
            wake(index, pending: nil, for: nil, because: .woken, now)
        case .suspended(let suspended)? where suspended.look != nil:
            wake(index, pending: nil, for: nil, because: .woken, now)
        case .suspending(var suspending)?:
            suspending.warnAt = now + Self.freezeTimeout
            update(index, .suspending(suspending))
            effects.append(.run(id, .suspension(.freeze(attempt: self[run: index].freezeAttempt))))
        case .waking(var waking)?:
            // The app is not to blame for a thaw that did not happen.
            waking.deadline?.restart(at: now)
            update(index, .waking(waking))
            report(.deadlineDeferred(apps[index].id, .thaw, .daemonRestarted))
            effects.append(.run(id, .suspension(.thaw(attempt: self[run: index].freezeAttempt))))
        case nil: if apps[index].ending?.isKilled ?? false { effects.append(.run(id, .kill)) }
        // The watch of the dead daemon has ended with it.
        case .suspended?: beginWatch(index)
        // The dead daemon's measurement does not arrive any more.
        case .background(let background)?:
            giveTimeToConnect(index, background, now)
            if background.look?.isAsked ?? false { lookIsDue(index, now) }
            if self[run: index].isGPUWatched { effects.append(.run(id, .processor(.watchGPU(true)))) }
        case .launching, .foreground, .enteringBackground, .terminating: break
        }
        // This daemon may have rights, or descriptors, that the one before did not have. One attempt shows it.
        if apps[index].execution != nil { watchAgain(index, now) }
        if inspectedDeadline(index) != nil { effects.append(.run(id, .deadline(.inspect))) }
        if memoryState.awaitedSizes.contains(id) { effects.append(.run(id, .memory(.measureSize))) }
        repeatOOMClass(index)
    }

    /// How long the connections of an app have to find the next daemon.
    package static let reconnectTime = Duration.seconds(3)

    /// Over its connection the app may have begun a task which the dead daemon has not read: it is not suspended before it can
    /// say so again.
    private mutating func giveTimeToConnect(_ index: AppIndex, _ background: Background, _ now: Instant) {
        guard let idleSince = background.idleSince, !self[run: index].handled.isEmpty else { return }
        let delay = min(Self.reconnectTime, apps[index].policy.suspendDelay)
        var later = background
        later.idleSince = max(idleSince, now + (Self.reconnectTime - delay))
        update(index, .background(later))
        // Its hook was over, and the freeze due.
        if self[run: index].hasHooks, self[run: index].hooks?.freezeAt != nil { endSleepOfHooks(index, .woken, now) }
    }

    /// A deadline starts when the app is notified. If the previous daemon died before it sent the notice, the deadline
    /// starts now.
    private mutating func restartDeadlines(_ index: AppIndex, _ now: Instant) {
        switch apps[index].phase {
        case .launching, .terminating: deferDeadline(index, apps[index].transitionDeadline, to: now)
        case .enteringBackground:
            deferDeadline(index, apps[index].transitionDeadline, to: now)
            deferDeadline(index, self[run: index].budget.deadline, to: now)
        case .notRunning, .foreground, .background, .suspending, .suspended, .waking, .ending: break
        }
        for wake in self[run: index].assertions.wakes { deferDeadline(index, wake.deadline, to: now) }
    }

    /// L22: the end of a budget is announced before it comes, also if its time came while there was no daemon, or while the
    /// daemon did not run.
    mutating func giveTimeForNotice(_ index: AppIndex, _ cause: DeferralCause, _ now: Instant) {
        guard let time = self[run: index].budget.deadline else { return }
        let notice = min(apps[index].policy.expirationNotice, time.allowed)
        guard time.remaining(at: now) < notice else { return }
        deferDeadline(index, time, to: now + (notice - time.allowed), cause)
    }

    mutating func deferDeadline(
        _ index: AppIndex, _ deadline: Deadline?, to start: Instant, _ cause: DeferralCause = .daemonRestarted
    ) {
        guard let deadline, deadline.start < start else { return }
        var restarted = deadline
        restarted.restart(at: start)
        report(.deadlineDeferred(apps[index].id, restarted.kind, cause, wake: wakeNumber(index, deadline)))
        replace(index, deadline, by: restarted)
    }

    /// The app is not to blame for what it may have said while there was no daemon: its deadlines count as met when they
    /// pass, and its tasks as ended.
    private mutating func giveBenefitOfDoubt(_ index: AppIndex, _ now: Instant) {
        switch apps[index].execution {
        case .launching(var launching)?:
            launching.deadline = inDoubt(index, launching.deadline, .launch, now)
            update(index, .launching(launching))
        case .enteringBackground(var entering)?:
            entering.deadline = inDoubt(index, entering.deadline, .background, now)
            update(index, .enteringBackground(entering))
        case .foreground(var foreground)?:
            if foreground.watchdog != nil {
                foreground.watchdog?.restart(at: now)
                report(.deadlineDeferred(apps[index].id, .watchdog, .daemonRestarted))
            }
            update(index, .foreground(foreground))
        // A frozen app cannot have said anything.
        case .suspended?, nil: return
        case .background?, .suspending?, .waking?, .terminating?: break
        }
        doubtPendingWakes(index)
        self[run: index].assertions.updateWakes { $0.deadline.isDoubtful = true }
        self[run: index].assertions.updateTasks { $0.isDoubtful = true }
        let hasBudget = self[run: index].budget.deadline != nil || willHaveBudget(index)
        if !hasBudget { endDoubtfulTasks(index, now) }
    }

    /// The background time is unlimited: nothing else would end a task that may have ended while there was no daemon.
    mutating func endDoubtfulTasks(_ index: AppIndex, _ now: Instant) {
        self[run: index].assertions.updateTasks { task in
            if task.isDoubtful, task.end == nil { task.end = now + Self.longestDoubt }
        }
    }

    private func willHaveBudget(_ index: AppIndex) -> Bool {
        switch apps[index].phase {
        case .launching, .foreground: apps[index].policy.backgroundTime != nil
        case .notRunning, .enteringBackground, .background, .suspending, .suspended, .waking, .terminating, .ending:
            false
        }
    }

    /// An app with unlimited time may have answered too: that is assumed after a while.
    private mutating func inDoubt(
        _ index: AppIndex, _ deadline: Deadline?, _ kind: DeadlineKind, _ now: Instant
    ) -> Deadline? {
        var deadline = deadline ?? begin(index, kind, Self.longestDoubt, now)
        deadline?.isDoubtful = true
        return deadline
    }

    /// How long to wait for what has no end of its own and may have ended while there was no daemon: as long as the default
    /// background time.
    private static let longestDoubt = Duration.seconds(30)

    /// A deadline has passed that the app may have met while there was no daemon.
    mutating func assumeAnswered(_ index: AppIndex, _ deadline: Deadline, _ now: Instant) {
        switch deadline.kind {
        case .launch: becameReady(index, now)
        case .background: answeredBackground(index, now)
        case .wake: endWake(index, now) { $0.deadline == deadline }
        case .backgroundTime, .watchdog, .terminate, .thaw:
            preconditionFailure("\(deadline.kind) is never in doubt")
        }
    }

    /// The budget is used up: tasks that may have ended while there was no daemon count as ended.
    /// - Returns: whether a task is left that the background time limits.
    mutating func dropDoubtfulTasks(_ index: AppIndex) -> Bool {
        while let task = self[run: index].assertions.removeTask(where: { $0.isDoubtful && !$0.isContinued }) {
            report(.taskEnded(apps[index].id, name: task.taskName ?? "", isCancelled: task.isCancelled))
        }
        return self[run: index].assertions.hasLimitedTasks
    }
}
