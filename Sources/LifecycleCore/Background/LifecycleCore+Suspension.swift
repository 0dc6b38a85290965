/// Suspension and the way out of it (L1, L18, L20, L26).
extension LifecycleCore {
    /// How long a freeze may take before a warning is logged. A cgroup freezes within microseconds unless a process of it is
    /// in uninterruptible sleep (docs/BENCH.md). Then all others stay frozen, and that one freezes as soon as it returns
    /// from the kernel.
    static let freezeTimeout = Duration.seconds(2)
    /// How long a thaw may take. It takes microseconds; a run that does not thaw is killed.
    static let thawTimeout = Duration.seconds(5)

    /// The last assertion ended `SuspendDelaySec=` ago.
    mutating func suspend(_ index: AppIndex, _ background: Background, _ now: Instant) {
        let suspension = suspension(index)
        guard suspension == .yes else {
            // `Suspend=` may have become another one between the hook and the freeze (L57).
            endSleepOfHooks(index, .requested, now)
            endWithdrawal(index)
            if suspension == .dryRun { beginDrySleep(index, background, now) }
            return
        }
        if apps[index].policy.exitsOnSuspend { return terminate(index, .exitsOnSuspend, now) }
        if asksToWithdraw(index, now) { return }
        if runsHookBeforeSuspension(index, now) { return }
        notifyOfSuspension(index, now)
        self[run: index].freezeAttempt += 1
        effects.append(.run(self[run: index].id, .suspension(.freeze(attempt: self[run: index].freezeAttempt))))
        var look = apps[index].policy.role == .worker ? background.look : nil
        look?.isDue = false
        change(index, to: .suspending(Suspending(warnAt: now + Self.freezeTimeout, look: look)), .idle, now)
    }

    mutating func frozen(
        _ index: AppIndex, _ attempt: Int, _ memory: UInt64, _ uncertainty: UInt64, _ now: Instant
    ) {
        guard case .suspending(let suspending)? = apps[index].execution, attempt == self[run: index].freezeAttempt
        else {
            return
        }
        estimateSize(index, memory, uncertainty)
        dropReleasedLocks(index, attempt)
        pauseBudget(index, now)
        let look = lookAtFreeze(index)
        var suspended = Suspended(look: look)
        if let look, let work = look.before { setTimers(&suspended, index, work, hasClients: look.hasClients, now) }
        let isAfterMoment = suspending.look?.kind == .moment
        if !isAfterMoment, self[run: index].traffic.sleepSince != nil { self[run: index].traffic.sleepSince = nil }
        // What a moment has touched is little.
        if !isAfterMoment { suspended.reclaim = reclaimOfSuspension(index, now) }
        change(index, to: .suspended(suspended), isAfterMoment ? .timer : .idle, now)
        beginWatch(index)
        checkLimit(index, now)
        evaluateMemory(now)
        guard look != nil, apps[index].phase == .suspended else { return }
        effects.append(.run(self[run: index].id, .traffic(.measureWork(.full))))
    }

    /// The clock of the budget stops.
    mutating func pauseBudget(_ index: AppIndex, _ now: Instant) {
        guard case .counting(let counting) = self[run: index].budget else { return }
        cancel(index, counting.deadline)
        let left = counting.deadline.remaining(at: now)
        self[run: index].budget = .paused(.init(left: left, isNoticeGiven: counting.isNoticeGiven))
    }

    /// The exact size of a suspended app follows the estimate of the freeze (L38).
    mutating func footprintMeasured(_ index: AppIndex, _ attempt: Int, _ memory: UInt64, _ now: Instant) {
        guard case .suspended? = apps[index].execution, attempt == self[run: index].freezeAttempt else { return }
        var size = self[run: index].size
        size.setExact(memory, at: now)
        setSize(index, size)
        evaluateMemory(now)
    }

    /// The app stays in the background as long as one of its processes is not frozen (L1). Thawing the others would let an
    /// app run for as long as it holds a process in uninterruptible sleep. Logged once in each freeze: an app may wait for
    /// a file server for hours.
    mutating func freezeTakesLong(_ index: AppIndex, _ now: Instant) {
        report(.freezeTakesLong(apps[index].id))
        guard case .suspending(var suspending)? = apps[index].execution else { return }
        suspending.warnAt = nil
        update(index, .suspending(suspending))
    }

    /// A process outside the daemon has continued a process of the app: the app runs until all are stopped again, and is in
    /// the background meanwhile (L1). Its budget stays as it is: the app did not ask for that time and cannot rely on it.
    mutating func freezeLost(_ index: AppIndex, _ attempt: Int, _ now: Instant) {
        guard case .suspended(let suspended)? = apps[index].execution, attempt == self[run: index].freezeAttempt else {
            return
        }
        endWatch(index)
        self[run: index].freezeAttempt += 1
        effects.append(.run(self[run: index].id, .suspension(.freeze(attempt: self[run: index].freezeAttempt))))
        let look = apps[index].policy.role == .worker ? WorkLook(of: suspended, now) : nil
        change(index, to: .suspending(Suspending(warnAt: now + Self.freezeTimeout, look: look)), .continued, now)
    }

    /// Out of suspension: into the foreground or to its end (`pending`), for a reason that grants time of its own, or for a task. What
    /// happened while the app was suspended is delivered before anything of it runs (L32).
    ///
    /// `isUnrequested`: no user asks for it (L53). `because`: why it runs, if that does not follow from the others.
    mutating func wake(
        _ index: AppIndex, pending: PendingRequest?, for reason: LaunchReason?, isUnrequested: Bool = false,
        because stated: StateReason? = nil, _ now: Instant
    ) {
        self[run: index].isUnrequested = isUnrequested
        if case .suspended? = apps[index].execution {
            self[run: index].lockHold = nil
            // Only wakes by input in a row count, and a caller that has one adds it.
            self[run: index].traffic.quickWakes = 0
            self[run: index].traffic.momentSince = nil
            self[run: index].traffic.sleepSince = nil
            self[run: index].traffic.pulseTime = nil
        }
        endWatch(index)
        notifyScenes(index)
        let delivered = deliverNotifications(index, inForeground: pending == .foreground)
        if pending == .foreground {
            endProcessorThrottle(index)
            unthrottle(index)
        }
        let cause: StateReason =
            switch pending {
            case .foreground: .requested
            case .terminate: shutdown == nil ? .requested : .shutdown
            case .background, nil: reason == nil ? .taskBegan : .woken
            }
        recordResumeReason(index, stated, cause)
        let continuesStopped = stated == .woken || stated == .requested || stated == .timer
        let waking = Waking(pending: pending, wake: reason, continuesStopped: continuesStopped)
        thaw(index, waking, stated ?? cause, now)
        // A moment for a timer (L51) touches others, and its end few.
        if stated != .timer, pending != .terminate { bringBack(index) }
        notifyOfResumption(index, delivered, now)
        notifyOfDiscardedScenes(index)
        unthrottleForWake(index, reason)
        // While other apps are awake the next check is soon enough, however fast all of them together fill memory.
        if memoryState.checkAt == nil, !memoryState.isMeasuring { memoryState.checkSoon(now) }
    }

    /// The thaw is the first effect: a user or a client waits for it.
    private mutating func thaw(_ index: AppIndex, _ waking: Waking, _ reason: StateReason, _ now: Instant) {
        effects.append(.run(self[run: index].id, .suspension(.thaw(attempt: self[run: index].freezeAttempt))))
        var waking = waking
        waking.deadline = begin(index, .thaw, Self.thawTimeout, now)
        resumeBudget(index, isRenewed: waking.wake != nil, now)
        change(index, to: .waking(waking), reason, now)
    }

    /// The clock of the budget continues with what was left. A wake renews it (L26).
    mutating func resumeBudget(_ index: AppIndex, isRenewed: Bool, _ now: Instant) {
        if isRenewed || apps[index].policy.role == .worker {
            cancel(index, self[run: index].budget.deadline)
            startBudget(index, apps[index].policy.backgroundBudget == nil ? nil : Self.wakeTime, now)
        } else if case .paused(let paused) = self[run: index].budget {
            startBudget(index, paused.left, isNoticeGiven: paused.isNoticeGiven, now)
        }
    }

    /// L26: a wake of an app that runs has 30 s of its own as well. A budget that is used up, or about to be, is renewed.
    mutating func makeTimeForWake(_ index: AppIndex, _ now: Instant) {
        switch self[run: index].budget {
        case .idle, .paused: return
        case .counting(let counting): if counting.deadline.remaining(at: now) >= Self.wakeTime { return }
        case .spent: break
        }
        resumeBudget(index, isRenewed: true, now)
    }

    mutating func thawed(_ index: AppIndex, _ attempt: Int, _ now: Instant) {
        guard case .waking(let waking)? = apps[index].execution, attempt == self[run: index].freezeAttempt else {
            return
        }
        metTransitionDeadline(index, now)
        beginPendingWakes(index, waking.wake, now)
        switch waking.pending {
        case .foreground: if mayEnterForeground(index, now) { return enterForeground(index, .requested, now) }
        case .terminate:
            let cause: TerminationCause = waking.isUnloading ? .unloaded : shutdown == nil ? .requested : .shutdown
            return terminate(index, cause, now)
        case .background, nil: break
        }
        thawedForHooks(index, now)
        if waking.continuesStopped { continueIfStopped(index) } else { continueIfNeeded(index) }
        runInBackground(index, .woken, now)
    }

    /// A program that answered by stopping itself is continued only when there is something for it to do.
    mutating func continueIfNeeded(_ index: AppIndex) {
        if !self[run: index].assertions.isEmpty || !self[run: index].modes.isEmpty { continueIfStopped(index) }
    }
}
