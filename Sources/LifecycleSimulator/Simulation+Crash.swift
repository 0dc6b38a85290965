import LifecycleCore

/// The saved state of the daemon, and when the daemon is killed. A crash comes between two events; the effects of the last event are
/// performed before, because the daemon records which effects it has performed.
struct CrashPlan {
    private var random: Random
    /// Crashes per 1,000 events; 0: none in this seed.
    private let rate: Int
    /// The last snapshot of the core, and the events since then.
    private(set) var checkpoint: [UInt8] = []
    private(set) var log: [[UInt8]] = []
    private(set) var crashes = 0

    init(seed: UInt64) {
        // A separate random stream: seeds without crashes stay unchanged.
        random = Random(seed: seed &+ 0x6372_6173_6821)
        rate = seed % 4 == 2 ? random.pick([2, 10, 40]) : 0
    }

    var isPlanned: Bool { rate > 0 }

    mutating func save(_ core: SavedCore) {
        checkpoint = core.bytes
        log = []
    }

    mutating func append(_ event: Event, at now: Instant) {
        log.append(LoggedEvent(event, at: now).savedBytes)
    }

    /// A new snapshot replaces the log when it is true, so that the length of the log is bounded.
    var isLogLong: Bool { log.count >= 200 }

    mutating func crashesNow() -> Bool {
        guard rate > 0, random.chance(rate) else { return false }
        crashes += 1
        return true
    }

    /// The time until the next daemon starts.
    mutating func downtime() -> Microseconds {
        random.pick([1 * .millisecond, 20 * .millisecond, random.within(0...3 * .second), 20 * .second])
    }

    /// Whether the messages of apps survive the daemon.
    mutating func keepsSockets() -> Bool { random.chance(500) }
    mutating func losesExitStatus() -> Bool { random.chance(500) }
    /// Whether the daemon was killed before it sent a notice that the core had decided on.
    mutating func noticesAreDelayed() -> Bool { random.chance(500) }
}

extension World {
    /// Lets time pass without a daemon. Apps and the kernel continue; no event reaches the core.
    mutating func passWithoutDaemon(for time: Microseconds) {
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
            handle(item)
        }
        now = until
        isMeasuring = false
        sleep = nil
    }

    /// Removes the undelivered events that the next daemon cannot find out.
    mutating func dropUndelivered(messagesKept: Bool, losesStatus: () -> Bool) {
        if !messagesKept { for run in runs.indices { runs[run].hasLostMessages = true } }
        let count = queue.count
        var left: [(Microseconds, Item)] = []
        left.reserveCapacity(count)
        while let (at, item) = queue.pop() {
            guard case .deliver(let event) = item else {
                left.append((at, item))
                continue
            }
            if let event = afterCrash(event, messagesKept: messagesKept, losesStatus: losesStatus) {
                left.append((at, .deliver(event)))
            }
        }
        for (at, item) in left { queue.push(item, at: at) }
    }

    private func afterCrash(_ event: Event, messagesKept: Bool, losesStatus: () -> Bool) -> Event? {
        switch event {
        // The clients are disconnected. Measurements and requests to sleep belong to the previous daemon.
        case .requested, .requestAbandoned, .memory, .absence(.sleepRequested), .absence(.awoke), .socketsReady, .timer,
            .observed:
            nil
        case .run(let run, let what):
            afterCrash(what, messagesKept: messagesKept, losesStatus: losesStatus).map { .run(run, $0) }
        // The next daemon reads them from disk, or determines them at its start.
        case .configuration, .shutdownRequested, .deadlineReached, .absence(.locked), .absence(.unlocked), .recovered:
            event
        }
    }

    private func afterCrash(_ event: RunEvent, messagesKept: Bool, losesStatus: () -> Bool) -> RunEvent? {
        switch event {
        // Measurements, freezes and watches belong to the previous daemon.
        case .deadline(.inspected), .deadline(.activityMeasured), .suspension(.locksFound), .suspension(.frozen),
            .suspension(.footprintMeasured), .suspension(.thawed), .memory(.sizeMeasured), .memory(.reclaimed),
            .traffic(.inputWatched), .traffic(.inputArrived), .traffic(.workMeasured), .processor:
            nil
        case .transition(.ready), .transition(.backgroundEntered), .transition(.stopping),
            .transition(.terminationAnswered), .deadline(.extended), .watchdog, .traffic(.idleHinted), .task,
            .mode(.began), .mode(.ended), .scene, .wake(.completed), .connection(.snapshotTaken),
            .connection(.withdrawn):
            messagesKept ? event : nil
        case .process(.exited(_, let cpu, let memory, let remaining)):
            losesStatus() ? .process(.exited(.unknown, cpu: cpu, memory: memory, remaining: remaining)) : event
        // It finds the process by its pid.
        case .hookEnded(let number, _): losesStatus() ? .hookEnded(number: number, .ended(.unknown)) : event
        // Libraries connect again.
        case .connection(.attached): event
        case .process, .transition(.notified), .suspension(.freezeLost), .memory(.outOfMemory),
            .wake(.notificationDelayed), .mode(.inhibitorChanged), .mode(.shown), .mode(.unused):
            event
        }
    }

    /// Repeats the outcome of an effect that the previous daemon may have performed already.
    mutating func repeatOutcome(_ effect: Effect) -> Bool {
        switch effect {
        case .run(let id, .suspension(.freeze)):
            guard let run = index(of: id), runs[run].isAskedToFreeze else { return false }
            if runs[run].freezer == .frozen {
                if let locks = traffic.runs[run].locks {
                    deliver(.run(id, .suspension(.locksFound(attempt: runs[run].attempt, locks))), after: 100)
                }
                deliver(
                    .run(id, .suspension(.frozen(attempt: runs[run].attempt, memory: runs[run].memory))), after: 100)
            }
            return true
        case .run(let id, .suspension(.thaw(let attempt))):
            guard let run = index(of: id), !runs[run].isAskedToFreeze else { return false }
            deliver(.run(id, .suspension(.thawed(attempt: attempt))), after: 100)
            return true
        case .run(let id, .kill):
            guard let run = index(of: id), runs[run].killedAt != nil else { return false }
            return true
        case .run(let id, .hook(.run(_, let number))):
            guard let run = index(of: id) else { return false }
            return runs[run].lastHook == number
        // A watch was lost, and a measurement too.
        case .run, .spawn, .recordLaunch, .writeReceipt, .dropRestorationState, .identify, .answer, .report,
            .measureMemory, .allowSleep, .finish, .sockets, .removeInstance, .scheduleTimers, .subscribe:
            return false
        }
    }
}

extension Simulation {
    /// Kills the daemon, recovers its core and starts the next daemon.
    mutating func crash() {
        let messagesKept = plan.keepsSockets()
        record("— the daemon is killed; the messages of apps are \(messagesKept ? "kept" : "lost") —")
        recoverCore()
        world.loseWatches()
        world.loseSocketWatches()
        world.loseModeReports()
        world.reclaiming = nil
        world.drawDaemonRights()
        world.passWithoutDaemon(for: plan.downtime())
        var losesStatus: [Bool] = []
        for _ in 0..<world.queue.count { losesStatus.append(plan.losesExitStatus()) }
        world.dropUndelivered(messagesKept: messagesKept) { losesStatus.popLast() ?? false }
        handle(.recovered)
        for run in core.runIDs where checkers.findings.first == nil {
            handle(
                .run(run, .process(.reattached(messagesKept: messagesKept, noticesDelayed: plan.noticesAreDelayed()))))
        }
    }

    /// Recovers a core from the last snapshot and the log. It must equal the core that was lost.
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
                difference == nil, .recoveryIsExact, "the recovered core differs from the lost one: \(difference ?? "")"
            )
            checkers.findings.check(
                core.nextDeadline == before.nextDeadline, .recoveryIsExact,
                "the recovered core has another next deadline")
        } catch {
            checkers.findings.check(false, .recoveryIsExact, "the saved state is unreadable: \(error)")
        }
        plan.save(core.saved)
    }
}
