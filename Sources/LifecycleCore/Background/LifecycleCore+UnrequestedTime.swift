/// Background time that no user asked for is limited in each hour (L53): tasks, wakes that apps cause, relaunches, and time in
/// which an app cannot be frozen. When it is used up, tasks and wakes by apps are refused, and relaunches wait.
extension LifecycleCore {
    /// Brings the account of an app up to date, at the end of each event in which something may have changed for it.
    mutating func countUnrequestedTime(_ index: AppIndex, _ now: Instant) {
        guard !apps[index].isRemoved else { return }
        let use = unrequestedUse(index)
        if use.opensTask { self[run: index].isUnrequested = true }
        let hasCounted = apps[index].unrequestedTime.since != nil
        if use.counts != hasCounted { apps[index].unrequestedTime.setCounting(use.counts, at: now) }
        if hasCounted || apps[index].unrequestedTime.isReported { reportUnrequestedTime(index, now) }
    }

    /// `opensTask`: the app has opened a task of its own, and what it does from here on no user asked for. A wake that a user asked
    /// for goes before. `counts`: it uses background time now that no user asked for.
    @inline(__always)
    private func unrequestedUse(_ index: AppIndex) -> (opensTask: Bool, counts: Bool) {
        guard case .running(let running) = apps[index].life else { return (false, false) }
        let stored = running.sharedStorage
        let isUnrequested = stored.run.isUnrequested
        switch running.execution {
        case .foreground, .suspended: return (false, false)
        case .launching: return (false, isUnrequested && !isInFront(index))
        case .enteringBackground: return unrequestedUse(of: stored, isHeld: false)
        // It would use none if it were suspended, or its manifest says that it is not.
        case .background where isInDrySleep(index) || suspension(index) == .no: return (false, false)
        case .background: return unrequestedUse(of: stored, isHeld: stored.run.hasLockHold)
        // Whatever keeps it from being frozen.
        case .suspending: return (false, true)
        case .waking(let waking): return (false, isUnrequested && waking.pending != .foreground)
        case .terminating(let terminating):
            switch terminating.cause {
            case .selfInitiated: return (false, true)
            case .exitsOnSuspend: return (false, isUnrequested)
            case .requested, .shutdown, .unloaded, .jetsam: return (false, false)
            }
        }
    }

    /// The use of an app in the background. `isHeld`: file locks keep it from being suspended.
    @inline(__always)
    private func unrequestedUse(of stored: RunStorage, isHeld: Bool) -> (opensTask: Bool, counts: Bool) {
        // The manifest declares its modes.
        if !stored.run.modes.isEmpty { return (false, false) }
        let isUnrequested = stored.run.isUnrequested
        // Mostly nothing is open.
        if stored.run.assertions.isEmpty { return (false, isUnrequested || isHeld) }
        // The user began them.
        if stored.run.assertions.hasContinuedTasks { return (false, false) }
        let opensTask = !isUnrequested && stored.run.assertions.hasTasks && !stored.run.assertions.hasWakes
        return (opensTask, isUnrequested || opensTask || isHeld)
    }

    /// Once, until half of the time is there again.
    private mutating func reportUnrequestedTime(_ index: AppIndex, _ now: Instant) {
        guard let limit = apps[index].policy.backgroundTimePerHour else { return }
        let used = apps[index].unrequestedTime.used(at: now)
        if apps[index].unrequestedTime.isReported {
            if used < limit, used <= limit / 2 { apps[index].unrequestedTime.isReported = false }
        } else if used >= limit {
            apps[index].unrequestedTime.isReported = true
            report(.unrequestedTimeUsedUp(apps[index].id, limit: limit))
        }
    }

    func isUnrequestedTimeUsedUp(_ index: AppIndex, _ now: Instant) -> Bool {
        guard let limit = apps[index].policy.backgroundTimePerHour else { return false }
        return apps[index].unrequestedTime.used(at: now) >= limit
    }

    /// When there is time again; `nil`: there is.
    func unrequestedTimeAvailable(_ index: AppIndex, _ now: Instant) -> Instant? {
        guard let limit = apps[index].policy.backgroundTimePerHour else { return nil }
        let available = apps[index].unrequestedTime.available(from: now, limit: limit)
        return available > now ? available : nil
    }

    func unrequestedTimeRefusal(_ index: AppIndex, _ now: Instant) -> Refusal? {
        unrequestedTimeAvailable(index, now).map { .backgroundTimeUsedUp(for: $0 - now) }
    }

    /// An app enters the background and has no time for its tasks: they end, except for continued ones, as if they were refused now. It is notified, and
    /// suspended like an app without tasks.
    mutating func endTasksWithoutTime(_ index: AppIndex) {
        guard self[run: index].assertions.hasLimitedTasks else { return }
        let names = self[run: index].assertions.limitedTaskNames
        report(.tasksExpiring(apps[index].id, names: names))
        notify(index, .tasksExpiring)
        self[run: index].assertions.removeLimitedTasks()
        for name in names { report(.taskEnded(apps[index].id, name: name)) }
    }

    /// Only an app in the foreground, which the user sees, can bring an app to the foreground.
    func mayBringToForeground(_ requester: Requester) -> Bool {
        switch requester {
        case .user: true
        case .app(let id): id.flatMap { indices[$0] }.map { apps[$0].phase == .foreground } ?? false
        }
    }
}
