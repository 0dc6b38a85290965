import LifecycleCore

/// L31, L32: of each kind the latest, in the order of their coming, nothing twice, nothing lost.
struct NotificationChecker {
    private struct Pending {
        var kind: String
        var payload: String

        /// It says how the world is; anything else is an event, and news each time.
        var isState: Bool {
            kind != Notification.push && kind != "memory" && kind != "time" && !payload.isEmpty
        }
    }

    private struct Mailbox {
        var pending: [Pending] = []
        /// What this run was last given of each kind.
        var known: [String: String] = [:]
        /// Beyond what the core keeps, it may forget.
        var isCrowded = false
    }

    /// By app: the core itself tells it of its protected data (`AbsenceChecker`).
    private var isToldOfData: [Bool]

    private var mailboxes: [Mailbox]
    /// The request that may put something into a mailbox, until it is known whether it was accepted.
    private var asked: (request: RequestID, app: Int, item: Pending, isHeld: Bool)?
    private static let most = 64

    init(apps: Int) {
        mailboxes = Array(repeating: Mailbox(), count: apps)
        isToldOfData = Array(repeating: false, count: apps)
    }

    /// The memory level is told by the core as well (`NoticeChecker`).
    private func isCores(_ kind: String, _ app: Int) -> Bool {
        kind == "memory" || kind == "protectedData" && isToldOfData[app]
    }

    mutating func note(_ event: Event, of app: Int?, _ shadow: Shadow) {
        asked = nil
        if let app, case .registered(_, let policy, _) = event, policy.usesProtectedData { isToldOfData[app] = true }
        guard let app, case .requested(let request, _, let what) = event else { return }
        switch what {
        case .send(let notification):
            file(request, app, Pending(kind: notification.kind, payload: notification.payload), shadow)
        case .push(let payload): file(request, app, Pending(kind: Notification.push, payload: payload), shadow)
        case .launch, .activate, .background, .interrupt, .endInterruption, .terminate, .remove: break
        }
    }

    /// It is taken for accepted until the answer says otherwise.
    private mutating func file(_ request: RequestID, _ app: Int, _ item: Pending, _ shadow: Shadow) {
        let phase = shadow.apps[app].phase
        asked = (request, app, item, phase == .suspending || phase == .suspended)
    }

    private mutating func accept() {
        guard let (_, app, item, isHeld) = asked else { return }
        asked = nil
        mailboxes[app].pending.removeAll { $0.kind == item.kind }
        // A running app hears of everything; for a suspended one a change that was undone is none.
        if isHeld, mailboxes[app].known[item.kind] == item.payload { return }
        mailboxes[app].pending.append(item)
    }

    /// Before the effects: whether the request was refused decides on everything else.
    mutating func note(_ effects: [Effect], _ shadow: Shadow) {
        guard let (request, app, _, _) = asked else { return }
        for effect in effects {
            if case .answer(request, .refused) = effect {
                asked = nil
                return
            }
        }
        // A launch forgets what was before, and then takes it in.
        if !effects.contains(where: { if case .spawn = $0 { true } else { false } }) || shadow.apps[app].run != nil {
            accept()
        }
    }

    mutating func note(
        _ effect: Effect, of app: Int?, _ shadow: Shadow, _ findings: inout Findings
    ) {
        guard let app else { return }
        switch effect {
        case .spawn:
            mailboxes[app] = Mailbox()
            if asked?.app == app { accept() }
        case .deliver(_, let given): check(given, app, shadow, &findings)
        case .report(.stateChanged(_, _, .terminating, _)), .report(.stateChanged(_, _, .notRunning, _)):
            mailboxes[app].pending = []
        default: break
        }
    }

    private mutating func check(
        _ given: [Notification], _ app: Int, _ shadow: Shadow, _ findings: inout Findings
    ) {
        let id = shadow.apps[app].id
        var place = 0
        for notification in given where !isCores(notification.kind, app) {
            let pending = mailboxes[app].pending
            let index = pending.firstIndex { $0.kind == notification.kind }
            findings.check(
                index.map { pending[$0].payload == notification.payload } ?? false, .notificationsAreNews,
                "\(id) is given \(notification.kind) “\(notification.payload)”, which is "
                    + (index.map { "not the latest: “\(pending[$0].payload)”" } ?? "no news"))
            findings.check(
                index.map { $0 >= place } ?? false, .notificationsAreNews,
                "\(id) is given \(notification.kind) out of its order")
            place = index ?? place
        }
        for notification in given {
            mailboxes[app].pending.removeAll { $0.kind == notification.kind }
            if Pending(kind: notification.kind, payload: notification.payload).isState {
                mailboxes[app].known[notification.kind] = notification.payload
            }
        }
        if mailboxes[app].known.count >= Self.most { mailboxes[app].isCrowded = true }
        findings.check(
            Set(given.map(\.kind)).count == given.count && given.count <= Self.most, .notificationsAreNews,
            "\(id) is given \(given.count) notifications, some of one kind")
    }

    /// Who runs and can be told has nothing waiting, but for a time change in the background.
    func settle(of app: Int, _ shadow: Shadow, _ findings: inout Findings) {
        let known = shadow.apps[app]
        let isForeground = known.phase == .foreground
        guard isForeground || known.phase == .running, !mailboxes[app].isCrowded else { return }
        for pending in mailboxes[app].pending where !isCores(pending.kind, app) {
            findings.check(
                !isForeground && pending.kind == "time", .notificationsAreNews,
                "\(known.id) is \(known.state), and \(pending.kind) “\(pending.payload)” still waits for it")
        }
    }
}
