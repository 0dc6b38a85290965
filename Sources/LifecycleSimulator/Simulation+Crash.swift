import LifecycleCore

/// What the daemon keeps beside the core, and how often it is killed. A crash comes between two events: what follows from
/// the last is carried out, as the daemon keeps count of that.
struct CrashPlan {
    private var random: Random
    /// Of 1,000 events; 0: never in this seed.
    private let rate: Int
    /// The core as it was saved last, and what it was given since.
    private(set) var checkpoint: [UInt8] = []
    private(set) var log: [[UInt8]] = []
    private(set) var crashes = 0

    init(seed: UInt64) {
        // A stream of its own, so that the other seeds play what they always did.
        random = Random(seed: seed &+ 0x6372_6173_6821)
        rate = seed % 4 == 2 ? random.pick([2, 10, 40]) : 0
    }

    var isPlanned: Bool { rate > 0 }

    mutating func save(_ core: SavedCore) {
        checkpoint = core.bytes
        log = []
    }

    mutating func keep(_ event: Event, at now: Instant) {
        log.append(LoggedEvent(event, at: now).savedBytes)
    }

    /// The log is bounded by a new snapshot now and then.
    var isLogLong: Bool { log.count >= 200 }

    mutating func strikes() -> Bool {
        guard rate > 0, random.chance(rate) else { return false }
        crashes += 1
        return true
    }

    /// How long no daemon is there.
    mutating func timeDown() -> Microseconds {
        random.pick([1 * .millisecond, 20 * .millisecond, random.within(0...3 * .second), 20 * .second])
    }

    /// Whether the notify sockets outlived the daemon.
    mutating func keepsSockets() -> Bool { random.chance(500) }
    mutating func kernelForgets() -> Bool { random.chance(500) }
    /// Whether the daemon died before it had told an app what was decided.
    mutating func isLate() -> Bool { random.chance(500) }
}

extension World {
    /// No daemon is there for a while: everything goes on without it, and nobody hears of it.
    mutating func beDown(for time: Microseconds) {
        let until = max(stalledUntil, now + time)
        lateness += until - max(stalledUntil, now)
        stalledUntil = until
        while let next = queue.nextTime, next < until {
            if case .deliver = queue.next {
                queue.postponeNext(until: until)
                continue
            }
            guard let (at, item) = queue.pop() else { break }
            now = max(now, at)
            happen(item)
        }
        now = until
        isMeasuring = false
        sleep = nil
    }

    /// What was on its way to the daemon that died: some of it is lost, some the next one finds out by looking.
    mutating func sortOutNews(heard: Bool, forgets: () -> Bool) {
        let count = queue.count
        var left: [(Microseconds, Item)] = []
        left.reserveCapacity(count)
        while let (at, item) = queue.pop() {
            guard case .deliver(let event) = item else {
                left.append((at, item))
                continue
            }
            if let event = afterCrash(event, heard: heard, forgets: forgets) { left.append((at, .deliver(event))) }
        }
        for (at, item) in left { queue.push(item, at: at) }
    }

    private func afterCrash(_ event: Event, heard: Bool, forgets: () -> Bool) -> Event? {
        switch event {
        // Clients are gone; so is what was decided to be asked again.
        case .requested, .requestAbandoned, .pressureSimulated, .memoryMeasured, .pressureStalled, .sleepRequested,
            .awoke:
            nil
        case .run(let run, let what):
            afterCrash(what, heard: heard, forgets: forgets).map { .run(run, $0) }
        // Recorded by the daemon when they came, or found by looking.
        case .registered, .unregistered, .configured, .started, .shutdownRequested, .deadlineReached, .locked,
            .unlocked, .recovered:
            event
        }
    }

    private func afterCrash(_ event: RunEvent, heard: Bool, forgets: () -> Bool) -> RunEvent? {
        switch event {
        case .inspected, .frozen, .thawed: nil
        case .ready, .backgroundEntered, .taskBegan, .taskEnded, .timeoutExtended, .wakeCompleted, .heartbeat,
            .heartbeatGivenUp, .stopping:
            heard ? event : nil
        case .exited(_, let cpu, let memory):
            forgets() ? .exited(.unknown, cpu: cpu, memory: memory) : event
        case .spawned, .executed, .spawnFailed, .notified, .emptied, .stopped, .continued, .mainProcessChanged,
            .reattached:
            event
        }
    }

    /// The daemon asks again for what it may have asked before.
    mutating func performAgain(_ effect: Effect) -> Bool {
        switch effect {
        case .freeze(let id, _):
            guard let run = index(of: id), runs[run].isAskedToFreeze else { return false }
            if runs[run].freezer == .frozen {
                deliver(.run(id, .frozen(attempt: runs[run].attempt, memory: runs[run].memory)), after: 100)
            }
            return true
        case .thaw(let id, let attempt):
            guard let run = index(of: id), !runs[run].isAskedToFreeze else { return false }
            deliver(.run(id, .thawed(attempt: attempt)), after: 100)
            return true
        case .kill(let id):
            guard let run = index(of: id), runs[run].killedAt != nil else { return false }
            return true
        case .spawn, .notify, .continueStopped, .inspect, .throttle, .unthrottle, .deliver, .recordLaunch,
            .writeReceipt,
            .dropRestorationState, .answer, .report, .measureMemory, .allowSleep, .finish:
            return false
        }
    }
}

extension Simulation {
    /// The daemon is killed, and another takes its place.
    mutating func crash() {
        let heard = plan.keepsSockets()
        note("— the daemon is killed; what apps say meanwhile is \(heard ? "kept" : "lost") —")
        recoverCore()
        world.beDown(for: plan.timeDown())
        var forgets: [Bool] = []
        for _ in 0..<world.queue.count { forgets.append(plan.kernelForgets()) }
        world.sortOutNews(heard: heard) { forgets.popLast() ?? false }
        take(.recovered)
        for run in core.runIDs where checkers.findings.first == nil {
            take(.run(run, .reattached(messagesKept: heard, noticesDelayed: plan.isLate())))
        }
    }

    /// From the last snapshot and what came since, as bytes: it has to be what was lost.
    private mutating func recoverCore() {
        let before = core
        do {
            core.recover(from: try SavedCore(reading: plan.checkpoint))
            for entry in plan.log {
                let logged = try LoggedEvent(reading: entry[...])
                _ = core.handle(logged.event, at: logged.at)
            }
            let difference = core.difference(from: before)
            checkers.findings.check(
                difference == nil, .recoveryIsExact, "the core that died and the recovered one: \(difference ?? "")")
            checkers.findings.check(
                core.nextDeadline == before.nextDeadline, .recoveryIsExact, "another deadline is the next")
        } catch {
            checkers.findings.check(false, .recoveryIsExact, "what was saved cannot be read: \(error)")
        }
        plan.save(core.saved)
    }
}
