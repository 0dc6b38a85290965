import LifecycleCore

/// Checks what becomes of an app that is about to be suspended with a file lock (L43).
struct LockChecker {
    private struct App {
        /// The freeze in which locks were found last, and whether the app must end for them.
        var found: (attempt: Int, mustEnd: Bool)?
        /// When locks were first found since it was last in the foreground, thawed, or frozen without any.
        var first: Microseconds?
        var isKilledForLocks = false
    }

    private var apps: [App]
    /// The app in whose freeze locks are found with this event.
    private var current: Int?

    /// How long a program that is not ended may be kept awake by its locks.
    private static let limit: Microseconds = 60 * .second

    init(apps count: Int) { apps = Array(repeating: App(), count: count) }

    /// Records an event. Called before the core handles it.
    mutating func record(_ event: Event, of app: Int?, _ model: CoreModel, at now: Microseconds) {
        current = nil
        if case .recovered = event { for app in apps.indices { apps[app].found = nil } }
        guard let app, case .run(let run, .suspension(.locksFound(let attempt, let locks))) = event else { return }
        let known = model.apps[app]
        guard known.run == run, known.phase == .suspending, known.freezeAttempt == attempt else { return }
        apps[app].first = apps[app].first ?? now
        apps[app].found = (attempt, known.takesPart && !locks.isShared)
        current = app
    }

    mutating func record(
        _ effect: Effect, of app: Int?, in event: Event, _ model: CoreModel, at now: Microseconds,
        _ findings: inout Findings
    ) {
        guard let app else { return }
        let id = model.apps[app].id
        switch effect {
        case .spawn: apps[app] = App()
        case .run(_, .kill):
            guard current == app, let found = apps[app].found else { return }
            findings.check(
                found.mustEnd, .locksAreReleased,
                "\(id) takes no part or has a shared lock, but is killed because of it")
            apps[app].isKilledForLocks = true
        case .run(_, .suspension(.thaw)):
            if model.apps[app].phase == .suspended { apps[app].first = nil }
            guard current == app, let found = apps[app].found else { return }
            findings.check(
                !found.mustEnd, .locksAreReleased, "\(id) takes part, but is thawed with an exclusive file lock")
        case .writeReceipt(let receipt):
            findings.check(
                receipt.code != 0xdead_10cc || apps[app].isKilledForLocks, .locksAreReleased,
                "receipt \(receipt.id) says that \(id) held a file lock, but it was not killed for that")
        case .report(.stateChanged(_, _, let state, _)):
            if state == .suspended { checkSuspended(app, event, model, now, &findings) }
            if state == .active || state == .inactive { apps[app].first = nil }
        default: break
        }
    }

    private mutating func checkSuspended(
        _ app: Int, _ event: Event, _ model: CoreModel, _ now: Microseconds, _ findings: inout Findings
    ) {
        defer { apps[app].found = nil }
        guard let found = apps[app].found, case .run(_, .suspension(.frozen(found.attempt, _, _))) = event else {
            return apps[app].first = nil
        }
        let time = apps[app].first.map { now - $0 } ?? 0
        findings.check(
            !found.mustEnd && time >= Self.limit, .locksAreReleased,
            "\(model.apps[app].id) is suspended with a file lock, which has kept it awake for \(time) µs")
    }
}
