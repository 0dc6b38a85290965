/// An app that was suspended for `UnloadAfterSec=` is ended, to give all its memory back. What comes next launches it again.
extension LifecycleCore {
    /// When a suspended app is ended; `nil`: it is not, or something is about to wake it.
    func unloadDue(_ index: AppIndex, _ suspended: Suspended) -> Instant? {
        guard let time = apps[index].policy.unloadAfter, !isShuttingDown, suspended.look == nil,
            suspended.inputDue == nil, suspended.deferred == nil, !hasForegroundSlot(index)
        else { return nil }
        // The moments in which its timers ran are no use of it.
        return (storage(index).run.traffic.sleepSince ?? apps[index].since) + time
    }

    /// One that takes part has saved what it has (L46).
    mutating func unload(_ index: AppIndex, _ now: Instant) {
        guard case .suspended? = apps[index].execution else { return }
        guard isNotifiedOfEnd(index) else { return kill(index, .unloaded, .unloaded, now) }
        wake(index, pending: .terminate, for: nil, because: .unloaded, now)
        guard case .waking(var waking)? = apps[index].execution else { return }
        waking.isUnloading = true
        update(index, .waking(waking))
    }

    /// The app was not notified of its end yet, and there is something for it to do.
    mutating func cancelUnloading(_ index: AppIndex) {
        guard case .waking(var waking)? = apps[index].execution, waking.isUnloading else { return }
        waking.isUnloading = false
        waking.pending = nil
        update(index, .waking(waking))
    }
}
