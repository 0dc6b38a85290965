/// What the manifests and `greenroom.conf` say.
extension LifecycleCore {
    mutating func registered(_ id: AppID, _ policy: AppPolicy, _ launches: Int, _ now: Instant) {
        if let slot = slots[id] {
            touch(slot)
            self[app: slot].policy = policy
            self[app: slot].isRegistered = true
            return
        }
        let app = App(id: id, policy: policy, since: now, launches: launches)
        let slot = freeSlots.popLast() ?? apps.count
        if slot == apps.count { apps.append(app) } else { apps[slot] = app }
        slots[id] = slot
        touch(slot)
    }

    mutating func unregistered(_ id: AppID, _ now: Instant) {
        guard let slot = slots[id] else { return }
        touch(slot)
        self[app: slot].isRegistered = false
        // One that ends is forgotten then, whatever was to come after; its manifest may be back by then.
        if case .notRunning = self[app: slot].phase { forget(slot) }
    }

    /// An app that has no manifest and no process is no app.
    mutating func forget(_ slot: Int) {
        leavePlace(slot)
        for waiter in self[app: slot].waiters { answer(waiter.request, .refused(.unknownApp)) }
        self[app: slot].waiters = []
        slots[self[app: slot].id] = nil
        self[app: slot].isForgotten = true
        freeSlots.append(slot)
        touch(slot)
    }

    mutating func configured(_ policy: ManagerPolicy, _ now: Instant) {
        manager = policy
        evictOverLimit(now)
        // The order of jetsam may be another one now.
        for slot in apps.indices where !apps[slot].isForgotten { touch(slot) }
        evaluateMemory(now)
    }

    /// `LaunchAtStart=`, in the order in which the manifests were read.
    mutating func started(_ now: Instant) {
        guard shutdown == nil else { return }
        for slot in apps.indices {
            guard !apps[slot].isForgotten, let state = apps[slot].policy.launchAtStart,
                case .notRunning = apps[slot].phase
            else { continue }
            touch(slot)
            launch(slot, Launch(state: state, reason: .user), now)
        }
    }
}
