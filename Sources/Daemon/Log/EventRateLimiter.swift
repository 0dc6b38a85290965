import LifecycleCore

/// Limits the log entries that one app can cause.
///
/// Each line that an app writes to its notify socket can cause an entry, and journald drops what a service, such as this
/// daemon, writes beyond 10,000 entries in 30s (`RateLimitBurst=`, journald.conf(5)). Without a limit, one app could
/// suppress the entries about all others.
struct EventRateLimiter {
    /// The entries that one app can cause in a second: a third of what journald accepts.
    static let perSecond = 100

    enum Verdict: Hashable {
        case accepted, suppressed
        /// The report is accepted, after so many of the app were suppressed.
        case acceptedAfter(AppID, suppressed: Int)
    }

    private struct Window {
        var end: Instant
        var count = 0
    }

    private var windows: [AppID: Window] = [:]

    /// Whether a report is logged and published.
    mutating func judge(_ report: Report, at now: Instant) -> Verdict {
        guard let app = report.causingApp else { return .accepted }
        guard var window = windows[app], now < window.end else {
            let suppressed = (windows[app]?.count ?? 0) - Self.perSecond
            windows[app] = Window(end: now + .seconds(1), count: 1)
            return suppressed > 0 ? .acceptedAfter(app, suppressed: suppressed) : .accepted
        }
        window.count += 1
        windows[app] = window
        return window.count <= Self.perSecond ? .accepted : .suppressed
    }

    mutating func remove(_ app: AppID) { windows[app] = nil }
}

extension Report {
    /// The app of a report that the app, or its peers, can cause as often as they like; `nil` for all other reports.
    fileprivate var causingApp: AppID? {
        switch self {
        case .taskBegan(let app, _), .taskEnded(let app, _, _), .taskRefused(let app, _),
            .taskProgressed(let app, _, _),
            .modeBegan(let app, _), .modeEnded(let app, _), .sceneChanged(let app, _, _, _), .stoppedItself(let app, _),
            .deadlineExtended(let app, _, _), .wakeCompleted(let app, _, _), .inputArrived(let app, _),
            .inputNotWatched(let app, _), .locksHeld(let app, _, _), .wouldSuspend(let app),
            .wouldResume(let app, _), .hookFailed(let app, _, _), .hookKilled(let app, _, _),
            .suspensionRefused(let app), .memoryReclaimed(let app, _):
            app
        case .stateChanged, .deadlineStarted, .deadlineCredited, .deadlineMet, .deadlineCancelled, .deadlineMissed,
            .deadlineDeferred,
            .ended, .memoryLevelChanged, .tasksExpiring, .taskExpires, .freezeTakesLong, .killTakesLong,
            .relaunchScheduled,
            .unrequestedTimeUsedUp, .memoryAwaited, .wokenTooOften, .processorUseHigh, .processorThrottled,
            .processorThrottleEnded, .connectionsRejected:
            nil
        }
    }
}
