/// Frozen and awake again (L1, L18, L20), and what apps are woken for (L26, L30 … L32).
extension LifecycleCore {
    /// A group freezes within microseconds unless a process of it can't be interrupted; then it is tried again later.
    static let freezeLimit = Duration.seconds(2)
    /// To run again after the thaw: nothing should take this long.
    static let resumeLimit = Duration.seconds(5)
    static let longestFreezeRetry = Duration.seconds(60)
    /// L26.
    static let wakeTime = Duration.seconds(30)

    /// The last assertion ended `SuspendDelaySec=` ago.
    mutating func suspend(_ slot: Int, _ running: Running, _ now: Instant) {
        if self[app: slot].policy.exitsOnSuspend { return terminate(slot, .exitsOnSuspend, now) }
        self[run: slot].freezeAttempt += 1
        effects.append(.freeze(self[run: slot].id, attempt: self[run: slot].freezeAttempt))
        let suspending = Suspending(giveUpAt: now + Self.freezeLimit, retryDelay: running.retryDelay)
        move(slot, to: .suspending(suspending), .idle, now)
    }

    mutating func frozen(_ slot: Int, _ attempt: Int, _ memory: UInt64, _ now: Instant) {
        guard case .suspending = self[app: slot].phase, attempt == self[run: slot].freezeAttempt else { return }
        setMemory(slot, memory)
        if let time = self[run: slot].backgroundTime {
            self[run: slot].backgroundTimeLeft = time.remaining(at: now)
            cancel(slot, time)
            self[run: slot].backgroundTime = nil
        }
        move(slot, to: .suspended(Suspended(since: now)), .idle, now)
        evaluateMemory(now)
    }

    mutating func freezeTimedOut(_ slot: Int, _ suspending: Suspending, _ now: Instant) {
        report(.freezeTimedOut(self[app: slot].id))
        deliverNotifications(slot, inForeground: false)
        let delay = min(Self.longestFreezeRetry, (suspending.retryDelay ?? .milliseconds(500)) * 2)
        thaw(slot, Waking(retryDelay: delay), .freezeTimedOut, now)
    }

    /// Out of suspension: for the foreground (`wish`), for something that gives it time of its own, or for a task. What
    /// happened meanwhile is delivered before anything of it runs (L32).
    mutating func wake(_ slot: Int, wish: PendingRequest?, for reason: LaunchReason?, _ now: Instant) {
        deliverNotifications(slot, inForeground: wish == .foreground)
        if wish == .foreground { unthrottle(slot) }
        thaw(
            slot, Waking(wish: wish, wake: reason),
            wish == .foreground ? .requested : reason == nil ? .taskBegan : .woken, now)
        memoryState.checkSoon(now)
    }

    /// Somebody waits for it: nothing is told before it is done.
    private mutating func thaw(_ slot: Int, _ waking: Waking, _ reason: StateReason, _ now: Instant) {
        effects.append(.thaw(self[run: slot].id, attempt: self[run: slot].freezeAttempt))
        var waking = waking
        waking.deadline = resumeDeadline(slot, now)
        resumeBackgroundTime(slot, fresh: waking.wake != nil, now)
        move(slot, to: .waking(waking), reason, now)
    }

    private mutating func resumeDeadline(_ slot: Int, _ now: Instant) -> Deadline {
        report(.deadlineStarted(self[app: slot].id, .resume, Self.resumeLimit))
        return Deadline(kind: .resume, start: now, allowed: Self.resumeLimit)
    }

    /// The clock of the budget goes on where it stood; a wake has one of its own (L26).
    private mutating func resumeBackgroundTime(_ slot: Int, fresh: Bool, _ now: Instant) {
        if fresh {
            cancel(slot, self[run: slot].backgroundTime)
            beginBackgroundTime(slot, self[app: slot].policy.backgroundTime == nil ? nil : Self.wakeTime, now)
        } else if let left = self[run: slot].backgroundTimeLeft {
            self[run: slot].backgroundTime = begin(slot, .backgroundTime, left, now)
            self[run: slot].backgroundTimeLeft = nil
        }
    }

    /// L26: a wake of an app that runs has 30 s of its own as well. What is left of the budget does not end it, unless it
    /// is more.
    private mutating func makeTimeForWake(_ slot: Int, _ now: Instant) {
        let time = self[run: slot].backgroundTime
        guard time != nil || self[run: slot].isBackgroundTimeOver,
            time.map({ $0.remaining(at: now) < Self.wakeTime }) ?? true
        else { return }
        resumeBackgroundTime(slot, fresh: true, now)
    }

    mutating func thawed(_ slot: Int, _ attempt: Int, _ now: Instant) {
        guard case .waking(let waking) = self[app: slot].phase, attempt == self[run: slot].freezeAttempt else { return }
        metPhaseDeadline(slot, now)
        if let reason = waking.wake { beginWake(slot, reason, now) }
        switch waking.wish {
        case .foreground: if mayEnterForeground(slot, now) { return enterForeground(slot, .requested, now) }
        case .terminate: return terminate(slot, .requested, now)
        case .background, nil: break
        }
        continueIfNeeded(slot)
        runInBackground(slot, retryDelay: waking.retryDelay, .woken, now)
    }

    /// A program that had answered by stopping itself runs again only when it is continued, and only where there is
    /// something for it to do.
    mutating func continueIfNeeded(_ slot: Int) {
        if self[run: slot].hasAssertion { continueIfStopped(slot) }
    }

    // MARK: Wakes

    /// For a push, or a launch for a reason that is no person's.
    mutating func wakeRequested(
        _ request: RequestID, _ slot: Int, _ launch: Launch, _ notification: Notification?, _ now: Instant
    ) {
        let phase = self[app: slot].phase
        if case .notRunning = phase, let time = heldBack(slot, launch, now) {
            return answer(request, .refused(.launchPostponed(by: time)))
        }
        switch phase {
        case .terminating, .ending: return answer(request, .refused(.ending))
        case .notRunning:
            self.launch(slot, launch, now)
            file(slot, notification)
            return wait(request, slot, for: .awake)
        case .launching, .foreground, .entering, .running, .suspending, .suspended, .waking:
            file(slot, notification)
        }
        switch phase {
        case .launching(var launching):
            launching.wake = launch.reason
            self[app: slot].phase = .launching(launching)
        case .entering, .running:
            deliverNotifications(slot, inForeground: false)
            beginWake(slot, launch.reason, now)
            makeTimeForWake(slot, now)
            continueIfNeeded(slot)
            assertionBegan(slot, now)
        case .suspending, .suspended: wake(slot, wish: nil, for: launch.reason, now)
        case .waking(var waking):
            deliverNotifications(slot, inForeground: waking.wish == .foreground)
            waking.wake = launch.reason
            self[app: slot].phase = .waking(waking)
        case .foreground: deliverNotifications(slot, inForeground: true)
        case .notRunning, .terminating, .ending: break
        }
        switch self[app: slot].phase {
        case .foreground, .running: answer(request, .done(self[app: slot].phase.state))
        case .notRunning, .launching, .entering, .suspending, .suspended, .waking, .terminating, .ending:
            wait(request, slot, for: .awake)
        }
    }

    /// L30.
    mutating func pushRequested(_ request: RequestID, _ slot: Int, _ payload: String, _ now: Instant) {
        guard self[app: slot].policy.backgroundModes.contains(.push) else {
            return answer(request, .refused(.modeNotDeclared("push")))
        }
        let launch = Launch(state: .background, reason: .push)
        wakeRequested(request, slot, launch, Notification(pushed: payload), now)
    }

    mutating func beginWake(_ slot: Int, _ reason: LaunchReason, _ now: Instant) {
        cancel(slot, self[run: slot].wake?.deadline)
        report(.deadlineStarted(self[app: slot].id, .wake, Self.wakeTime))
        let mustComplete = reason.completedMode.map { self[app: slot].policy.backgroundModes.contains($0) } ?? false
        let deadline = Deadline(kind: .wake, start: now, allowed: Self.wakeTime)
        self[run: slot].wake = Wake(reason: reason, deadline: deadline, mustComplete: mustComplete)
    }

    mutating func endWake(_ slot: Int) {
        cancel(slot, self[run: slot].wake?.deadline)
        self[run: slot].wake = nil
    }

    mutating func wakeCompleted(_ slot: Int, _ result: WakeResult, _ now: Instant) {
        if let wake = self[run: slot].wake {
            met(slot, wake.deadline, now)
            self[run: slot].wake = nil
        } else if !forgetComingWake(slot) {
            return
        }
        report(.wakeCompleted(self[app: slot].id, result))
        assertionEnded(slot, now)
    }

    /// The app was faster than the word that it runs: its wake was still to begin. Whether there was one.
    private mutating func forgetComingWake(_ slot: Int) -> Bool {
        switch self[app: slot].phase {
        case .launching(var launching):
            guard launching.wake != nil else { return false }
            launching.wake = nil
            self[app: slot].phase = .launching(launching)
            return true
        case .waking(var waking):
            guard waking.wake != nil else { return false }
            waking.wake = nil
            self[app: slot].phase = .waking(waking)
            return true
        case .notRunning, .foreground, .entering, .running, .suspending, .suspended, .terminating, .ending: return false
        }
    }

    /// The time of a wake is over: an error where it was to be completed (L30), else simply the end of it.
    mutating func wakeOver(_ slot: Int, _ now: Instant) {
        guard let wake = self[run: slot].wake else { return }
        if wake.mustComplete {
            self[run: slot].wake?.deadline.isInspected = true
            effects.append(.inspect(self[run: slot].id))
        } else {
            endWake(slot)
            assertionEnded(slot, now)
        }
    }

    // MARK: Notifications (L31, L32)

    mutating func sendRequested(_ request: RequestID, _ slot: Int, _ notification: Notification, _ now: Instant) {
        switch self[app: slot].phase {
        case .notRunning: return answer(request, .refused(.notRunning))
        case .terminating, .ending: return answer(request, .refused(.ending))
        case .launching, .foreground, .entering, .running, .suspending, .suspended, .waking: break
        }
        if notify(slot, notification) == .full {
            return answer(
                request, .refused(.tooMany("\(NotificationQueue.maximumKinds) kinds of its own wait for it already")))
        }
        answer(request, .done(self[app: slot].phase.state))
    }

    /// Keeps it for an app that can't be told now, and tells all others.
    @discardableResult
    mutating func notify(_ slot: Int, _ notification: Notification) -> NotificationQueue.Filing? {
        let filing = file(slot, notification)
        if filing == .full { return filing }
        switch self[app: slot].phase {
        case .foreground: deliverNotifications(slot, inForeground: true)
        case .entering, .running: deliverNotifications(slot, inForeground: false)
        case .waking(let waking): deliverNotifications(slot, inForeground: waking.wish == .foreground)
        case .notRunning, .launching, .suspending, .suspended, .terminating, .ending: break
        }
        return filing
    }

    /// `nil`: there is none.
    @discardableResult
    mutating func file(_ slot: Int, _ notification: Notification?) -> NotificationQueue.Filing? {
        guard let notification else { return nil }
        let isHeld =
            switch self[app: slot].phase {
            case .suspending, .suspended: true
            case .notRunning, .launching, .foreground, .entering, .running, .waking, .terminating, .ending: false
            }
        return self[app: slot].notifications.file(notification, isHeld: isHeld)
    }

    mutating func deliverNotifications(_ slot: Int, inForeground: Bool) {
        let due = self[app: slot].notifications.take(inForeground: inForeground)
        if !due.isEmpty { effects.append(.deliver(self[run: slot].id, due)) }
    }
}
