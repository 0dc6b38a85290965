import LifecycleCore

/// Checks that each deadline which starts is met, missed or cancelled once, that a passed deadline is inspected in
/// time, and that it is missed only with cause.
struct DeadlineChecker {
    struct Open {
        /// The number of the wake whose deadline it is.
        var wake: UInt64 = 0
        var start: Microseconds
        var allowed: Microseconds
        /// Whether the core has inspected the app since the deadline passed.
        var isInspected = false
        /// Whether the app may have answered while there was no daemon.
        var isDoubtful = false
        /// For how long it did not count, because a debugger was attached.
        var debugged: Microseconds = 0
        /// The time without a processor that was added.
        var credited: Microseconds = 0
        var due: Microseconds { start + allowed + credited }
    }

    /// The open deadlines by app and kind, except those of wakes.
    var open: [[Open?]]
    /// The open wakes by app. Each has a deadline of its own (L26).
    var wakes: [[Open]]
    /// What became of wakes in this event.
    var wakeEnds = WakeEnds()
    /// By app: when its first deadline is due. It avoids a search of all apps.
    private var earliest: [Microseconds]
    /// By app: whether an inspection is in progress.
    private var isInspecting: [Bool]
    /// Whether the inspection of this event found a debugger; `nil`: the event is no inspection.
    private var found: Bool?
    /// The app that missed a deadline in this event.
    var missed: Int?
    /// The app that was killed in this event.
    private var killed: Int?

    init(apps: Int) {
        open = Array(repeating: Array(repeating: nil, count: DeadlineKind.allCases.count), count: apps)
        wakes = Array(repeating: [], count: apps)
        earliest = Array(repeating: .max, count: apps)
        isInspecting = Array(repeating: false, count: apps)
    }

    func isOpen(_ kind: DeadlineKind, of app: Int) -> Bool {
        open[app][kind.index] != nil || kind == .wake && !wakes[app].isEmpty
    }
    /// The start and the end of an open deadline.
    func span(_ kind: DeadlineKind, of app: Int) -> (start: Microseconds, due: Microseconds)? {
        open[app][kind.index].map { ($0.start, $0.due) }
    }
    func openKinds(of app: Int) -> [DeadlineKind] { DeadlineKind.allCases.filter { isOpen($0, of: app) } }

    mutating func record(_ event: Event, of app: Int?, _ model: CoreModel, at now: Microseconds) {
        found = nil
        wakeEnds = WakeEnds()
        guard let app else { return }
        if case .run(_, .wakeCompleted(_, let number)) = event {
            wakeEnds.completed = model.apps[app].wakes.completed(with: number)
            wakeEnds.isAnyPossible = number == nil && model.apps[app].wakes.hasUnknownReason
        }
        if case .run(_, .inspected(let inspection)) = event {
            found = inspection.traced
            isInspecting[app] = false
        } else if case .run(_, .reattached(let messagesKept, let noticesDelayed)) = event {
            // The thaw deadline restarts: no daemon handled the thaw.
            open[app][DeadlineKind.thaw.index]?.start = now
            for kind in [DeadlineKind.launch, .background] where !messagesKept {
                open[app][kind.index]?.isDoubtful = true
            }
            // A deadline starts when the app is notified.
            for kind in [DeadlineKind.launch, .background, .terminate] where noticesDelayed {
                open[app][kind.index]?.start = now
                open[app][kind.index]?.credited = 0
            }
            for wake in wakes[app].indices {
                if !messagesKept { wakes[app][wake].isDoubtful = true }
                if noticesDelayed { wakes[app][wake].start = now }
            }
            refresh(app)
        } else if case .run(_, .heartbeat) = event {
            open[app][DeadlineKind.watchdog.index]?.start = now
            open[app][DeadlineKind.watchdog.index]?.isInspected = false
            refresh(app)
        }
    }

    mutating func record(
        _ effect: Effect, of app: Int?, in event: Event, _ model: CoreModel, at now: Microseconds,
        _ findings: inout Findings
    ) {
        guard let app else { return }
        if case .report(let report) = effect, record(report, ofWakeOf: app, event, model, now, &findings) {
            return refresh(app)
        }
        if case .report(.stateChanged(_, _, let state, _)) = effect { record(state) }
        switch effect {
        case .report(.deadlineStarted(let id, let kind, let time, _)):
            findings.check(!isOpen(kind, of: app), .deadlinesArePaired, "\(id): \(kind) starts while it is open")
            open[app][kind.index] = Open(start: now, allowed: time.microseconds)
        case .report(.deadlineExtended(let id, let kind, let time)):
            findings.check(isOpen(kind, of: app), .deadlinesArePaired, "\(id): \(kind) is extended, but not open")
            extend(app, kind, time, model.apps[app].policy.extendedDeadlineMax, now)
        case .report(.deadlineMet(let id, let kind, _, _)), .report(.deadlineCancelled(let id, let kind, _)):
            close(app, kind, &findings, id)
        case .report(.deadlineMissed(let id, let kind, _)):
            checkMissed(app, id, kind, event, model, now, &findings)
            close(app, kind, &findings, id)
            missed = app
        case .report(.deadlineDeferred(let id, let kind, let cause, _)):
            findings.check(
                isOpen(kind, of: app) && mayDefer(kind, cause, of: app, event, model, now), .deadlinesAreFair,
                "\(id): \(kind) starts again without cause (\(cause))")
            let used = usedBefore(kind, cause, of: app, event, model)
            if cause == .debuggerAttached, let open = open[app][kind.index] {
                self.open[app][kind.index]?.debugged += now - open.start
            }
            open[app][kind.index]?.start = now - used
            open[app][kind.index]?.credited = 0
            open[app][kind.index]?.isInspected = false
        case .report(.deadlineCredited(let id, let kind, let time)):
            findings.check(
                (open[app][kind.index]?.credited ?? 1 << 40) + time.microseconds <= credit(kind, of: app, event, now),
                .deadlinesAreFair, "\(id): \(kind) is credited with \(time) without cause")
            open[app][kind.index]?.credited += time.microseconds
            open[app][kind.index]?.isInspected = false
        case .inspect:
            isInspecting[app] = true
            for index in open[app].indices where (open[app][index]?.due ?? .max) <= now {
                open[app][index]?.isInspected = true
            }
            for wake in wakes[app].indices where wakes[app][wake].due <= now { wakes[app][wake].isInspected = true }
            return
        case .kill:
            killed = app
            return
        case .spawn, .notify, .freeze, .thaw, .continueStopped, .measureActivity, .throttle, .unthrottle, .setOOMClass,
            .deliver, .warn, .identify,
            .recordLaunch,
            .writeReceipt, .dropRestorationState, .answer, .report, .measureMemory,
            .allowSleep, .watchSockets, .stopWatchingSockets, .rejectConnections, .removeInstance, .scheduleTimers,
            .subscribe,
            .finish,
            .watchInput,
            .stopWatchingInput, .watchGPU, .measureWork, .measureProcessor, .measureSize, .reclaim, .stopReclaim,
            .limitProcessor, .runHook, .killHook:
            return
        }
        refresh(app)
    }

    /// L48: how much time without a processor counts, as the inspection of this event found.
    private func credit(_ kind: DeadlineKind, of app: Int, _ event: Event, _ now: Microseconds) -> Microseconds {
        guard let open = open[app][kind.index], case .run(_, .inspected(let inspection)) = event else { return 0 }
        switch kind {
        case .launch, .background, .terminate:
            return min(inspection.waited.microseconds, now - open.start, 20 * .second)
        case .backgroundTime, .wake, .watchdog, .thaw: return 0
        }
    }

    /// Whether a deadline may start again (L48): a debugger is attached, the daemon was restarted, or a notice was sent late.
    func mayDefer(
        _ kind: DeadlineKind, _ cause: DeferralCause, of app: Int, _ event: Event, _ model: CoreModel,
        _ now: Microseconds
    ) -> Bool {
        guard let open = open[app][kind.index] else { return false }
        switch (cause, event) {
        case (.debuggerAttached, _): return found == true
        case (.daemonRestarted, .run(_, .reattached)): return true
        case (.noticeDelayed, .run(_, .notified(let notice, delivered: true, _))):
            return notice.deadlineKind == kind && now - open.start > 1 * .second
        case (.noticeDelayed, .deadlineReached):
            let notice = model.apps[app].policy.expirationNotice.microseconds
            return kind == .backgroundTime && now - max(open.start, open.due - notice) > 1 * .second
        case (.daemonRestarted, _), (.noticeDelayed, _): return false
        }
    }

    /// L22: if the end of the budget came near while no daemon ran, the time of the expiration notice is left.
    private func usedBefore(
        _ kind: DeadlineKind, _ cause: DeferralCause, of app: Int, _ event: Event, _ model: CoreModel
    ) -> Microseconds {
        guard kind == .backgroundTime, let open = open[app][kind.index] else { return 0 }
        if case .run(_, .reattached(_, noticesDelayed: let noticesDelayed)) = event {
            if noticesDelayed, model.apps[app].phase == .entering { return 0 }
        } else if cause != .noticeDelayed {
            return 0
        }
        return max(0, open.allowed - model.apps[app].policy.expirationNotice.microseconds)
    }

    /// L25: an extension never shortens a deadline and never exceeds `extendedDeadlineMax`.
    private mutating func extend(
        _ app: Int, _ kind: DeadlineKind, _ time: Duration, _ limit: Duration?, _ now: Microseconds
    ) {
        guard let deadline = open[app][kind.index] else { return }
        var allowed = now + time.microseconds - deadline.start - deadline.credited
        if let limit { allowed = min(allowed, max(limit.microseconds, deadline.allowed)) }
        open[app][kind.index]?.allowed = max(allowed, deadline.allowed)
    }

    private mutating func close(_ app: Int, _ kind: DeadlineKind, _ findings: inout Findings, _ id: AppID) {
        findings.check(isOpen(kind, of: app), .deadlinesArePaired, "\(id): \(kind) ends, but is not open")
        open[app][kind.index] = nil
    }

    private mutating func refresh(_ app: Int) {
        var first = Microseconds.max
        for deadline in open[app] { first = min(first, deadline?.due ?? .max) }
        for wake in wakes[app] { first = min(first, wake.due) }
        earliest[app] = first
    }

    func checkMissed(
        _ app: Int, _ id: AppID, _ kind: DeadlineKind, _ event: Event, _ model: CoreModel, _ now: Microseconds,
        _ findings: inout Findings
    ) {
        // An app may request the kill (WATCHDOG=trigger).
        if kind == .watchdog, case .run(_, .heartbeatGivenUp) = event { return }
        let credit = credit(kind, of: app, event, now)
        findings.check(
            credit - (open[app][kind.index]?.credited ?? 0) < 10 * .millisecond, .starvationIsCredited,
            "\(id): \(kind) is missed, but it had no processor for \(credit) µs")
        let early = (open[app][kind.index]?.due ?? now) - now
        findings.check(
            open[app][kind.index]?.isDoubtful != true, .possibleAnswersAreExcused,
            "\(id): \(kind) is missed, but it may have been answered")
        findings.check(early <= 0, .deadlinesAreFair, "\(id): \(kind) is missed \(early) µs too early")
        // A debugger keeps a deadline from ending for an hour, and not in a shutdown (L48).
        let isOverridden = model.isShuttingDown || open[app][kind.index].map { $0.debugged >= 3600 * .second } ?? false
        findings.check(
            found == false || (found == true && isOverridden), .deadlinesAreFair,
            "\(id): \(kind) is missed without an inspection for a debugger")
    }

    /// Checks the deadlines after all effects of one event.
    mutating func verify(
        _ event: Event, of app: Int?, _ model: CoreModel, at now: Microseconds, _ findings: inout Findings
    ) {
        if let app, model.apps[app].state == .notRunning {
            isInspecting[app] = false
            findings.check(
                earliest[app] == .max, .deadlinesArePaired,
                "\(model.apps[app].id) is not running, but has open deadlines: \(openKinds(of: app))")
        }
        findings.check(
            missed == nil || missed == killed, .deadlinesAreFair, "a deadline is missed, but the app is not killed")
        (missed, killed) = (nil, nil)
        if let app { verifyWakes(app, event, model, &findings) }
        guard case .deadlineReached = event else { return }
        for app in earliest.indices where earliest[app] <= now { checkDue(app, model, now, &findings) }
    }

    /// Checks that each deadline which is due is inspected. While an app is being frozen or thawed, its budget and its
    /// wake may pass; they are handled when it runs again.
    private func checkDue(_ app: Int, _ model: CoreModel, _ now: Microseconds, _ findings: inout Findings) {
        let phase = model.apps[app].phase
        let isChanging = phase == .suspending || phase == .waking
        for wake in wakes[app] where wake.due <= now && !isChanging {
            findings.check(
                wake.isInspected && isInspecting[app], .deadlinesAreKept,
                "\(model.apps[app].id): a wake was due \(now - wake.due) µs ago, but the app is not inspected")
        }
        for kind in DeadlineKind.allCases {
            guard let deadline = open[app][kind.index], deadline.due <= now else { continue }
            if isChanging, kind == .backgroundTime { continue }
            findings.check(
                deadline.isInspected && isInspecting[app], .deadlinesAreKept,
                "\(model.apps[app].id): \(kind) was due \(now - deadline.due) µs ago, but the app is not inspected")
        }
    }
}

extension DeadlineKind {
    /// The index of the kind in a list.
    var index: Int {
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
