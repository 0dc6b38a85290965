/// What apps are woken for (L26, L30). A wake needs no requester: traffic and timers wake like requests do.
extension LifecycleCore {
    /// L26.
    static let wakeTime = Duration.seconds(30)

    /// What came of a wake.
    enum WakeOutcome {
        /// The app runs.
        case awake
        /// The app will run: it launches, thaws, or answers or ends first.
        case coming
        case refused(Refusal)
    }

    /// Wakes an app for `launch.reason`, or launches it, after its end if it is ending. `notification` is delivered with the
    /// wake.
    mutating func wakeOrLaunch(
        _ index: Int, _ launch: Launch, _ notification: Notification?, _ now: Instant
    ) -> WakeOutcome {
        if launch.isUnrequested, apps[index].phase != .foreground, let refusal = unrequestedTimeRefusal(index, now) {
            return .refused(refusal)
        }
        switch apps[index].phase {
        case .notRunning:
            if apps[index].queuedLaunch == nil, let refusal = refusal(of: launch, index, now) {
                return .refused(refusal)
            }
            self.launch(index, launch, isRequested: true, now)
            file(index, notification)
        case .ending, .terminating: wakeAfterEnd(index, launch, notification)
        case .launching:
            file(index, notification)
            if !launch.isUnrequested { self[run: index].isUnrequested = false }
            addPendingWake(index, launch.reason)
        case .foreground:
            file(index, notification)
            deliverNotifications(index, inForeground: true)
        case .enteringBackground, .background:
            file(index, notification)
            deliverNotifications(index, inForeground: false)
            beginWake(index, launch.reason, isUnrequested: launch.isUnrequested, now)
            makeTimeForWake(index, now)
            continueIfNeeded(index)
            assertionBegan(index, now)
        case .suspending, .suspended:
            file(index, notification)
            wake(index, pending: nil, for: launch.reason, isUnrequested: launch.isUnrequested, now)
        case .waking:
            file(index, notification)
            deliverNotifications(index, inForeground: apps[index].execution?.pending == .foreground)
            if !launch.isUnrequested { self[run: index].isUnrequested = false }
            addPendingWake(index, launch.reason)
        }
        switch apps[index].phase {
        case .foreground, .background: return .awake
        case .notRunning, .launching, .enteringBackground, .suspending, .suspended, .waking, .terminating, .ending:
            return .coming
        }
    }

    /// Of several reasons it stays the one that others wait for.
    private mutating func addPendingWake(_ index: Int, _ reason: LaunchReason) {
        guard apps[index].execution?.pendingWake?.yields(to: reason) ?? true else { return }
        setPendingWake(index, reason)
    }

    private mutating func setPendingWake(_ index: Int, _ reason: LaunchReason?) {
        guard var execution = apps[index].execution else { return }
        execution.pendingWake = reason
        update(index, execution)
    }

    /// `isUnrequested`: no user asked for it (L53).
    mutating func beginWake(_ index: Int, _ reason: LaunchReason, isUnrequested: Bool, _ now: Instant) {
        self[run: index].isUnrequested = isUnrequested
        cancel(index, self[run: index].assertions.wake?.deadline)
        guard let deadline = begin(index, .wake, Self.wakeTime, now) else { return }
        let mustComplete = reason.completedMode.map { apps[index].policy.backgroundModes.contains($0) } ?? false
        self[run: index].assertions.wake = Wake(reason: reason, deadline: deadline, mustComplete: mustComplete)
    }

    mutating func endWake(_ index: Int) {
        cancel(index, self[run: index].assertions.wake?.deadline)
        self[run: index].assertions.wake = nil
    }

    mutating func wakeCompleted(_ index: Int, _ result: WakeResult, _ now: Instant) {
        if let wake = self[run: index].assertions.wake {
            met(index, wake.deadline, now)
            self[run: index].assertions.wake = nil
        } else if apps[index].execution?.pendingWake != nil {
            // The app completed it before the report that it runs.
            setPendingWake(index, nil)
        } else {
            return
        }
        report(.wakeCompleted(apps[index].id, result))
        assertionEnded(index, now)
    }

    /// The time of a wake is over: an error if the wake had to be completed (L30), else simply its end.
    mutating func wakeTimeEnded(_ index: Int, _ now: Instant) {
        guard let wake = self[run: index].assertions.wake else { return }
        if wake.mustComplete {
            self[run: index].assertions.wake?.deadline.isInspected = true
            effects.append(.inspect(self[run: index].id))
        } else {
            endWake(index)
            assertionEnded(index, now)
        }
    }
}
