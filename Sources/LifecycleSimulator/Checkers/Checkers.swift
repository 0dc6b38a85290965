import LifecycleCore

/// All checkers. It passes each event and effect to them.
struct Checkers {
    var findings = Findings()
    private(set) var deadlines: DeadlineChecker
    private(set) var requests = RequestChecker()
    private let states = StateChecker()
    private let answers = AnswerChecker()
    private var notices: NoticeChecker
    private var receipts: ReceiptChecker
    private var budgets: BudgetChecker
    private var unrequestedTimes: UnrequestedTimeChecker
    private var suspensions: SuspensionChecker
    private var ends: EndChecker
    private var interruptions: InterruptionChecker
    private var foreground: ForegroundChecker
    private var jetsam: JetsamChecker
    private var notifications: NotificationChecker
    private var absences: AbsenceChecker
    private(set) var relaunches: RelaunchChecker
    private(set) var returns: ReturnChecker
    private var homes: HomeChecker
    private var restoration: RestorationChecker
    private var launches: LaunchChecker
    private var startUps: StartUpChecker
    private var traffic: TrafficChecker
    private var idleness: IdlenessChecker
    private let workers = WorkerChecker()
    private var locks: LockChecker
    private var processors: ProcessorChecker
    private var ownTime: OwnTimeChecker
    private var blindness: BlindChecker
    private var trafficWakes: TrafficWakeChecker
    private var reloads: ReloadChecker
    private var sockets: SocketChecker
    private var unloads: UnloadChecker
    private var instances: InstanceChecker
    private var connections: ConnectionChecker
    private var scenes: SceneChecker
    private let hooks = HookChecker()

    /// Checks of the whole state are slow: they are done once in this number of events.
    static let deepInterval = 64

    init(apps: Int, firstReceipt: UInt64, storm: LaunchStorm?) {
        deadlines = DeadlineChecker(apps: apps)
        notices = NoticeChecker(apps: apps)
        receipts = ReceiptChecker(apps: apps, firstReceipt: firstReceipt)
        budgets = BudgetChecker(apps: apps)
        unrequestedTimes = UnrequestedTimeChecker(apps: apps)
        suspensions = SuspensionChecker(apps: apps)
        ends = EndChecker(apps: apps)
        interruptions = InterruptionChecker(apps: apps)
        foreground = ForegroundChecker(apps: apps)
        jetsam = JetsamChecker(apps: apps)
        notifications = NotificationChecker(apps: apps)
        absences = AbsenceChecker(apps: apps)
        relaunches = RelaunchChecker(apps: apps)
        returns = ReturnChecker(apps: apps)
        homes = HomeChecker(apps: apps)
        restoration = RestorationChecker(apps: apps)
        launches = LaunchChecker(apps: apps, storm: storm)
        startUps = StartUpChecker(apps: apps)
        traffic = TrafficChecker(apps: apps)
        idleness = IdlenessChecker(apps: apps)
        locks = LockChecker(apps: apps)
        processors = ProcessorChecker(apps: apps)
        ownTime = OwnTimeChecker(apps: apps)
        blindness = BlindChecker(apps: apps)
        trafficWakes = TrafficWakeChecker(apps: apps)
        reloads = ReloadChecker(apps: apps)
        sockets = SocketChecker(apps: apps)
        unloads = UnloadChecker(apps: apps)
        instances = InstanceChecker(apps: apps)
        connections = ConnectionChecker(apps: apps)
        scenes = SceneChecker(apps: apps)
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
        deadlines.record(event, of: model.phase(of: event, app) == .past ? nil : app, model, at: world.now)
        requests.record(event, model)
        launches.record(event, of: app)
        startUps.record(event, of: app, model, at: world.now)
        receipts.record(event, of: app, model, world)
        unrequestedTimes.record(event, of: app, model, at: world.now)
        suspensions.record(event, of: app, model)
        ends.record(event, of: app, model, at: world.now)
        interruptions.record(event, of: app)
        foreground.record(event, of: app)
        jetsam.record(event, of: app, model, at: world.now)
        notifications.record(event, of: app, model)
        absences.record(event, of: app, model)
        relaunches.record(event, of: app, model)
        returns.record(event, of: app, model)
        homes.record(event, of: app, model)
        restoration.record(event, of: app, model)
        traffic.record(event, of: app, model, deadline: core.nextDeadline, at: world.now)
        idleness.record(event, of: app, model, at: world.now)
        locks.record(event, of: app, model, at: world.now)
        recordTraffic(event, of: app, model, world, core)
        processors.record(event, of: app, model, at: world.now)
        sockets.record(event, of: app, model, core, at: world.now)
        instances.record(event, of: app, model)
        connections.record(event, of: model.phase(of: event, app) == .past ? nil : app, model)
    }

    mutating func begin(_ effects: [Effect], of event: Event, _ model: CoreModel) {
        ends.verify(event, effects, &findings)
        notifications.record(effects, model)
        interruptions.record(effects)
        restoration.record(effects, model)
        traffic.verify(event, effects, model, &findings)
    }

    /// Checks an effect. Called before the model records it.
    mutating func record<Core: DecidingCore>(
        _ effect: Effect, of app: Int?, in event: Event, _ model: CoreModel, _ world: World, _ core: Core
    ) {
        let now = world.now
        hooks.record(effect, of: app, model, &findings)
        sockets.record(effect, of: app, in: event, model, at: now, &findings)
        unloads.record(effect, of: app, model, at: now, &findings)
        instances.record(effect, of: app, model, &findings)
        states.record(effect, of: app, model, &findings)
        notices.record(effect, of: app, model, at: now, &findings)
        connections.record(effect, of: app, model, &findings)
        scenes.record(effect, of: app, &findings)
        answers.record(effect, of: app, in: event, world, deadlines, &findings)
        deadlines.record(effect, of: app, in: event, model, at: now, &findings)
        requests.record(effect, model, &findings)
        launches.record(effect, of: app, at: now, &findings)
        startUps.record(effect, of: app, model, at: now, &findings)
        receipts.record(effect, of: app, model, world, &findings)
        budgets.record(effect, of: app, model, &findings)
        unrequestedTimes.record(effect, of: app, model, at: now, &findings)
        suspensions.record(
            effect, of: app, model, deadlines, hasInput: app.map { world.hasUnread($0) } ?? false, at: now, &findings)
        ends.record(effect, of: app, in: event, model, at: now, &findings)
        interruptions.record(effect, of: app)
        foreground.record(effect, of: app, model, &findings)
        notifications.record(effect, of: app, model, &findings)
        absences.record(effect, of: app, model, &findings)
        relaunches.record(effect, of: app, in: event, model, at: now)
        returns.record(effect, of: app, in: event, model, core, at: now, &findings)
        homes.record(effect, of: app)
        restoration.record(effect, of: app, in: event, &findings)
        jetsam.record(
            effect, of: app, in: event, model, at: now, &findings)
        traffic.record(effect, of: app, model)
        idleness.record(effect, of: app, in: event, model, world, at: now, &findings)
        workers.record(effect, of: app, model, &findings)
        locks.record(effect, of: app, model, &findings)
        processors.record(effect, of: app, model, world, at: now, &findings)
        ownTime.record(effect, of: app, model, &findings)
        blindness.record(effect, of: app, model, at: now, &findings)
        trafficWakes.record(effect, of: app, model, at: now, &findings)
        reloads.record(effect, of: app, in: event, model, at: now, &findings)
    }

    /// Checks the state after all effects. `apps`: the apps of the event and of the effects.
    mutating func verify<Core: DecidingCore>(
        _ event: Event, of app: Int?, _ effects: [Effect], concerning apps: [Int], _ model: CoreModel, _ world: World,
        _ core: Core, isDeep: Bool
    ) {
        let now = world.now
        deadlines.verify(event, of: app, model, at: now, &findings)
        receipts.verify(&findings)
        unrequestedTimes.verify(&findings)
        foreground.verify(model, &findings)
        absences.verify(model, core, at: now, &findings)
        jetsam.verify(event, model, at: now, &findings)
        launches.verify(model, at: now, &findings)
        relaunches.verifyStart(model, core, at: now, &findings)
        returns.verify(event, model, world, core, &findings)
        homes.verify(model, core, at: now, &findings)
        for app in isDeep ? Array(model.apps.indices) : apps {
            sockets.verify(of: app, model, core, at: now, &findings)
            instances.verify(of: app, model, core, at: now, &findings)
            states.verify(of: app, model, world, deadlines, &findings)
            scenes.verify(of: app, model, core, at: now, &findings)
            notices.verify(of: app, model, &findings)
            suspensions.verify(
                of: app, model, deadlines, startUps, isLeftAwake: world.isLeftAwake(app), at: now, &findings)
            interruptions.verify(of: app, model, &findings)
            budgets.verify(of: app, model, world, deadlines, at: now, &findings)
            unrequestedTimes.verify(of: app, model, world, at: now, &findings)
            notifications.verify(of: app, model, core, at: now, &findings)
            relaunches.verify(of: app, model, core, at: now, &findings)
            idleness.verify(of: app, model, world, deadlines, startUps, at: now, &findings)
            workers.verify(of: app, model, world, &findings)
            traffic.verify(of: app, model, at: now, &findings)
            processors.verify(of: app, model, world, at: now, &findings)
            verifyTraffic(of: app, model, world, core)
        }
        connections.verify(model, concerning: apps, &findings)
        locks.verify(model, &findings)
        idleness.verifyTimers(model, world, at: now, &findings)
        traffic.verify(model, world, at: now, &findings)
        verifyTraffic(model, world, core)
        if case .deadlineReached = event {
            hooks.verifyAll(model, at: now, &findings)
            for app in startUps.ended {
                suspensions.verify(
                    of: app, model, deadlines, startUps, isLeftAwake: world.isLeftAwake(app), at: now, &findings)
            }
            suspensions.verifyAll(model, at: now, &findings)
            sockets.verifyAll(model, core, at: now, &findings)
            unloads.verifyAll(model, world, core, at: now, &findings)
            relaunches.verifyAll(model, core, at: now, &findings)
            idleness.verifyAll(model, world, at: now, &findings)
            processors.verifyAll(model, world, at: now, &findings)
            trafficWakes.verifyAll(model, world, at: now, &findings)
            findings.check(
                core.nextDeadline.map { $0 > Instant(now) } ?? true, .dueWorkIsDone,
                "a deadline is still due: \(core.nextDeadline?.microseconds ?? 0) µs")
        }
        if isDeep { verifyAll(model, world, core) }
    }

    private mutating func verifyAll<Core: DecidingCore>(_ model: CoreModel, _ world: World, _ core: Core) {
        var views: [AppView] = []
        for app in model.apps.indices {
            let view = core.view(of: model.apps[app].id, at: Instant(world.now))
            states.verify(app, view, model, &findings)
            if let view { views.append(view) }
        }
        requests.verifyAll(model, views, &findings)
        foreground.verifyAll(views, model, &findings)
        workers.verifyAll(views, model, &findings)
        findings.check(
            core.appIDs.count == views.count, .stateIsBounded,
            "the core lists \(core.appIDs.count) apps; there are \(views.count)")
        let sum = views.reduce(UInt64(0)) { $0 + $1.memory }
        findings.check(
            core.memory.apps == sum, .statesAreContinuous,
            "all apps together have \(sum) bytes, the core reports \(core.memory.apps)")
    }
}

// MARK: Traffic

extension Checkers {
    private mutating func recordTraffic<Core: DecidingCore>(
        _ event: Event, of app: Int?, _ model: CoreModel, _ world: World, _ core: Core
    ) {
        ownTime.record(event, of: app, model, core, at: world.now)
        blindness.record(event, of: app, model, at: world.now)
        trafficWakes.record(event, of: app, model, at: world.now)
        reloads.record(event, of: app, model, at: world.now)
    }

    private mutating func verifyTraffic<Core: DecidingCore>(
        of app: Int, _ model: CoreModel, _ world: World, _ core: Core
    ) {
        ownTime.verify(of: app, model, core, at: world.now, &findings)
        blindness.verify(of: app, model, core, at: world.now, &findings)
        trafficWakes.verify(of: app, model, world, startUps, at: world.now)
    }

    private mutating func verifyTraffic<Core: DecidingCore>(_ model: CoreModel, _ world: World, _ core: Core) {
        ownTime.verify(model, world, core, at: world.now, &findings)
        blindness.verify(model, core, at: world.now, &findings)
        reloads.verify(model, deadlines, &findings)
    }
}
