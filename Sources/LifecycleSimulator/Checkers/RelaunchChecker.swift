import LifecycleCore

/// Checks that apps which are to run are launched: at the start of the daemon (`LaunchAtStart=`), and after they ended by
/// themselves (`Relaunch=always`, L11).
struct RelaunchChecker {
    private struct App {
        /// Whether no request, and no decision of the daemon, was to end the current run.
        var endsByItself = true
        /// Whether the run has ended and the app is to be relaunched.
        var isOwed = false
        /// When the scheduled relaunch is due.
        var due: Microseconds?
    }

    private var apps: [App]
    /// The apps that this event must launch.
    private var starting: [Int] = []

    /// When the next scheduled relaunch is due.
    var nextDue: Microseconds? { apps.compactMap(\.due).min() }

    init(apps count: Int) { apps = Array(repeating: App(), count: count) }

    // MARK: Events

    mutating func record(_ event: Event, of app: Int?, _ model: CoreModel) {
        starting = []
        switch event {
        case .configuration(.started) where !model.isShuttingDown:
            starting = model.apps.indices.filter { index in
                let app = model.apps[index]
                return app.isRegistered && app.phase == .notRunning && app.policy.launchAtStart != nil
            }
        case .shutdownRequested: for index in apps.indices { excuse(index) }
        case .requested(_, _, .terminate, by: _), .requested(_, _, .remove, by: _), .configuration(.unregistered):
            if let app { excuse(app) }
        // A return after jetsam is cancelled by a manifest that does not ask for it.
        case .configuration(.registered(_, let policy, _)):
            guard let app, !apps[app].endsByItself, !policy.isToRun else { return }
            apps[app].due = nil
        case .run(let run, .process(.exited)), .run(let run, .process(.spawnFailed)):
            guard let app, model.apps[app].run == run, apps[app].endsByItself, !model.isShuttingDown else { return }
            if model.apps[app].policy.relaunch == .always { apps[app].isOwed = true }
        default: break
        }
    }

    private mutating func excuse(_ app: Int) {
        apps[app].endsByItself = false
        apps[app].isOwed = false
        apps[app].due = nil
    }

    // MARK: Effects

    mutating func record(_ effect: Effect, of app: Int?, in event: Event, _ model: CoreModel, at now: Microseconds) {
        guard let app else { return }
        switch effect {
        case .spawn:
            apps[app] = App()
            starting.removeAll { $0 == app }
        case .report(.relaunchScheduled(_, let time, _)):
            apps[app].isOwed = false
            apps[app].due = now + time.microseconds
        // The kernel's OOM killer: an app that is to run comes back as after jetsam.
        case .writeReceipt(let receipt)
        where receipt.namespace == .jetsam && receipt.code == Receipt.Code.jetsam
            && model.apps[app].policy.isToRun:
            apps[app].endsByItself = false
            apps[app].isOwed = false
        case .report(.stateChanged(_, _, .terminating, let reason)):
            switch reason {
            case .exitsOnSuspend, .unloaded, .jetsam, .shutdown, .requested: apps[app].endsByItself = false
            default: break
            }
        // An app that jetsam kills while it is terminating has no other change of its state.
        case .run(_, .kill):
            if Self.mayBeJetsam(event), model.apps[app].phase != .ending { apps[app].endsByItself = false }
        default: break
        }
    }

    private static func mayBeJetsam(_ event: Event) -> Bool {
        switch event {
        case .memory(.measured), .memory(.pressureSimulated), .configuration(.configured), .deadlineReached,
            .run(_, .suspension(.frozen)),
            .run(_, .suspension(.footprintMeasured)), .run(_, .memory(.sizeMeasured)):
            true
        default: false
        }
    }

    // MARK: The state after an event

    mutating func verify<Core: DecidingCore>(
        of app: Int, _ model: CoreModel, _ core: Core, at now: Microseconds, _ findings: inout Findings
    ) {
        let known = model.apps[app]
        if apps[app].isOwed, waits(app, model, core, now) { apps[app].isOwed = false }
        findings.check(
            !apps[app].isOwed || known.run != nil || !known.isRegistered, .wantedAppsRun,
            "\(known.id) has Relaunch=always and ended by itself, but no relaunch is scheduled")
    }

    /// Whether the launch of an app waits for others (L52), or for memory after jetsam, which `MemoryRule` checks.
    private func waits<Core: DecidingCore>(_ app: Int, _ model: CoreModel, _ core: Core, _ now: Microseconds) -> Bool {
        let view = core.view(of: model.apps[app].id, at: Instant(now))
        return view?.launchWaiting != nil || view?.memoryAwaited != nil
    }

    /// Whether an app is launched only when no app is in the foreground, which `HomeChecker` checks.
    private func isOnlyHome(_ policy: AppPolicy) -> Bool {
        policy.role == .home && policy.relaunch != .always && policy.launchAtStart == nil
    }

    mutating func verifyStart<Core: DecidingCore>(
        _ model: CoreModel, _ core: Core, at now: Microseconds, _ findings: inout Findings
    ) {
        if !starting.isEmpty { starting = starting.filter { !waits($0, model, core, now) } }
        findings.check(
            starting.isEmpty, .wantedAppsRun,
            "\(starting.map { model.apps[$0].id.name }) have LaunchAtStart=, but are not launched")
    }

    /// Checks after `deadlineReached` that no relaunch is overdue.
    mutating func verifyAll<Core: DecidingCore>(
        _ model: CoreModel, _ core: Core, at now: Microseconds, _ findings: inout Findings
    ) {
        for app in apps.indices {
            guard let due = apps[app].due else { continue }
            if due <= now, waits(app, model, core, now) || isOnlyHome(model.apps[app].policy) {
                apps[app].due = nil
                continue
            }
            findings.check(
                due > now, .wantedAppsRun, "the relaunch of \(model.apps[app].id) was due \(now - due) µs ago")
        }
    }
}

extension AppPolicy {
    /// Whether it comes back after jetsam.
    fileprivate var isToRun: Bool { relaunch == .always || launchAtStart != nil || role == .worker }
}
