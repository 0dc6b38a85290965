import LifecycleCore

/// Each deadline that starts is met, missed or cancelled, once; is looked into in time; and is missed only when it was.
struct DeadlineChecker {
    private struct Open {
        var start: Microseconds
        var allowed: Microseconds
        /// The core has asked for a look at the app since it was due.
        var isInspected = false
        /// It may have been answered while nobody listened.
        var isDoubtful = false
        var due: Microseconds { start + allowed }
    }

    /// By app, then by kind.
    private var open: [[Open?]]
    /// By app: the earliest time at which something of it is due, to pass over most apps.
    private var earliest: [Microseconds]
    /// By app: a look at it is under way.
    private var isInspecting: [Bool]
    /// What the look just now found of a debugger; `nil`: no look just now.
    private var found: Bool?
    /// The app that has just missed a deadline, and was not killed for it yet.
    private var missed: Int?

    init(apps: Int) {
        open = Array(repeating: Array(repeating: nil, count: DeadlineKind.allCases.count), count: apps)
        earliest = Array(repeating: .max, count: apps)
        isInspecting = Array(repeating: false, count: apps)
    }

    func isOpen(_ kind: DeadlineKind, of app: Int) -> Bool { open[app][kind.place] != nil }
    func openKinds(of app: Int) -> [DeadlineKind] { DeadlineKind.allCases.filter { isOpen($0, of: app) } }

    mutating func note(_ event: Event, of app: Int?, at now: Microseconds) {
        found = nil
        guard let app else { return }
        if case .run(_, .inspected(let inspection)) = event {
            found = inspection.traced
            isInspecting[app] = false
        } else if case .run(_, .reattached(let heard, let late)) = event {
            // A thaw that nobody saw to is not the app's fault.
            open[app][DeadlineKind.thaw.place]?.start = now
            for kind in [DeadlineKind.launch, .background, .wake] where !heard {
                open[app][kind.place]?.isDoubtful = true
            }
            // Nobody has to answer before he was asked.
            for kind in [DeadlineKind.launch, .background, .terminate, .wake] where late {
                open[app][kind.place]?.start = now
            }
            refresh(app)
        } else if case .run(_, .heartbeat) = event {
            open[app][DeadlineKind.watchdog.place]?.start = now
            open[app][DeadlineKind.watchdog.place]?.isInspected = false
            refresh(app)
        }
    }

    mutating func note(
        _ effect: Effect, of app: Int?, in event: Event, _ shadow: Shadow, at now: Microseconds,
        _ findings: inout Findings
    ) {
        guard let app else { return }
        switch effect {
        case .report(.deadlineStarted(let id, let kind, let time)):
            findings.check(!isOpen(kind, of: app), .deadlinesArePaired, "\(id): \(kind) starts while it counts")
            open[app][kind.place] = Open(start: now, allowed: time.microseconds)
        case .report(.deadlineExtended(let id, let kind, let time)):
            findings.check(isOpen(kind, of: app), .deadlinesArePaired, "\(id): \(kind) is extended, but not open")
            extend(app, kind, time, shadow.apps[app].policy.extendedDeadlineMax, now)
        case .report(.deadlineMet(let id, let kind, _)), .report(.deadlineCancelled(let id, let kind)):
            close(app, kind, &findings, id)
        case .report(.deadlineMissed(let id, let kind)):
            checkMissed(app, id, kind, event, now, &findings)
            close(app, kind, &findings, id)
            missed = app
        case .report(.deadlineDeferred(let id, let kind, _)):
            let isReattached = if case .run(_, .reattached) = event { true } else { false }
            let isTraced = (found == true || isReattached) && isOpen(kind, of: app)
            findings.check(isTraced, .deadlinesAreFair, "\(id): \(kind) is put off, but no debugger was found")
            let used = usedBefore(kind, of: app, event, shadow)
            open[app][kind.place]?.start = now - used
            open[app][kind.place]?.isInspected = false
        case .inspect:
            isInspecting[app] = true
            for place in open[app].indices where (open[app][place]?.due ?? .max) <= now {
                open[app][place]?.isInspected = true
            }
            return
        case .kill:
            if missed == app { missed = nil }
            return
        case .spawn, .notify, .freeze, .thaw, .continueStopped, .throttle, .unthrottle, .deliver, .recordLaunch,
            .writeReceipt, .dropRestorationState, .answer, .report, .measureMemory,
            .allowSleep, .finish:
            return
        }
        refresh(app)
    }

    /// L22: a budget whose end came near while no daemon was there has as much left as the notice is long.
    private func usedBefore(_ kind: DeadlineKind, of app: Int, _ event: Event, _ shadow: Shadow) -> Microseconds {
        guard kind == .backgroundTime, case .run(_, .reattached(_, noticesDelayed: let late)) = event,
            let open = open[app][kind.place],
            !late || shadow.apps[app].phase != .entering
        else { return 0 }
        return max(0, open.allowed - shadow.apps[app].policy.expirationNotice.microseconds)
    }

    /// L25: never shorter, and never beyond the cap.
    private mutating func extend(
        _ app: Int, _ kind: DeadlineKind, _ time: Duration, _ limit: Duration?, _ now: Microseconds
    ) {
        guard let deadline = open[app][kind.place] else { return }
        var allowed = now + time.microseconds - deadline.start
        if let limit { allowed = min(allowed, max(limit.microseconds, deadline.allowed)) }
        open[app][kind.place]?.allowed = max(allowed, deadline.allowed)
    }

    private mutating func close(_ app: Int, _ kind: DeadlineKind, _ findings: inout Findings, _ id: AppID) {
        findings.check(isOpen(kind, of: app), .deadlinesArePaired, "\(id): \(kind) ends, but never started")
        open[app][kind.place] = nil
    }

    private mutating func refresh(_ app: Int) {
        var first = Microseconds.max
        for deadline in open[app] { first = min(first, deadline?.due ?? .max) }
        earliest[app] = first
    }

    private func checkMissed(
        _ app: Int, _ id: AppID, _ kind: DeadlineKind, _ event: Event, _ now: Microseconds, _ findings: inout Findings
    ) {
        // An app may give its heartbeat up (WATCHDOG=trigger).
        if kind == .watchdog, case .run(_, .heartbeatGivenUp) = event { return }
        let early = (open[app][kind.place]?.due ?? now) - now
        findings.check(
            open[app][kind.place]?.isDoubtful != true, .unheardAreSpared,
            "\(id): \(kind) is missed, though it may have been answered")
        findings.check(early <= 0, .deadlinesAreFair, "\(id): \(kind) is missed \(early) µs before its time")
        findings.check(
            found == false, .deadlinesAreFair, "\(id): \(kind) is missed, but nobody looked for a debugger")
    }

    /// After all effects of one event.
    mutating func settle(
        _ event: Event, of app: Int?, _ shadow: Shadow, at now: Microseconds, _ findings: inout Findings
    ) {
        if let app, shadow.apps[app].state == .notRunning {
            isInspecting[app] = false
            findings.check(
                earliest[app] == .max, .deadlinesArePaired,
                "\(shadow.apps[app].id) is not running, and still counts \(openKinds(of: app))")
        }
        findings.check(missed == nil, .deadlinesAreFair, "a deadline is missed, and the app is not killed for it")
        missed = nil
        guard case .deadlineReached = event else { return }
        for app in earliest.indices where earliest[app] <= now { checkDue(app, shadow, now, &findings) }
    }

    /// What is due when the core was told the time is being looked into. While an app is being frozen or thawed, its budget
    /// and its wake may run out: that is seen to when it runs again.
    private func checkDue(_ app: Int, _ shadow: Shadow, _ now: Microseconds, _ findings: inout Findings) {
        let phase = shadow.apps[app].phase
        let isBetween = phase == .suspending || phase == .waking
        for kind in DeadlineKind.allCases {
            guard let deadline = open[app][kind.place], deadline.due <= now else { continue }
            if isBetween, kind == .backgroundTime || kind == .wake { continue }
            findings.check(
                deadline.isInspected && isInspecting[app], .deadlinesAreKept,
                "\(shadow.apps[app].id): \(kind) was due \(now - deadline.due) µs ago, and nobody looks into it")
        }
    }
}

extension DeadlineKind {
    /// A small number for each kind.
    var place: Int {
        switch self {
        case .launch: 0
        case .background: 1
        case .terminate: 2
        case .backgroundTime: 3
        case .wake: 4
        case .watchdog: 5
        case .thaw: 6
        }
    }
}
