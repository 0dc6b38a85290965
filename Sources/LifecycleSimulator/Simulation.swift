import LifecycleCore

/// What is simulated.
package struct SimulationOptions: Sendable {
    package var seed: UInt64
    /// Events in the phase of faults; the quiet phase comes on top.
    package var events: Int
    /// `nil`: as the seed says.
    package var apps: Int?

    package init(seed: UInt64, events: Int, apps: Int? = nil) {
        self.seed = seed
        self.events = events
        self.apps = apps
    }
}

/// What came of it.
package struct SimulationResult: Sendable {
    package var seed: UInt64
    package var events: Int
    package var checks: Int
    package var virtualSeconds: Int64
    package var digest: UInt64
    package var faults: FaultCounts
    package var coverage: Coverage
    /// The rule that was broken, if one was; the simulation ends there, after `events` events.
    package var finding: Finding?
    /// The end of the trace.
    package var lastLines: [String]
}

/// One seed, from the first manifest to the last process: faults, then quiet, then the end of the house.
package struct Simulation<Core: DecidingCore> {
    private let scenario: Scenario
    var core: Core
    var plan: CrashPlan
    /// In some seeds a second core is given the same events, and must do the same.
    private var twin: Core?
    var world: World
    private var shadow: Shadow
    var checkers: Checkers
    private var trace: Trace
    private var coverage = Coverage()
    private var line = Line()
    private var events = 0
    private var deadline: Instant?
    private var timer: Microseconds?
    private var concerned: [Int] = []

    /// - Parameters:
    ///   - makeCore: is given the numbers of the first run and of the first receipt.
    ///   - print: gets the trace, line by line.
    ///   - hasTwin: whether a second core may be made.
    package init(
        _ options: SimulationOptions, print: ((String) -> Void)? = nil, hasTwin: Bool = true,
        makeCore: (UInt64, UInt64) -> Core
    ) {
        var random = Random(seed: options.seed)
        scenario = Scenario(seed: options.seed, events: options.events, apps: options.apps, random: &random)
        let firstReceipt: UInt64 = 7
        plan = CrashPlan(seed: options.seed)
        core = makeCore(scenario.firstRun, firstReceipt)
        twin = hasTwin && options.seed % 8 == 0 ? makeCore(scenario.firstRun, firstReceipt) : nil
        world = World(scenario: scenario, random: &random)
        shadow = Shadow(apps: scenario.apps, indexes: world.indexes, firstRun: scenario.firstRun)
        checkers = Checkers(apps: scenario.apps.count, firstReceipt: firstReceipt)
        trace = Trace(print: print)
        if plan.isPlanned { plan.save(core.saved) }
    }

    package mutating func run() -> SimulationResult {
        playFaults()
        if checkers.findings.first == nil { playQuiet() }
        if checkers.findings.first == nil { playEnd() }
        return SimulationResult(
            seed: scenario.seed, events: events, checks: checkers.findings.checks,
            virtualSeconds: world.now / .second, digest: trace.digest, faults: world.faults, coverage: coverage,
            finding: checkers.findings.first, lastLines: trace.last)
    }

    // MARK: The phases

    private mutating func playFaults() {
        advance(events: scenario.events)
        if scenario.shutsDownInTheMiddle, checkers.findings.first == nil {
            note("— the house is shut down in the middle of it —")
            take(.shutdownRequested(immediately: scenario.seed % 3 == 0))
            advance(until: world.now + 60 * .second)
        }
    }

    /// Until everything rests; sometimes for so long that nothing can be left that was put off.
    private mutating func playQuiet() {
        note("— quiet —")
        world.calmDown()
        let start = world.now
        let shortest = scenario.seed % 8 == 1 ? 400 * .second : 0
        while checkers.findings.first == nil, world.now - start < 15 * 60 * .second {
            advance(until: world.now + 2 * .second)
            if world.now - start >= shortest, restlessness == nil { break }
        }
        guard checkers.findings.first == nil else { return }
        let memory = core.memory
        let isOver = memory.budget.map { memory.apps > $0 } ?? false
        let isShort = memory.level == .critical && memory.cause == .available
        checkers.findings.check(
            memory.apps == 0 || shortest == 0 || (!isOver && !isShort), .jetsamActs,
            "at rest there is too little memory still: \(memory)")
        let problem = restlessness
        checkers.findings.check(problem == nil, .everythingComesToRest, problem ?? "")
        let isIdle = shadow.apps.allSatisfy { $0.phase != .foreground } && core.memory.level == .normal
        if isIdle, shortest > 0 {
            checkers.findings.check(
                core.nextDeadline == nil, .everythingComesToRest, "nothing is left to do, but a timer is armed")
        }
    }

    private mutating func playEnd() {
        if !shadow.isShuttingDown {
            note("— the house is shut down —")
            take(.shutdownRequested(immediately: scenario.seed % 2 == 0))
        }
        let start = world.now
        while !world.isFinished, checkers.findings.first == nil, world.now - start < 120 * .second {
            advance(until: world.now + 1 * .second)
        }
        guard checkers.findings.first == nil else { return }
        checkers.findings.check(
            world.isFinished, .everythingComesToRest, "the house was shut down, but does not finish")
        let unanswered = checkers.requests.unanswered
        checkers.findings.check(
            unanswered.isEmpty, .requestsAreAnsweredOnce, "no answer ever came to requests \(unanswered)")
    }

    /// What is not at rest, in one sentence.
    private var restlessness: String? {
        for (index, app) in shadow.apps.enumerated() {
            switch app.phase {
            case .unknown, .notRunning, .suspended, .foreground, .past: break
            case .launching, .entering, .running, .suspending, .waking, .terminating, .ending:
                return "\(app.id) is still \(app.state) (\(app.phase))"
            }
            let open = checkers.deadlines.openKinds(of: index).filter { $0 != .watchdog }
            if !open.isEmpty { return "\(app.id) still counts \(open)" }
        }
        let unanswered = checkers.requests.unanswered
        return unanswered.isEmpty ? nil : "requests \(unanswered) still wait for their answers"
    }

    // MARK: Going on

    private mutating func advance(events limit: Int) {
        while events < limit, checkers.findings.first == nil, let event = world.nextEvent(timer: timer) {
            take(event)
            if !shadow.isShuttingDown, checkers.findings.first == nil, plan.strikes() { crash() }
        }
    }

    private mutating func advance(until time: Microseconds) {
        while checkers.findings.first == nil {
            let next = [timer.map { max($0, world.stalledUntil) }, world.queue.nextTime].compactMap { $0 }.min()
            guard let next, next <= time, let event = world.nextEvent(timer: timer) else { break }
            take(event)
        }
        world.now = max(world.now, time)
    }

    /// One event: in, and all that comes of it out.
    mutating func take(_ event: Event) {
        events += 1
        world.noteReported(event)
        let now = world.now
        let app = shadow.app(of: event)
        coverage.add(event, shadow.phase(of: event, app))
        write(event, app)
        checkers.note(event, of: app, shadow, world, core)
        shadow.note(event)
        let effects = core.handle(event, at: Instant(now))
        if plan.isPlanned {
            if plan.isLogLong { plan.save(core.saved) } else { plan.keep(event, at: Instant(now)) }
        }
        if twin != nil {
            let same = twin?.handle(event, at: Instant(now)) == effects
            checkers.findings.check(same, .sameEventsSameEffects, "a second core does something else")
        }
        concerned.removeAll(keepingCapacity: true)
        if let app { concerned.append(app) }
        checkers.begin(effects, shadow)
        for effect in effects { carryOut(effect, event) }
        shadow.settle(event)
        if let problem = world.problemAfterAll() { checkers.findings.check(false, .effectsMakeSense, problem) }
        checkers.settle(
            event, of: app, effects, concerning: concerned, shadow, world, core,
            isDeep: events % Checkers.deepInterval == 0)
        writeStates()
        arm()
    }

    private mutating func carryOut(_ effect: Effect, _ event: Event) {
        let app = shadow.app(of: effect)
        if let app, !concerned.contains(app) { concerned.append(app) }
        line.clear()
        line.add("    → ")
        line.add(effect, of: app.map { shadow.apps[$0].id })
        trace.add(line.text)
        // What was asked for before the crash is asked for again: it is no second time.
        if case .run(_, .reattached) = event, world.performAgain(effect) { return }
        checkers.note(effect, of: app, in: event, shadow, world, core)
        shadow.note(effect, of: app, at: world.now)
        let problem = world.perform(effect)
        checkers.findings.check(problem == nil, .effectsMakeSense, problem ?? "")
    }

    /// The one timer, for the nearest deadline.
    private mutating func arm() {
        let next = core.nextDeadline
        guard next != deadline || (next != nil && timer == nil) || timer.map({ $0 <= world.now }) ?? false else {
            return
        }
        deadline = next
        timer = next.map { max(world.now, $0.microseconds) + world.timerDelay() }
    }

    // MARK: The trace

    mutating func note(_ sentence: String) { trace.add(sentence) }

    private mutating func write(_ event: Event, _ app: Int?) {
        line.clear()
        line.add("#")
        line.add(events)
        line.add("  ")
        line.add(seconds: world.now)
        line.add("  ")
        line.add(event, of: app.map { shadow.apps[$0].id })
        if shadow.phase(of: event, app) == .past { line.add(" (of an earlier run)") }
        trace.add(line.text)
    }

    private mutating func writeStates() {
        guard !concerned.isEmpty else { return }
        line.clear()
        line.add("    =")
        for app in concerned {
            line.add(" ")
            line.add(shadow.apps[app].id.name)
            line.add(" ")
            line.add(shadow.apps[app].state.rawValue)
            line.add(" (")
            line.add(shadow.apps[app].phase.name)
            line.add(")")
        }
        trace.add(line.text)
    }
}

/// One seed with the real core.
package func simulate(_ options: SimulationOptions, print: ((String) -> Void)? = nil) -> SimulationResult {
    var simulation = Simulation(options, print: print) { LifecycleCore(firstRun: $0, firstReceipt: $1) }
    return simulation.run()
}
