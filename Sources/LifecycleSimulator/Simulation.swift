import LifecycleCore

/// The parameters of a simulation.
package struct SimulationOptions: Sendable {
    package var seed: UInt64
    /// Number of events in the phase with faults. The events of the later phases are not counted.
    package var events: Int
    /// Number of apps; `nil`: the seed chooses it.
    package var apps: Int?

    package init(seed: UInt64, events: Int, apps: Int? = nil) {
        self.seed = seed
        self.events = events
        self.apps = apps
    }
}

/// The outcome of a simulation.
package struct SimulationResult: Sendable {
    package var seed: UInt64
    package var events: Int
    package var checks: Int
    package var virtualSeconds: Int64
    /// Of all lines of the trace; `nil`: none was made.
    package var digest: UInt64?
    package var faults: FaultCounts
    package var coverage: Coverage
    /// The first violated rule, if any. The simulation stops there, after `events` events.
    package var finding: Finding?
    /// The last lines of the trace, if one was made.
    package var lastLines: [String]
}

/// Simulates one seed: a phase with faults, a quiet phase without faults, and a shutdown of the daemon.
package struct Simulation<Core: DecidingCore> {
    private let scenario: Scenario
    var core: Core
    var plan: CrashPlan
    /// In some seeds a second core gets the same events. It must return the same effects.
    private var twin: Core?
    var world: World
    var model: CoreModel
    var checkers: Checkers
    /// `nil`: none is made. To write it takes more time than all else.
    private var trace: Trace?
    private var coverage = Coverage()
    private var line = Line()
    private var events = 0
    private var deadline: Instant?
    private var timer: Microseconds?
    private var affected: [Int] = []

    /// - Parameters:
    ///   - makeCore: receives the number of the first run and of the first receipt.
    ///   - print: receives each line of the trace; `nil`: none is made.
    ///   - hasTwin: whether a second core may be created.
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
        model = CoreModel(apps: scenario.apps, indexes: world.indexes, firstRun: scenario.firstRun)
        checkers = Checkers(apps: scenario.apps.count, firstReceipt: firstReceipt, storm: scenario.storm)
        trace = print.map { Trace(print: $0) }
        core.continueAfterBrokenInvariants()
        twin?.continueAfterBrokenInvariants()
        if plan.isPlanned { plan.save(core.saved) }
    }

    package mutating func run() -> SimulationResult {
        runFaults()
        if checkers.findings.first == nil { runQuietPhase() }
        if checkers.findings.first == nil { runShutdown() }
        return SimulationResult(
            seed: scenario.seed, events: events, checks: checkers.findings.checks,
            virtualSeconds: world.now / .second, digest: trace?.digest, faults: world.faults, coverage: coverage,
            finding: checkers.findings.first, lastLines: trace?.last ?? [])
    }

    // MARK: The phases

    private mutating func runFaults() {
        advance(events: scenario.events)
        if scenario.shutsDownInTheMiddle, checkers.findings.first == nil {
            record("— the daemon is shut down during the faults —")
            handle(.shutdownRequested(immediately: scenario.seed % 3 == 0))
            advance(until: world.now + 60 * .second)
        }
    }

    /// Waits until all apps are idle. In some seeds it waits for 400s, longer than any postponement of the core.
    private mutating func runQuietPhase() {
        record("— quiet —")
        world.stopFaults()
        let start = world.now
        let shortest = scenario.seed % 8 == 1 ? 400 * .second : 0
        while checkers.findings.first == nil, world.now - start < 15 * 60 * .second {
            advance(until: world.now + 2 * .second)
            if world.now - start >= shortest, pendingActivity == nil { break }
        }
        guard checkers.findings.first == nil else { return }
        let memory = core.memory
        let isAnyCandidate = model.apps.contains { $0.run != nil && !$0.policy.isEssential }
        let isOver = memory.budget.map { memory.apps > $0 && isAnyCandidate } ?? false
        // An app in the foreground is not killed as long as the machine works.
        let isAnyLeft = model.apps.contains { $0.run != nil && $0.phase != .foreground && !$0.policy.isEssential }
        let isShort = isAnyLeft && memory.level == .critical && memory.cause == .available
        checkers.findings.check(
            memory.apps == 0 || shortest == 0 || (!isOver && !isShort), .everythingBecomesIdle,
            "memory is still short although nothing happens any more: \(memory)")
        let problem = pendingActivity
        checkers.findings.check(problem == nil, .everythingBecomesIdle, problem ?? "")
        let isIdle =
            model.apps.allSatisfy {
                $0.phase != .foreground && !$0.isHeldByMode
                    && ($0.policy.effectiveSuspension == .yes || $0.run == nil)
            }
            && core.memory.level == .normal
        if isIdle, shortest > 0, !doesAnyAwaitMemory, !mayInputWake, !mayUnload {
            // A relaunch may be postponed for longer than this phase (L11).
            checkers.findings.check(
                core.nextDeadline?.microseconds == checkers.relaunches.nextDue, .everythingBecomesIdle,
                "all apps are idle, but a timer is armed")
        }
    }

    /// An app comes back after jetsam once there is space (L11, L49).
    private var doesAnyAwaitMemory: Bool {
        model.apps.contains { core.view(of: $0.id, at: Instant(world.now))?.memoryAwaited != nil }
    }

    /// Input of a suspended app, or its request to itself, may wait for its time (L50, L53), and an app that is left awake is looked at.
    private var mayInputWake: Bool {
        model.apps.indices.contains { app in
            if world.isLeftAwake(app) { return true }
            guard model.apps[app].phase == .suspended else { return false }
            let view = core.view(of: model.apps[app].id, at: Instant(world.now))
            return world.hasUnread(app) || view?.deferredWake != nil
        }
    }

    /// A suspended app may be unloaded later.
    private var mayUnload: Bool {
        model.apps.contains { $0.phase == .suspended && $0.policy.unloadAfter != nil }
    }

    private mutating func runShutdown() {
        if !model.isShuttingDown {
            record("— the daemon is shut down —")
            handle(.shutdownRequested(immediately: scenario.seed % 2 == 0))
        }
        let start = world.now
        while !world.isFinished, checkers.findings.first == nil, world.now - start < 120 * .second {
            advance(until: world.now + 1 * .second)
        }
        guard checkers.findings.first == nil else { return }
        checkers.findings.check(
            world.isFinished, .everythingBecomesIdle, "a shutdown was requested, but does not finish")
        let unanswered = checkers.requests.unanswered
        checkers.findings.check(
            unanswered.isEmpty, .requestsAreAnsweredOnce, "there is no answer to requests \(unanswered)")
    }

    /// The first activity that is not over, as a sentence; `nil`: all apps are idle.
    private var pendingActivity: String? {
        for (index, app) in model.apps.enumerated() {
            let isNeverSuspended = app.policy.effectiveSuspension != .yes || app.isHeldByMode
            if app.phase == .running, world.isLeftAwake(index) || isNeverSuspended { continue }
            switch app.phase {
            case .unknown, .notRunning, .suspended, .foreground, .past: break
            case .launching, .entering, .running, .suspending, .waking, .terminating, .ending:
                return "\(app.id) is still \(app.state) (\(app.phase))"
            }
            if core.view(of: app.id, at: Instant(world.now))?.launchWaiting != nil {
                return "\(app.id) still waits to be launched"
            }
            if app.isRegistered, world.hasClients(index), !model.isShuttingDown {
                return "clients of \(app.id) still wait"
            }
            let open = checkers.deadlines.openKinds(of: index).filter { $0 != .watchdog }
            if !open.isEmpty { return "\(app.id) still has open deadlines: \(open)" }
        }
        let unanswered = checkers.requests.unanswered
        return unanswered.isEmpty ? nil : "requests \(unanswered) have no answer yet"
    }

    // MARK: Events

    private mutating func advance(events limit: Int) {
        while events < limit, checkers.findings.first == nil, let event = world.nextEvent(timer: timer) {
            handle(event)
            if !model.isShuttingDown, !world.isInStorm, checkers.findings.first == nil, plan.crashesNow() { crash() }
        }
    }

    private mutating func advance(until time: Microseconds) {
        while checkers.findings.first == nil {
            let next = [timer.map { max($0, world.stalledUntil) }, world.queue.nextTime].compactMap { $0 }.min()
            guard let next, next <= time, let event = world.nextEvent(timer: timer, until: time) else { break }
            handle(event)
        }
        world.now = max(world.now, time)
    }

    /// Delivers an event to the core, performs the effects and checks the rules.
    mutating func handle(_ event: Event) {
        events += 1
        world.recordDelivery(event)
        let now = world.now
        let app = model.app(of: event)
        coverage.add(event, model.phase(of: event, app))
        write(event, app)
        checkers.record(event, of: app, model, world, core)
        model.record(event)
        let effects = core.handle(event, at: Instant(now))
        let isDeep = events % Checkers.deepInterval == 0
        if isDeep { core.verifyAll() }
        let broken = core.brokenInvariants.first
        checkers.findings.check(broken == nil, .invariantsHold, broken.map { "\($0)" } ?? "")
        if plan.isPlanned {
            if plan.isLogLong { plan.save(core.saved) } else { plan.append(event, at: Instant(now)) }
        }
        if twin != nil {
            let same = twin?.handle(event, at: Instant(now)) == effects
            checkers.findings.check(same, .sameEventsSameEffects, "a second core returns other effects")
        }
        affected.removeAll(keepingCapacity: true)
        if let app { affected.append(app) }
        checkers.begin(effects, of: event, model)
        for effect in effects { carryOut(effect, event) }
        model.finish(event)
        if let problem = world.problemAfterEffects() { checkers.findings.check(false, .effectsAreValid, problem) }
        checkers.verify(
            event, of: app, concerning: affected, model, world, core,
            isDeep: isDeep)
        world.traffic.served.removeAll(keepingCapacity: true)
        writeStates()
        arm()
    }

    private mutating func carryOut(_ effect: Effect, _ event: Event) {
        let app = model.app(of: effect)
        if let app, !affected.contains(app) { affected.append(app) }
        if trace != nil { write(effect, app) }
        // After a recovery the core repeats requests that were in progress. A repetition is not checked as a second
        // request.
        if case .run(_, .process(.reattached)) = event, world.repeatOutcome(effect) { return }
        checkers.record(effect, of: app, in: event, model, world, core)
        model.record(effect, of: app, at: world.now)
        let problem = world.perform(effect)
        checkers.findings.check(problem == nil, .effectsAreValid, problem ?? "")
    }

    /// Arms the timer for the nearest deadline of the core.
    private mutating func arm() {
        let next = core.nextDeadline
        guard next != deadline || (next != nil && timer == nil) || timer.map({ $0 <= world.now }) ?? false else {
            return
        }
        deadline = next
        timer = next.map { max(world.now, $0.microseconds) + world.timerDelay() }
    }

    // MARK: The trace

    mutating func record(_ sentence: @autoclosure () -> String) { if trace != nil { trace?.add(sentence()) } }

    private mutating func write(_ effect: Effect, _ app: Int?) {
        line.clear()
        line.add("    → ")
        line.add(effect, of: app.map { model.apps[$0].id })
        trace?.add(line.text)
    }

    private mutating func write(_ event: Event, _ app: Int?) {
        if trace == nil { return }
        line.clear()
        line.add("#")
        line.add(events)
        line.add("  ")
        line.add(seconds: world.now)
        line.add("  ")
        line.add(event, of: app.map { model.apps[$0].id })
        if model.phase(of: event, app) == .past { line.add(" (of an earlier run)") }
        trace?.add(line.text)
    }

    private mutating func writeStates() {
        guard trace != nil, !affected.isEmpty else { return }
        line.clear()
        line.add("    =")
        for app in affected {
            line.add(" ")
            line.add(model.apps[app].id.name)
            line.add(" ")
            line.add(model.apps[app].state.rawValue)
            line.add(" (")
            line.add(model.apps[app].phase.name)
            line.add(")")
        }
        trace?.add(line.text)
    }
}

/// Simulates one seed with the real core. A seed that violates a rule is simulated once more, for the last lines of its trace.
package func simulate(_ options: SimulationOptions, print: ((String) -> Void)? = nil) -> SimulationResult {
    var simulation = Simulation(options, print: print) { LifecycleCore(firstRun: $0, firstReceipt: $1) }
    let result = simulation.run()
    if result.finding == nil || print != nil { return result }
    return simulate(options) { _ in }
}
