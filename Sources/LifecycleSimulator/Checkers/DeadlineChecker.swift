import LifecycleCore

/// Checks each deadline against the clock: it is missed only when its time is over, unless a debugger is attached, and an app whose
/// time is over is looked at.
struct DeadlineChecker {
    struct Open {
        let kind: DeadlineKind
        /// The number of the wake whose deadline it is; 0: of none.
        let wake: UInt64
        var start: Microseconds
        var allowed: Microseconds
        /// The time without a processor that was added.
        var credited: Microseconds = 0
        /// For how long it did not count, because a debugger was attached.
        var debugged: Microseconds = 0
        /// The app may have answered while there was no daemon.
        var isDoubtful = false
        /// The app was inspected since the time was over.
        var isInspected = false

        var due: Microseconds { start + allowed + credited }
    }

    /// By app.
    private var open: [[Open]]
    /// By app: whether an inspection is in progress.
    private var isInspecting: [Bool]
    /// By app: the tasks that began in the background, and have not ended, of which it was not notified that they expire (L22).
    private var unannounced: [[String]]
    /// By app: it was notified that its tasks expire, and its background time counts.
    private var expires: [Bool]
    /// Whether the inspection of this event found a debugger; `nil`: the event is no inspection.
    private var found: Bool?
    /// The apps that missed a deadline in this event, and that were killed.
    private var missed: Int?
    private var killed: Int?

    init(apps: Int) {
        open = Array(repeating: [], count: apps)
        isInspecting = Array(repeating: false, count: apps)
        unannounced = Array(repeating: [], count: apps)
        expires = Array(repeating: false, count: apps)
    }

    func isOpen(_ kind: DeadlineKind, of app: Int) -> Bool { open[app].contains { $0.kind == kind } }
    /// The start and the end of an open deadline.
    func span(_ kind: DeadlineKind, _ wake: UInt64, of app: Int) -> (start: Microseconds, due: Microseconds)? {
        open[app].first { $0.kind == kind && $0.wake == wake }.map { ($0.start, $0.due) }
    }
    func tasksExpire(of app: Int) -> Bool { expires[app] && isOpen(.backgroundTime, of: app) }
    func openKinds(of app: Int) -> [DeadlineKind] { open[app].map(\.kind) }

    // MARK: Events

    mutating func record(_ event: Event, of app: Int?, at now: Microseconds) {
        (found, missed, killed) = (nil, nil, nil)
        guard let app else { return }
        switch event {
        case .run(_, .deadline(.inspected(let inspection))):
            found = inspection.traced
            isInspecting[app] = false
        case .run(_, .process(.reattached(let messagesKept, let noticesDelayed))):
            for index in open[app].indices {
                reattach(&open[app][index], messagesKept: messagesKept, noticesDelayed: noticesDelayed, now)
            }
        case .run(_, .watchdog(.heartbeat)):
            for index in open[app].indices where open[app][index].kind == .watchdog {
                open[app][index].start = now
                open[app][index].isInspected = false
            }
        default: break
        }
    }

    /// A deadline starts when the app is notified, and that of a thaw when the daemon that has thawed it begins.
    private func reattach(_ one: inout Open, messagesKept: Bool, noticesDelayed: Bool, _ now: Microseconds) {
        switch one.kind {
        case .thaw: one.start = now
        case .launch, .background, .wake:
            if !messagesKept { one.isDoubtful = true }
            if noticesDelayed { (one.start, one.credited) = (now, 0) }
        case .terminate: if noticesDelayed { (one.start, one.credited) = (now, 0) }
        case .backgroundTime, .watchdog: break
        }
    }

    // MARK: Effects

    mutating func record(
        _ effect: Effect, of app: Int?, in event: Event, _ model: CoreModel, at now: Microseconds,
        _ findings: inout Findings
    ) {
        guard let app else { return }
        switch effect {
        case .run(_, .deadline(.inspect)):
            isInspecting[app] = true
            for index in open[app].indices where open[app][index].due <= now { open[app][index].isInspected = true }
        case .run(_, .kill): killed = app
        case .spawn: unannounced[app] = []
        case .run(_, .notify(.tasksExpiring)): expires[app] = true
        case .report(let report): record(report, of: app, in: event, model, now, &findings)
        default: break
        }
    }

    private mutating func record(
        _ report: Report, of app: Int, in event: Event, _ model: CoreModel, _ now: Microseconds,
        _ findings: inout Findings
    ) {
        switch report {
        case .deadlineStarted(let id, let kind, let time, let wake):
            findings.check(
                span(kind, wake, of: app) == nil, .deadlinesAreFair, "\(id): \(kind) starts, and is open already")
            open[app].append(Open(kind: kind, wake: wake, start: now, allowed: time.microseconds))
            // What is left of the time of the notice after a suspension is no new time.
            if kind == .backgroundTime, time > model.apps[app].policy.expirationNotice { expires[app] = false }
        case .deadlineExtended(_, let kind, let time): extend(app, kind, time, model, now)
        case .deadlineMet(let id, let kind, _, let wake), .deadlineCancelled(let id, let kind, let wake):
            close(app, kind, wake, id, &findings)
        case .deadlineMissed(let id, let kind, let wake):
            checkMissed(app, id, kind, wake, event, model, now, &findings)
            close(app, kind, wake, id, &findings)
            missed = app
        case .deadlineDeferred(_, let kind, let cause, let wake):
            let isNotice = Self.leavesNotice(kind, cause, event, model.apps[app].phase)
            change(app, kind, wake) { one in
                if cause == .debuggerAttached { one.debugged += now - one.start }
                // If little of a budget was left, the time of the expiration notice is left (L22).
                let notice = model.apps[app].policy.expirationNotice.microseconds
                one.start = isNotice ? now - max(0, one.allowed - notice) : now
                (one.credited, one.isInspected) = (0, false)
            }
        case .deadlineCredited(let id, let kind, let time):
            findings.check(
                time.microseconds <= credit(event), .deadlinesAreFair, "\(id): \(kind) is credited with \(time)")
            change(app, kind, 0) { one in
                one.credited += time.microseconds
                one.isInspected = false
            }
        case .taskBegan(_, let name):
            if ![.foreground, .launching].contains(model.apps[app].phase) { unannounced[app].append(name) }
        case .taskEnded(_, let name, _):
            if let index = unannounced[app].firstIndex(of: name) { unannounced[app].remove(at: index) }
        case .tasksExpiring(_, let names): unannounced[app].removeAll(where: names.contains)
        case .taskExpires(_, let name, _): unannounced[app].removeAll { $0 == name }
        default: break
        }
    }

    private static func leavesNotice(
        _ kind: DeadlineKind, _ cause: DeferralCause, _ event: Event, _ phase: AppPhase
    ) -> Bool {
        if case .run(_, .process(.reattached(_, noticesDelayed: true))) = event, phase == .entering { return false }
        return kind == .backgroundTime && cause != .debuggerAttached
    }

    private mutating func change(_ app: Int, _ kind: DeadlineKind, _ wake: UInt64, _ change: (inout Open) -> Void) {
        guard let index = open[app].firstIndex(where: { $0.kind == kind && $0.wake == wake }) else { return }
        change(&open[app][index])
    }

    /// L48: how much time without a processor the inspection of this event has found.
    private func credit(_ event: Event) -> Microseconds {
        guard case .run(_, .deadline(.inspected(let inspection))) = event else { return 0 }
        return min(inspection.waited.microseconds, 20 * .second)
    }

    /// L25: an extension never shortens a deadline and never exceeds the limit of the manifest.
    private mutating func extend(
        _ app: Int, _ kind: DeadlineKind, _ time: Duration, _ model: CoreModel, _ now: Microseconds
    ) {
        change(app, kind, 0) { one in
            var allowed = now + time.microseconds - one.start - one.credited
            if let limit = model.apps[app].policy.extendedDeadlineMax {
                allowed = min(allowed, max(limit.microseconds, one.allowed))
            }
            one.allowed = max(allowed, one.allowed)
        }
    }

    private mutating func close(
        _ app: Int, _ kind: DeadlineKind, _ wake: UInt64, _ id: AppID, _ findings: inout Findings
    ) {
        let index = open[app].firstIndex { $0.kind == kind && $0.wake == wake }
        findings.check(index != nil, .deadlinesAreFair, "\(id): \(kind) ends, but is not open")
        if let index { open[app].remove(at: index) }
    }

    private func checkMissed(
        _ app: Int, _ id: AppID, _ kind: DeadlineKind, _ wake: UInt64, _ event: Event, _ model: CoreModel,
        _ now: Microseconds, _ findings: inout Findings
    ) {
        // An app may request the kill (WATCHDOG=trigger).
        if kind == .watchdog, case .run(_, .watchdog(.triggered)) = event { return }
        guard let one = open[app].first(where: { $0.kind == kind && $0.wake == wake }) else { return }
        findings.check(!one.isDoubtful, .answersInTimeCount, "\(id): \(kind) is missed, but may have been answered")
        findings.check(now >= one.due, .deadlinesAreFair, "\(id): \(kind) is missed \(one.due - now) µs too early")
        switch kind {
        case .launch, .background, .terminate:
            let waited = min(credit(event), now - one.start)
            findings.check(
                waited - one.credited < 10 * .millisecond, .deadlinesAreFair,
                "\(id): \(kind) is missed, but it had no processor for \(waited) µs")
        case .backgroundTime:
            findings.check(
                unannounced[app].isEmpty, .deadlinesAreFair,
                "\(id) is killed for \(unannounced[app]), but was not notified that they expire")
        case .wake, .watchdog, .thaw: break
        }
        // A debugger keeps a deadline from ending for an hour, and not in a shutdown (L48).
        let isOverridden = model.isShuttingDown || one.debugged >= 3600 * .second
        findings.check(
            found == false || found == true && isOverridden, .deadlinesAreFair,
            "\(id): \(kind) is missed without an inspection for a debugger")
    }

    // MARK: After all effects of an event

    mutating func verify(
        _ event: Event, of app: Int?, _ model: CoreModel, at now: Microseconds, _ findings: inout Findings
    ) {
        if let app, model.apps[app].state == .notRunning {
            isInspecting[app] = false
            findings.check(
                open[app].isEmpty, .deadlinesAreFair,
                "\(model.apps[app].id) is not running, but has open deadlines: \(openKinds(of: app))")
        }
        findings.check(
            missed == nil || missed == killed, .deadlinesAreFair, "a deadline is missed, but the app is not killed")
        guard case .deadlineReached = event else { return }
        for app in open.indices { checkDue(app, model, now, &findings) }
    }

    /// While an app is being frozen or thawed, its budget and its wakes may pass; they are handled when it runs again.
    private func checkDue(_ app: Int, _ model: CoreModel, _ now: Microseconds, _ findings: inout Findings) {
        for one in open[app] where one.due <= now {
            let phase = model.apps[app].phase
            let isOfStay = one.kind == .backgroundTime || one.kind == .wake
            if isOfStay, phase == .suspending || phase == .waking { continue }
            findings.check(
                one.isInspected && isInspecting[app], .deadlinesAreKept,
                "\(model.apps[app].id): \(one.kind) was due \(now - one.due) µs ago, but the app is not inspected")
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
