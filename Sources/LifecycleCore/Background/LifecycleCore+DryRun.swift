/// `Suspend=`: apps that are never suspended, and those that only would be (L58). A dry run decides as for a suspension, freezes
/// nothing, and then looks at what the app does that it could not have done.
extension LifecycleCore {
    @inline(__always)
    func suspension(_ index: AppIndex) -> AppPolicy.Suspension {
        let own = apps[index].policy.effectiveSuspension
        return own == .yes && manager.isDryRun ? .dryRun : own
    }

    @inline(__always)
    func isInDrySleep(_ index: AppIndex) -> Bool { apps[index].isInDrySleep }

    /// The app would be suspended now.
    mutating func beginDrySleep(_ index: AppIndex, _ background: Background, _ now: Instant) {
        if isInDrySleep(index) { return }
        var sleep = DrySleep(since: now)
        if apps[index].policy.role == .worker, let work = background.look?.before {
            sleep.cpu = work.cpu
            sleep.timerDue = keepsTimers(index) ? work.due : nil
        }
        apps[index].drySleep = sleep
        pauseBudget(index, now)
        report(.wouldSuspend(apps[index].id))
        touch(index)
    }

    /// The app would be woken, or leaves the background.
    /// - Parameter age: how long ago it would have been woken.
    mutating func endDrySleep(_ index: AppIndex, _ reason: StateReason, age: Duration = .zero, _ now: Instant) {
        guard let sleep = apps[index].drySleep else { return }
        apps[index].drySleep = nil
        var result = sleep.result(reason, now)
        result.slept = max(.zero, result.slept - age)
        report(.wouldResume(apps[index].id, result))
        if apps[index].phase == .background { resumeBudget(index, isRenewed: false, now) }
    }

    /// A look at an app that would be suspended.
    /// - Parameters:
    ///   - before: the work of the look before, which was asked for at `lookedAt`.
    ///   - reason: why it is at work now; `nil`: it is not.
    /// - Returns: whether it would have been woken.
    mutating func followDrySleep(
        _ index: AppIndex, _ work: RunWork, before: RunWork?, lookedAt: Instant, _ reason: WorkReason?, _ now: Instant
    ) -> Bool {
        guard var sleep = apps[index].drySleep else { return false }
        let policy = apps[index].policy
        let last = max(lookedAt, sleep.since)
        let isTimerDue = sleep.timerDue.map { $0 <= now } ?? false
        // It is about to serve the timer: what it uses for that is seen by the next look. What is over counts as a short wait, from
        // which on traffic is counted.
        let isPending = isTimerDue && work.wait == .short && now - (sleep.timerDue ?? now) < Self.longestMoment
        let isTimer = isTimerDue && !isPending
        var isBusy = false
        if !isPending {
            let used = max(.zero, work.cpu - (sleep.cpu ?? work.cpu))
            sleep.cpu = work.cpu
            sleep.used += used
            if isTimer { sleep.moments += 1 }
            isBusy = sleep.isBusy(used, within: now - last, hasTicks: work.tick != nil)
            if policy.role == .worker { sleep.timerDue = keepsTimers(index) ? work.due : nil }
        }
        let countsTraffic = !isPending || before?.traffic != nil
        let isRecent = countsTraffic && work.traffic.map { $0 < now - last } ?? false
        let isInput = work.unread > 0 || isRecent || before.map { $0.connections != work.connections } ?? false
        if isInput, !policy.wakesOnTraffic { sleep.hasMissedInput = true }
        apps[index].drySleep = sleep
        // All that the threads of a worker wait for is watched: what it does without a timer, something would have woken it for. After a
        // timer it is frozen again once that is served.
        let isAtWork = !isTimerDue && (isBusy || reason.map { $0 != .timerSoon } ?? false)
        let isWoken = policy.role == .worker ? isInput || isAtWork : isInput && policy.wakesOnTraffic
        guard isWoken else { return false }
        endDrySleep(index, .woken, age: isRecent ? work.traffic ?? .zero : .zero, now)
        if case .background(var background)? = apps[index].execution, background.idleSince != nil {
            background.idleSince = now
            update(index, .background(background))
        }
        return true
    }

    /// `Suspend=` may be another one.
    mutating func suspensionChanged(_ index: AppIndex, _ now: Instant) {
        guard !apps[index].isRemoved, apps[index].run != nil else { return }
        if suspension(index) != .dryRun { endDrySleep(index, .requested, now) }
        touch(index)
        guard suspension(index) != .yes, shutdown == nil else { return }
        switch apps[index].phase {
        case .suspending, .suspended: wake(index, pending: nil, for: nil, because: .requested, now)
        case .notRunning, .launching, .foreground, .enteringBackground, .background, .waking, .terminating, .ending:
            break
        }
    }
}

extension DrySleep {
    /// Ticks do not take the same each time.
    private static let tolerance = Duration.milliseconds(1)

    /// What it comes to if it ends now.
    func result(_ reason: StateReason, _ now: Instant) -> DryRunResult {
        DryRunResult(
            slept: now - since, reason: reason, moments: moments, used: used, hasMissedInput: hasMissedInput)
    }

    /// Whether the app did more than to wait: a program that waits uses nothing. What ticks take is learned from the look at which they
    /// took least.
    mutating func isBusy(_ used: Duration, within time: Duration, hasTicks: Bool) -> Bool {
        guard hasTicks else { return used > .zero }
        let seconds = max(time / .seconds(1), 0.001)
        let perSecond = used / seconds
        guard let least = tickUse else {
            tickUse = perSecond
            return false
        }
        tickUse = min(least, perSecond)
        return used > Self.tolerance + least * (2 * seconds)
    }
}
