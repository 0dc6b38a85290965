import LifecycleCore

/// Checks which apps come back after jetsam, when, and that there is space for them (L11, L38, L49).
struct ReturnChecker {
    /// An app that jetsam ended and that is to run.
    private struct Taken {
        var footprint: UInt64
        /// Since when each measurement has found space for all apps that are to come back.
        var spaceSince: Microseconds?
        /// When its last process had ended, or when the relaunch that was postponed is due (L11, L53).
        var due: Microseconds = 0
    }

    /// An app that came back and may not have reached its last footprint yet.
    private struct Growing {
        var app: Int
        var run: RunID?
        var footprint: UInt64
        var since: Microseconds
    }

    /// How long an app may take to come back once there is space: two of the longest intervals between measurements, and the
    /// time that is kept for the one before it to grow.
    private static let longestReturn = 90 * Microseconds.second
    /// For how long the memory of an app that came back is kept for it.
    private static let growthTime = 30 * Microseconds.second

    private var taken: [Taken?]
    /// By app: whether a request, or a decision of the daemon that is not for memory, was to end the run.
    private var isEndAsked: [Bool]
    /// By app: whether a launch was asked for during the end of the run. It follows that end, whatever its reason is.
    private var isLaunchAsked: [Bool]
    /// The last request that launches an app, and what was known of the app before: it stays so if the request is refused.
    private struct Current {
        var request: RequestID
        var app: Int
        var taken: Taken?
        var wasLaunchAsked: Bool
    }
    private var current: Current?
    private var growing: [Growing] = []
    private var lastMeasure: Microseconds = 0
    /// Of the world, when it was last looked at.
    private var lateness: Microseconds = 0

    /// Whether an app waits to come back.
    var isAnyTaken: Bool { taken.contains { $0 != nil } }

    init(apps: Int) {
        taken = Array(repeating: nil, count: apps)
        isEndAsked = Array(repeating: false, count: apps)
        isLaunchAsked = isEndAsked
    }

    // MARK: Events

    mutating func record(_ event: Event, of app: Int?, _ model: CoreModel) {
        if case .shutdownRequested = event { for index in taken.indices { discard(index) } }
        guard let app else { return }
        switch event {
        case .requested(_, _, .terminate, by: _), .requested(_, _, .remove, by: _), .unregistered: discard(app)
        // The app is launched for the request, or for the end that the request asks for is none of jetsam's.
        case .requested(let request, _, .activate, by: _), .requested(let request, _, .launch, by: _),
            .requested(let request, _, .open, by: _),
            .requested(let request, _, .push, by: _):
            current = Current(request: request, app: app, taken: taken[app], wasLaunchAsked: isLaunchAsked[app])
            taken[app] = nil
            let phase = model.apps[app].phase
            if phase == .ending || phase == .terminating { isLaunchAsked[app] = true }
        // A client of its sockets launches it, whether or not there is space.
        case .socketsReady: if model.apps[app].phase == .notRunning { taken[app] = nil }
        case .registered(_, let policy, _): if !Self.isToRun(policy) { taken[app] = nil }
        default: break
        }
    }

    private mutating func discard(_ app: Int) {
        isEndAsked[app] = true
        taken[app] = nil
    }

    static func isToRun(_ policy: AppPolicy) -> Bool {
        policy.relaunch == .always || policy.launchAtStart != nil || policy.role == .worker
    }

    // MARK: Effects

    mutating func record<Core: DecidingCore>(
        _ effect: Effect, of app: Int?, in event: Event, _ model: CoreModel, _ core: Core, at now: Microseconds,
        _ findings: inout Findings
    ) {
        if case .answer(let request, .refused) = effect, let current, current.request == request {
            taken[current.app] = current.taken
            isLaunchAsked[current.app] = current.wasLaunchAsked
            self.current = nil
        }
        guard let app else { return }
        switch effect {
        case .writeReceipt(let receipt):
            let known = model.apps[app]
            guard receipt.namespace == .jetsam, receipt.code == Receipt.Code.jetsam, !isEndAsked[app],
                !isLaunchAsked[app], known.isRegistered, !model.isShuttingDown,
                Self.isToRun(known.policy)
            else { return }
            taken[app] = Taken(footprint: receipt.memory)
        case .report(.stateChanged(_, _, .terminating, let reason)):
            switch reason {
            case .exitsOnSuspend, .unloaded, .shutdown, .requested: isEndAsked[app] = true
            default: break
            }
        case .report(.stateChanged(_, _, .notRunning, _)): taken[app]?.due = now
        case .report(.relaunchScheduled(_, let time, _)): taken[app]?.due = now + time.microseconds
        case .spawn(_, let run, let launch):
            if let footprint = taken[app]?.footprint, launch.reason == .relaunch {
                checkSpace(app, footprint, event, model, core, now, &findings)
                growing.append(Growing(app: app, run: run, footprint: footprint, since: now))
            }
            taken[app] = nil
            isEndAsked[app] = false
            isLaunchAsked[app] = false
            if current?.app == app { current = nil }
        default: break
        }
    }

    /// At the launch of an app that jetsam ended there is space for its footprint, and for the growth of those that came back
    /// before it. An app that would not fit even if no other ran needs three quarters.
    private mutating func checkSpace<Core: DecidingCore>(
        _ app: Int, _ footprint: UInt64, _ event: Event, _ model: CoreModel, _ core: Core, _ now: Microseconds,
        _ findings: inout Findings
    ) {
        let id = model.apps[app].id
        guard case .memoryMeasured(let reading) = event else {
            return findings.check(false, .returnsHaveSpace, "\(id) comes back without a measurement")
        }
        findings.check(
            core.memory.level == .normal, .returnsHaveSpace, "\(id) comes back at memory level \(core.memory.level)")
        growing = growing.filter { !grown($0, model, now) }
        let apps = model.apps.reduce(UInt64(0)) { $0 + $1.memory }
        var free = reading.available.excess(over: warning(reading, model))
        if let limit = reading.limit {
            free = min(free, limit.available.excess(over: model.manager.thresholds(of: limit.total).warning))
        }
        findings.check(
            fits(footprint, model, free: free, capacity: free + apps), .returnsHaveSpace,
            "\(id) comes back with \(footprint) bytes; \(free) are free, and some of them kept for \(growing)")
        guard let budget = model.manager.budget else { return }
        let most = budget / 100 * 90
        findings.check(
            fits(footprint, model, free: most - min(most, apps), capacity: most), .returnsHaveSpace,
            "\(id) comes back with \(footprint) bytes; apps have \(apps) of the budget \(budget), and \(growing) grow")
    }

    /// Below what is available apps are warned. With swap space left, that is less.
    private func warning(_ reading: MemoryReading, _ model: CoreModel) -> UInt64 {
        let thresholds = model.manager.thresholds(of: reading.total)
        return reading.swapFree > reading.swapTotal / 10 ? thresholds.critical : thresholds.warning
    }

    private func fits(_ footprint: UInt64, _ model: CoreModel, free: UInt64, capacity: UInt64) -> Bool {
        let most = capacity / 4 * 3
        let kept = growing.reduce(UInt64(0)) { sum, other in
            let needed = min(other.footprint, most)
            return sum + needed - min(needed, model.apps[other.app].memory)
        }
        return min(footprint, most) + kept <= free
    }

    private func grown(_ other: Growing, _ model: CoreModel, _ now: Microseconds) -> Bool {
        let app = model.apps[other.app]
        switch app.phase {
        case .unknown, .notRunning, .suspended, .ending, .past: return true
        case .launching, .foreground, .entering, .running, .suspending, .waking, .terminating: break
        }
        return app.run != other.run || app.memory >= other.footprint || now - other.since >= Self.growthTime
    }

    // MARK: The state after an event

    mutating func verify<Core: DecidingCore>(
        _ event: Event, _ model: CoreModel, _ world: World, _ core: Core, _ findings: inout Findings
    ) {
        let now = world.now
        // While the daemon does not run, nothing comes back.
        if lateness != world.lateness {
            lateness = world.lateness
            let end = max(now, world.stalledUntil)
            lastMeasure = end
            for app in taken.indices where taken[app]?.spaceSince != nil { taken[app]?.spaceSince = end }
        }
        // An app that was as large as before, or frozen, has shown what it needs.
        if case .memoryMeasured = event, !growing.isEmpty { growing = growing.filter { !grown($0, model, now) } }
        guard isAnyTaken else { return lastMeasure = now }
        switch event {
        case .memoryMeasured(let reading):
            lastMeasure = now
            recordSpace(reading, model, core, now)
        case .deadlineReached: break
        default: return
        }
        for app in taken.indices {
            guard let wait = taken[app], model.apps[app].phase == .notRunning, wait.due <= now else { continue }
            let since = wait.spaceSince.map { max($0, wait.due) }
            findings.check(
                since.map { now - $0 <= Self.longestReturn } ?? true, .takenAppsReturn,
                "\(model.apps[app].id) does not come back, although there was space for \(now - (since ?? now)) µs")
            findings.check(
                now - max(lastMeasure, wait.due) <= Self.longestReturn || core.memory.level > .normal, .takenAppsReturn,
                "\(model.apps[app].id) waits for memory, but that is not measured")
        }
    }

    /// Records since when there is much space: for all that wait, twice.
    private mutating func recordSpace<Core: DecidingCore>(
        _ reading: MemoryReading, _ model: CoreModel, _ core: Core, _ now: Microseconds
    ) {
        let waiting = taken.reduce(UInt64(0)) { $0 + ($1?.footprint ?? 0) }
        let kept = growing.reduce(UInt64(0)) { $0 + $1.footprint }
        let needed = 2 * (waiting + kept)
        let apps = model.apps.reduce(UInt64(0)) { $0 + $1.memory }
        func isFree(_ available: UInt64, of total: UInt64) -> Bool {
            let warning = model.manager.thresholds(of: total).warning
            return available / 2 > warning && available - 2 * warning >= needed
        }
        let isFree =
            isFree(reading.available, of: reading.total)
            && (reading.limit.map { isFree($0.available, of: $0.total) } ?? true)
        let isWithinBudget =
            model.manager.budget.map { $0 / 100 * 80 > apps && $0 / 100 * 80 - apps >= needed } ?? true
        let isLaunching = model.apps.contains { $0.phase == .launching || $0.phase == .ending }
        let hasSpace = isFree && isWithinBudget && core.memory.level == .normal && !isLaunching
        for app in taken.indices where taken[app] != nil {
            if !hasSpace {
                taken[app]?.spaceSince = nil
            } else if taken[app]?.spaceSince == nil {
                taken[app]?.spaceSince = now
            }
        }
    }
}
