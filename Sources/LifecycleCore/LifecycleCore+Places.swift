/// L12: who is in the foreground, or on the way there.
extension LifecycleCore {
    /// Somebody has to be able to be in front.
    var foregroundLimit: Int { max(1, manager.foregroundLimit) }

    func hasPlace(_ slot: Int) -> Bool { foregroundPlaces.contains(slot) }

    /// The app becomes the one activated last; who was activated longest ago makes room, at once: the newcomer does not
    /// wait for it, and jetsam may already take it for the newcomer's sake.
    mutating func takePlace(_ slot: Int, _ now: Instant) {
        leavePlace(slot)
        foregroundPlaces.append(slot)
        evictOverLimit(now)
    }

    mutating func leavePlace(_ slot: Int) {
        if let index = foregroundPlaces.firstIndex(of: slot) { foregroundPlaces.remove(at: index) }
    }

    mutating func evictOverLimit(_ now: Instant) {
        while foregroundPlaces.count > foregroundLimit {
            displace(foregroundPlaces.removeFirst(), now)
        }
    }

    private mutating func displace(_ slot: Int, _ now: Instant) {
        touch(slot)
        supersede(slot, .foreground, by: .background)
        switch self[app: slot].phase {
        case .launching, .entering, .waking: setWish(slot, .background)
        case .foreground: enterBackground(slot, .displaced, now)
        case .terminating(var terminating):
            terminating.next?.state = .background
            self[app: slot].phase = .terminating(terminating)
        case .ending(var ending):
            ending.next?.state = .background
            self[app: slot].phase = .ending(ending)
        case .notRunning, .running, .suspending, .suspended:
            preconditionFailure("\(self[app: slot].id) holds a place in the foreground in \(self[app: slot].phase)")
        }
    }
}
