/// Launches are admitted so that each can meet its deadline (L52): a launch into the background waits while
/// `LaunchesAtOnce=` others compute. A launch into the foreground never waits, because a user does.
extension LifecycleCore {
    /// When a launch that occupies a slot is measured for the first time. A program that computes uses a processor from its
    /// first instruction, so a small server leaves its slot soon: hundreds of them are launched in some seconds.
    static let shortestLaunchCheck = Duration.milliseconds(25)
    /// For how long a launch occupies a slot at most: longer than the default deadline with all of its credit (L48).
    static let longestSlot = Duration.seconds(30)
    /// How many launches are counted. More than `LaunchesAtOnce=` are under way only if users launch apps into the
    /// foreground.
    static let maximumSlots = 1024
    /// By how much launches without a requester come after requests (`LaunchAtStart=`, `Relaunch=`). A bound, so that
    /// requests without end do not keep them from launching.
    static let automaticLaunchDelay = Duration.seconds(300)

    /// Launches an app, or lets the launch wait for a slot. A launch that waits already is joined.
    mutating func launch(_ index: AppIndex, _ launch: Launch, isRequested: Bool, _ now: Instant) {
        let isAllowed =
            isRequested || launch.reason != .relaunch || apps[index].postponedUntil.map { $0 <= now } ?? true
        invariant(isAllowed, "an app that ended early is relaunched before its time", index)
        let wake = launch.reason.wakes ? launch.reason : nil
        self.launch(index, QueuedLaunch(launch: launch, wake: wake, since: now, isRequested: isRequested), now)
    }

    mutating func launch(_ index: AppIndex, _ launch: QueuedLaunch, _ now: Instant) {
        var queued = launch
        if let earlier = apps[index].queuedLaunch {
            queued.join(earlier)
        } else {
            resetDeliveries(index)
        }
        // Clients of its sockets wait for this launch, whatever it is for.
        if apps[index].sockets.wait?.isPostponed ?? false { queued.join(launchForClients(index, now)) }
        apps[index].sockets.wait?.isPostponed = false
        (apps[index].awaitsRequest, apps[index].isToRemove) = (false, false)
        // A user waits for it. A slot that became free in this event is for a launch that waits already.
        let isAwaited = queued.launch.state == .foreground || apps[index].policy.isAttached
        if isAwaited || hasLaunchSlot && launchQueue.count == 0 { return beginLaunch(index, queued, now) }
        apps[index].life = .notRunning(NotRunning(queued: queued))
        touch(index)
    }

    var hasLaunchSlot: Bool { admission.slots.count < manager.launchesAtOnce ?? .max }

    /// The key of an app's launch among those that wait; `nil`: it has none.
    func launchRank(_ index: AppIndex) -> Instant? {
        apps[index].queuedLaunch.map { $0.isRequested ? $0.since : $0.since + Self.automaticLaunchDelay }
    }

    /// Begins launches that wait, as far as there are slots. Called when the event is carried out.
    mutating func admitLaunches(_ now: Instant) {
        while !isShuttingDown, hasLaunchSlot, let index = launchQueue.first?.index,
            let queued = apps[index].queuedLaunch
        {
            beginLaunch(index, queued, now)
            launchQueue.set(index, to: nil)
        }
    }

    /// The app will not be launched after all: answers all clients that wait for it.
    mutating func cancelQueuedLaunch(_ index: AppIndex) {
        guard apps[index].queuedLaunch != nil else { return }
        apps[index].life = .notRunning(NotRunning())
        resetDeliveries(index)
        apps[index].urls.pending = []
        answerAll(index, .superseded(by: .notRunning)) { _ in true }
    }

    // MARK: Slots

    mutating func takeLaunchSlot(_ run: RunID, _ now: Instant) {
        guard manager.launchesAtOnce != nil, admission.slots.count < Self.maximumSlots else { return }
        admission.slots.append(Admission.Slot(run: run, since: now))
    }

    mutating func leaveLaunchSlot(_ run: RunID) { admission.slots.removeAll { $0.run == run } }

    /// When to measure the launches that occupy slots; `nil`: no launch waits for one.
    var nextLaunchCheck: Instant? { launchQueue.count > 0 ? admission.nextCheck : nil }

    /// Measures the launches that occupy a slot, if others wait for one. Called when the event is carried out.
    mutating func checkLaunches(_ now: Instant) {
        guard let due = nextLaunchCheck, due <= now else { return }
        for position in admission.slots.indices where admission.slots[position].checkAt <= now {
            // The longer it has computed, the rarer: a launch of 5s is measured about 15 times.
            let age = now - admission.slots[position].since
            admission.slots[position].checkAt = now + max(Self.shortestLaunchCheck, age / 4)
            // The first answer is the one to the first of several questions.
            admission.slots[position].askedAt = admission.slots[position].askedAt ?? now
            effects.append(.run(admission.slots[position].run, .deadline(.measureActivity(listeners: false))))
        }
    }

    /// What comes before the program is executed is the work of the daemon and the kernel. On a busy machine it takes longer than
    /// `shortestLaunchCheck`.
    mutating func slotExecuted(_ index: AppIndex, _ now: Instant) {
        let run = self[run: index].id
        guard let position = admission.slots.firstIndex(where: { $0.run == run }) else { return }
        admission.slots[position].measuredAt = now
        admission.slots[position].checkAt = now + Self.shortestLaunchCheck
        admission.slots[position].askedAt = nil
    }

    /// A launch that has used less than half of the time since it was measured last does not compute: it waits for the
    /// network, a disk or another app, and others can be launched meanwhile.
    mutating func slotMeasured(_ index: AppIndex, _ activity: RunActivity, _ now: Instant) {
        let run = self[run: index].id
        guard let position = admission.slots.firstIndex(where: { $0.run == run }) else { return }
        let slot = admission.slots[position]
        // Not executed yet, or measured for something else.
        guard let asked = slot.askedAt, self[run: index].isExecuted else { return }
        let used = activity.cpu + activity.waited
        // The shortest time that can lie between the two measurements, because the daemon may have waited for a processor too.
        let computes = activity.isRunnable || used - slot.used >= (asked - slot.measuredAt) / 2
        guard computes, now - slot.since < Self.longestSlot else {
            admission.slots.remove(at: position)
            return
        }
        admission.slots[position].used = used
        admission.slots[position].measuredAt = now
        admission.slots[position].askedAt = nil
    }
}

extension QueuedLaunch {
    /// Takes over what an earlier launch of the same app that still waits was for.
    mutating func join(_ earlier: QueuedLaunch) {
        since = earlier.since
        isRequested = isRequested || earlier.isRequested
        let isUnrequested = launch.isUnrequested && earlier.launch.isUnrequested
        let environment = launch.environment.isEmpty ? earlier.launch.environment : launch.environment
        let isOwnWorkFirst = earlier.launch.reason.wakes && earlier.launch.reason.yields(to: launch.reason)
        if launch.state == .background, launch.reason.wakes, !isOwnWorkFirst { launch = earlier.launch }
        launch.url = launch.url ?? earlier.launch.url
        launch.environment = environment
        launch.isUnrequested = isUnrequested
        if let reason = earlier.wake, wake.map({ !reason.yields(to: $0) }) ?? true { wake = reason }
    }
}

extension App {
    /// The launch that waits for a slot (L52).
    var queuedLaunch: QueuedLaunch? {
        @inline(__always) get { if case .notRunning(let notRunning) = life { notRunning.queued } else { nil } }
    }
}
