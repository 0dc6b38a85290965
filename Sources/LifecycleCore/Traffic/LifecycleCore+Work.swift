/// What apps in the background have to do (L51), and file locks (L43). Workers are awake while they work, and apps that input has woken
/// for as long as they have work, within the time of the wake.
extension LifecycleCore {
    /// L43: how long file locks keep an app awake that is not killed for them, and when its suspension is tried again.
    static let longestLockHold = Duration.seconds(60)
    static let lockRetry = Duration.seconds(5)
    /// An app that hints again and again is not measured more often: as with the shortest `IdleSec=`.
    static let shortestHintedLook = Duration.milliseconds(100)

    /// Whether something but its work keeps the app awake in the background.
    func isHeldAwake(_ index: AppIndex) -> Bool {
        let stored = storage(index)
        return stored.isHeldAwake || stored.run.traffic.isUnwatchable
    }

    /// Whether it is measured what the app has to do, because that decides when it is suspended.
    @inline(__always)
    private func isLookedAt(_ index: AppIndex, isIdle: Bool) -> Bool {
        if apps[index].policy.role == .worker { return isIdle && suspension(index) != .no }
        if isInDrySleep(index) { return true }
        guard apps[index].policy.wakesOnTraffic || apps[index].policy.holdsSockets else { return false }
        let stored = storage(index)
        if stored.run.startUp != nil || stored.run.traffic.isUnwatchable { return false }
        return !stored.run.assertions.isEmpty && !stored.run.assertions.hasTasks
            && !stored.run.assertions.containsWake { !$0.isByTraffic }
    }

    /// Begins and ends to look, once an event is carried out.
    mutating func followWork(_ index: AppIndex, _ now: Instant) {
        guard case .background(var background)? = apps[index].execution else { return }
        let isLookedAt = isLookedAt(index, isIdle: background.idleSince != nil)
        guard isLookedAt != background.isLookedAt else {
            guard isLookedAt, var look = background.look, look.isDue else { return }
            look.isDue = false
            background.look = look
            update(index, .background(background))
            return effects.append(.run(self[run: index].id, .traffic(.measureWork(look.kind))))
        }
        let isMoment = self[run: index].traffic.momentSince != nil
        let pause = isMoment ? Self.momentStep : apps[index].policy.idleTime
        background.look = isLookedAt ? WorkLook(nextAt: now + pause, measuredAt: now) : nil
        update(index, .background(background))
        if isLookedAt { effects.append(.run(self[run: index].id, .traffic(.measureWork(.first)))) }
    }

    mutating func lookIsDue(_ index: AppIndex, _ now: Instant) {
        guard case .background(var background)? = apps[index].execution, var look = background.look else { return }
        // Not asked for yet: what else is due may suspend the app.
        look.isDue = true
        look.isAsked = true
        // What it has said before this look is judged by it.
        look.isHintedMeanwhile = false
        look.nextAt = now + apps[index].policy.idleTime
        look.kind = self[run: index].traffic.momentSince == nil ? .full : .brief
        background.look = look
        update(index, .background(background))
    }

    /// `SetIdle`, `X_GREENROOM_IDLE=`: the daemon need not wait for `IdleSec=` to find out.
    mutating func idleHinted(_ index: AppIndex, _ isIdle: Bool, _ now: Instant) {
        guard apps[index].ending == nil else { return }
        self[run: index].idleHint = isIdle ? now : nil
        guard isIdle else { return }
        if apps[index].phase != .launching { endStartUp(index, now) }
        guard case .background(var background)? = apps[index].execution, var look = background.look else { return }
        // The answer to a look that is under way is judged by the hint.
        if look.isAsked {
            look.isHintedMeanwhile = true
            background.look = look
            return update(index, .background(background))
        }
        if now - look.measuredAt >= Self.shortestHintedLook {
            look.isDue = true
            look.isAsked = true
            look.kind = .full
            look.nextAt = now + apps[index].policy.idleTime
        } else {
            look.nextAt = min(look.nextAt, look.measuredAt + Self.shortestHintedLook)
        }
        background.look = look
        update(index, .background(background))
    }

    /// Something has arrived for the app: what it said before is over.
    mutating func endIdleHint(_ index: AppIndex) { self[run: index].idleHint = nil }

    mutating func workMeasured(_ index: AppIndex, _ work: RunWork, _ now: Instant) {
        if case .suspended(let suspended)? = apps[index].execution {
            return workMeasured(whileSuspended: index, suspended, work, now)
        }
        guard case .background(var background)? = apps[index].execution, var look = background.look, look.isAsked else {
            return
        }
        // A brief answer to an earlier question, which the one to this question follows: it would say that there is nothing to do.
        if work.isBrief, look.kind == .full || look.kind == .moment { return }
        look.isAsked = false
        if let since = self[run: index].traffic.momentSince {
            if work.isBrief { return continueMoment(index, background, look, work, since, now) }
            // An event loop may wait for the last milliseconds of the timer for which it was thawed.
            if work.wait == .short, now - since < Self.longestMoment {
                look.nextAt = now + max(Self.momentStep, now - since)
                (look.before, look.measuredAt) = (work, now)
                background.look = look
                return update(index, .background(background))
            }
            self[run: index].traffic.momentSince = nil
        }
        let isHintedMeanwhile = look.isHintedMeanwhile
        look.isHintedMeanwhile = false
        let hint = self[run: index].idleHint
        // The first one is compared with nothing, so it decides only what the app says itself.
        let isFirst = look.before == nil && (hint == nil || work.isBrief)
        if isFirst, hint != nil { look.nextAt = min(look.nextAt, now + Self.shortestHintedLook) }
        let reason = isFirst ? look.reason : look.reason(work, apps[index].policy, hint, now)
        if hint != nil, reason == .unreadInput {
            // What was found while the app said that it has nothing to do may be what it had done by then.
            if isHintedMeanwhile {
                look.nextAt = min(look.nextAt, now + Self.shortestHintedLook)
            } else {
                endIdleHint(index)
            }
        }
        let (before, lookedAt) = (look.before, look.measuredAt)
        if reason != look.reason { look.since = reason == nil ? nil : look.measuredAt }
        look.reason = reason
        look.before = work
        look.measuredAt = now
        background.look = look
        update(index, .background(background))
        if !work.isBrief { recordWaits(index, work, reason) }
        let isWoken = followDrySleep(index, work, before: before, lookedAt: lookedAt, reason, now)
        if isFirst || isWoken { return }
        if let reason { isAtWork(index, reason, isOwn: work.isOwn, now) } else { becameIdle(index, background, now) }
    }

    private mutating func recordWaits(_ index: AppIndex, _ work: RunWork, _ reason: WorkReason?) {
        self[run: index].traffic.shortestWait = work.tick
        // What a thread waits for does not say who has used the processor.
        let isOther = work.detail.isEmpty || (reason == .cpu && !work.isRunnable)
        self[run: index].traffic.detail = isOther ? nil : work.detail
    }

    private mutating func isAtWork(_ index: AppIndex, _ reason: WorkReason, isOwn: Bool, _ now: Instant) {
        // Locks belong to the work that it has done before.
        self[run: index].lockHold = nil
        self[run: index].traffic.pulseTime = nil
        // From here on it works for its clients, whatever it was launched or woken for (L53).
        let hasClients = reason == .unreadInput
        // It answered that it is in the background by stopping itself (L17), and would never read that.
        if hasClients { continueIfStopped(index) }
        let isForClients = hasClients && !isOwn
        // A timer had woken it.
        if isForClients { endSleepOfHooks(index, .woken, now) }
        if isForClients, apps[index].policy.role == .worker, !self[run: index].assertions.hasTasks {
            self[run: index].isUnrequested = false
        }
    }

    // MARK: Timers

    /// The moment for which a timer wakes an app: until it has used less than `IdleCPU=` for so long, and no longer than `longestMoment`. Then
    /// one look decides.
    static let momentStep = Duration.milliseconds(10)
    static let longestMoment = Duration.seconds(1)
    /// An app whose timer is due within this time is not frozen, and is looked at again `afterTimer` after it.
    static let timerSoon = Duration.seconds(2)
    static let afterTimer = Duration.milliseconds(20)
    /// With so many suspended apps, timers that are due within the same `timerGroup` of the clock go together, at its end.
    static let groupedTimers = 16
    /// A scheduler may leave out a job that is a second late (`misfire_grace_time` of APScheduler).
    static let timerGroup = Duration.milliseconds(500)
    /// Pulses without effect become rarer.
    static let longestPulse = Duration.seconds(120)
    /// All suspended apps together are thawed by pulses once in this time at most, as far as `longestPulse` permits: a pulse of an
    /// http.server takes 0.6ms of processor time, its own included.
    static let pulseShare = Duration.milliseconds(60)

    /// The processor time in a moment was measured.
    private mutating func continueMoment(
        _ index: AppIndex, _ background: Background, _ look: WorkLook, _ work: RunWork, _ since: Instant, _ now: Instant
    ) {
        var (background, look) = (background, look)
        look.nextAt = now + apps[index].policy.idleTime
        if let before = look.before, !look.isUsingProcessor(work, before, apps[index].policy, now) {
            (look.isDue, look.isAsked, look.kind) = (true, true, .moment)
        } else if now - since < Self.longestMoment {
            look.nextAt = now + Self.momentStep
        } else {
            self[run: index].traffic.momentSince = nil
        }
        look.before = work
        look.measuredAt = now
        background.look = look
        update(index, .background(background))
    }

    /// The look at a frozen worker: what it did between the last look and the freeze counts.
    private mutating func workMeasured(
        whileSuspended index: AppIndex, _ suspended: Suspended, _ work: RunWork, _ now: Instant
    ) {
        guard let look = suspended.look else { return }
        var suspended = suspended
        suspended.look = nil
        if shutdown == nil, isAtWorkWhileFrozen(index, work) {
            update(index, .suspended(suspended))
            recordWaits(index, work, nil)
            wake(index, pending: nil, for: nil, because: .woken, now)
            if look.kind == .moment { keepHooksAsleep(index) }
            return
        }
        setTimers(&suspended, index, work, hasClients: look.hasClients, now)
        suspended.hasSignalTimers = work.hasSignalTimers
        update(index, .suspended(suspended))
        warnIfOnlyRequestsWake(index)
    }

    /// As with any look, a hint refutes what only shows that a program may be at work.
    private func isAtWorkWhileFrozen(_ index: AppIndex, _ work: RunWork) -> Bool {
        let isHinted = self[run: index].idleHint != nil
        switch work.wait {
        case .unwatchedCall, .unreadable, .request: return true
        case .short: return !isHinted
        case nil: return work.isRunnable && !isHinted && apps[index].policy.keepAwake.contains(.cpu)
        }
    }

    /// When a frozen worker is thawed for itself.
    /// - Parameter hasClients: what it does in ticks may be for one of them, so its pulses do not become rarer.
    func setTimers(
        _ suspended: inout Suspended, _ index: AppIndex, _ work: RunWork, hasClients: Bool, _ now: Instant
    ) {
        guard keepsTimers(index) else { return }
        let suspendedCount = runningCount - awakeCount
        let isGrouped = suspendedCount >= Self.groupedTimers
        suspended.timerDue = work.due.map { isGrouped ? $0.roundedUp(to: Self.timerGroup) : $0 }
        let rarer = hasClients ? nil : self[run: index].traffic.pulseTime
        let pulse = max(rarer ?? apps[index].policy.pulseTime, min(Self.pulseShare * suspendedCount, Self.longestPulse))
        suspended.pulseDue = work.tick == nil ? nil : (now + pulse).roundedUp(to: .seconds(1))
    }

    /// Whether timers of the app thaw it.
    func keepsTimers(_ index: AppIndex) -> Bool {
        apps[index].policy.role == .worker && apps[index].policy.keepsTimers
    }

    /// A timer of a suspended worker is due, or a pulse. Never deferred (L53).
    mutating func timerIsDue(_ index: AppIndex, _ now: Instant) {
        // A process of it takes long to freeze, and the others wait.
        if apps[index].phase == .suspending { return wakeForMoment(index, now) }
        guard case .suspended(var suspended)? = apps[index].execution else { return }
        let isPulse = suspended.timerDue.map { $0 > now } ?? true
        (suspended.timerDue, suspended.pulseDue) = (nil, nil)
        update(index, .suspended(suspended))
        // The manifest may be another one now.
        guard shutdown == nil, keepsTimers(index) else { return }
        let before = self[run: index].traffic.pulseTime ?? apps[index].policy.pulseTime
        wakeForMoment(index, now)
        self[run: index].traffic.pulseTime = isPulse ? max(before, min(Self.longestPulse, before * 2)) : before
    }

    /// Thaws a worker until it has served its timer.
    mutating func wakeForMoment(_ index: AppIndex, _ now: Instant) {
        let isSuspended = apps[index].phase == .suspended
        let sleepSince = isSuspended ? self[run: index].traffic.sleepSince ?? apps[index].since : nil
        wake(index, pending: nil, for: nil, because: .timer, now)
        self[run: index].traffic.momentSince = now
        self[run: index].traffic.sleepSince = sleepSince
    }

    /// The app had nothing to do for `IdleSec=`.
    private mutating func becameIdle(_ index: AppIndex, _ background: Background, _ now: Instant) {
        if apps[index].policy.role != .worker {
            while self[run: index].assertions.containsWake(\.isByTraffic) {
                endWake(index, now, where: \.isByTraffic)
            }
            return
        }
        guard case .background(var current)? = apps[index].execution else { return }
        if let due = current.look?.before?.due, apps[index].policy.keepsTimers, due - now < Self.timerSoon {
            // The moment of one timer becomes that of the next.
            if current.look?.kind == .moment { self[run: index].traffic.momentSince = max(now, due) }
            current.look?.nextAt = min(now + apps[index].policy.idleTime, max(now, due) + Self.afterTimer)
            current.look?.reason = .timerSoon
            return update(index, .background(current))
        }
        guard let until = staysAwakeUntil(index), until > now else { return suspend(index, background, now) }
        current.look?.nextAt = min(until, now + apps[index].policy.idleTime)
        update(index, .background(current))
    }

    /// What is compared with the look at a worker that was frozen because it was idle; `nil`: it is not looked at.
    func lookAtFreeze(_ index: AppIndex) -> WorkLook? {
        guard apps[index].policy.role == .worker, case .suspending(let suspending)? = apps[index].execution else {
            return nil
        }
        return suspending.look
    }

    /// Before this instant the app is not suspended, whether or not it works.
    func staysAwakeUntil(_ index: AppIndex) -> Instant? {
        let stored = storage(index)
        guard let retry = stored.run.lockHold?.retryAt else { return stored.run.traffic.awakeUntil }
        return stored.run.traffic.awakeUntil.map { max($0, retry) } ?? retry
    }

    // MARK: File locks (L43)

    /// Comes before `frozen`: others may wait for what the app holds.
    mutating func locksFound(_ index: AppIndex, _ attempt: Int, _ locks: FileLocks, _ now: Instant) {
        guard case .suspending? = apps[index].execution, attempt == self[run: index].freezeAttempt else { return }
        // It was notified that it is in the background, and kept them. Shared locks keep programs from writing only.
        if self[run: index].takesPart, !locks.isShared, !apps[index].policy.waitsForRelease {
            return kill(index, .heldLocks(locks), .idle, now)
        }
        let before = self[run: index].lockHold
        var hold = before ?? LockHold(since: now, attempt: attempt, retryAt: now, locks: locks)
        let isOver = now - hold.since >= Self.longestLockHold
        hold.attempt = attempt
        hold.retryAt = now + Self.lockRetry
        hold.locks = locks
        self[run: index].lockHold = hold
        if before == nil || isOver { report(.locksHeld(apps[index].id, locks, isSuspended: isOver)) }
        if !isOver { wake(index, pending: nil, for: nil, isUnrequested: true, because: .idle, now) }
    }

    /// The whole group is frozen. Locks that this freeze did not find are released.
    mutating func dropReleasedLocks(_ index: AppIndex, _ attempt: Int) {
        if let hold = self[run: index].lockHold, hold.attempt != attempt { self[run: index].lockHold = nil }
    }
}

extension Instant {
    /// The next multiple of a part of a second.
    fileprivate func roundedUp(to part: Duration) -> Instant {
        let (seconds, rest) = sinceOrigin.components
        let length = part.components.seconds == 0 ? part.components.attoseconds : 1_000_000_000_000_000_000
        let parts = (rest + length - 1) / length
        return Instant(
            sinceOrigin: .seconds(seconds) + Duration(secondsComponent: 0, attosecondsComponent: parts * length))
    }
}

extension Wake {
    /// Input woke the app: it ends with its work.
    var isByTraffic: Bool { (reason == .socket || reason == .timer) && !mustComplete }
}

extension WorkLook {
    /// The look at a suspended app that has run for a moment, and is frozen again: its timers count until it was looked at.
    init(of suspended: Suspended, _ now: Instant) {
        self.init(nextAt: now, measuredAt: now)
        var work = RunWork(cpu: .zero)
        work.due = suspended.timerDue
        before = work
    }

    /// Why the app is not idle; `nil`: since the measurement before it had nothing to do (L51).
    /// - Parameter hint: when the app said that it has nothing to do until something arrives. What only shows that a program may be
    ///   at work does not count then.
    func reason(_ work: RunWork, _ policy: AppPolicy, _ hint: Instant?, _ now: Instant) -> WorkReason? {
        let isMoment = kind == .moment
        if work.unread > 0 { return .unreadInput }
        // The kernel sends what the peers take without the app; what they do not take needs no app that is awake. In a moment what was
        // sent just now is on its way.
        if !isMoment, work.unsent > 0, work.unsent != before?.unsent { return .unsentOutput }
        switch work.wait {
        case .unwatchedCall: return .unwatchedCall
        case .unreadable: return .unreadable
        case .request: return .request
        case .short, nil: break
        }
        if hint == nil, let before, policy.keepAwake.contains(.cpu) {
            if work.isRunnable || !isMoment && isUsingProcessor(work, before, policy, now) { return .cpu }
            if work.hasNewProcesses { return .processes }
        }
        if hint == nil, work.wait == .short { return .shortWait }
        if policy.keepAwake.contains(.timers), work.tick != nil { return .timer }
        if policy.keepAwake.contains(.connections), work.connections > 0 { return .connection }
        if hint == nil, !isMoment, policy.keepAwake.contains(.requests), work.tick != nil {
            if work.isIncomplete || work.traffic.map({ $0 < policy.requestTime }) ?? false { return .traffic }
        }
        return nil
    }

    fileprivate func isUsingProcessor(
        _ work: RunWork, _ before: RunWork, _ policy: AppPolicy, _ now: Instant
    ) -> Bool {
        let used = max(.zero, work.cpu - before.cpu)
        return used > .zero && used * 1000 >= (now - measuredAt) * policy.idleProcessorShare
    }
}

// MARK: Workers (L49)

extension AppPolicy {
    /// The state that a launch into `state` reaches: a worker is never in the foreground.
    func reached(from state: LaunchState) -> LaunchState { role == .worker ? .background : state }

    /// `LaunchAtStart=`.
    var startState: LaunchState? { launchAtStart.map { reached(from: $0) } }

    /// L21: workers have no budget. What bounds them is the processor time that they use (L44).
    var backgroundBudget: Duration? { role == .worker ? nil : backgroundTime }
}
