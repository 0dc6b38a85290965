/// What the manifests and `greenroom.conf` say.
extension LifecycleCore {
    mutating func registered(_ id: AppID, _ policy: AppPolicy, _ launches: Int, _ now: Instant) {
        if let index = indices[id] {
            touch(index)
            let before = apps[index].policy
            apps[index].policy = policy
            apps.sharePolicy(index)
            apps[index].isRegistered = true
            updateHome(index)
            policyChanged(index, before, now)
            followTimers(index)
            if before.role != .worker, policy.role == .worker { becameWorker(index, now) }
            if before.seat != policy.seat { evictOverLimit(now) }
            return reconsiderReturn(index)
        }
        var app = App(id: id, policy: policy, since: now, launches: launches)
        if let last = apps.last { app.sharePolicy(with: last) }
        app.credit.level = jetsamLevel
        app.awaitsRequest = policy.isTransient
        let index = freeIndices.popLast() ?? apps.endIndex
        if index == apps.endIndex { apps.append(app) } else { apps[index] = app }
        indices[id] = index
        touch(index)
        updateHome(index)
    }

    /// The manifest has another role now. A worker has no foreground slot and no background budget.
    private mutating func becameWorker(_ index: AppIndex, _ now: Instant) {
        supersede(index, .foreground, by: .background)
        leaveForegroundSlot(index)
        switch apps[index].phase {
        case .launching: if apps[index].execution?.pending != .terminate { setPending(index, .background) }
        case .waking, .enteringBackground:
            if apps[index].execution?.pending != .terminate { setPending(index, .background) }
            dropBudget(index, now)
        case .foreground: enterBackground(index, .requested, now)
        case .background:
            dropBudget(index, now)
            if !isProcessorThrottled(index) { unthrottle(index) }
        case .suspending, .suspended:
            dropBudget(index, now)
            if !isProcessorThrottled(index) { unthrottle(index) }
        case .notRunning, .terminating, .ending: break
        }
    }

    /// Nothing but their own end closes its tasks from now on.
    private mutating func dropBudget(_ index: AppIndex, _ now: Instant) {
        cancel(index, self[run: index].budget.deadline)
        self[run: index].budget = .idle
        endDoubtfulTasks(index, now)
    }

    mutating func unregistered(_ id: AppID, _ now: Instant) {
        guard let index = indices[id] else { return }
        touch(index)
        apps[index].isRegistered = false
        followTimers(index)
        updateHome(index)
        // An app that is ending is removed at its end, unless its manifest is back by then.
        if apps[index].phase == .notRunning { remove(index) }
    }

    /// Removes an app that has neither a manifest nor a process.
    mutating func remove(_ index: AppIndex) {
        leaveForegroundSlot(index)
        apps[index].life = .notRunning(NotRunning())
        for waiter in apps[index].waiters { answer(waiter.request, .refused(.unknownApp)) }
        apps[index].waiters = []
        indices[apps[index].id] = nil
        apps[index].isRemoved = true
        freeIndices.append(index)
        touch(index)
    }

    mutating func configured(_ policy: ManagerPolicy, _ now: Instant) {
        let hasOtherOrder = policy.jetsamOrder != manager.jetsamOrder
        let hasOtherSuspension = policy.isDryRun != manager.isDryRun
        manager = policy
        if hasOtherSuspension { for index in apps.indices { suspensionChanged(index, now) } }
        evictOverLimit(now)
        // All ranks follow from the order of jetsam, and nothing else of an app from the configuration.
        if hasOtherOrder { for index in apps.indices where !apps[index].isRemoved { touch(index) } }
        evaluateMemory(now)
    }

    package var jetsamOrder: ManagerPolicy.JetsamOrder { manager.jetsamOrder }

    /// A copy that chooses the victims of jetsam in another order: what a replay asks.
    package func choosing(_ order: ManagerPolicy.JetsamOrder) -> LifecycleCore {
        var copy = self
        copy.manager.jetsamOrder = order
        for index in apps.indices where !apps[index].isRemoved { copy.jetsam.set(index, to: copy.jetsamRank(index)) }
        return copy
    }

    /// `LaunchAtStart=`, in the order in which the manifests were read; the apps that stay in the foreground first. Of more
    /// apps than a seat has foreground slots, the last ones get them, as if they had been activated one after the other. The home
    /// app comes to the foreground if no other app of its seat does.
    mutating func started(_ now: Instant) {
        guard shutdown == nil else { return }
        let starting = apps.indices.filter { index in
            !apps[index].isRemoved && apps[index].policy.launchAtStart != nil && apps[index].phase == .notRunning
                && apps[index].queuedLaunch == nil
        }
        let candidates = starting.filter { apps[$0].policy.startState == .foreground && $0 != home }
        var shown = candidates.indices.filter { position in
            candidates[position...].count { areOnOneSeat($0, candidates[position]) } <= foregroundLimit
        }.map { candidates[$0] }
        if let home, starting.contains(home), !shown.contains(where: { areOnOneSeat($0, home) }) { shown.append(home) }
        for index in shown { launchAtStart(index, .foreground, now) }
        let others = Set(starting).subtracting(shown)
        for index in starting where others.contains(index) { launchAtStart(index, .background, now) }
    }

    private mutating func launchAtStart(_ index: AppIndex, _ state: LaunchState, _ now: Instant) {
        touch(index)
        launch(index, Launch(state: state, reason: .user), isRequested: false, now)
    }
}
