import LifecycleCore

/// Checks what becomes of an app that is about to be suspended with a file lock (L43).
struct LockChecker {
    /// The freeze in which locks were found. What the core does is known when the freeze is complete.
    private struct Found {
        let attempt: Int
        /// It takes part, and its locks are not only shared.
        let mustEnd: Bool
        /// For how long its locks have kept it awake: at most, and at least.
        let longest: Microseconds
        let shortest: Microseconds
        var isThawed = false
        var isKilled = false
    }

    private struct App {
        var found: Found?
        /// When locks were first found since it was suspended or in the foreground, and since something else kept it awake.
        var first: Microseconds?
        var latest: Microseconds?
        /// `first`, if it was suspended with its locks.
        var suspendedWith: Microseconds?
        var isKilledForLocks = false
    }

    private var apps: [App]
    /// The app whose freeze is complete with this event, and was under way until now.
    private var completed: Int?
    /// The app in whose freeze locks are found with this event.
    private var current: Int?

    /// How long a program that is not ended may be kept awake by its locks.
    private static let limit: Microseconds = 60 * .second

    init(apps count: Int) { apps = Array(repeating: App(), count: count) }

    /// Records an event. Called before the core handles it.
    mutating func record(_ event: Event, of app: Int?, _ model: CoreModel, at now: Microseconds) {
        completed = nil
        current = nil
        if case .recovered = event { for app in apps.indices { apps[app].found = nil } }
        guard let app, case .run(let run, let what) = event, model.apps[app].run == run else { return }
        let known = model.apps[app]
        switch what {
        case .locksFound(let attempt, let locks):
            guard known.phase == .suspending, known.freezeAttempt == attempt else { return }
            let first = apps[app].first ?? now
            let latest = apps[app].latest ?? now
            apps[app].first = first
            apps[app].latest = latest
            apps[app].found = Found(
                attempt: attempt, mustEnd: known.takesPart && !locks.isShared, longest: now - first,
                shortest: now - latest)
            current = app
        case .frozen(let attempt, _, _):
            guard apps[app].found?.attempt == attempt else { return }
            if known.phase == .suspending {
                completed = app
            } else {
                apps[app].found = nil
            }
        // Locks count from the end of the work that is done with them, and this may have found some.
        case .workMeasured: apps[app].latest = nil
        // Frozen again, it keeps what it was suspended with.
        case .freezeLost where known.phase == .suspended: apps[app].first = apps[app].suspendedWith
        default: break
        }
    }

    mutating func record(_ effect: Effect, of app: Int?, _ model: CoreModel, _ findings: inout Findings) {
        guard let app else { return }
        let id = model.apps[app].id
        switch effect {
        case .spawn: apps[app] = App()
        case .kill:
            guard current == app || completed == app, let found = apps[app].found else { return }
            // Once it is suspended, it may be killed for memory in the same event.
            if completed == app, !found.mustEnd { return }
            findings.check(
                found.mustEnd, .locksAreReleased,
                "\(id) takes no part or has a shared lock, but is killed because of it")
            apps[app].found?.isKilled = true
            apps[app].isKilledForLocks = true
        case .thaw:
            guard current == app || completed == app, let found = apps[app].found else {
                apps[app].latest = nil
                return
            }
            findings.check(
                !found.mustEnd, .locksAreReleased, "\(id) takes part, but is thawed with an exclusive file lock")
            findings.check(
                found.shortest < Self.limit, .locksAreReleased,
                "\(id) is not suspended although its file locks have kept it awake for \(found.shortest) µs")
            apps[app].found?.isThawed = true
        case .writeReceipt(let receipt):
            findings.check(
                receipt.code != 0xdead_10cc || apps[app].isKilledForLocks, .locksAreReleased,
                "receipt \(receipt.id) says that \(id) held a file lock, but it was not killed for that")
        case .report(.taskBegan), .report(.deadlineStarted(_, .wake, _, _)): apps[app].latest = nil
        case .report(.stateChanged(_, _, .background, _)): apps[app].latest = nil
        case .report(.stateChanged(_, _, let state, _)):
            apps[app].suspendedWith = state == .suspended && completed == app ? apps[app].first : nil
            (apps[app].first, apps[app].latest) = (nil, nil)
        default: break
        }
    }

    /// After all effects of an event.
    mutating func verify(_ model: CoreModel, _ findings: inout Findings) {
        guard let app = completed, let found = apps[app].found else { return }
        apps[app].found = nil
        let id = model.apps[app].id
        if found.mustEnd {
            findings.check(
                found.isKilled, .locksAreReleased, "\(id) takes part, and is suspended with an exclusive file lock")
        } else if found.longest < Self.limit {
            findings.check(
                found.isThawed, .locksAreReleased,
                "\(id) is suspended with a file lock, which has kept it awake for \(found.longest) µs only")
        }
    }
}
