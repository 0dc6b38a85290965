/// The time in which a program that takes no part starts up (L18), and `Type=listening` (L7).
extension LifecycleCore {
    /// When a program that starts up is measured for the first time; later by an eighth of its age, so that a slow one costs
    /// little and a fast one is found ready soon: a C server listens some milliseconds after `execve`, a Python one after 60.
    static let shortestStartUpCheck = Duration.milliseconds(20)
    /// The same while its launch waits until it listens, or accepts: its clients wait too, and each launch that occupies a slot holds
    /// up others (L52).
    static let shortestListenCheck = Duration.milliseconds(2)
    static let longestStartUpCheck = Duration.seconds(1)
    /// A program that uses less than 1% of a processor for this time is idle. A name server that does not answer is asked
    /// again after 5 s (resolv.conf(5)), so a program may wait for that long while it starts up.
    static let startUpIdleTime = Duration.seconds(6)

    /// The program is executed.
    mutating func beginStartUp(_ index: AppIndex, _ readiness: AppPolicy.Readiness, _ now: Instant) {
        let time = apps[index].policy.startUpTime
        switch readiness {
        case .executed where time != .zero, .listening:
            var startUp = StartUp(began: now, time: time)
            if readiness == .listening { startUp.checkAt = now + Self.shortestListenCheck }
            self[run: index].startUp = startUp
        case .executed, .notified, .forked: break
        }
    }

    /// When something is due for the start-up of an app, as long as it keeps the app from being suspended.
    func startUpDue(_ index: AppIndex, _ stored: RunStorage) -> Instant? {
        guard let startUp = stored.run.startUp else { return nil }
        switch apps[index].phase {
        case .launching: return isAwaitingListener(index) ? startUp.checkAt : nil
        case .enteringBackground, .background: return startUp.due
        case .notRunning, .foreground, .suspending, .suspended, .waking, .terminating, .ending: return nil
        }
    }

    /// Whether the app is ready when it listens.
    func isAwaitingListener(_ index: AppIndex) -> Bool {
        if case .launching(let launching)? = apps[index].execution { launching.readiness == .listening } else { false }
    }

    mutating func checkStartUp(_ index: AppIndex, _ now: Instant) {
        guard var startUp = self[run: index].startUp else { return }
        if !isAwaitingListener(index), let end = startUp.end, end <= now { return endStartUp(index, now) }
        let age = now - startUp.began
        let shortest = isAwaitingListener(index) ? Self.shortestListenCheck : Self.shortestStartUpCheck
        startUp.checkAt = now + max(shortest, min(Self.longestStartUpCheck, age / 8))
        self[run: index].startUp = startUp
        effects.append(.run(self[run: index].id, .deadline(.measureActivity(listeners: true))))
    }

    mutating func startUpMeasured(_ index: AppIndex, _ activity: RunActivity, _ now: Instant) {
        guard var startUp = self[run: index].startUp, let listens = activity.listens else { return }
        if listens {
            let isAwaited = isAwaitingListener(index)
            endStartUp(index, now)
            if isAwaited { becameReady(index, now) }
            return
        }
        let used = activity.cpu + activity.waited
        if (used - startUp.used) * 100 >= now - startUp.measuredAt { startUp.activeAt = now }
        startUp.used = used
        startUp.measuredAt = now
        startUp.hiddenSockets = activity.hiddenSockets
        self[run: index].startUp = startUp
        if !isAwaitingListener(index), now - startUp.activeAt >= Self.startUpIdleTime { endStartUp(index, now) }
    }

    mutating func endStartUp(_ index: AppIndex, _ now: Instant) {
        guard self[run: index].startUp != nil else { return }
        self[run: index].startUp = nil
        assertionEnded(index, now)
    }
}
