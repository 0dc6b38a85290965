/// Into the background, and what may keep an app running there (L16 … L18, L21).
extension LifecycleCore {
    /// From launching (L3: a background launch is told too) or the foreground.
    mutating func enterBackground(_ slot: Int, _ reason: StateReason, _ now: Instant) {
        if !self[app: slot].isHeldBack { leavePlace(slot) }
        leaveForeground(slot, reason, now)
        self[run: slot].interruptions = 0
        beginBackgroundTime(slot, self[app: slot].policy.backgroundTime, now)
        effects.append(.notify(self[run: slot].id, .didEnterBackground))
        let deadline = begin(slot, .background, self[app: slot].policy.backgroundDeadline, now)
        move(slot, to: .entering(Entering(deadline: deadline, wish: nil)), reason, now)
        // Who has stopped itself can't do more to say that it is done (L17).
        if self[run: slot].isStopped { answeredBackground(slot, now) }
    }

    private mutating func leaveForeground(_ slot: Int, _ reason: StateReason, _ now: Instant) {
        guard case .foreground(let foreground) = self[app: slot].phase else { return }
        cancel(slot, foreground.watchdog)
        guard foreground.isActive else { return }
        effects.append(.notify(self[run: slot].id, .willResignActive))
        move(slot, to: .foreground(Foreground(isActive: false)), reason, now)
    }

    /// L21: the clock of the budget starts when the app enters the background, and runs until it is suspended.
    mutating func beginBackgroundTime(_ slot: Int, _ time: Duration?, _ now: Instant) {
        self[run: slot].backgroundTime = begin(slot, .backgroundTime, time, now)
        self[run: slot].backgroundTimeLeft = nil
        self[run: slot].isBackgroundTimeOver = false
        self[run: slot].noticeGiven = false
    }

    /// What came of a notice that is answered by a deadline. Where it could not be given, there is nothing to finish (L17).
    mutating func notified(_ slot: Int, _ notice: Notice, _ delivered: Bool, _ cpu: Duration, _ now: Instant) {
        self[run: slot].cpuWhenTold = cpu
        switch notice {
        case .didEnterBackground where !delivered: answeredBackground(slot, now)
        case .willTerminate where !delivered: terminationUndelivered(slot, now)
        case .didEnterBackground, .willTerminate, .willResignActive, .willEnterForeground, .didBecomeActive,
            .memoryWarning, .tasksExpiring:
            break
        }
    }

    mutating func answeredBackground(_ slot: Int, _ now: Instant) {
        guard case .entering(let entering) = self[app: slot].phase else { return }
        metPhaseDeadline(slot, now)
        switch entering.wish {
        case .foreground: if mayEnterForeground(slot, now) { return enterForeground(slot, .requested, now) }
        case .terminate: return terminate(slot, .requested, now)
        case .background, nil: break
        }
        if self[run: slot].wake != nil { continueIfStopped(slot) }
        runInBackground(slot, retryDelay: nil, .idle, now)
    }

    mutating func runInBackground(_ slot: Int, retryDelay: Duration?, _ reason: StateReason, _ now: Instant) {
        throttle(slot)
        // Of a way to the foreground that was given up.
        self[run: slot].interruptions = 0
        let quietSince = self[run: slot].hasAssertion ? nil : now
        move(slot, to: .running(Running(quietSince: quietSince, retryDelay: retryDelay)), reason, now)
    }

    /// L19.
    private mutating func throttle(_ slot: Int) {
        if self[run: slot].isThrottled { return }
        self[run: slot].isThrottled = true
        effects.append(.throttle(self[run: slot].id))
    }

    /// The main process has stopped itself: the answer to `didEnterBackground` (L17), and worth a word anywhere else.
    mutating func stopped(_ slot: Int, _ now: Instant) {
        self[run: slot].isStopped = true
        switch self[app: slot].phase {
        case .entering: answeredBackground(slot, now)
        case .launching, .foreground, .running:
            report(.stoppedItself(self[app: slot].id, in: self[app: slot].phase.state))
        case .notRunning, .suspending, .suspended, .waking, .terminating, .ending: break
        }
    }

    // MARK: Assertions come and go

    /// An assertion began: whatever was about to suspend the app is called off.
    mutating func assertionBegan(_ slot: Int, _ now: Instant) {
        switch self[app: slot].phase {
        case .running(var running):
            running.quietSince = nil
            self[app: slot].phase = .running(running)
        case .suspending, .suspended: wake(slot, wish: nil, for: nil, now)
        case .notRunning, .launching, .foreground, .entering, .waking, .terminating, .ending: break
        }
    }

    /// An assertion ended: with the last one the suspend delay begins (L18).
    mutating func assertionEnded(_ slot: Int, _ now: Instant) {
        guard case .running(var running) = self[app: slot].phase, running.quietSince == nil,
            !self[run: slot].hasAssertion
        else { return }
        running.quietSince = now
        self[app: slot].phase = .running(running)
    }
}
