/// The end of all apps, before the daemon exits (L46).
extension LifecycleCore {
    /// How long an orderly shutdown may take for all apps together. systemd's default for a unit, `TimeoutStopSec=`, is 90 s.
    static let shutdownTime = Duration.seconds(60)
    /// How many suspended apps are thawed at once to be terminated. Each of them may write what it has to disk and read back
    /// what was swapped out; more at once would miss their deadlines for each other. With the default deadline of 5 s, 96
    /// apps that use all of it end within the time of a shutdown.
    static let thawedAtOnce = 8

    struct Shutdown: Hashable, Sendable {
        var isFinished = false
        /// When all apps that are left are killed; `nil`: they were.
        var end: Instant?
        /// Indices of suspended apps that are still to be notified, the most recently used one last.
        var waiting: [Int] = []
        /// Indices of the apps that were thawed and have not ended, at most `thawedAtOnce`.
        var thawed: [Int] = []
    }

    /// Whether a suspended app is thawed and notified of its end: one that takes part has saved what it has before it was
    /// suspended; one that does not was never notified of anything (L46).
    func isNotifiedOfEnd(_ index: Int) -> Bool {
        switch apps[index].policy.terminateSuspended {
        case .auto: !self[run: index].takesPart
        case .notify: true
        case .kill: false
        }
    }

    mutating func shutdownRequested(_ immediately: Bool, _ now: Instant) {
        if shutdown == nil { shutdown = Shutdown(end: now + Self.shutdownTime) }
        if immediately { return killAll(now) }
        var waiting: [Int] = []
        for index in apps.indices where !apps[index].isRemoved {
            touch(index)
            supersedeAll(index)
            switch apps[index].phase {
            case .notRunning: apps[index].life = .notRunning(NotRunning())
            case .launching, .foreground, .enteringBackground, .background, .waking:
                terminate(index, .shutdown, now)
            case .suspending, .suspended:
                if isNotifiedOfEnd(index) { waiting.append(index) } else { kill(index, .shutdown, .shutdown, now) }
            case .terminating, .ending: setNext(index, nil)
            }
            leaveForegroundSlot(index)
        }
        // A second request keeps the order of the first one.
        let all = apps
        if shutdown?.waiting.isEmpty ?? true {
            shutdown?.waiting = waiting.sorted { (all[$0].since, $0) < (all[$1].since, $1) }
        }
    }

    private mutating func killAll(_ now: Instant) {
        shutdown?.end = nil
        shutdown?.waiting = []
        for index in apps.indices where !apps[index].isRemoved {
            touch(index)
            supersedeAll(index)
            switch apps[index].phase {
            case .notRunning: apps[index].life = .notRunning(NotRunning())
            case .launching, .foreground, .enteringBackground, .background, .suspending, .suspended, .waking:
                kill(index, .shutdown, .shutdown, now)
            case .terminating:
                setNext(index, nil)
                kill(index, .shutdown, .shutdown, now)
            case .ending: setNext(index, nil)
            }
            leaveForegroundSlot(index)
        }
    }

    /// The time for all apps together is over.
    mutating func shutdownDeadlineReached(_ now: Instant) {
        guard let end = shutdown?.end, end <= now else { return }
        killAll(now)
    }

    /// Thaws the next suspended apps for their end, in place of those that have ended.
    mutating func continueShutdown(_ now: Instant) {
        guard var shutdown, !shutdown.waiting.isEmpty else { return }
        shutdown.thawed.removeAll { apps[$0].phase == .notRunning || apps[$0].phase == .ending }
        while shutdown.thawed.count < Self.thawedAtOnce, let index = shutdown.waiting.popLast() {
            touch(index)
            switch apps[index].phase {
            case .suspending, .suspended: wake(index, pending: .terminate, for: nil, now)
            // A freeze timed out, or a task began before the freeze was complete.
            case .launching, .foreground, .enteringBackground, .background, .waking: terminate(index, .shutdown, now)
            case .notRunning, .terminating, .ending: continue
            }
            shutdown.thawed.append(index)
        }
        self.shutdown?.waiting = shutdown.waiting
        self.shutdown?.thawed = shutdown.thawed
    }

    mutating func finishShutdownIfDone() {
        guard shutdown?.isFinished == false, runningCount == 0 else { return }
        shutdown?.isFinished = true
        shutdown?.end = nil
        effects.append(.finish)
    }
}
