/// L12: who is in the foreground, or on the way there.
extension LifecycleCore {
    /// Somebody has to be able to be in front.
    var foregroundLimit: Int { max(1, manager.foregroundLimit) }

    func hasPlace(_ slot: Int) -> Bool { foregroundPlaces.contains(slot) }

    /// The app becomes the one activated last; who was activated longest ago makes room, at once: the newcomer does not
    /// wait for it, and jetsam may already take it for the newcomer's sake.
    mutating func takePlace(_ slot: Int, _ now: Instant) {
        let wasAskedFor = hasPlace(slot) && !self[app: slot].isHeldBack
        leavePlace(slot)
        foregroundPlaces.append(slot)
        self[app: slot].isHeldBack = absence.isSleeping || absence.isLocked && !wasAskedFor
        evictOverLimit(now)
    }

    /// Somebody wants to see it. On a locked screen too (a call comes in); but while the machine goes to sleep, it has to
    /// wait like all others (L15).
    mutating func takePlaceAsAsked(_ slot: Int, _ now: Instant) {
        takePlace(slot, now)
        self[app: slot].isHeldBack = absence.isSleeping
    }

    mutating func leavePlace(_ slot: Int) {
        self[app: slot].isHeldBack = false
        if let index = foregroundPlaces.firstIndex(of: slot) { foregroundPlaces.remove(at: index) }
    }

    /// It is in the foreground, or on its way there.
    func isInFront(_ slot: Int) -> Bool { hasPlace(slot) && !self[app: slot].isHeldBack }

    mutating func evictOverLimit(_ now: Instant) {
        while foregroundPlaces.count > foregroundLimit {
            let slot = foregroundPlaces.removeFirst()
            let wasHeldBack = self[app: slot].isHeldBack
            self[app: slot].isHeldBack = false
            displace(slot, wasHeldBack: wasHeldBack, now)
        }
    }

    private mutating func displace(_ slot: Int, wasHeldBack: Bool, _ now: Instant) {
        touch(slot)
        supersede(slot, .foreground, by: .background)
        switch self[app: slot].phase {
        case .launching, .entering, .waking: setPendingRequest(slot, .background)
        case .foreground: enterBackground(slot, .displaced, now)
        case .terminating(var terminating):
            terminating.next?.state = .background
            self[app: slot].phase = .terminating(terminating)
        case .ending(var ending):
            ending.next?.state = .background
            self[app: slot].phase = .ending(ending)
        case .notRunning, .running, .suspending, .suspended:
            precondition(
                wasHeldBack, "\(self[app: slot].id) holds a place in the foreground in \(self[app: slot].phase)")
        }
    }
}
