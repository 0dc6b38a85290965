/// What apps are woken for (L26, L30). A wake needs no requester: traffic and timers wake like requests do.
extension LifecycleCore {
    /// L26.
    static let wakeTime = Duration.seconds(30)
    /// How many wakes of an app have not ended: as many as requests wait at it. One more is refused.
    static let maximumWakes = 64

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
        _ index: AppIndex, _ launch: Launch, _ notification: Notification?, _ now: Instant
    ) -> WakeOutcome {
        if let refusal = refusal(toWake: index, launch, notification, now) { return .refused(refusal) }
        let id = apps[index].wakes.nextNumber()
        let wake = PendingWake(reason: launch.reason, id: id, isUnrequested: launch.isUnrequested)
        var notification = notification
        notification?.id = id
        switch apps[index].phase {
        case .notRunning:
            self.launch(index, launch, isRequested: true, now)
            file(index, notification)
            apps[index].wakes.add(wake)
        case .ending, .terminating: wakeAfterEnd(index, launch, wake, notification)
        case .launching:
            file(index, notification)
            addPendingWake(index, wake)
        case .foreground:
            file(index, notification)
            deliverNotifications(index, inForeground: true)
        case .enteringBackground, .background:
            endDrySleep(index, .woken, now)
            file(index, notification)
            deliverNotifications(index, inForeground: false)
            beginWake(index, wake, now)
            makeTimeForWake(index, now)
            continueIfNeeded(index)
            assertionBegan(index, now)
        case .suspending, .suspended:
            file(index, notification)
            apps[index].wakes.add(wake)
            self.wake(index, pending: nil, for: launch.reason, isUnrequested: launch.isUnrequested, now)
        case .waking:
            file(index, notification)
            deliverNotifications(index, inForeground: apps[index].execution?.pending == .foreground)
            cancelUnloading(index)
            addPendingWake(index, wake)
            // The time of the task or of the wake that it is thawed for would be over before that of this wake.
            makeTimeForWake(index, now)
        }
        switch apps[index].phase {
        case .foreground, .background: return .awake
        case .notRunning, .launching, .enteringBackground, .suspending, .suspended, .waking, .terminating, .ending:
            return .coming
        }
    }

    /// Why an app is not woken now; `nil`: it is.
    private func refusal(
        toWake index: AppIndex, _ launch: Launch, _ notification: Notification?, _ now: Instant
    ) -> Refusal? {
        let phase = apps[index].phase
        if launch.isUnrequested, phase != .foreground, let refusal = unrequestedTimeRefusal(index, now) {
            return refusal
        }
        let wakes = apps[index].wakes
        let isAfterEnd = phase == .terminating || phase == .ending
        let count: Int =
            switch phase {
            case .notRunning: wakes.pending.count
            case .terminating, .ending: wakes.afterEnd.count
            case .launching, .foreground, .enteringBackground, .background, .suspending, .suspended, .waking:
                self[run: index].assertions.wakes.count + wakes.pending.count
            }
        if count >= Self.maximumWakes { return .tooMany("\(Self.maximumWakes) wakes have not ended") }
        if let notification, !apps[index].notifications.hasCapacity(forPush: notification, afterEnd: isAfterEnd) {
            let (most, bytes) = (NotificationQueue.maximumEvents, NotificationQueue.maximumEventBytes)
            return .tooMany("\(most) pushes, or \(bytes) bytes of them, are pending")
        }
        return phase == .notRunning && apps[index].queuedLaunch == nil ? refusal(of: launch, index, now) : nil
    }

    /// The wake begins with the transition's end. Of several reasons it stays the one that others wait for.
    private mutating func addPendingWake(_ index: AppIndex, _ wake: PendingWake) {
        if !wake.isUnrequested { self[run: index].isUnrequested = false }
        apps[index].wakes.add(wake)
        guard apps[index].execution?.pendingWake?.yields(to: wake.reason) ?? true else { return }
        setPendingWake(index, wake.reason)
    }

    private mutating func setPendingWake(_ index: AppIndex, _ reason: LaunchReason?) {
        guard var execution = apps[index].execution else { return }
        execution.pendingWake = reason
        update(index, execution)
    }

    /// The launch or the thaw is complete: begins the wakes that came until now, oldest first. `reason`: that of the launch or
    /// of the thaw, for which there is a wake without a request if no other is pending.
    mutating func beginPendingWakes(_ index: AppIndex, _ reason: LaunchReason?, _ now: Instant) {
        let pending = apps[index].wakes.take()
        if pending.isEmpty, let reason {
            let id = apps[index].wakes.nextNumber()
            let isUnrequested = self[run: index].isUnrequested
            beginWake(index, PendingWake(reason: reason, id: id, isUnrequested: isUnrequested), now)
        }
        for wake in pending { beginWake(index, wake, now) }
    }

    private mutating func beginWake(_ index: AppIndex, _ wake: PendingWake, _ now: Instant) {
        let isOpen = self[run: index].assertions.containsWake { $0.id == wake.id }
        invariant(!isOpen || wake.id == 0, "a wake begins that is open", index)
        guard var deadline = begin(index, .wake, Self.wakeTime, wake: wake.id, now) else { return }
        deadline.isDoubtful = wake.isDoubtful
        self[run: index].assertions.beginWake(
            Wake(
                reason: wake.reason, deadline: deadline,
                mustComplete: apps[index].policy.mustComplete(wake.reason) && !wake.isExcused,
                id: wake.id, isUnrequested: wake.isUnrequested))
        followRequesters(index)
    }

    /// While wakes are open, what the app does is what a user asked for if one of them is a user's (L53). After the last one it
    /// stays as it was.
    private mutating func followRequesters(_ index: AppIndex) {
        let wakes = self[run: index].assertions.wakes
        if !wakes.isEmpty { self[run: index].isUnrequested = wakes.allSatisfy { $0.isUnrequested } }
    }

    /// Ends the oldest wake that meets a condition, and no other.
    mutating func endWake(_ index: AppIndex, _ now: Instant, where isMeant: (Wake) -> Bool) {
        guard let wake = self[run: index].assertions.removeWake(where: isMeant) else { return }
        cancel(index, wake.deadline, wake: wake.id)
        followRequesters(index)
        assertionEnded(index, now)
    }

    /// Ends all wakes: the user has come, or the app ends.
    mutating func endWakes(_ index: AppIndex) {
        apps[index].wakes.reset()
        while let wake = self[run: index].assertions.removeWake(where: { _ in true }) {
            cancel(index, wake.deadline, wake: wake.id)
        }
    }

    /// The app has completed the wake `id`. Without a number it is the oldest of those that have to be completed, or else the oldest:
    /// an app does not complete what needs no completion. Wakes that may have been completed while there was no daemon come after
    /// the others of their kind.
    mutating func wakeCompleted(_ index: AppIndex, _ result: WakeResult, _ id: UInt64?, _ now: Instant) {
        let named = self[run: index].assertions.wakes.filter { id == nil || $0.id == id }
        let meant = named.min { $0.order < $1.order }
        let wake = meant.flatMap { meant in self[run: index].assertions.removeWake { $0 == meant } }
        var number = wake?.id
        if let wake {
            met(index, wake.deadline, wake: wake.id, now)
            followRequesters(index)
            fetchCompleted(index, wake.reason, result)
        } else {
            number = completePendingWake(index, id, result)
        }
        guard let number else { return warnOfUnknownWake(index, id) }
        report(.wakeCompleted(apps[index].id, result, wake: number))
        assertionEnded(index, now)
        if result == .newData { askForSnapshotAfterWake(index, now) }
    }

    /// Messages were lost. The app may have been launched or thawed, and may have completed wakes that have not begun here.
    mutating func doubtPendingWakes(_ index: AppIndex) {
        if apps[index].wakes.pending.isEmpty, let reason = apps[index].execution?.pendingWake {
            let id = apps[index].wakes.nextNumber()
            let isUnrequested = self[run: index].isUnrequested
            apps[index].wakes.add(PendingWake(reason: reason, id: id, isUnrequested: isUnrequested))
        }
        apps[index].wakes.doubt()
    }

    /// The app may complete a wake before the report that it runs.
    /// - Returns: the number of the wake, 0 if it has none; `nil`: no such wake was pending.
    private mutating func completePendingWake(_ index: AppIndex, _ id: UInt64?, _ result: WakeResult) -> UInt64? {
        let wake = apps[index].wakes.remove(id) { [policy = apps[index].policy] in policy.mustComplete($0) }
        if wake == nil {
            // Without a request there is only a reason.
            let isReason = apps[index].execution?.pendingWake != nil && apps[index].wakes.pending.isEmpty
            guard id == nil, isReason else { return nil }
        }
        if let wake { fetchCompleted(index, wake.reason, result) }
        if apps[index].wakes.pending.isEmpty { setPendingWake(index, nil) }
        return wake?.id ?? 0
    }

    /// The app cannot read what it was woken for: to complete that is not its duty (L30).
    mutating func notificationDelayed(_ index: AppIndex, _ id: UInt64) {
        apps[index].wakes.excuse(id)
        self[run: index].assertions.updateWakes { wake in
            guard wake.id == id else { return }
            wake.mustComplete = false
            // Its time may be over already. Then it ends with the next look at the deadlines.
            wake.deadline.isInspected = false
        }
    }

    /// An app cannot know whether a wake has ended, because the user came or its time was over: only a number that no wake has
    /// had is a mistake.
    private mutating func warnOfUnknownWake(_ index: AppIndex, _ id: UInt64?) {
        guard let id, id == 0 || id > apps[index].wakes.lastNumber, apps[index].execution != nil else { return }
        effects.append(.run(self[run: index].id, .warn(.unknownWake(id: id))))
    }

    /// The time of a wake is over: an error if the wake had to be completed (L30), else simply its end.
    mutating func wakeTimeEnded(_ index: AppIndex, _ now: Instant) {
        let isOver = { (wake: Wake) in wake.deadline.due.map { $0 <= now } ?? false }
        guard let wake = self[run: index].assertions.wakes.first(where: isOver) else { return }
        guard wake.mustComplete else { return endWake(index, now) { $0 == wake } }
        var deadline = wake.deadline
        deadline.isInspected = true
        replace(index, wake.deadline, by: deadline)
        // Several may end at the same instant: one inspection tells about all. Each has caused at most two effects.
        let inspection = Effect.run(self[run: index].id, .deadline(.inspect))
        if !effects.suffix(2 * Self.maximumWakes).contains(inspection) { effects.append(inspection) }
    }
}

extension AppPolicy {
    /// L30: whether it is an error not to complete a wake for this reason.
    func mustComplete(_ reason: LaunchReason) -> Bool {
        reason.completedMode.map { backgroundModes.contains($0) } ?? false
    }
}

extension Wake {
    fileprivate var order: Int { completionOrder(mustComplete: mustComplete, isDoubtful: deadline.isDoubtful) }
}
