/// Inactive and active (L3, L12, L13).
extension LifecycleCore {
    /// From launching, or from the background: inactive first, and active unless it is interrupted.
    mutating func enterForeground(_ slot: Int, _ reason: StateReason, _ now: Instant) {
        precondition(isInFront(slot), "\(self[app: slot].id) may not enter the foreground")
        endBackgroundStay(slot, now)
        if !isLaunching(slot) { returnToForeground(slot) }
        deliverNotifications(slot, inForeground: true)
        let watchdog = begin(slot, .watchdog, self[app: slot].policy.watchdog, now)
        move(slot, to: .foreground(Foreground(watchdog: watchdog)), reason, now)
        becomeActiveIfUninterrupted(slot, reason, now)
    }

    private func isLaunching(_ slot: Int) -> Bool {
        if case .launching = self[app: slot].phase { true } else { false }
    }

    private mutating func returnToForeground(_ slot: Int) {
        unthrottle(slot)
        continueIfStopped(slot)
        effects.append(.notify(self[run: slot].id, .willEnterForeground))
    }

    /// L26: after the foreground the budget is whole again; a wake is over, as the user has come.
    private mutating func endBackgroundStay(_ slot: Int, _ now: Instant) {
        cancel(slot, self[run: slot].backgroundTime)
        self[run: slot].backgroundTime = nil
        self[run: slot].backgroundTimeLeft = nil
        self[run: slot].isBackgroundTimeOver = false
        self[run: slot].noticeGiven = false
        // What `EXTEND_TIMEOUT_USEC=` opened was for the background only.
        while let index = self[run: slot].tasks.firstIndex(where: { $0.end != nil }) {
            report(.taskEnded(self[app: slot].id, name: self[run: slot].tasks.remove(at: index).name))
        }
        endWake(slot)
    }

    mutating func becomeActiveIfUninterrupted(_ slot: Int, _ reason: StateReason, _ now: Instant) {
        guard case .foreground(var foreground) = self[app: slot].phase, !foreground.isActive,
            self[run: slot].interruptions == 0
        else { return }
        foreground.isActive = true
        effects.append(.notify(self[run: slot].id, .didBecomeActive))
        move(slot, to: .foreground(foreground), reason, now)
    }

    mutating func continueIfStopped(_ slot: Int) {
        guard self[run: slot].isStopped else { return }
        self[run: slot].isStopped = false
        effects.append(.continueStopped(self[run: slot].id))
    }

    mutating func unthrottle(_ slot: Int) {
        guard self[run: slot].isThrottled else { return }
        self[run: slot].isThrottled = false
        effects.append(.unthrottle(self[run: slot].id))
    }

    // MARK: The watchdog of the foreground

    mutating func heartbeat(_ slot: Int, _ now: Instant) {
        guard case .foreground(var foreground) = self[app: slot].phase, foreground.watchdog != nil else { return }
        foreground.watchdog?.start = now
        foreground.watchdog?.isInspected = false
        self[app: slot].phase = .foreground(foreground)
    }

    /// As if the heartbeat had been missed, whether or not one is asked for, as systemd does.
    mutating func heartbeatGivenUp(_ slot: Int, _ now: Instant) {
        guard case .foreground(let foreground) = self[app: slot].phase else { return }
        let deadline = foreground.watchdog ?? begin(slot, .watchdog, .zero, now)
        if let deadline { miss(slot, deadline, cpu: nil, now) }
    }
}
