/// Which apps are in the foreground, or on the way there (L12).
extension LifecycleCore {
    /// At least one app can be in the foreground, whatever the configuration says.
    var foregroundLimit: Int { max(1, manager.foregroundLimit) }

    func foregroundSlot(of index: Int) -> ForegroundSlot? { foregroundSlots.first { $0.app == index } }

    func hasForegroundSlot(_ index: Int) -> Bool { foregroundSlots.contains { $0.app == index } }

    /// Whether the app has a slot that waits for the user to return (L15).
    func isDeferred(_ index: Int) -> Bool { foregroundSlot(of: index)?.isDeferred ?? false }

    /// In the foreground, or on the way there.
    func isInFront(_ index: Int) -> Bool { foregroundSlot(of: index).map { !$0.isDeferred } ?? false }

    mutating func setDeferred(_ index: Int, _ isDeferred: Bool) {
        guard let position = foregroundSlots.firstIndex(where: { $0.app == index }) else { return }
        foregroundSlots[position].isDeferred = isDeferred
    }

    /// The app becomes the one activated last. Those activated longest ago lose their slots at once: the newcomer does not
    /// wait for them, and jetsam may already kill them to free memory for it.
    mutating func takeForegroundSlot(_ index: Int, _ now: Instant) {
        let wasRequested = isInFront(index)
        leaveForegroundSlot(index)
        let isDeferred = absence.isSleeping || absence.isLocked && !wasRequested
        foregroundSlots.append(ForegroundSlot(app: index, scene: .main, isDeferred: isDeferred))
        returns.isHomeWanted = true
        evictOverLimit(now)
    }

    /// A user asks to see the app. That holds on a locked screen too (a call comes in); but while the machine goes to sleep,
    /// the app waits like all others (L15).
    mutating func takeForegroundSlotOnRequest(_ index: Int, _ now: Instant) {
        takeForegroundSlot(index, now)
        setDeferred(index, absence.isSleeping)
    }

    mutating func leaveForegroundSlot(_ index: Int) {
        if let position = foregroundSlots.firstIndex(where: { $0.app == index }) {
            foregroundSlots.remove(at: position)
        }
    }

    mutating func evictOverLimit(_ now: Instant) {
        while foregroundSlots.count > foregroundLimit { displace(foregroundSlots.removeFirst(), now) }
    }

    private mutating func displace(_ slot: ForegroundSlot, _ now: Instant) {
        let index = slot.app
        touch(index)
        supersede(index, .foreground, by: .background)
        switch apps[index].phase {
        case .launching, .enteringBackground, .waking: setPending(index, .background)
        case .foreground: enterBackground(index, .displaced, now)
        case .terminating, .ending: launchNextInBackground(index)
        case .notRunning, .background, .suspending, .suspended:
            precondition(
                slot.isDeferred, "\(apps[index].id) holds a foreground slot in \(apps[index].phase)")
        }
    }

    /// The launch that follows the end which is under way lost its slot.
    private mutating func launchNextInBackground(_ index: Int) {
        if case .terminating(var terminating)? = apps[index].execution {
            terminating.next?.state = .background
            update(index, .terminating(terminating))
        } else if var ending = apps[index].ending {
            ending.next?.state = .background
            apps[index].life = .ending(ending)
        }
    }
}
