import LifecycleCore

/// Simulates everything around the core: processes, apps, users and the machine. What happens here takes effect at its
/// own time; the core receives an event once the outcome is delivered.
struct World {
    enum Item {
        case deliver(Event)
        case kernel(Int, KernelAction)
        case app(Int, AppAction)
        case user
        case machine
        case absence
        /// The end of this sleep, whether or not the daemon allowed it.
        case wakeUp(Int)
        case fileSystem
        case flood
        case source
        case mode
        case peer, morePeers, streamPeer
        case client
        case socket(Int, SocketAction)
        /// A launch of the storm has had its processor time.
        case load(Int)
    }

    struct FakeApp {
        let id: AppID
        let personality: Personality
        var random: Random
        var policy = AppPolicy()
        /// That of the manifest that the core knows: another one may be on its way.
        var knownReadiness = AppPolicy.Readiness.executed
        /// The same of `Traffic=`.
        var knownWakesOnTraffic = false
        var isRegistered = false
        /// The latest run. It may be over.
        var run: Int?
        /// The number of launches that the core has recorded.
        var launches = 0
    }

    let scenario: Scenario
    var now: Microseconds = 0
    var queue = EventQueue<Item>()
    var apps: [FakeApp]
    let indexes: [AppID: Int]
    var runs: [FakeRun] = []
    var faults = FaultCounts()
    /// Whether the quiet phase has begun: no more requests and faults.
    var isQuiet = false
    var isShuttingDown = false
    var isFinished = false

    /// Until this time the daemon is not scheduled. Events wait until then.
    var stalledUntil: Microseconds = 0
    /// The sum of all delays of events to the core. Checkers allow for it.
    var lateness: Microseconds = 0
    /// The part of it that the timer which is armed adds.
    var timerLateness: Microseconds = 0
    /// The part of `lateness` that is over.
    var pastLateness: Microseconds { lateness - timerLateness - max(0, stalledUntil - now) }

    var kernelRandom: Random
    var userRandom: Random
    var machineRandom: Random
    /// A separate random stream: seeds without absences stay unchanged.
    var absenceRandom: Random
    /// The same for file systems and floods of requests.
    var outageRandom: Random
    var floodRandom: Random
    /// What the processes beside main processes do, and `KillMode=`.
    var childRandom: Random
    var footprintRandom: Random
    /// How long it takes to push memory out.
    var reclaimRandom: Random
    /// The run of which memory is pushed out (L37).
    var reclaiming: Int?
    /// Signals that processes outside the daemon send.
    var signalRandom: Random
    /// What is measured of processor time.
    var loadRandom: Random
    var load = ProcessorLoad()
    /// `BackgroundTimePerHourSec=`, and what apps ask for.
    var evasionRandom: Random
    var suspensionRandom: Random
    /// `Suspend=` of some apps is `no` or `dry-run` (L58).
    let hasSuspensionSettings: Bool
    /// A third of the apps are on another seat.
    let hasSeats: Bool
    var memory: MemoryFeatures
    /// Peers of apps, and what apps do for them.
    var traffic: FakeTraffic
    var streams: FakeStreams
    /// The sockets that the daemon holds.
    var sockets: FakeSockets
    var connections: FakeConnections
    var scenes: FakeScenes
    var progress: FakeProgress
    var provider: FakeProvider
    var hookRandom: Random
    var sources: FakeSources
    var modes: FakeModes

    var manager = ManagerPolicy()
    var lastRequest: UInt64 = 0
    var usedMemory: UInt64 = 0
    var otherMemory: UInt64
    /// The memory of ended runs in bytes, and when the kernel has freed it.
    var returning: [(bytes: UInt64, at: Microseconds)] = []
    var isMeasuring = false
    var isLocked = false
    /// Whether the file system with the programs is unavailable: execve(2) fails.
    var isUnmounted = false
    /// The number of the current sleep; `nil`: the machine is awake.
    var sleep: Int?
    var sleeps = 0
    /// Runs that received notifications while frozen. The same event must thaw them.
    var deliveredWhileFrozen: [Int] = []

    init(scenario: Scenario, random: inout Random) {
        self.scenario = scenario
        kernelRandom = random.stream(1)
        userRandom = random.stream(2)
        machineRandom = random.stream(3)
        absenceRandom = Random(seed: scenario.seed ^ 0x6c6f_636b_6564)
        outageRandom = Random(seed: scenario.seed ^ 0x6f75_7461_6765)
        floodRandom = Random(seed: scenario.seed ^ 0x66_6c6f_6f64)
        childRandom = Random(seed: scenario.seed ^ 0x6368_696c_6472)
        reclaimRandom = Random(seed: scenario.seed ^ 0x7265_636c_6169)
        footprintRandom = Random(seed: scenario.seed ^ 0x666f_6f74_7072)
        signalRandom = Random(seed: scenario.seed ^ 0x7369_676e_616c)
        loadRandom = Random(seed: scenario.seed ^ 0x6c6f_6164)
        memory = MemoryFeatures(seed: scenario.seed)
        traffic = FakeTraffic(scenario)
        streams = FakeStreams(scenario)
        sockets = FakeSockets(scenario)
        connections = FakeConnections(scenario)
        scenes = FakeScenes(scenario)
        progress = FakeProgress(scenario)
        provider = FakeProvider(scenario)
        hookRandom = Random(seed: scenario.seed ^ 0x68_6f6f_6b73)
        sources = FakeSources(scenario)
        modes = FakeModes(scenario)
        evasionRandom = Random(seed: scenario.seed ^ 0x65_7661_6465)
        // A number that leaves the worlds of the saved seeds as they were.
        suspensionRandom = Random(seed: scenario.seed ^ 0x6472_7972_00ec)
        hasSuspensionSettings = suspensionRandom.chance(150)
        hasSeats = scenario.seed % 5 == 0
        apps = zip(scenario.apps, scenario.personalities).enumerated().map { index, app in
            FakeApp(id: app.0, personality: app.1, random: random.stream(100 + UInt64(index)))
        }
        indexes = Dictionary(uniqueKeysWithValues: scenario.apps.enumerated().map { ($1, $0) })
        otherMemory = scenario.totalMemory / (scenario.isMemoryTight ? 2 : 10)
        begin()
    }

    private mutating func begin() {
        manager = userRandom.managerPolicy(total: scenario.totalMemory, isTight: scenario.isMemoryTight)
        balanceJetsam()
        limitLaunches()
        limitContinuedTasks()
        queue.push(.deliver(.configuration(.configured(manager))), at: 0)
        for index in apps.indices { register(index) }
        queue.push(.deliver(.configuration(.started)), at: 0)
        let start = scenario.storm?.end ?? 0
        queue.push(.user, at: start + 1 * .millisecond)
        queue.push(.machine, at: start + 10 * .millisecond)
        if scenario.hasAbsences { queue.push(.absence, at: start + 50 * .millisecond) }
        if scenario.has(.execFails) { queue.push(.fileSystem, at: start + scenario.pace) }
        if scenario.has(.requestFlood) { queue.push(.flood, at: start + scenario.pace) }
        if sources.isPresent { queue.push(.source, at: scenario.pace) }
        if modes.areUsed { queue.push(.mode, at: scenario.pace) }
        if scenario.hasTraffic { queue.push(.peer, at: scenario.pace) }
        if scenario.hasMoreTraffic { queue.push(.morePeers, at: scenario.pace) }
        if streams.areUsed { queue.push(.streamPeer, at: scenario.pace) }
        if scenario.hasSockets { queue.push(.client, at: scenario.pace / 2) }
    }

    mutating func register(_ index: Int) {
        apps[index].policy = userRandom.policy()
        if scenario.hasAbsences { apps[index].policy.usesProtectedData = absenceRandom.chance(300) }
        apps[index].policy.killMode = childRandom.pick([.controlGroup, .controlGroup, .mixed, .process])
        apps[index].policy.terminateSuspended = childRandom.pick([.auto, .auto, .notify, .kill])
        takeTimeToStartUp(index)
        joinStorm(index)
        limitBackgroundTime(of: index)
        limitProgress(of: index)
        limitMemory(of: index)
        if index < scenario.homeApps { apps[index].policy.role = .home }
        if hasSeats, index % 3 == 2 { apps[index].policy.seat = "seat1" }
        addTraffic(to: index)
        limitProcessorUse(of: index)
        addSockets(to: index)
        if hasSuspensionSettings {
            apps[index].policy.suspension = suspensionRandom.pick([.yes, .yes, .dryRun, .no])
            apps[index].policy.isEssential = suspensionRandom.chance(150)
        }
        addHooks(to: index)
        addSources(to: index)
        addModes(to: index)
        apps[index].isRegistered = true
        queue.push(
            .deliver(.configuration(.registered(apps[index].id, apps[index].policy, launches: apps[index].launches))),
            at: now)
    }

    // MARK: The next event

    /// Lets time pass until there is an event for the core. `timer`: when the core's deadline is due. `nil`: there is none until
    /// `limit`.
    mutating func nextEvent(timer: Microseconds?, until limit: Microseconds = .max) -> Event? {
        while true {
            let timer = timer.map { max($0, stalledUntil) }
            guard let next = [timer, queue.nextTime].compactMap({ $0 }).min(), next <= limit else { return nil }
            if let timer, isTimerNext(timer) {
                now = max(now, timer)
                return .deadlineReached
            }
            guard let time = queue.nextTime else { return nil }
            if time < stalledUntil, case .deliver = queue.next {
                queue.postponeNext(until: stalledUntil)
                continue
            }
            guard let (at, item) = queue.pop() else { return nil }
            now = max(now, at)
            switch item {
            // The daemon reads the number of launches when it reads the manifest.
            case .deliver(.configuration(.registered(let id, let policy, _))):
                guard let app = indexes[id] else { return .configuration(.registered(id, policy, launches: 0)) }
                apps[app].knownReadiness = policy.readiness
                registeredTraffic(app, policy)
                registeredSockets(app, policy)
                return .configuration(.registered(id, policy, launches: apps[app].launches))
            case .deliver(.run(let id, .deadline(.inspected(let inspection)))):
                if crossesInspection(id, at) {
                    queue.push(
                        .deliver(.run(id, .deadline(.inspected(inspection)))), at: max(at, lastInspection(of: id)))
                    continue
                }
                return .run(id, .deadline(.inspected(inspection)))
            case .deliver(let event): return event
            case .kernel, .app, .user, .machine, .absence, .wakeUp, .fileSystem, .flood, .peer, .morePeers,
                .streamPeer, .load, .client, .socket, .source, .mode:
                handle(item)
            }
        }
    }

    /// Whether an outcome has to wait for that of a later inspection, and so for what the app did before that one: the daemon
    /// carries out an inspection in the turn in which it is asked for.
    private mutating func crossesInspection(_ id: RunID, _ at: Microseconds) -> Bool {
        guard let run = index(of: id) else { return false }
        let crosses = runs[run].lastInspection > at || runs[run].pendingInspections > 1
        runs[run].pendingInspections = max(0, runs[run].pendingInspections - 1)
        return crosses
    }

    private func lastInspection(of id: RunID) -> Microseconds { index(of: id).map { runs[$0].lastInspection } ?? 0 }

    /// Handles an item that is no event for the core.
    mutating func handle(_ item: Item) {
        switch item {
        case .deliver: break
        case .kernel(let run, let action): handle(action, to: run)
        case .app(let run, let action): perform(action, by: run)
        case .user: actAsUser()
        case .machine: actAsMachine()
        case .absence: changeAbsence()
        case .wakeUp(let number): awake(from: number)
        case .fileSystem: changeFileSystem()
        case .flood: floodWithRequests()
        case .source: actAsSource()
        case .mode: actAsMode()
        case .peer: actAsPeer()
        case .morePeers: actAsMorePeers()
        case .streamPeer: actAsStreamPeer()
        case .client: actAsClient()
        case .socket(let app, let action): act(action, at: app)
        case .load(let version): completeLaunches(version)
        }
    }

    /// Events at the same microsecond come in either order.
    private mutating func isTimerNext(_ timer: Microseconds) -> Bool {
        guard let time = queue.nextTime else { return true }
        if timer == time { return kernelRandom.chance(500) }
        return timer < time
    }

    // MARK: Scheduling

    mutating func deliver(_ event: Event, after delay: Microseconds) {
        queue.push(.deliver(event), at: now + delay)
    }

    mutating func plan(_ action: AppAction, by run: Int, after delay: Microseconds) {
        queue.push(.app(run, action), at: now + max(0, delay))
    }

    mutating func schedule(_ action: KernelAction, for run: Int, after delay: Microseconds) {
        queue.push(.kernel(run, action), at: now + max(0, delay))
    }

    /// Whether a fault is injected now. It is counted if so.
    mutating func injects(_ fault: Fault) -> Bool {
        guard kernelRandom.chance(scenario.rates[fault.rawValue]), !isQuiet, !isInStorm else { return false }
        faults.add(fault)
        return true
    }

    /// Whether apps may behave in this way in this seed. It is counted if so.
    mutating func allows(_ fault: Fault) -> Bool {
        guard scenario.rates[fault.rawValue] > 0, !isQuiet, !isInStorm else { return false }
        faults.add(fault)
        return true
    }

    func index(of run: RunID) -> Int? {
        guard run.number >= scenario.firstRun, run.number - scenario.firstRun < UInt64(runs.count) else { return nil }
        return Int(run.number - scenario.firstRun)
    }

    /// Records an event that is delivered to the core.
    mutating func recordDelivery(_ event: Event) {
        switch event {
        case .run(let id, .process(.exited)): if let run = index(of: id) { runs[run].delivered.hasExited = true }
        case .run(let id, .process(.emptied)): if let run = index(of: id) { runs[run].delivered.isEmptied = true }
        case .run(let id, .process(.spawnFailed)): if let run = index(of: id) { runs[run].delivered.hasFailed = true }
        case .run(let id, .suspension(.frozen(let attempt, _, _))):
            if let run = index(of: id) { frozenDelivered(run, attempt) }
        case .run(let id, .suspension(.freezeLost(let attempt))):
            if let run = index(of: id) { freezeLossDelivered(run, attempt) }
        case .run(let id, .traffic(.workMeasured)): if let run = index(of: id) { workDelivered(run) }
        case .run(let id, .traffic(.idleHinted(true))): if let run = index(of: id) { traffic.runs[run].hintedAt = now }
        case .run(let id, .traffic(.inputWatched(let attempt, let watch))):
            if let run = index(of: id) { watchDelivered(run, attempt, watch) }
        case .memory(.measured): isMeasuring = false
        case .shutdownRequested: isShuttingDown = true
        case .configuration(.unregistered(let id)): unregisteredSockets(id)
        case .run, .configuration, .requested, .requestAbandoned, .absence, .deadlineReached, .memory, .recovered,
            .socketsReady, .timer, .observed:
            break
        }
    }
}
