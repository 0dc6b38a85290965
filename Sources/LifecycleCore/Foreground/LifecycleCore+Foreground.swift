/// Inactive and active (L3, L12, L13).
extension LifecycleCore {
    /// From launching, or from the background: inactive first, then active unless the app is interrupted.
    mutating func enterForeground(_ index: AppIndex, _ reason: StateReason, _ now: Instant) {
        precondition(isInFront(index), "\(apps[index].id) has no foreground slot")
        endBackgroundStay(index, now)
        let isLaunch = apps[index].phase == .launching
        if apps[index].phase == .background { endWithdrawal(index) }
        switch apps[index].phase {
        case .launching: break
        case .notRunning, .foreground, .enteringBackground, .background, .suspending, .suspended, .waking,
            .terminating, .ending:
            returnToForeground(index)
        }
        deliverNotifications(index, inForeground: true)
        let watchdog = begin(index, .watchdog, heartbeatTime(index), now)
        change(index, to: .foreground(Foreground(watchdog: watchdog)), reason, now)
        restoreScene(index)
        openURLs(index)
        becomeActiveIfUninterrupted(index, reason, now)
        endSleepOfHooks(index, reason, now)
        if !isLaunch { addHook(index, Hook(.enterForeground, entering: .inactive, reason), now) }
    }

    private mutating func returnToForeground(_ index: AppIndex) {
        endProcessorThrottle(index)
        unthrottle(index)
        continueIfStopped(index)
        notify(index, .willEnterForeground)
    }

    /// L26: the foreground makes the budget whole again, and ends a wake, because the user has come.
    private mutating func endBackgroundStay(_ index: AppIndex, _ now: Instant) {
        cancel(index, self[run: index].budget.deadline)
        self[run: index].budget = .idle
        self[run: index].isUnrequested = false
        self[run: index].lockHold = nil
        self[run: index].traffic.quickWakes = 0
        self[run: index].traffic.awakeUntil = nil
        // A task that `EXTEND_TIMEOUT_USEC=` opened was for the background only.
        while let task = self[run: index].assertions.removeTask(where: { $0.end != nil }) {
            report(.taskEnded(apps[index].id, name: task.taskName ?? "", isCancelled: task.isCancelled))
        }
        endWakes(index)
    }

    mutating func becomeActiveIfUninterrupted(_ index: AppIndex, _ reason: StateReason, _ now: Instant) {
        guard case .foreground(var foreground)? = apps[index].execution, !foreground.isActive,
            self[run: index].interruptions == 0
        else { return }
        foreground.isActive = true
        notify(index, .didBecomeActive(reason.activation))
        change(index, to: .foreground(foreground), reason, now)
    }

    /// From active to inactive.
    mutating func resignActive(_ index: AppIndex, _ reason: StateReason, _ now: Instant) {
        guard case .foreground(var foreground)? = apps[index].execution, foreground.isActive else { return }
        foreground.isActive = false
        notify(index, .willResignActive(reason == .interrupted ? .interruption : .background))
        change(index, to: .foreground(foreground), reason, now)
    }

    mutating func continueIfStopped(_ index: AppIndex) {
        guard self[run: index].isStopped else { return }
        wasContinued(index)
        effects.append(.run(self[run: index].id, .continueStopped))
    }

    /// What it was at when it stopped continues, and does not end with the moment of a timer (L51): a look at all of its work decides.
    mutating func wasContinued(_ index: AppIndex) {
        guard self[run: index].isStopped else { return }
        self[run: index].isStopped = false
        if self[run: index].traffic.momentSince != nil { self[run: index].traffic.momentSince = nil }
    }
}

extension StateReason {
    /// Why an app becomes active that changes its state for this reason.
    fileprivate var activation: ActivationCause {
        switch self {
        case .ready: .launch
        case .interruptionEnded: .interruptionEnded
        case .launched, .requested, .displaced, .interrupted, .idle, .woken, .ended, .jetsam, .taskBegan,
            .missedDeadline, .tooManyTasks, .exitsOnSuspend, .shutdown, .continued, .sleep, .locked, .awoke, .unlocked,
            .cpuLimit, .gpuUsed, .unloaded, .timer:
            .return
        }
    }
}
