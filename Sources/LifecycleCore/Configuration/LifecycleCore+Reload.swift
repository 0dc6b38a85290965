/// A manifest was read again, and the app has a process: what it says about work and input applies from now on (L49 to L51).
extension LifecycleCore {
    mutating func policyChanged(_ index: AppIndex, _ before: AppPolicy, _ now: Instant) {
        guard apps[index].run != nil else { return }
        // Another setting may wake it now.
        self[run: index].traffic.hadNoWaker = false
        renewWatch(index, before, now)
        warnIfOnlyRequestsWake(index)
        renewDeferral(index, before, now)
        declaredModesChanged(index, now)
        if before.role == .worker, apps[index].policy.role != .worker { becameOrdinary(index, now) }
        renewLook(index, before, now)
        if before.effectiveSuspension != apps[index].policy.effectiveSuspension { suspensionChanged(index, now) }
    }

    /// `BackgroundTimePerHourSec=` is another one: input that waits for background time may have it now (L53).
    private mutating func renewDeferral(_ index: AppIndex, _ before: AppPolicy, _ now: Instant) {
        guard before.backgroundTimePerHour != apps[index].policy.backgroundTimePerHour,
            case .suspended(var suspended)? = apps[index].execution, suspended.deferred != nil
        else { return }
        suspended.deferred?.due = unrequestedTimeAvailable(index, now) ?? now
        update(index, .suspended(suspended))
    }

    /// It is no worker any more: its time in the background is limited from now on (L21), and no new daemon looks at it once
    /// more.
    private mutating func becameOrdinary(_ index: AppIndex, _ now: Instant) {
        if case .suspended(var suspended)? = apps[index].execution {
            suspended.look = nil
            update(index, .suspended(suspended))
        }
        guard self[run: index].budget == .idle else { return }
        let budget = apps[index].policy.backgroundBudget
        switch apps[index].phase {
        case .enteringBackground, .background, .suspending, .waking: startBudget(index, budget, now)
        case .suspended:
            if let budget { self[run: index].budget = .paused(.init(left: budget, isNoticeGiven: false)) }
        // The budget starts when it enters the background.
        case .notRunning, .launching, .foreground, .terminating, .ending: break
        }
    }

    /// `IdleSec=` is another one: the next look is that long after the last one.
    private mutating func renewLook(_ index: AppIndex, _ before: AppPolicy, _ now: Instant) {
        let idleTime = apps[index].policy.idleTime
        guard before.idleTime != idleTime, case .background(var background)? = apps[index].execution,
            var look = background.look
        else { return }
        // The answer that is under way comes too early, unless the app has said that it has nothing to do.
        let isEarly = look.kind == .full && now - look.measuredAt < idleTime && self[run: index].idleHint == nil
        if look.isAsked, isEarly {
            look.isAsked = false
            background.look = look
        }
        // The time to the next look counts from the question of the last one, which may not be answered yet. A look that comes
        // sooner because of a hint stays; one at the end of the time for which the app is left awake would be too early.
        let next = look.isAsked ? look.nextAt + (idleTime - before.idleTime) : look.measuredAt + idleTime
        background.look?.nextAt = max(now, self[run: index].idleHint == nil ? next : min(next, look.nextAt))
        update(index, .background(background))
    }
}
