import LifecycleCore

/// All that the core decides over, faked: processes, apps, users, the machine; and what is to happen to them when. Things
/// happen at their own time in here, and the core hears of them when the outcome is delivered.
struct World {
    enum Item {
        case deliver(Event)
        case kernel(Int, KernelAct)
        case app(Int, AppAct)
        case user
        case machine
        case absence
        /// This sleep is over, whether or not it was allowed in time.
        case awaking(Int)
    }

    struct FakeApp {
        let id: AppID
        let personality: Personality
        var random: Random
        var policy = AppPolicy()
        var isRegistered = false
        /// The latest run, over or not.
        var run: Int?
        /// As recorded by the core.
        var launches = 0
    }

    let scenario: Scenario
    var now: Microseconds = 0
    var queue = EventQueue<Item>()
    var apps: [FakeApp]
    let indexes: [AppID: Int]
    var runs: [FakeRun] = []
    var faults = FaultCounts()
    /// No requests, no faults: everything must come to rest.
    var isQuiet = false
    var isShuttingDown = false
    var isFinished = false

    /// The daemon gets no processor before this: what happens meanwhile it hears of then.
    var stalledUntil: Microseconds = 0
    /// All the time for which the core was not told what it could have been told: what checkers allow for.
    var lateness: Microseconds = 0

    var kernelRandom: Random
    var userRandom: Random
    var machineRandom: Random
    /// Of its own seed, so that seeds without absences play as if there were none.
    var absenceRandom: Random

    var manager = ManagerPolicy()
    var lastRequest: UInt64 = 0
    var usedMemory: UInt64 = 0
    var otherMemory: UInt64
    /// What ended runs had, and when all of it will be available again.
    var returning: [(bytes: UInt64, at: Microseconds)] = []
    var isMeasuring = false
    var isLocked = false
    /// Counts sleeps; `nil`: awake.
    var sleep: Int?
    var sleeps = 0
    /// Given something while frozen: it must be thawed in the same breath.
    var givenWhileFrozen: [Int] = []

    init(scenario: Scenario, random: inout Random) {
        self.scenario = scenario
        kernelRandom = random.stream(1)
        userRandom = random.stream(2)
        machineRandom = random.stream(3)
        absenceRandom = Random(seed: scenario.seed ^ 0x6c6f_636b_6564)
        apps = zip(scenario.apps, scenario.personalities).enumerated().map { index, app in
            FakeApp(id: app.0, personality: app.1, random: random.stream(100 + UInt64(index)))
        }
        indexes = Dictionary(uniqueKeysWithValues: scenario.apps.enumerated().map { ($1, $0) })
        otherMemory = scenario.totalMemory / (scenario.isMemoryTight ? 2 : 10)
        begin()
    }

    private mutating func begin() {
        manager = userRandom.managerPolicy(total: scenario.totalMemory, isTight: scenario.isMemoryTight)
        queue.push(.deliver(.configured(manager)), at: 0)
        for index in apps.indices { register(index) }
        queue.push(.deliver(.started), at: 0)
        queue.push(.user, at: 1 * .millisecond)
        queue.push(.machine, at: 10 * .millisecond)
        if scenario.hasAbsences { queue.push(.absence, at: 50 * .millisecond) }
    }

    mutating func register(_ index: Int) {
        apps[index].policy = userRandom.policy()
        if scenario.hasAbsences { apps[index].policy.usesProtectedData = absenceRandom.chance(300) }
        apps[index].isRegistered = true
        queue.push(.deliver(.registered(apps[index].id, apps[index].policy, launches: apps[index].launches)), at: now)
    }

    // MARK: What happens next

    /// Lets time pass until the core is to hear of something. `timer`: when it wants to hear that its time has come.
    mutating func nextEvent(timer: Microseconds?) -> Event? {
        while true {
            let timer = timer.map { max($0, stalledUntil) }
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
            // The daemon looks up the number as it reads the manifest.
            case .deliver(.registered(let id, let policy, _)):
                return .registered(id, policy, launches: indexes[id].map { apps[$0].launches } ?? 0)
            case .deliver(let event): return event
            case .kernel, .app, .user, .machine, .absence, .awaking: happen(item)
            }
        }
    }

    /// Something that the core does not hear of at once.
    mutating func happen(_ item: Item) {
        switch item {
        case .deliver: break
        case .kernel(let run, let act): happen(act, to: run)
        case .app(let run, let act): perform(act, by: run)
        case .user: actAsUser()
        case .machine: actAsMachine()
        case .absence: comeAndGo()
        case .awaking(let number): awake(from: number)
        }
    }

    /// What falls on the same microsecond may come before or after.
    private mutating func isTimerNext(_ timer: Microseconds) -> Bool {
        guard let time = queue.nextTime else { return true }
        if timer == time { return kernelRandom.chance(500) }
        return timer < time
    }

    // MARK: Small things

    mutating func deliver(_ event: Event, after delay: Microseconds) {
        queue.push(.deliver(event), at: now + delay)
    }

    mutating func plan(_ act: AppAct, by run: Int, after delay: Microseconds) {
        queue.push(.app(run, act), at: now + max(0, delay))
    }

    mutating func schedule(_ act: KernelAct, for run: Int, after delay: Microseconds) {
        queue.push(.kernel(run, act), at: now + max(0, delay))
    }

    /// Whether a fault strikes now; counted if it does.
    mutating func strikes(_ fault: Fault) -> Bool {
        guard kernelRandom.chance(scenario.rates[fault.rawValue]), !isQuiet else { return false }
        faults.add(fault)
        return true
    }

    /// Whether something that apps do, and that has been decided on, is played in this seed.
    mutating func allows(_ fault: Fault) -> Bool {
        guard scenario.rates[fault.rawValue] > 0, !isQuiet else { return false }
        faults.add(fault)
        return true
    }

    func index(of run: RunID) -> Int? {
        guard run.number >= scenario.firstRun, run.number - scenario.firstRun < UInt64(runs.count) else { return nil }
        return Int(run.number - scenario.firstRun)
    }

    /// What the core knows from now on.
    mutating func noteReported(_ event: Event) {
        switch event {
        case .run(let id, .exited): if let run = index(of: id) { runs[run].reported.hasExited = true }
        case .run(let id, .emptied): if let run = index(of: id) { runs[run].reported.isEmptied = true }
        case .run(let id, .spawnFailed): if let run = index(of: id) { runs[run].reported.hasFailed = true }
        case .memoryMeasured: isMeasuring = false
        case .shutdownRequested: isShuttingDown = true
        case .run, .registered, .unregistered, .configured, .started, .requested, .requestAbandoned, .sleepRequested,
            .awoke, .locked, .unlocked, .deadlineReached, .pressureStalled, .pressureSimulated, .recovered:
            break
        }
    }
}
