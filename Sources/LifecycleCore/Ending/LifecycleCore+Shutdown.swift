/// The end of all apps, before the daemon exits (L46).
extension LifecycleCore {
    /// How long an orderly shutdown may take for all apps together. systemd's default for a unit, `TimeoutStopSec=`, is 90 s.
    static let shutdownTime = Duration.seconds(60)
    /// How many suspended apps are thawed at once to be terminated. Each of them may write what it has to disk and read back
    /// what was swapped out; more at once would miss their deadlines for each other. With the default deadline of 5 s, 96
    /// apps that use all of it end within the time of a shutdown.
    static let thawedAtOnce = 8

    /// How many apps one event of a shutdown notifies or kills, and how many apps it looks at. The others follow in further
    /// events, so that neither an event nor its effects take longer with more apps: an app takes some 10 µs in the core, and
    /// some 200 µs until its signals are sent.
    package static let endedAtOnce = 16
    private static let examinedAtOnce = 1024
    /// The time between two of these events: 10,000 apps are notified within 0.7 s, and all that happens meanwhile is
    /// served.
    static let stepInterval = Duration.milliseconds(1)

    struct Shutdown: Hashable, Sendable {
        var isFinished = false
        /// When all apps that are left are killed; `nil`: they were.
        var end: Instant?
        /// The apps that are still to be notified: suspended ones, the most recently used one last, and before them those
        /// that others depend on.
        var waiting: [AppIndex] = []
        /// The apps that were thawed and have not ended, at most `thawedAtOnce`.
        var thawed: [AppIndex] = []
        /// When the next apps are ended; `nil`: all were, or wait.
        var nextStep: Instant?
        /// The first app that was not ended yet, in the order of the indices.
        var position = AppIndex(0)
    }

    /// Whether a suspended app is thawed and notified of its end: one that takes part has saved what it has before it was
    /// suspended; one that does not was never notified of anything (L46).
    func isNotifiedOfEnd(_ index: AppIndex) -> Bool {
        switch apps[index].policy.terminateSuspended {
        case .auto: !self[run: index].takesPart
        case .notify: true
        case .kill: false
        }
    }

    mutating func shutdownRequested(_ immediately: Bool, _ now: Instant) {
        if shutdown == nil { shutdown = Shutdown(end: now + Self.shutdownTime) }
        if immediately { shutdown?.end = nil }
        beginEnds(now)
    }

    /// The time for all apps together is over.
    private mutating func shutdownDeadlineReached(_ now: Instant) {
        guard let end = shutdown?.end, end <= now else { return }
        shutdown?.end = nil
        beginEnds(now)
    }

    /// The time of the shutdown is over, or its next step is due.
    mutating func advanceShutdown(_ now: Instant) {
        guard isShuttingDown else { return }
        shutdownDeadlineReached(now)
        if let at = shutdown?.nextStep, at <= now { endNextApps(now) }
    }

    /// Ends all apps from the first one on, in steps.
    private mutating func beginEnds(_ now: Instant) {
        shutdown?.waiting = []
        shutdown?.position = AppIndex(0)
        endNextApps(now)
    }

    private mutating func endNextApps(_ now: Instant) {
        guard let shutdown else { return }
        var index = shutdown.position
        var ended = 0
        let limit = min(apps.endIndex, index.advanced(by: Self.examinedAtOnce))
        while index < limit, ended < Self.endedAtOnce {
            if !apps[index].isRemoved {
                touch(index)
                supersedeAll(index)
                if shutdown.end == nil ? killForShutdown(index, now) : endForShutdown(index, now) { ended += 1 }
                // One that waits for the others stays where it is.
                if self.shutdown?.waiting.last != index { leaveForegroundSlot(index) }
            }
            apps.formIndex(after: &index)
        }
        self.shutdown?.position = index
        if index < apps.endIndex {
            self.shutdown?.nextStep = now + Self.stepInterval
        } else {
            self.shutdown?.nextStep = nil
            orderWaiting()
        }
    }

    /// Notifies an app of its end, unless it has to wait for its turn or was notified before.
    /// - Returns: whether the app is notified or killed.
    private mutating func endForShutdown(_ index: AppIndex, _ now: Instant) -> Bool {
        switch apps[index].phase {
        case .notRunning: apps[index].life = .notRunning(NotRunning())
        case .launching, .foreground, .enteringBackground, .background, .waking:
            if apps[index].policy.isEssential {
                // A request to end it would end it before the others.
                if apps[index].execution?.pending == .terminate { setPending(index, .background) }
                shutdown?.waiting.append(index)
                return false
            }
            terminate(index, .shutdown, now)
            return true
        case .suspending, .suspended:
            if isNotifiedOfEnd(index) {
                shutdown?.waiting.append(index)
            } else {
                kill(index, .shutdown, .shutdown, now)
                return true
            }
        case .terminating, .ending: setNext(index, nil)
        }
        return false
    }

    /// - Returns: whether the app is killed.
    private mutating func killForShutdown(_ index: AppIndex, _ now: Instant) -> Bool {
        switch apps[index].phase {
        case .notRunning: apps[index].life = .notRunning(NotRunning())
        case .launching, .foreground, .enteringBackground, .background, .suspending, .suspended, .waking:
            kill(index, .shutdown, .shutdown, now)
            return true
        case .terminating:
            setNext(index, nil)
            kill(index, .shutdown, .shutdown, now)
            return true
        case .ending: setNext(index, nil)
        }
        return false
    }

    /// The most recently used app last: it is the next. Those that others depend on come after all others.
    private mutating func orderWaiting() {
        guard let waiting = shutdown?.waiting, waiting.count > 1 else { return }
        let ordered = waiting.map { (apps[$0].since, $0) }.sorted { $0 < $1 }.map(\.1)
        let essential = ordered.filter { apps[$0].policy.isEssential }
        let others = ordered.filter { !apps[$0].policy.isEssential }
        shutdown?.waiting = essential + others
    }

    /// Thaws the next suspended apps for their end, in place of those that have ended.
    mutating func continueShutdown(_ now: Instant) {
        // Before all apps were looked at it is not known which one is next.
        guard var shutdown, shutdown.nextStep == nil, !shutdown.waiting.isEmpty else { return }
        shutdown.thawed.removeAll { apps[$0].phase == .notRunning || apps[$0].phase == .ending }
        while shutdown.thawed.count < Self.thawedAtOnce, let index = shutdown.waiting.last {
            if apps[index].policy.isEssential, hasOthersToEnd(shutdown) { break }
            shutdown.waiting.removeLast()
            touch(index)
            switch apps[index].phase {
            case .suspending, .suspended: wake(index, pending: .terminate, for: nil, now)
            // A freeze timed out, or a task began before the freeze was complete.
            case .launching, .foreground, .enteringBackground, .background, .waking:
                leaveForegroundSlot(index)
                terminate(index, .shutdown, now)
            case .notRunning, .terminating, .ending: continue
            }
            shutdown.thawed.append(index)
        }
        self.shutdown?.waiting = shutdown.waiting
        self.shutdown?.thawed = shutdown.thawed
    }

    /// Whether an app has a process that is not among those that wait. The essential ones wait for it.
    private func hasOthersToEnd(_ shutdown: Shutdown) -> Bool {
        runningCount > shutdown.waiting.count(where: { apps[$0].phase != .notRunning })
            + shutdown.thawed.count(where: { apps[$0].policy.isEssential && apps[$0].phase != .notRunning })
    }

    mutating func finishShutdownIfDone() {
        guard runningCount == 0, shutdown?.isFinished == false, shutdown?.nextStep == nil else { return }
        shutdown?.isFinished = true
        shutdown?.end = nil
        effects.append(.finish)
    }
}
