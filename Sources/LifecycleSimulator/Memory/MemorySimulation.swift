import LifecycleCore

/// Plays a scenario with a core. The core decides by events and effects as in the daemon; processes allocate, wait for
/// memory, are swapped and end in steps of 1 ms. All numbers are integers: the same scenario gives the same result on every
/// machine.
package struct MemorySimulation<Core: DecidingCore> {
    enum Item {
        case deliver(Event)
        case measure
        case step(MemoryScenario.Step)
        case frozen(Int, RunID, attempt: Int)
        case footprint(Int, RunID, attempt: Int)
        case exact(Int, RunID)
        case execute(Int, RunID)
        case tick
    }

    /// The app of which memory is being pushed out, and how many bytes still.
    struct Reclaiming {
        var app: Int
        var run: RunID
        var attempt: Int
        var left: Int
        var bytes = 0
    }

    /// The process of an app.
    struct Process {
        let run: RunID
        var resident = 0
        var swapped = 0
        /// What it uses once it has allocated everything; 0: its program is not executed yet.
        var wanted = 0
        var isFrozen = false
        var attempt = 0
        var frozenAt: Microseconds = 0
        /// When it begins to free its memory.
        var endsAt: Microseconds?
        /// When that was decided.
        var killedAt: Microseconds = 0
        var status = ExitStatus.signaled(9, coreDumped: false)
        /// The kernel's OOM killer ended it: the core learns of it when it is gone.
        var isKilledByKernel = false
        var size: Int { resident + swapped }
        /// While it runs it uses half of its memory: the kernel can swap the rest. Nothing of a frozen one is in use.
        var inUse: Int { isFrozen ? 0 : size / 2 }
        /// What it waits for.
        var missing: Int { max(0, min(swapped, inUse - resident)) }
        /// How soon the kernel swaps it: what is frozen, what is not in use, and what is.
        var swapRank: Int { isFrozen ? 0 : resident > inUse ? 1 : 2 }
        /// What the kernel may swap.
        var swappable: Int { endsAt != nil ? 0 : resident > inUse ? resident - inUse : resident }
    }

    let scenario: MemoryScenario
    let order: MemoryOrder
    var core: Core
    var machine: MemoryMachine
    var now: Microseconds = 0
    /// The fastest fill of the last time: in bytes for 100 ms.
    var peakFill: (bytes: Int, at: Microseconds) = (0, 0)
    var queue = EventQueue<Item>()
    /// By app.
    var processes: [Process?]
    var states: [AppState]
    var isLaunchedToFront: [Bool]
    /// The app of each run.
    var appsByRun: [RunID: Int] = [:]
    var outcome = MemoryOutcome()
    var manager = ManagerPolicy()
    /// Where the memory of other programs is going to.
    var othersTarget: Int
    var victims: [(app: Int, size: Int, at: Microseconds, hadSpace: Bool)] = []
    let uses: [[Microseconds]]
    let indexes: [AppID: Int]
    /// When memory moves next; `nil`: nothing moves.
    private var nextTick: Microseconds?
    /// When memory moved last.
    private var lastTick: Microseconds = 0
    /// Steps without any progress of the kernel in a row.
    var stuckTicks = 0
    /// The stalls at the beginning of the window of the pressure triggers.
    var window = (start: Microseconds(0), some: Microseconds(0), full: Microseconds(0))
    var shortSince: Microseconds?
    /// What is being pushed out to swap (L37).
    var reclaiming: Reclaiming?
    /// Since when the apps have exceeded the budget.
    var overBudgetSince: Microseconds?
    /// The real sizes at the last reading, by app: the core may know of these.
    var sizesRead: [Int]
    private var lastTime: Microseconds = 0
    private var lastRequest: UInt64 = 0

    package init(_ scenario: MemoryScenario, order: MemoryOrder, core: Core) {
        self.scenario = scenario
        self.order = order
        self.core = core
        machine = MemoryMachine(
            scenario.hardware, others: scenario.others, coldCache: scenario.coldCache, hotCache: scenario.hotCache)
        othersTarget = scenario.others
        processes = Array(repeating: nil, count: scenario.apps.count)
        states = Array(repeating: .notRunning, count: scenario.apps.count)
        sizesRead = Array(repeating: 0, count: scenario.apps.count)
        isLaunchedToFront = Array(repeating: false, count: scenario.apps.count)
        uses = scenario.uses
        indexes = Dictionary(uniqueKeysWithValues: scenario.apps.enumerated().map { ($1.id, $0) })
        manager.budget = scenario.budget.map(UInt64.init)
        switch order {
        case .largest, .oracle: manager.jetsamOrder = .largest
        case .lru: manager.jetsamOrder = .lru
        case .balanced: manager.jetsamOrder = .balanced
        }
    }

    package mutating func run() -> MemoryOutcome {
        handle(.configuration(.configured(manager)))
        for app in scenario.apps { handle(.configuration(.registered(app.id, app.policy, launches: 0))) }
        handle(.configuration(.started))
        for (time, step) in scenario.steps { queue.push(.step(step), at: time) }
        while advance() {}
        finish()
        precondition(core.brokenInvariants.isEmpty, "\(core.brokenInvariants)")
        return outcome
    }

    /// Handles the next item or deadline. Returns whether there was one.
    private mutating func advance() -> Bool {
        let timer = core.nextDeadline.map { max(now, $0.microseconds) }
        let next = [timer, queue.nextTime].compactMap { $0 }.min()
        guard let next, next <= scenario.end else { return false }
        countShortTime(until: next)
        now = next
        checkBudgetTime()
        if let timer, timer == next, queue.nextTime.map({ $0 > timer }) ?? true {
            handle(.deadlineReached)
        } else if let item = queue.pop()?.item {
            perform(item)
        }
        startTicking()
        return true
    }

    private mutating func countShortTime(until next: Microseconds) {
        if machine.available < criticalBytes { outcome.shortTime += next - lastTime }
        lastTime = next
        let scarce = scarceBytes
        guard machine.available < scarce, hasLivingSuspended else { return shortSince = nil }
        let since = shortSince ?? next
        shortSince = since
        guard next - since > 2 * .second else { return }
        outcome.check(
            false, .memoryRecovers,
            "at \(now / 1000) ms \(machine.available >> 20) MiB have been available for 2s, of \(scarce >> 20) MiB")
        // Each two seconds count once.
        shortSince = nil
    }

    private mutating func perform(_ item: Item) {
        switch item {
        case .deliver(let event): handle(event)
        case .measure: measure()
        case .step(let step): perform(step)
        case .frozen(let app, let run, let attempt):
            guard let process = processes[app], process.run == run else { return }
            processes[app]?.attempt = attempt
            let (size, uncertainty) = estimate(app, process)
            // The daemon measures it exactly if that may matter.
            if uncertainty > max(8 << 20, size / 10) {
                queue.push(.footprint(app, run, attempt: attempt), at: now + scenario.exactTime)
            }
            handle(.run(run, .suspension(.frozen(attempt: attempt, memory: size, uncertainty: uncertainty))))
        case .footprint(let app, let run, let attempt):
            guard let process = processes[app], process.run == run, process.isFrozen, process.attempt == attempt else {
                return
            }
            handle(.run(run, .suspension(.footprintMeasured(attempt: attempt, memory: UInt64(process.size)))))
        case .exact(let app, let run):
            guard let process = processes[app], process.run == run else { return }
            handle(
                .run(run, .memory(.sizeMeasured(bytes: UInt64(process.size), estimate: estimate(app, process).size))))
        case .execute(let app, let run):
            guard processes[app]?.run == run else { return }
            let size = scenario.apps[app].size
            processes[app]?.wanted = size
            handle(.run(run, .process(.executed)))
        case .tick:
            nextTick = nil
            lastTick = now
            tick()
        }
    }

    /// A reading is made at the end of a step. In the middle of one it could count a step more than programs had time for: the
    /// core would take memory to be filled faster than it is, and kill one app too many.
    private mutating func measure() {
        if let nextTick, lastTick < now { return queue.push(.measure, at: nextTick) }
        for app in processes.indices { sizesRead[app] = processes[app]?.size ?? 0 }
        handle(.memory(.measured(machine.reading(sizes))))
    }

    private mutating func perform(_ step: MemoryScenario.Step) {
        if order == .oracle { tellFuture() }
        switch step {
        case .activate(let app): request(app, .activate)
        case .push(let app): request(app, .push(payload: ""))
        case .others(let bytes): othersTarget = bytes
        case .begin:
            outcome = MemoryOutcome()
            victims = []
        }
    }

    private mutating func request(_ app: Int, _ what: Request) {
        lastRequest += 1
        handle(.requested(RequestID(lastRequest), scenario.apps[app].id, what))
    }

    /// The oracle ranks apps by their priority: the farther away the next use and the larger the app, the lower.
    private mutating func tellFuture() {
        let costs = scenario.apps.indices.map { app in
            let next = uses[app].first { $0 > now }.map { ($0 - now) / .millisecond } ?? 1 << 30
            return Double(next) * Double(scenario.apps[app].size)
        }
        let sorted = scenario.apps.indices.sorted { (-costs[$0], $0) < (-costs[$1], $1) }
        for (rank, app) in sorted.enumerated() {
            var policy = scenario.apps[app].policy
            policy.jetsamPriority = rank - 1000
            handle(.configuration(.registered(scenario.apps[app].id, policy, launches: 0)))
        }
    }

    // The loops of this file that run at each event have no closures: a closure would copy the simulation.
    private var isMoving: Bool {
        if machine.others != othersTarget || machine.isRefaulting || reclaiming != nil { return true }
        for process in processes {
            guard let process else { continue }
            if process.endsAt != nil { return true }
            if process.missing > 0 || !process.isFrozen && process.size < process.wanted { return true }
        }
        return false
    }

    private mutating func startTicking() {
        guard nextTick == nil else { return }
        guard isMoving else { return }
        nextTick = now + .millisecond
        queue.push(.tick, at: now + .millisecond)
    }

    var sizes: [MemoryReading.Size] {
        var sizes: [MemoryReading.Size] = []
        for app in processes.indices {
            guard let process = processes[app], !process.isFrozen else { continue }
            let (size, uncertainty) = estimate(app, process)
            sizes.append(MemoryReading.Size(run: process.run, bytes: size, uncertainty: uncertainty))
        }
        return sizes
    }

    /// The size of an app as the files of its processes in /proc show it without a walk of the page tables, and by how much that
    /// may be too large.
    func estimate(_ app: Int, _ process: Process) -> (size: UInt64, uncertainty: UInt64) {
        let (children, shared) = (scenario.apps[app].children, min(scenario.apps[app].shared, process.size))
        if children == 0 { return (UInt64(process.size), 0) }
        // A quarter of its memory is its children's own.
        return (UInt64(process.size + children * shared), UInt64(process.size / 4 + children * shared))
    }

    /// Below what is available suspended apps are killed. With swap space left, that is less (docs/decisions/memory.md).
    private var scarceBytes: Int {
        let thresholds = manager.thresholds(of: UInt64(scenario.hardware.total))
        return Int(machine.hasSwapLeft ? thresholds.foreground : thresholds.critical)
    }
    var criticalBytes: Int { Int(manager.thresholds(of: UInt64(scenario.hardware.total)).critical) }
    var warningBytes: Int { Int(manager.thresholds(of: UInt64(scenario.hardware.total)).warning) }

    /// Whether a suspended app lives that was not killed.
    var hasLivingSuspended: Bool {
        for app in processes.indices where states[app] == .suspended {
            if let process = processes[app], process.endsAt == nil { return true }
        }
        return false
    }

    private mutating func finish() {
        outcome.foreground = states.indices.filter { states[$0] == .active }.map { scenario.apps[$0].id }
        for victim in victims {
            let isUsedSoon = uses[victim.app].contains { $0 > victim.at && $0 <= victim.at + 600 * .second }
            if isUsedSoon || victim.hadSpace { outcome.bytesInVain += victim.size }
        }
        guard scenario.budget == nil, machine.available > warningBytes * 5 / 4 else { return }
        outcome.check(
            core.memory.level == .normal, .levelReturns,
            "the level is \(core.memory.level) at the end of \(scenario.name)")
        let missing = scenario.apps.indices.first { app in
            scenario.apps[app].policy.relaunch == .always && states[app] == .notRunning && !uses[app].isEmpty
                && machine.available > warningBytes * 2 + scenario.apps[app].size
        }
        outcome.check(
            missing == nil, .wantedAppsReturn,
            "\(missing.map { "\(scenario.apps[$0].id)" } ?? "") does not run at the end of \(scenario.name)")
    }
}
