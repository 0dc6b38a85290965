/// Which apps in the background get less of the processor (L19).
extension LifecycleCore {
    /// An app that is awake on behalf of a user, or of a peer outside every app, runs at normal weight until that wake is over.
    /// What an app does for itself (tasks, fetch, timers, wakes that apps cause) gets less. Once its tasks expire it has to end them, or
    /// is killed (L23): beside a busy processor it could not with less.
    /// What uses too much gets less, whatever it is awake for (L44).
    @inline(__always)
    private func isAwakeForOthers(_ index: AppIndex) -> Bool {
        if isProcessorThrottled(index) { return false }
        if apps[index].policy.role == .worker { return true }
        // A user listens.
        let stored = storage(index)
        return stored.run.assertions.containsWake { $0.reason.isForOthers && !$0.isUnrequested }
            || isInMode(index, [.audio, .call])
            || stored.run.budget.isNoticeGiven && stored.run.assertions.hasLimitedTasks
    }

    /// Whether something of its own keeps it awake. An app that is about to be suspended finishes what it was at, and may begin a task:
    /// with less of a busy processor it would be suspended before it could.
    private func worksForItself(_ index: AppIndex) -> Bool {
        guard case .background(let background)? = apps[index].execution else { return false }
        return background.idleSince == nil || isProcessorThrottled(index) || suspension(index) != .yes
            || apps[index].policy.suspendDelay > Self.shortSuspendDelay
    }

    /// An app with a longer `SuspendDelaySec=` works for itself meanwhile.
    private static let shortSuspendDelay = Duration.seconds(5)

    /// An app is about to be thawed for this reason.
    mutating func unthrottleForWake(_ index: AppIndex, _ reason: LaunchReason?) {
        guard let reason, reason.isForOthers, !self[run: index].isUnrequested, !isProcessorThrottled(index) else {
            return
        }
        unthrottle(index)
    }

    /// Brings the weights up to date: a wake or a task may have begun or ended in this event. What had less keeps it until it is awake for
    /// others: tasks that follow one another change nothing.
    mutating func followWake(_ index: AppIndex) {
        switch apps[index].phase {
        case .background, .suspending:
            if isAwakeForOthers(index) { unthrottle(index) } else if worksForItself(index) { throttle(index) }
        case .notRunning, .launching, .foreground, .enteringBackground, .suspended, .waking, .terminating, .ending:
            break
        }
    }

    private mutating func throttle(_ index: AppIndex) {
        if self[run: index].isThrottled { return }
        self[run: index].isThrottled = true
        effects.append(.run(self[run: index].id, .processor(.throttle)))
    }

    mutating func unthrottle(_ index: AppIndex) {
        guard self[run: index].isThrottled else { return }
        self[run: index].isThrottled = false
        effects.append(.run(self[run: index].id, .processor(.unthrottle)))
    }
}

extension LaunchReason {
    /// Whether a user or a peer outside the app waits for what it does. A fetch and a timer are the app's own (L19).
    var isForOthers: Bool {
        switch self {
        case .push, .socket, .accessory, .location: true
        case .user, .url, .fetch, .timer, .relaunch: false
        }
    }

    /// Whether a launch or a wake for this reason, which has not begun, becomes one for `later`: a reason that grants time goes
    /// before one that does not (L26), and one that others wait for before one of the app's own (L19).
    func yields(to later: LaunchReason) -> Bool {
        if !wakes { return true }
        return later.isForOthers && !isForOthers
    }
}
