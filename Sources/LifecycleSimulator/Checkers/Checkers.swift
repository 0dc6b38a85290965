import LifecycleCore

/// All checkers. It passes each event and effect to them.
struct Checkers {
    var findings = Findings()
    private(set) var deadlines: DeadlineChecker
    private(set) var requests = RequestChecker()
    private let states = StateChecker()
    private let answers = AnswerChecker()
    private let hooks = HookChecker()
    private var modes: ModeChecker
    private var receipts: ReceiptChecker
    private var budgets: BudgetChecker
    private var unrequestedTimes: UnrequestedTimeChecker
    private var continued: ContinuedTasks
    private var suspensions: SuspensionChecker
    private var ends: EndChecker
    private var jetsam: JetsamChecker
    private var notifications: NotificationChecker
    private var absences: AbsenceChecker
    private(set) var relaunches: RelaunchChecker
    private var homes: HomeChecker
    private var launches: LaunchChecker
    private var startUps: StartUpChecker
    private var traffic: TrafficChecker
    private var idleness: IdlenessChecker
    private var locks: LockChecker
    private var processors: ProcessorChecker
    private var sockets: SocketChecker
    private var instances: InstanceChecker
    private var urls: URLChecker

    /// Checks of the whole state are slow: they are done once in this number of events.
    static let deepInterval = 64

    init(apps: Int, firstReceipt: UInt64, storm: LaunchStorm?) {
        deadlines = DeadlineChecker(apps: apps)
        modes = ModeChecker(apps: apps)
        receipts = ReceiptChecker(apps: apps, firstReceipt: firstReceipt)
        budgets = BudgetChecker(apps: apps)
        unrequestedTimes = UnrequestedTimeChecker(apps: apps)
        continued = ContinuedTasks(apps: apps)
        suspensions = SuspensionChecker(apps: apps)
        ends = EndChecker(apps: apps)
        jetsam = JetsamChecker(apps: apps)
        notifications = NotificationChecker(apps: apps)
        absences = AbsenceChecker(apps: apps)
        relaunches = RelaunchChecker(apps: apps)
        homes = HomeChecker(apps: apps)
        launches = LaunchChecker(apps: apps, storm: storm)
        startUps = StartUpChecker(apps: apps)
        traffic = TrafficChecker(apps: apps)
        idleness = IdlenessChecker(apps: apps)
        locks = LockChecker(apps: apps)
        processors = ProcessorChecker(apps: apps)
        sockets = SocketChecker(apps: apps)
        instances = InstanceChecker(apps: apps)
        urls = URLChecker(apps: apps)
    }

    /// Records an event. Called before the core handles it.
    mutating func record<Core: DecidingCore>(
        _ event: Event, of app: Int?, _ model: CoreModel, _ world: World, _ core: Core
    ) {
        if JetsamChecker.mayChoose(event, at: core.memory.level) {
            for app in model.apps.indices {
                let view = model.apps[app].run.flatMap { _ in
                    core.view(of: model.apps[app].id, at: Instant(world.now))
                }
                jetsam.recordSlot(app, view?.isForeground ?? false)
            }
        }
        let present = model.phase(of: event, app) == .past ? nil : app
        deadlines.record(event, of: present, at: world.now)
        budgets.record(event, of: present)
        continued.record(event, of: present, model, at: world.now)
        requests.record(event, model)
        launches.record(event, of: app)
        startUps.record(event, of: app, model, at: world.now)
        receipts.record(event, of: app, model, world)
        unrequestedTimes.record(event, of: app, model, at: world.now)
        suspensions.record(event, of: app, model)
        ends.record(event, of: app, model)
        jetsam.record(event, model, at: world.now)
        notifications.record(event, of: app, model)
        absences.record(event, of: app, model)
        relaunches.record(event, of: app, model)
        homes.record(event, of: app, model)
        traffic.record(event, of: app, model, deadline: core.nextDeadline, at: world.now)
        idleness.record(event, of: app, model, world, at: world.now)
        locks.record(event, of: app, model, at: world.now)
        processors.record(event)
        sockets.record(event)
        instances.record(event, of: app, model)
        urls.record(event, of: present, model)
    }

    mutating func begin(_ effects: [Effect], of event: Event, _ model: CoreModel) {
        notifications.record(effects, model)
        traffic.verify(event, effects, model, &findings)
    }

    /// Checks an effect. Called before the model records it.
    mutating func record<Core: DecidingCore>(
        _ effect: Effect, of app: Int?, in event: Event, _ model: CoreModel, _ world: World, _ core: Core
    ) {
        let now = world.now
        sockets.record(effect, of: app, model, core, at: now, &findings)
        instances.record(effect, of: app, model, &findings)
        urls.record(effect, of: app, model, &findings)
        answers.record(effect, of: app, in: event, world, deadlines, &findings)
        modes.record(effect, of: app, model, &findings)
        deadlines.record(effect, of: app, in: event, model, at: now, &findings)
        requests.record(effect, model, &findings)
        launches.record(effect, of: app, at: now, &findings)
        startUps.record(effect, of: app, model, at: now, &findings)
        receipts.record(effect, of: app, model, world, &findings)
        budgets.record(effect, of: app, model, &findings)
        continued.record(effect, of: app, at: now)
        unrequestedTimes.record(effect, of: app, model, at: now, &findings)
        suspensions.record(
            effect, of: app, model, deadlines, hasInput: app.map { world.hasUnread($0) } ?? false, at: now, &findings)
        ends.record(effect, of: app, in: event, model, at: now, &findings)
        notifications.record(effect, of: app, model, &findings)
        absences.record(effect, of: app, model, &findings)
        relaunches.record(effect, of: app, in: event, model, at: now)
        homes.record(effect, of: app, model)
        jetsam.record(effect, of: app, in: event, model, at: now, &findings)
        traffic.record(effect, of: app)
        idleness.record(effect, of: app, in: event, model, world, at: now, &findings)
        locks.record(effect, of: app, in: event, model, at: now, &findings)
        processors.record(effect, of: app, model, world, at: now, &findings)
    }

    /// Checks the state after all effects. `apps`: the apps of the event and of the effects.
    mutating func verify<Core: DecidingCore>(
        _ event: Event, of app: Int?, concerning apps: [Int], _ model: CoreModel, _ world: World, _ core: Core,
        isDeep: Bool
    ) {
        let now = world.now
        deadlines.verify(event, of: app, model, at: now, &findings)
        receipts.verify(&findings)
        absences.verify(model, core, at: now, &findings)
        jetsam.verify(event, model, at: now, &findings)
        launches.verify(model, at: now, &findings)
        relaunches.verifyStart(model, core, at: now, &findings)
        homes.verify(model, core, at: now, &findings)
        for app in isDeep ? Array(model.apps.indices) : apps { verify(app, model, world, core) }
        idleness.verifyTimers(model, world, at: now, &findings)
        idleness.verifyFrozen(model, world, at: now, &findings)
        traffic.verify(model, world, core, at: now, &findings)
        if case .deadlineReached = event { verifyDue(model, world, core) }
        if isDeep { verifyAll(model, world, core) }
    }

    private mutating func verify<Core: DecidingCore>(_ app: Int, _ model: CoreModel, _ world: World, _ core: Core) {
        let now = world.now
        instances.verify(of: app, model, core, at: now, &findings)
        suspensions.verify(of: app, model, deadlines, startUps, isLeftAwake: world.isLeftAwake(app), at: now, &findings)
        states.verify(of: app, model, world, deadlines, isIdle: suspensions.isIdle(app), &findings)
        modes.verify(of: app, model, &findings)
        budgets.verify(of: app, model, world, deadlines, &continued, at: now, &findings)
        unrequestedTimes.verify(of: app, model, world, continued, at: now, &findings)
        notifications.verify(of: app, model, core, at: now, &findings)
        relaunches.verify(of: app, model, core, at: now, &findings)
        idleness.verify(of: app, model, world, deadlines, startUps, at: now)
        processors.verify(of: app, model, world)
    }

    /// After `deadlineReached`.
    private mutating func verifyDue<Core: DecidingCore>(_ model: CoreModel, _ world: World, _ core: Core) {
        let now = world.now
        hooks.verifyAll(model, at: now, &findings)
        for app in startUps.ended {
            suspensions.verify(
                of: app, model, deadlines, startUps, isLeftAwake: world.isLeftAwake(app), at: now, &findings)
        }
        suspensions.verifyAll(model, at: now, &findings)
        sockets.verifyAll(model, world, core, at: now, &findings)
        ends.verifyAll(model, world, core, at: now, &findings)
        relaunches.verifyAll(model, core, at: now, &findings)
        idleness.verifyAll(model, world, at: now, &findings)
        processors.verifyAll(model, world, at: now, &findings)
    }

    private mutating func verifyAll<Core: DecidingCore>(_ model: CoreModel, _ world: World, _ core: Core) {
        var views: [AppView] = []
        for app in model.apps.indices {
            let view = core.view(of: model.apps[app].id, at: Instant(world.now))
            states.verify(app, view, model, &findings)
            modes.verify(app, view, model, &findings)
            if let view { views.append(view) }
        }
        requests.verifyAll(model, views, &findings)
        sockets.verifyAll(model, world, core, at: world.now, &findings)
    }
}
