import LifecycleCore

/// Checks the watch of held sockets, and that clients are served, or reset when L11 holds a launch back for too long (L29).
struct SocketChecker {
    private struct App {
        var isWatched = false
        /// When the first client was reported since the app was last ready; `nil`: none was.
        var since: Microseconds?
        /// Since when the sockets are watched again, after a launch that failed.
        var watchedSince: Microseconds?
        /// Only datagrams were reported.
        var isDatagram = true
        /// Connections of this event were reset.
        var isRejected = false
    }

    private var apps: [App]
    /// The app whose clients this event reports, and what it did before.
    private var reported: (app: Int, phase: AppPhase)?
    /// The launch of that app was held back before the event.
    private var wasPostponed = false

    /// What waited at a launch that failed is reported again at once.
    private static let repeatedReport: Microseconds = 1 * .second
    private static let shortestDatagramWait: Microseconds = 1 * .second

    init(apps count: Int) { apps = Array(repeating: App(), count: count) }

    /// Records an event. Called before the core handles it.
    mutating func record<Core: DecidingCore>(
        _ event: Event, of app: Int?, _ model: CoreModel, _ core: Core, at now: Microseconds
    ) {
        reported = nil
        for app in apps.indices where apps[app].isRejected { apps[app].isRejected = false }
        if case .recovered = event { for app in apps.indices { apps[app].isWatched = false } }
        guard let app, case .socketsReady(let id, let input) = event, apps[app].isWatched, !model.isShuttingDown else {
            return
        }
        apps[app].isWatched = false
        reported = (app, model.apps[app].phase)
        wasPostponed = core.view(of: id, at: Instant(now))?.launchPostponed != nil
        guard model.apps[app].phase == .notRunning else { return }
        if let watched = apps[app].watchedSince, now - watched > Self.repeatedReport {
            endWait(of: app)
        }
        apps[app].watchedSince = nil
        apps[app].since = apps[app].since ?? now
        if input.kind != .datagram { apps[app].isDatagram = false }
    }

    // MARK: Effects

    mutating func record(
        _ effect: Effect, of app: Int?, in event: Event, _ model: CoreModel, at now: Microseconds,
        _ findings: inout Findings
    ) {
        guard let app else { return }
        switch effect {
        case .watchSockets(let id):
            findings.check(!apps[app].isWatched, .socketsAreWatched, "the sockets of \(id) are watched twice")
            apps[app].isWatched = true
            if apps[app].since != nil { apps[app].watchedSince = now }
        case .stopWatchingSockets(let id):
            findings.check(apps[app].isWatched, .socketsAreWatched, "the watch of \(id) ends, but there is none")
            apps[app].isWatched = false
        case .spawn(let id, _, let launch):
            guard reported?.app == app, launch.reason == .socket else { return }
            findings.check(!wasPostponed, .connectionsAreServed, "\(id) is launched although L11 holds that back")
        case .report(.deadlineMet(_, .launch, _, _)): endWait(of: app)
        case .report(.stateChanged(_, .launching, let state, _)):
            // It has finished launching, and may be asked to terminate at once.
            switch event {
            case .run(_, .ready), .run(_, .executed): endWait(of: app)
            default: if state != .terminating { endWait(of: app) }
            }
        case .rejectConnections(let id): checkRejection(app, id, model, now, &findings)
        default: break
        }
    }

    /// Ends the wait: what is reported next begins a new one, of its own kind.
    private mutating func endWait(of app: Int) {
        (apps[app].since, apps[app].watchedSince, apps[app].isDatagram) = (nil, nil, true)
    }

    private mutating func checkRejection(
        _ app: Int, _ id: AppID, _ model: CoreModel, _ now: Microseconds, _ findings: inout Findings
    ) {
        let known = model.apps[app]
        findings.check(
            known.phase == .notRunning, .rejectionsAreFair,
            "connections of \(id) are reset while it is \(known.phase)")
        let waited = apps[app].since.map { now - $0 }
        let limit = known.policy.connectionWait?.microseconds
        findings.check(
            limit.map { limit in waited.map { $0 >= limit } ?? false } ?? false, .rejectionsAreFair,
            "connections of \(id) are reset that have waited for \(waited ?? 0) µs of \(limit ?? .max)")
        apps[app].isRejected = true
        endWait(of: app)
    }

    // MARK: After all effects of an event

    mutating func verify<Core: DecidingCore>(
        of app: Int, _ model: CoreModel, _ core: Core, at now: Microseconds, _ findings: inout Findings
    ) {
        let known = model.apps[app]
        let isHeld = known.policy.holdsSockets && known.isRegistered
        guard isHeld || apps[app].isWatched else { return endWait(of: app) }
        let view = core.view(of: known.id, at: Instant(now))
        if let reported, reported.app == app { checkReport(app, reported.phase, known, view, &findings) }
        if !isHeld { endWait(of: app) }
        if apps[app].isRejected {
            findings.check(
                view?.launchPostponed != nil, .rejectionsAreFair,
                "connections of \(known.id) are reset, but nothing holds its launch back")
        }
        let isWaiting = view?.connectionsWaiting != nil
        let mayBeWatched =
            isHeld && (known.phase == .suspended || known.phase == .notRunning && !isWaiting)
        findings.check(
            mayBeWatched || !apps[app].isWatched || model.isShuttingDown, .socketsAreWatched,
            "the sockets of \(known.id) are watched while it is \(known.phase), or although clients wait")
        // A launch that waits may be joined, or is one that clients wait for already.
        let mustBeWatched = mayBeWatched && view?.launchWaiting == nil && !model.isShuttingDown
        findings.check(
            !mustBeWatched || apps[app].isWatched, .socketsAreWatched,
            "the sockets of \(known.id) are not watched while it is \(known.phase)")
    }

    private func checkReport(
        _ app: Int, _ before: AppPhase, _ known: AppModel, _ view: AppView?, _ findings: inout Findings
    ) {
        let isServed: Bool
        switch before {
        case .suspended: isServed = known.phase == .waking
        case .notRunning:
            let isLaunched = known.phase == .launching || view?.launchWaiting != nil
            isServed = isLaunched || wasPostponed && (view?.connectionsWaiting != nil || apps[app].isRejected)
        case .unknown, .launching, .foreground, .entering, .running, .suspending, .waking, .terminating, .ending, .past:
            isServed = true
        }
        findings.check(
            isServed, .connectionsAreServed, "a client waits for \(known.id), which is \(known.phase) and was \(before)"
        )
    }

    /// Checks after `deadlineReached` that no client waits which should be served or reset.
    func verifyAll<Core: DecidingCore>(
        _ model: CoreModel, _ core: Core, at now: Microseconds, _ findings: inout Findings
    ) {
        if model.isShuttingDown { return }
        for app in apps.indices {
            let known = model.apps[app]
            guard let since = apps[app].since, known.phase == .notRunning,
                let view = core.view(of: known.id, at: Instant(now)), view.connectionsWaiting != nil
            else { continue }
            findings.check(
                view.launchPostponed != nil, .connectionsAreServed,
                "clients wait for \(known.id), but nothing holds its launch back")
            guard let wait = known.policy.connectionWait?.microseconds else { continue }
            let limit = apps[app].isDatagram ? max(wait, Self.shortestDatagramWait) : wait
            findings.check(
                now - since < limit, .rejectionsComeInTime,
                "clients of \(known.id) have waited for \(now - since) µs, and are not reset")
        }
    }
}
