/// Which apps are in the foreground, or on the way there (L12): those that have a slot. An app with several scenes may have several (L34).
extension LifecycleCore {
    /// At least one app can be in the foreground, whatever the configuration says.
    var foregroundLimit: Int { max(1, manager.foregroundLimit) }

    func hasForegroundSlot(_ index: AppIndex) -> Bool { foregroundSlots.contains { $0.app == index } }

    /// Whether the app has a slot that waits for the user to return (L15).
    func isDeferred(_ index: AppIndex) -> Bool { foregroundSlots.contains { $0.app == index && $0.isDeferred } }

    /// In the foreground, or on the way there.
    @inline(__always)
    func isInFront(_ index: AppIndex) -> Bool { foregroundSlots.contains { $0.app == index && !$0.isDeferred } }

    mutating func setDeferred(_ index: AppIndex, _ isDeferred: Bool) {
        for position in foregroundSlots.indices where foregroundSlots[position].app == index {
            foregroundSlots[position].isDeferred = isDeferred
        }
    }

    /// The app becomes the one activated last. Those activated longest ago lose their slots at once: the newcomer does not
    /// wait for them, and jetsam may already kill them to free memory for it. `scene`: `nil` is the most active one.
    mutating func takeForegroundSlot(_ index: AppIndex, for scene: SceneID? = nil, _ now: Instant) {
        let wasRequested = isInFront(index)
        let (scene, role) = mostActiveScene(index, unless: scene)
        reconnect(index, scene)
        leaveForegroundSlot(index, scene)
        foregroundSlots.append(ForegroundSlot(app: index, scene: scene, role: role))
        setDeferred(index, absence.isSleeping || absence.isLocked && !wasRequested)
        if home.map({ areOnOneSeat($0, index) }) ?? true { returns.isHomeWanted = true }
        evictOverLimit(now)
    }

    /// A user asks to see the app. That holds on a locked screen too (a call comes in); but while the machine goes to sleep,
    /// the app waits like all others (L15).
    mutating func takeForegroundSlotOnRequest(_ index: AppIndex, for scene: SceneID? = nil, _ now: Instant) {
        takeForegroundSlot(index, for: scene, now)
        setDeferred(index, absence.isSleeping)
    }

    mutating func leaveForegroundSlot(_ index: AppIndex) { foregroundSlots.removeAll { $0.app == index } }

    mutating func leaveForegroundSlot(_ index: AppIndex, _ scene: SceneID) {
        foregroundSlots.removeAll { $0.app == index && $0.scene == scene }
    }

    /// On each seat windows have `foregroundLimit` slots. Each other role has one.
    func limit(_ role: SceneRole) -> Int { role == .window ? foregroundLimit : 1 }

    /// Whether one more app of this app's seat can be in the foreground without displacing another.
    func isSlotFree(_ index: AppIndex) -> Bool {
        slotCount(apps[index].seat, .window) < foregroundLimit
    }

    @inline(__always)
    func areOnOneSeat(_ one: AppIndex, _ other: AppIndex) -> Bool { apps[one].seat == apps[other].seat }

    /// Whether an app of the seat of this one has a slot. Without a closure, as `slotCount`.
    @inline(__always)
    func isSeatTaken(_ index: AppIndex) -> Bool {
        for slot in foregroundSlots where slot.app == index || areOnOneSeat(slot.app, index) { return true }
        return false
    }

    mutating func evictOverLimit(_ now: Instant) {
        // One is never too many.
        if foregroundSlots.count <= 1 { return }
        var seats: [String?] = []
        for slot in foregroundSlots where !seats.contains(apps[slot.app].seat) {
            seats.append(apps[slot.app].seat)
        }
        for seat in seats {
            for role in SceneRole.allCases {
                while slotCount(seat, role) > limit(role),
                    let first = foregroundSlots.firstIndex(where: {
                        $0.role == role && apps[$0.app].seat == seat
                    })
                {
                    displace(foregroundSlots.remove(at: first), .displaced, now)
                }
            }
        }
    }

    /// How many slots are taken. Without a closure: one that refers to the core copies it.
    @inline(__always)
    func slotCount(_ seat: String?, _ role: SceneRole) -> Int {
        var count = 0
        for slot in foregroundSlots where slot.role == role && apps[slot.app].seat == seat { count += 1 }
        return count
    }

    /// Whether the app that was activated last has no slot too many. It is asked after each event, and mostly all slots together are not
    /// too many.
    @inline(__always)
    var isLastSlotWithinLimit: Bool {
        guard let last = foregroundSlots.last else { return true }
        let limit = limit(last.role)
        return foregroundSlots.count <= limit || slotCount(apps[last.app].seat, last.role) <= limit
    }

    /// A scene has lost its slot. The app leaves the foreground with the last one.
    mutating func displace(_ slot: ForegroundSlot, _ reason: StateReason, _ now: Instant) {
        let index = slot.app
        touch(index)
        if hasForegroundSlot(index) { return }
        supersede(index, .foreground, by: .background)
        switch apps[index].phase {
        case .launching, .enteringBackground, .waking: setPending(index, .background)
        case .foreground: enterBackground(index, reason, now)
        case .terminating, .ending: launchNextInBackground(index)
        case .notRunning, .background, .suspending, .suspended:
            precondition(
                slot.isDeferred, "\(apps[index].id) holds a foreground slot in \(apps[index].phase)")
        }
    }

    /// The launch that follows the end which is under way lost its slot.
    private mutating func launchNextInBackground(_ index: AppIndex) {
        if case .terminating(var terminating)? = apps[index].execution {
            terminating.next?.state = .background
            update(index, .terminating(terminating))
        } else if var ending = apps[index].ending {
            ending.next?.state = .background
            apps[index].life = .ending(ending)
        }
    }
}
