import LifecycleCore

/// Checks the delivered notifications (L31, L32): each event and the latest of each other kind, in order, without repetition and
/// without loss.
struct NotificationChecker {
    private struct Pending {
        var kind: String
        var payload: String

        /// Whether each one counts: it replaces no other.
        var isEvent: Bool { kind == Notification.push || kind.hasPrefix("x-") && payload.isEmpty }

        /// Whether it describes a state. Any other notification is an event, which is delivered each time.
        var isState: Bool {
            kind != Notification.push && kind != "memory" && kind != "time" && !payload.isEmpty
        }
    }

    private struct Inbox {
        var pending: [Pending] = []
        /// The last payload of each kind that this run received.
        var known: [String: String] = [:]
        /// What the next process gets: pushes that came while the app was ending.
        var afterEnd: [Pending] = []
        /// Whether there are more kinds than the core stores, so that it may drop some.
        var isFull = false
        /// The number of the last event that was delivered.
        var lastEvent: UInt64 = 0
    }

    /// By app: whether the core sends it notifications about its protected data (`AbsenceChecker`).
    private var isNotifiedOfData: [Bool]

    /// By app: the kinds that its manifest names (L33).
    private var wanted: [NotificationKinds]

    private var inboxes: [Inbox]
    /// The request that may add a notification, until its answer shows whether it was accepted.
    private var current: (request: RequestID, app: Int, item: Pending, time: FilingTime)?

    /// What the app did when the notification came.
    private enum FilingTime { case running, suspended, ending }
    private static let most = 64

    init(apps: Int) {
        inboxes = Array(repeating: Inbox(), count: apps)
        isNotifiedOfData = Array(repeating: false, count: apps)
        wanted = Array(repeating: [], count: apps)
    }

    /// Whether the core sends this kind by itself. `NoticeChecker` checks the memory level.
    private func isSentByCore(_ kind: String, _ app: Int) -> Bool {
        kind == "memory" || kind == "protectedData" && isNotifiedOfData[app]
    }

    mutating func record(_ event: Event, of app: Int?, _ model: CoreModel) {
        current = nil
        if case .shutdownRequested = event { for app in inboxes.indices { inboxes[app].afterEnd = [] } }
        if let app, case .configuration(.registered(_, let policy, _)) = event, policy.usesProtectedData {
            isNotifiedOfData[app] = true
        }
        if let app, case .configuration(.unregistered) = event { discard(app, model) }
        if let app, case .configuration(.registered(_, let policy, _)) = event { wanted[app] = policy.notifications }
        if case .observed(let reading, let id) = event {
            for app in inboxes.indices where id.map({ $0 == model.apps[app].id }) ?? true {
                observe(app, reading, model)
            }
        }
        guard let app, case .requested(let request, _, let what, by: _) = event else { return }
        switch what {
        case .send(let notification):
            file(request, app, Pending(kind: notification.kind, payload: notification.payload), model)
        case .push(let payload): file(request, app, Pending(kind: Notification.push, payload: payload), model)
        // No process follows the end any more.
        case .terminate, .remove:
            inboxes[app].afterEnd = []
            discard(app, model)
        case .launch, .activate, .open, .background, .interrupt, .interruptWhileConnected, .endInterruption,
            .cancelTask,
            .scene:
            break
        }
    }

    /// A source has read something. An app that does not want the kind is not notified of it, nor of what it knows (L33).
    private mutating func observe(_ app: Int, _ reading: Notification, _ model: CoreModel) {
        switch model.apps[app].phase {
        case .unknown, .notRunning, .terminating, .ending, .past: return
        case .launching, .foreground, .entering, .running, .waking, .suspending, .suspended: break
        }
        guard let kind = NotificationKinds(named: reading.kind), wanted[app].contains(kind) else { return }
        let item = Pending(kind: reading.kind, payload: reading.payload)
        let latest = inboxes[app].pending.last { $0.kind == item.kind }?.payload ?? inboxes[app].known[item.kind]
        // The first state of a kind is what the app was launched in, except its address for pushes.
        let isFirst = latest == nil && item.kind != Notification.pushEndpoint
        if item.isState, isFirst { inboxes[app].known[item.kind] = item.payload }
        if item.isState, isFirst || latest == item.payload { return }
        let isHeld = model.apps[app].phase == .suspended || model.apps[app].phase == .suspending
        accept(item, app, isHeld ? .suspended : .running)
    }

    /// A launch that waits for others is cancelled, with what it was for.
    private mutating func discard(_ app: Int, _ model: CoreModel) {
        if model.apps[app].run == nil { inboxes[app].pending = [] }
    }

    /// Adds a notification. It counts as accepted until the answer says otherwise.
    private mutating func file(_ request: RequestID, _ app: Int, _ item: Pending, _ model: CoreModel) {
        let phase = model.apps[app].phase
        let time: FilingTime =
            switch phase {
            case .suspending, .suspended: .suspended
            case .terminating, .ending: .ending
            case .unknown, .notRunning, .launching, .foreground, .entering, .running, .waking, .past: .running
            }
        current = (request, app, item, time)
    }

    private mutating func accept() {
        guard let (_, app, item, time) = current else { return }
        current = nil
        accept(item, app, time)
    }

    private mutating func accept(_ item: Pending, _ app: Int, _ time: FilingTime) {
        if time == .ending {
            if !item.isEvent { inboxes[app].afterEnd.removeAll { $0.kind == item.kind && !$0.isEvent } }
            return inboxes[app].afterEnd.append(item)
        }
        if !item.isEvent { inboxes[app].pending.removeAll { $0.kind == item.kind && !$0.isEvent } }
        // A running app receives every notification. A suspended app receives no change that was reverted.
        if time == .suspended, inboxes[app].known[item.kind] == item.payload { return }
        inboxes[app].pending.append(item)
    }

    /// Finds out, before the effects, whether the request was refused.
    mutating func record(_ effects: [Effect], _ model: CoreModel) {
        guard let (request, app, _, _) = current else { return }
        for effect in effects {
            if case .answer(request, .refused) = effect {
                current = nil
                return
            }
        }
        // A launch removes older notifications before it adds the new one.
        let id = model.apps[app].id
        if !effects.contains(where: { if case .spawn(id, _, _) = $0 { true } else { false } }) { accept() }
    }

    mutating func record(
        _ effect: Effect, of app: Int?, _ model: CoreModel, _ findings: inout Findings
    ) {
        guard let app else { return }
        switch effect {
        case .spawn:
            // What was pushed while the launch waited for others is for the new process, too.
            inboxes[app] = Inbox(pending: inboxes[app].afterEnd + inboxes[app].pending)
            if current?.app == app { accept() }
        case .run(_, .deliver(let given)): check(given, app, model, &findings)
        case .removeInstance: inboxes[app] = Inbox()
        case .report(.stateChanged(_, _, .terminating, _)), .report(.stateChanged(_, _, .notRunning, _)):
            inboxes[app].pending = []
        default: break
        }
    }

    private mutating func check(
        _ given: [Notification], _ app: Int, _ model: CoreModel, _ findings: inout Findings
    ) {
        let id = model.apps[app].id
        var position = 0
        // Events of one kind are taken in order.
        var taken: Set<Int> = []
        for notification in given where !isSentByCore(notification.kind, app) {
            let pending = inboxes[app].pending
            let item = Pending(kind: notification.kind, payload: notification.payload)
            let index = pending.indices.first {
                pending[$0].kind == item.kind && pending[$0].isEvent == item.isEvent && !taken.contains($0)
            }
            if let index { taken.insert(index) }
            findings.check(
                index.map { pending[$0].payload == notification.payload } ?? false, .notificationsAreLatest,
                "\(id) receives \(notification.kind) “\(notification.payload)”, which is "
                    + (index.map { "not the latest: “\(pending[$0].payload)”" } ?? "not pending"))
            findings.check(
                index.map { $0 >= position } ?? false, .notificationsAreLatest,
                "\(id) receives \(notification.kind) out of order")
            position = index ?? position
            if !item.isEvent { continue }
            findings.check(
                notification.id > inboxes[app].lastEvent, .notificationsAreLatest,
                "\(id) receives event \(notification.id) after event \(inboxes[app].lastEvent)")
            inboxes[app].lastEvent = notification.id
        }
        for index in taken.sorted(by: >) { inboxes[app].pending.remove(at: index) }
        for notification in given {
            if notification.id == 0 {
                inboxes[app].pending.removeAll { $0.kind == notification.kind && !$0.isEvent }
            }
            if Pending(kind: notification.kind, payload: notification.payload).isState {
                inboxes[app].known[notification.kind] = notification.payload
            }
        }
        if inboxes[app].known.count >= Self.most { inboxes[app].isFull = true }
        let kinds = given.filter { $0.id == 0 }.map(\.kind)
        findings.check(
            Set(kinds).count == kinds.count && kinds.count <= Self.most && given.count - kinds.count <= 2 * Self.most,
            .notificationsAreLatest, "\(id) receives \(given.count) notifications, some of the same kind")
    }

    /// Checks that no notification waits for a running app, except a time change in the background.
    mutating func verify<Core: DecidingCore>(
        of app: Int, _ model: CoreModel, _ core: Core, at now: Microseconds, _ findings: inout Findings
    ) {
        let known = model.apps[app]
        if known.run == nil {
            decideAfterEnd(app, isLaunchWaiting: core.view(of: known.id, at: Instant(now))?.launchWaiting != nil)
        }
        let isForeground = known.phase == .foreground
        guard isForeground || known.phase == .running, !inboxes[app].isFull else { return }
        for pending in inboxes[app].pending where !isSentByCore(pending.kind, app) {
            findings.check(
                !isForeground && pending.kind == "time", .notificationsAreLatest,
                "\(known.id) is \(known.state), but \(pending.kind) “\(pending.payload)” is not delivered")
        }
    }
    /// An app that has ended gets nothing more, unless its launch waits for others (L52).
    private mutating func decideAfterEnd(_ app: Int, isLaunchWaiting: Bool) {
        if isLaunchWaiting { inboxes[app].pending = inboxes[app].afterEnd + inboxes[app].pending }
        inboxes[app].afterEnd = []
    }
}
