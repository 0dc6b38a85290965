import LifecycleCore

/// Each wake has a deadline of its own, and ends alone (L26).
extension DeadlineChecker {
    /// What became of an app's wakes in one event.
    struct WakeEnds {
        /// It completes one wake, whichever: of one the reason is not known.
        var isAnyPossible = false
        /// The open wake that the app completes with the event.
        var completed: UInt64?
        /// The wakes whose deadline was met.
        var met: [UInt64] = []
        /// A wake that was cancelled before its time was over, with no cause so far.
        var cancelled: UInt64?
        /// The app came to the foreground, or is to end.
        var hasCause = false
    }

    /// The limit of the core.
    private static let maximumWakes = 64

    mutating func record(_ state: AppState) {
        switch state {
        case .active, .inactive, .terminating, .notRunning, .suspended: wakeEnds.hasCause = true
        case .launching, .background: break
        }
    }

    /// - Returns: whether the report is about the deadline of a wake.
    mutating func record(
        _ report: Report, ofWakeOf app: Int, _ event: Event, _ model: CoreModel, _ now: Microseconds,
        _ findings: inout Findings
    ) -> Bool {
        switch report {
        case .deadlineStarted(let id, .wake, let time, let wake):
            findings.check(
                !wakes[app].contains { $0.wake == wake }, .deadlinesArePaired,
                "\(id): wake \(wake) begins while it is open")
            let isLaunching = model.apps[app].phase == .launching
            let isDoubtful = model.apps[app].wakes.isDoubtful(wake, isLaunching: isLaunching)
            wakes[app].append(Open(wake: wake, start: now, allowed: time.microseconds, isDoubtful: isDoubtful))
            findings.check(
                wakes[app].count <= Self.maximumWakes, .stateIsBounded, "\(id) has \(wakes[app].count) open wakes")
        case .deadlineMet(let id, .wake, let used, let wake):
            let open = end(wake, app, id, &findings)
            findings.check(
                open.map { now - $0.start == used.microseconds } ?? false, .deadlinesArePaired,
                "\(id): wake \(wake) ends after \(used), but has another age")
            wakeEnds.met.append(wake)
        case .deadlineCancelled(let id, .wake, let wake):
            guard let open = end(wake, app, id, &findings) else { return true }
            if open.due > now { wakeEnds.cancelled = wake }
        case .deadlineMissed(let id, .wake, let wake):
            use(wake, of: app) { $0.checkMissed(app, id, .wake, event, model, now, &findings) }
            _ = end(wake, app, id, &findings)
            missed = app
        case .deadlineDeferred(let id, .wake, let cause, let wake):
            let mayDefer = use(wake, of: app) { $0.mayDefer(.wake, cause, of: app, event, model, now) }
            findings.check(mayDefer, .deadlinesAreFair, "\(id): wake \(wake) starts again without cause (\(cause))")
            let index = wakes[app].firstIndex { $0.wake == wake }
            guard let index, cause == .debuggerAttached else { return true }
            wakes[app][index].debugged += now - wakes[app][index].start
            wakes[app][index].start = now
            wakes[app][index].isInspected = false
        default: return false
        }
        return true
    }

    /// Checks a wake like the only deadline of its kind.
    private mutating func use<Result>(
        _ wake: UInt64, of app: Int, _ check: (inout DeadlineChecker) -> Result
    ) -> Result {
        open[app][DeadlineKind.wake.index] = wakes[app].first { $0.wake == wake }
        defer { open[app][DeadlineKind.wake.index] = nil }
        return check(&self)
    }

    private mutating func end(_ wake: UInt64, _ app: Int, _ id: AppID, _ findings: inout Findings) -> Open? {
        let index = wakes[app].firstIndex { $0.wake == wake }
        findings.check(index != nil, .deadlinesArePaired, "\(id): wake \(wake) ends, but is not open")
        return index.map { wakes[app].remove(at: $0) }
    }

    /// Checks the ends of wakes after all effects of an event.
    func verifyWakes(_ app: Int, _ event: Event, _ model: CoreModel, _ findings: inout Findings) {
        let id = model.apps[app].id
        if let completed = wakeEnds.completed {
            findings.check(
                wakeEnds.met.contains(completed), .wakesAreCompleted,
                "\(id) has completed wake \(completed), which is open still")
        }
        findings.check(
            wakeEnds.isAnyPossible ? wakeEnds.met.count <= 1 : wakeEnds.met.allSatisfy { $0 == wakeEnds.completed },
            .wakesEndAlone,
            "\(id) has completed wake \(wakeEnds.completed ?? 0), but \(wakeEnds.met) have ended")
        // The wake of an app that input has woken ends with its work; `IdlenessChecker` checks that.
        if case .run(_, .workMeasured) = event { return }
        guard let cancelled = wakeEnds.cancelled, !wakeEnds.hasCause else { return }
        let phase = model.apps[app].phase
        findings.check(
            phase != .running && phase != .entering, .wakesEndAlone,
            "\(id): wake \(cancelled) ends before its time is over")
    }
}
