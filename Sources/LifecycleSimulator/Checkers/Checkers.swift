import LifecycleCore

/// All checkers, and what each of them is given when.
struct Checkers {
    var findings = Findings()
    private(set) var deadlines: DeadlineChecker
    private(set) var requests = RequestChecker()
    private let states = StateChecker()
    private var notices: NoticeChecker
    private var receipts: ReceiptChecker
    private var budgets: BudgetChecker
    private var suspensions: SuspensionChecker
    private var ends: EndChecker
    private var interruptions: InterruptionChecker
    private var foreground: ForegroundChecker
    private var jetsam: JetsamChecker
    private var notifications: NotificationChecker
    private var absences: AbsenceChecker

    /// Deep checks look at everything: only every so many events.
    static let deepInterval = 64

    init(apps: Int, firstReceipt: UInt64) {
        deadlines = DeadlineChecker(apps: apps)
        notices = NoticeChecker(apps: apps)
        receipts = ReceiptChecker(apps: apps, firstReceipt: firstReceipt)
        budgets = BudgetChecker(apps: apps)
        suspensions = SuspensionChecker(apps: apps)
        ends = EndChecker(apps: apps)
        interruptions = InterruptionChecker(apps: apps)
        foreground = ForegroundChecker(apps: apps)
        jetsam = JetsamChecker(apps: apps)
        notifications = NotificationChecker(apps: apps)
        absences = AbsenceChecker(apps: apps)
    }

    /// Before the core is given the event.
    mutating func note<Core: DecidingCore>(
        _ event: Event, of app: Int?, _ shadow: Shadow, _ world: World, _ core: Core
    ) {
        if JetsamChecker.mayChoose(event, at: core.memory.level) {
            for app in shadow.apps.indices {
                let view = shadow.apps[app].run.flatMap { _ in
                    core.view(of: shadow.apps[app].id, at: Instant(world.now))
                }
                jetsam.notePlace(app, view?.isForeground ?? false)
            }
        }
        deadlines.note(event, of: shadow.phase(of: event, app) == .past ? nil : app, at: world.now)
        requests.note(event, shadow)
        receipts.note(event, of: app, shadow, world)
        suspensions.note(event, of: app, shadow)
        ends.note(event, of: app, shadow, at: world.now)
        interruptions.note(event, of: app)
        foreground.note(event, of: app)
        jetsam.note(event, of: app, shadow, at: world.now)
        notifications.note(event, of: app, shadow)
        absences.note(event, of: app, shadow)
    }

    mutating func begin(_ effects: [Effect], _ shadow: Shadow) {
        notifications.note(effects, shadow)
        interruptions.note(effects)
    }

    /// Before the shadow takes in the effect.
    mutating func note<Core: DecidingCore>(
        _ effect: Effect, of app: Int?, in event: Event, _ shadow: Shadow, _ world: World, _ core: Core
    ) {
        let now = world.now
        states.note(effect, of: app, shadow, &findings)
        notices.note(effect, of: app, shadow, at: now, &findings)
        deadlines.note(effect, of: app, in: event, shadow, at: now, &findings)
        requests.note(effect, shadow, &findings)
        receipts.note(effect, of: app, shadow, &findings)
        budgets.note(effect, of: app, shadow, &findings)
        suspensions.note(effect, of: app, shadow, deadlines, at: now, &findings)
        ends.note(effect, of: app, in: event, shadow, at: now, &findings)
        interruptions.note(effect, of: app)
        foreground.note(effect, of: app, shadow, &findings)
        notifications.note(effect, of: app, shadow, &findings)
        absences.note(effect, of: app, shadow, &findings)
        jetsam.note(
            effect, of: app, in: event, shadow, at: now, &findings)
    }

    /// After all effects. `apps`: those that the event or an effect concerned.
    mutating func settle<Core: DecidingCore>(
        _ event: Event, of app: Int?, _ effects: [Effect], concerning apps: [Int], _ shadow: Shadow, _ world: World,
        _ core: Core, isDeep: Bool
    ) {
        let now = world.now
        deadlines.settle(event, of: app, shadow, at: now, &findings)
        receipts.settle(&findings)
        foreground.settle(shadow, &findings)
        absences.settle(shadow, core, at: now, &findings)
        jetsam.settle(shadow, isMeasuring: world.isMeasuring, &findings)
        for app in isDeep ? Array(shadow.apps.indices) : apps {
            states.settle(of: app, shadow, world, deadlines, &findings)
            notices.settle(of: app, shadow, &findings)
            suspensions.settle(of: app, shadow, deadlines, at: now, &findings)
            interruptions.settle(of: app, shadow, &findings)
            budgets.settle(of: app, shadow, world, deadlines, at: now, &findings)
            notifications.settle(of: app, shadow, &findings)
        }
        if case .deadlineReached = event {
            suspensions.settleAll(shadow, at: now, &findings)
            findings.check(
                core.nextDeadline.map { $0 > Instant(now) } ?? true, .timeGoesOn,
                "what was due is due still: \(core.nextDeadline?.microseconds ?? 0) µs")
        }
        if isDeep { settleAll(shadow, world, core) }
    }

    private mutating func settleAll<Core: DecidingCore>(_ shadow: Shadow, _ world: World, _ core: Core) {
        var views: [AppView] = []
        for app in shadow.apps.indices {
            let view = core.view(of: shadow.apps[app].id, at: Instant(world.now))
            states.settle(app, view, shadow, &findings)
            if let view { views.append(view) }
        }
        requests.settleAll(shadow, &findings)
        foreground.settleAll(views, shadow, &findings)
        findings.check(
            core.appIDs.count == views.count, .bookkeepingIsBounded,
            "the core knows \(core.appIDs.count) apps; there are \(views.count)")
        let sum = views.reduce(UInt64(0)) { $0 + $1.memory }
        findings.check(
            core.memory.apps == sum, .statesAreContinuous,
            "all apps together have \(sum) bytes, the core says \(core.memory.apps)")
    }
}
