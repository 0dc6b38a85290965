import LifecycleCore

/// Checks that clients of held sockets are served, or reset when L11 holds a launch back for too long (L29). The world knows who
/// waits.
struct SocketChecker {
    private struct Wait {
        /// Its number. When the first client has left, the next one has not waited as long.
        let client: Int
        let since: Microseconds
        let lateness: Microseconds
        /// L11 holds the launch back.
        let isHeldBack: Bool
        /// Where the app has ended meanwhile, they wait anew.
        let phase: AppPhase
    }

    /// By app: since when clients wait for an app that is suspended, or does not run and is not about to.
    private var waits: [Wait?]

    /// A report takes some milliseconds, and the daemon may have other work.
    private static let longestWait: Microseconds = 1 * .second
    /// What waited at a launch that failed is reported again, and the wait may begin anew with it.
    private static let slack: Microseconds = 2 * .second

    init(apps count: Int) { waits = Array(repeating: nil, count: count) }

    /// What waits is reported again to the next daemon.
    mutating func record(_ event: Event) {
        if case .recovered = event { waits = waits.map { _ in nil } }
    }

    mutating func record<Core: DecidingCore>(
        _ effect: Effect, of app: Int?, _ model: CoreModel, _ core: Core, at now: Microseconds,
        _ findings: inout Findings
    ) {
        guard let app else { return }
        switch effect {
        // Served, or begun anew: between two looks it may be launched, and be held back after a failure.
        case .spawn, .run(_, .suspension(.thaw)): waits[app] = nil
        case .sockets(let id, .reject): rejected(id, app, model, core, now, &findings)
        default: break
        }
    }

    private mutating func rejected<Core: DecidingCore>(
        _ id: AppID, _ app: Int, _ model: CoreModel, _ core: Core, _ now: Microseconds, _ findings: inout Findings
    ) {
        let isHeldBack = core.view(of: id, at: Instant(now))?.launchPostponed != nil
        findings.check(
            model.apps[app].phase == .notRunning && isHeldBack, .rejectionsAreFair,
            "connections of \(id) are reset, but it is \(model.apps[app].phase), or nothing holds its launch back")
        waits[app] = nil
    }

    /// Checks after `deadlineReached` and now and then.
    mutating func verifyAll<Core: DecidingCore>(
        _ model: CoreModel, _ world: World, _ core: Core, at now: Microseconds, _ findings: inout Findings
    ) {
        guard !world.sockets.settings.isEmpty else { return }
        for app in waits.indices {
            guard let client = world.sockets.apps[app].clients.first?.number,
                let isHeldBack = waitsInVain(app, model, world, core, now)
            else {
                waits[app] = nil
                continue
            }
            guard let wait = waits[app], wait.client == client, wait.isHeldBack == isHeldBack,
                wait.phase == model.apps[app].phase
            else {
                waits[app] = Wait(
                    client: client, since: now, lateness: world.pastLateness, isHeldBack: isHeldBack,
                    phase: model.apps[app].phase)
                continue
            }
            let known = model.apps[app]
            let time = now - wait.since - (world.lateness - wait.lateness)
            if !isHeldBack {
                findings.check(
                    time <= Self.longestWait, .connectionsAreServed,
                    "clients have waited for \(time) µs for \(known.id), which is \(known.phase)")
            } else if let limit = known.policy.connectionWait {
                findings.check(
                    time <= limit.microseconds + Self.slack, .rejectionsAreFair,
                    "clients of \(known.id) have waited for \(time) µs, and are not reset")
            }
        }
    }

    /// Whether clients wait for an app that is not about to serve them, and whether L11 holds its launch back; `nil`: they do not.
    private func waitsInVain<Core: DecidingCore>(
        _ app: Int, _ model: CoreModel, _ world: World, _ core: Core, _ now: Microseconds
    ) -> Bool? {
        let known = model.apps[app]
        guard world.hasClients(app), known.isRegistered, known.policy.holdsSockets, world.sleep == nil,
            !model.isShuttingDown, known.phase == .suspended || known.phase == .notRunning,
            let view = core.view(of: known.id, at: Instant(now)), view.launchWaiting == nil
        else { return nil }
        // Datagrams are not reset: they are reported again.
        if world.sockets.apps[app].clients.allSatisfy(\.isDatagram), view.launchPostponed != nil { return nil }
        return known.phase == .notRunning && view.launchPostponed != nil
    }
}
