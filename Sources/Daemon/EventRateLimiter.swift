import LifecycleCore

/// How much one app may have us say of it. What an app brings about by a line on its socket is one entry in the journal
/// each, and journald drops what any service, such as this daemon, writes beyond 10,000 entries in 30 s
/// (`RateLimitBurst=`, journald.conf(5)): one talkative app would silence the news of all others.
struct EventRateLimiter {
    /// Entries of one app in a second that it can bring about at will. A third of what journald takes.
    static let perSecond = 100

    enum Verdict: Hashable {
        case said, unsaid
        /// Said again, after so many were not.
        case saidAfter(AppID, unsaid: Int)
    }

    private struct Window {
        var end: Instant
        var count = 0
    }

    private var windows: [AppID: Window] = [:]

    /// Whether a piece of news is to be said.
    mutating func judge(_ report: Report, at now: Instant) -> Verdict {
        guard let app = report.appAtWill else { return .said }
        guard var window = windows[app], now < window.end else {
            let unsaid = (windows[app]?.count ?? 0) - Self.perSecond
            windows[app] = Window(end: now + .seconds(1), count: 1)
            return unsaid > 0 ? .saidAfter(app, unsaid: unsaid) : .said
        }
        window.count += 1
        windows[app] = window
        return window.count <= Self.perSecond ? .said : .unsaid
    }

    mutating func forget(_ app: AppID) { windows[app] = nil }
}

extension Report {
    /// The app, of news that it can bring about as often as it likes.
    fileprivate var appAtWill: AppID? {
        switch self {
        case .taskBegan(let app, _), .taskEnded(let app, _), .taskRefused(let app, _), .stoppedItself(let app, _),
            .deadlineExtended(let app, _, _), .wakeCompleted(let app, _):
            app
        case .stateChanged, .deadlineStarted, .deadlineMet, .deadlineCancelled, .deadlineMissed, .deadlineDeferred,
            .ended, .memoryLevelChanged, .tasksExpiring, .freezeTimedOut, .killTakesLong, .relaunchScheduled:
            nil
        }
    }
}
