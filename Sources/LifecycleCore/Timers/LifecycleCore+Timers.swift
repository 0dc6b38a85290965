/// Timers and fetch (L30). An event that is recorded has elapsed, and one that is not has not: so a daemon that dies loses and
/// repeats none.
extension LifecycleCore {
    /// A wake that the limits of wakes refuse is tried again after this time.
    static let timerRetry = Duration.seconds(60)

    /// What the timers of an app have done; `nil`: it has none, or they have not begun.
    package func timerState(of id: AppID) -> TimerState? { indices[id].flatMap { apps[$0].timers } }

    /// Whether a wake that has elapsed waits until the app may be launched or woken (L11, L53).
    package func isTimerPostponed(_ id: AppID, _ purpose: TimerPurpose) -> Bool {
        guard let state = timerState(of: id) else { return false }
        return state.retry(of: purpose) != nil
    }

    mutating func timerChanged(_ id: AppID, _ event: TimerEvent, _ now: Instant) {
        guard let index = indices[id], apps[index].policy.hasTimers, !isShuttingDown else { return }
        touch(index)
        switch event {
        case .began(let moment, let last):
            // Known already: the manifest is read again, or by the next daemon of the same boot.
            if let known = apps[index].timers, known.began.boottime <= moment.boottime { return }
            var state = TimerState(began: moment, calendarBase: last ?? moment.realtime)
            state.lastTimerRealtime = last
            apps[index].timers = state
        case .rebased(let time): apps[index].timers?.calendarBase = time
        case .elapsed(let kind, let moment):
            guard apps[index].timers != nil else { return }
            apps[index].timers?.elapsed(kind, moment)
            elapse(index, kind, now)
        }
        effects.append(.scheduleTimers(id))
    }

    private mutating func elapse(_ index: AppIndex, _ kind: TimerPurpose, _ now: Instant) {
        apps[index].timers?.setRetry(kind, nil)
        // A wake for the same reason that has not ended does this work, too.
        if hasWake(index, for: kind.reason) { return }
        // No user waits for it (L53), but a worker is awake as long as it works.
        let launch = Launch(
            state: .background, reason: kind.reason, isUnrequested: apps[index].policy.role != .worker)
        guard case .refused(let refusal) = wakeOrLaunch(index, launch, nil, now) else { return }
        apps[index].timers?.setRetry(kind, now + Self.pause(after: refusal))
    }

    private static func pause(after refusal: Refusal) -> Duration {
        switch refusal {
        case .launchPostponed(let time), .backgroundTimeUsedUp(let time): time
        case .unknownApp, .notRunning, .running, .opensNoURLs, .ending, .notInForeground, .notInterrupted,
            .modeNotDeclared, .noTask, .noScene, .noSuchScene, .lastScene, .requesterNotInForeground, .shuttingDown,
            .tooMany:
            timerRetry
        }
    }

    private func hasWake(_ index: AppIndex, for reason: LaunchReason) -> Bool {
        let wakes = apps[index].wakes
        if (wakes.pending + wakes.afterEnd).contains(where: { $0.reason == reason }) { return true }
        return apps[index].sharedRunStorage?.run.assertions.wakes.contains { $0.reason == reason } ?? false
    }

    /// A wake that was refused is tried again.
    mutating func timerRetryIsDue(_ index: AppIndex, _ now: Instant) {
        guard let retry = apps[index].timers?.retry else { return }
        if isShuttingDown {
            apps[index].timers?.setRetry(retry.kind, nil)
        } else {
            elapse(index, retry.kind, now)
        }
    }

    /// The manifest has timers, or none any more.
    mutating func followTimers(_ index: AppIndex) {
        if !apps[index].policy.hasTimers || !apps[index].isRegistered { apps[index].timers = nil }
    }

    /// `OnUnitActiveSec=` counts from a launch.
    mutating func timersSeeLaunch(_ index: AppIndex, _ now: Instant) {
        guard apps[index].timers != nil else { return }
        apps[index].timers?.lastLaunch = Int(now.sinceOrigin / .microseconds(1))
        effects.append(.scheduleTimers(apps[index].id))
    }

    /// Fetches that find nothing become rarer.
    mutating func fetchCompleted(_ index: AppIndex, _ reason: LaunchReason, _ result: WakeResult) {
        guard reason == .fetch, let before = apps[index].timers?.fetchFactor else { return }
        let factor =
            switch result {
            case .newData: 1
            case .noData: min(before * 2, TimerState.largestFetchFactor)
            case .failed: before
            }
        guard factor != before else { return }
        apps[index].timers?.fetchFactor = factor
        effects.append(.scheduleTimers(apps[index].id))
    }
}
