package import Control

/// Counts lifecycle events. Times are microseconds of CLOCK_MONOTONIC, so a step of the system clock changes nothing.
package struct LifecycleMetrics {
    /// The most apps with series of their own. The others are summed: 10,000 apps would make 70,000 series.
    package static let mostApps = 2000
    /// The label of their sum. No app has this ID.
    package static let otherApps = "(other)"

    private var apps: [String: AppCounters] = [:]
    private var others = AppCounters()
    private var progress: [String: AppProgress] = [:]
    // By outcome. A series that exists before its first event shows that event as an increase.
    private(set) var launches = ["done": Histogram(bounds: Histogram.durationBounds)]
    private(set) var suspensions = ["done": Histogram(bounds: Histogram.durationBounds)]
    private(set) var thaws = ["done": Histogram(bounds: Histogram.durationBounds)]
    private(set) var margins: [String: Histogram] = [:]
    private(set) var killsToFree = Histogram(bounds: Histogram.durationBounds)
    private(set) var gaps: UInt64 = 0

    package init() {}

    // MARK: Events

    /// - Parameter now: for an event of a daemon that does not send the time.
    package mutating func count(_ event: LifecycleEvent, now: UInt64) {
        guard let app = event.app, let kind = LifecycleEvent.Kind(rawValue: event.kind) else { return }
        let at = event.monotonic ?? now
        var step = progress[app] ?? AppProgress()
        if step.isWoken {
            step.isWoken = false
            let reason = kind == .inputArrived ? "input" : "woken"
            change(app) { $0.wakes[reason, default: 0] += 1 }
        }
        switch kind {
        case .stateChanged: countState(event, app, at, &step)
        case .deadlineStarted, .deadlineExtended, .deadlineMet, .deadlineCancelled, .deadlineMissed, .deadlineDeferred:
            countDeadline(event, kind, app, at, &step)
        case .freezeTakesLong: step.isFreezeLate = true
        case .ended:
            if let reason = LabelWords.killReason(namespace: event.namespace, code: event.code) {
                change(app) { $0.kills[reason, default: 0] += 1 }
            }
        case .taskBegan, .taskEnded, .taskRefused, .modeBegan, .modeEnded, .sceneChanged, .tasksExpiring, .taskProgress,
            .killTakesLong,
            .stoppedItself,
            .wakeCompleted,
            .relaunchScheduled, .backgroundTimeUsedUp, .memoryAwaited, .inputArrived, .inputNotWatched, .wokenTooOften,
            .locksHeld, .cpuUseHigh, .cpuThrottled, .cpuThrottleEnded, .connectionsRejected, .memoryLevelChanged,
            .wouldSuspend, .wouldResume, .suspensionRefused, .memoryReclaimed:
            break
        case .hookFailed: change(app) { $0.hookFailures["failed", default: 0] += 1 }
        case .hookKilled: change(app) { $0.hookFailures["killed", default: 0] += 1 }
        }
        progress[app] = step
    }

    /// Events are missing: what was under way is not known any more.
    package mutating func countGap() {
        gaps += 1
        progress = [:]
    }

    private mutating func countState(_ event: LifecycleEvent, _ app: String, _ at: UInt64, _ step: inout AppProgress) {
        let isEnd = event.state == "terminating" || event.state == "notRunning"
        if event.previousState == "launching", let since = step.launchingSince {
            let outcome = isEnd ? event.reason == "missedDeadline" ? "missed" : "cancelled" : "done"
            Self.observe(&launches, outcome, Self.seconds(since, at))
        }
        if event.previousState == "suspended" {
            if let since = step.suspendedSince { change(app) { $0.suspended += Self.seconds(since, at) } }
            if !isEnd { countWake(event.reason, app, &step) }
        }
        step.launchingSince = event.state == "launching" ? at : nil
        step.suspendedSince = event.state == "suspended" ? at : nil
        switch event.state {
        case "suspended":
            if let took = event.took {
                Self.observe(&suspensions, step.isFreezeLate ? "late" : "done", took / .seconds(1))
            }
            step.isFreezeLate = false
        case "notRunning":
            if let took = event.took { killsToFree.observe(took / .seconds(1)) }
            step = AppProgress()
        default: break
        }
    }

    private mutating func countWake(_ reason: String?, _ app: String, _ step: inout AppProgress) {
        if reason == "woken" { return step.isWoken = true }
        let word = LabelWords.word(reason, in: LabelWords.wakeReasons)
        change(app) { $0.wakes[word, default: 0] += 1 }
    }

    private mutating func countDeadline(
        _ event: LifecycleEvent, _ kind: LifecycleEvent.Kind, _ app: String, _ at: UInt64, _ step: inout AppProgress
    ) {
        guard let deadline = event.deadline else { return }
        let what = LabelWords.word(deadline.what, in: LabelWords.deadlines)
        let key = DeadlineKey(what: what, wake: event.wake)
        let wall = deadline.wall.map { $0 / .seconds(1) }
        switch kind {
        case .deadlineStarted:
            if step.deadlines.count < AppProgress.mostDeadlines {
                step.deadlines[key] = deadline.allowed.map { $0 / .seconds(1) }
            }
            if what == "thaw" { step.thawSince = at }
        case .deadlineExtended:
            if let extended = deadline.extended { step.deadlines[key]? += extended / .seconds(1) }
        case .deadlineMet:
            if let allowed = step.deadlines.removeValue(forKey: key), let wall {
                Self.observe(&margins, what, allowed - wall, bounds: Histogram.marginBounds)
            }
            if what == "thaw", let wall { Self.observe(&thaws, "done", wall) }
        case .deadlineMissed:
            step.deadlines[key] = nil
            change(app) { $0.deadlinesMissed[what, default: 0] += 1 }
            if what == "thaw", let since = step.thawSince { Self.observe(&thaws, "missed", Self.seconds(since, at)) }
        case .deadlineCancelled:
            step.deadlines[key] = nil
            if what == "thaw", let since = step.thawSince { Self.observe(&thaws, "cancelled", Self.seconds(since, at)) }
        default: break
        }
    }

    private static func observe(
        _ histograms: inout [String: Histogram], _ label: String, _ value: Double,
        bounds: [Double] = Histogram.durationBounds
    ) {
        histograms[label, default: Histogram(bounds: bounds)].observe(value)
    }

    private static func seconds(_ from: UInt64, _ to: UInt64) -> Double { to > from ? Double(to - from) / 1e6 : 0 }

    /// Changes the counters of the app, or those of all others if it has no series of its own.
    private mutating func change(_ app: String, _ body: (inout AppCounters) -> Void) {
        if admit(app) { body(&apps[app, default: AppCounters()]) } else { body(&others) }
    }

    /// - Returns: whether the app has series of its own.
    private mutating func admit(_ app: String) -> Bool {
        if apps[app] != nil { return true }
        guard apps.count < Self.mostApps else { return false }
        apps[app] = AppCounters()
        return true
    }

    // MARK: Snapshots

    /// Takes over which apps there are: the series of others end. A suspended app of which nothing is known yet counts from now.
    package mutating func update(_ snapshot: Snapshot, now: UInt64) {
        let names = Set(snapshot.apps.map(\.id))
        apps = apps.filter { names.contains($0.key) }
        progress = progress.filter { names.contains($0.key) }
        for app in snapshot.apps {
            _ = admit(app.id)
            if progress[app.id] == nil {
                progress[app.id] = AppProgress(suspendedSince: app.state == "suspended" ? now : nil)
            }
        }
    }

    /// The apps with series of their own, sorted.
    var ownApps: [String] { apps.keys.sorted() }

    func hasOwnSeries(_ app: String) -> Bool { apps[app] != nil }

    /// Whether the app was ended because it was idle for long, and has not been launched since.

    /// The counters of each app with series of its own, sorted, and those of all others, with the suspensions that last.
    func counters(now: UInt64) -> [(app: String, counters: AppCounters)] {
        var others = others
        var lasting: [String: Double] = [:]
        for (app, step) in progress {
            guard let since = step.suspendedSince else { continue }
            let seconds = Self.seconds(since, now)
            if hasOwnSeries(app) { lasting[app] = seconds } else { others.suspended += seconds }
        }
        var result = ownApps.map { app in
            var counters = apps[app] ?? AppCounters()
            counters.suspended += lasting[app] ?? 0
            return (app, counters)
        }
        if progress.count > apps.count { result.append((Self.otherApps, others)) }
        return result
    }
}
