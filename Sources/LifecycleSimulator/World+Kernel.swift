import LifecycleCore

/// Simulates processes and cgroups.
extension World {
    mutating func handle(_ action: KernelAction, to run: Int) {
        switch action {
        case .create: create(run)
        case .exec: exec(run)
        case .freezeCompletes(let attempt): freezeCompletes(run, attempt)
        case .continueByOthers(let attempt): continueByOthers(run, attempt)
        case .die(let status): die(run, status)
        case .outOfMemory: runOutOfMemory(run)
        case .killArrives: killArrives(run)
        case .childrenEnd:
            runs[run].children = 0
            if runs[run].program == .ended { becomeEmpty(run) }
        case .reclaimEnds(let attempt, let bytes):
            // One that was stopped reports nothing.
            guard reclaiming == run, runs[run].attempt == attempt else { return }
            reclaiming = nil
            deliver(.run(runs[run].id, .memory(.reclaimed(attempt: attempt, bytes: bytes))), after: 100)
        case .watchOpens(let attempt): watchOpens(run, attempt)
        case .reportInput(let attempt, let descriptor): rearm(run, attempt, descriptor)
        case .flood(let left): flood(run, left: left)
        case .pester(let attempt): pester(run, attempt)
        case .peerCloses: closeConnection(run)
        case .peerReads(let request): peerReads(run, request)
        case .reportBurst(let attempt, let next): reportBurst(run, attempt, next)
        }
    }

    // MARK: Start

    mutating func spawn(_ run: FakeRun) {
        // What peers sent to earlier runs of the app is lost with them.
        traffic.waiting.removeAll { runs[$0].app == run.app }
        traffic.runs.append(RunTraffic())
        spawnModes()
        runs.append(run)
        let index = runs.count - 1
        sockets.apps[run.app].accepting = nil
        apps[run.app].run = index
        if injects(.spawnFails) {
            return fail(index, "the working directory does not exist", 200, after: kernelRandom.within(30...3000))
        }
        schedule(.create, for: index, after: kernelRandom.within(30...500))
    }

    private mutating func fail(_ run: Int, _ sentence: String, _ status: Int32, after delay: Microseconds) {
        runs[run].program = .ended
        runs[run].children = 0
        giveUpMemory(run)
        runs[run].isEmpty = true
        let problem = SpawnProblem(sentence: sentence, exitStatus: status)
        deliver(.run(runs[run].id, .process(.spawnFailed(problem))), after: delay)
    }

    private mutating func create(_ run: Int) {
        guard runs[run].program == .notCreated else { return }
        if runs[run].killedAt != nil, kernelRandom.chance(500) {
            faults.add(.killedBeforeExec)
            return fail(run, "it was killed before it was executed", 203, after: kernelRandom.within(10...200))
        }
        runs[run].program = .created
        setMemory(run, 300 << 10)
        let delay = kernelRandom.within(10...300)
        report(run, .run(runs[run].id, .process(.spawned(pid: runs[run].pid))), after: delay)
        if runs[run].killedAt != nil {
            faults.add(.killedBeforeExec)
            return schedule(.killArrives, for: run, after: 5)
        }
        if isUnmounted, injects(.execFails) { return failExec(run, after: delay) }
        if injects(.spawnFailsLate) {
            let later = delay + kernelRandom.within(0...3000)
            return fail(run, "the program does not exist", 203, after: later)
        }
        let hang = injects(.execHangs) ? kernelRandom.within(500 * .millisecond...20 * .second) : 0
        schedule(.exec, for: run, after: kernelRandom.within(100...4000) + hang)
    }

    /// execve(2) of a program whose file system is unmounted or damaged.
    private mutating func failExec(_ run: Int, after delay: Microseconds) {
        let errors = ["No such file or directory", "Input/output error", "Structure needs cleaning"]
        fail(
            run, "the program cannot be executed: \(outageRandom.pick(errors))", 203,
            after: delay + outageRandom.within(0...3000))
    }

    private mutating func exec(_ run: Int) {
        guard runs[run].program == .created else { return }
        if runs[run].isNotifiedBeforeExec, kernelRandom.chance(500) {
            return fail(run, "it was ended before it was executed", 203, after: kernelRandom.within(10...200))
        }
        runs[run].program = .running
        beginBurning(run)
        let size = UInt64(kernelRandom.within(2...60)) << 20
        // No app is killed for memory during the storm.
        if !isInStorm { setMemory(run, size) }
        if runs[run].readiness == .executed { runs[run].answers[DeadlineKind.launch.index] = now }
        report(run, .run(runs[run].id, .process(.executed)), after: kernelRandom.within(5...500))
        if runs[run].isNotifiedBeforeExec {
            schedule(.die(.signaled(15, coreDumped: false)), for: run, after: runs[run].lastMessage - now)
        }
        programStarted(run)
        planAccept(runs[run].app)
    }

    // MARK: The freezer

    mutating func freeze(_ run: Int, _ attempt: Int) {
        workBeforeFreeze(run)
        streamBeforeFreeze(run)
        showAtFreeze(run)
        runs[run].isAskedToFreeze = true
        runs[run].attempt = attempt
        runs[run].freezer = .freezing
        runs[run].freezeLoss = .none
        runs[run].isFreezeStuck = injects(.freezeNever)
        if runs[run].isFreezeStuck { traffic.runs[run].heldUpAt = now }
        let extraDelay = injects(.freezeLate) ? kernelRandom.within(100 * .millisecond...4 * .second) : 0
        let delay = kernelRandom.within(20...5000) + extraDelay
        schedule(.freezeCompletes(attempt: attempt), for: run, after: delay)
        if injects(.diesWhileFreezing) {
            schedule(.die(crash()), for: run, after: kernelRandom.within(0...delay))
        }
    }

    private mutating func freezeCompletes(_ run: Int, _ attempt: Int) {
        guard runs[run].freezer == .freezing, runs[run].attempt == attempt, !runs[run].isFreezeStuck else { return }
        if runs[run].blockedUntil > now, !runs[run].isEmpty {
            return schedule(
                .freezeCompletes(attempt: attempt), for: run, after: runs[run].blockedUntil - now)
        }
        runs[run].freezer = .frozen
        runs[run].frozenSince = now
        let extraDelay = injects(.freezeReportedLate) ? kernelRandom.within(0...4 * .second) : 0
        traffic.runs[run].lateFreezes += extraDelay
        let (id, memory) = (runs[run].id, runs[run].memory)
        let delay = kernelRandom.within(10...15_000) + extraDelay
        // Processes that share memory are estimated first. The exact size may come when the app runs again.
        let isShared = footprintRandom.chance(200)
        let estimate = isShared ? memory + memory / 100 * UInt64(footprintRandom.below(200)) : memory
        if let locks = traffic.runs[run].locks {
            deliver(.run(id, .suspension(.locksFound(attempt: attempt, locks))), after: delay)
        }
        runs[run].estimate = isShared ? estimate : nil
        deliver(
            .run(id, .suspension(.frozen(attempt: attempt, memory: estimate, uncertainty: estimate - memory))),
            after: delay)
        guard isShared else { return }
        let measured = RunEvent.suspension(.footprintMeasured(attempt: attempt, memory: memory))
        deliver(.run(id, measured), after: delay + footprintRandom.within(1 * .millisecond...2 * .second))
    }

    /// The core knows that the run is frozen.
    mutating func frozenDelivered(_ run: Int, _ attempt: Int) {
        let rate = scenario.rates[Fault.continuedByOthers.rawValue]
        guard rate > 0, signalRandom.chance(rate), !isQuiet else { return }
        let delay = signalRandom.within(0...signalRandom.pick([100, 10 * .millisecond, 2 * .second]))
        schedule(.continueByOthers(attempt: attempt), for: run, after: delay)
    }

    private mutating func continueByOthers(_ run: Int, _ attempt: Int) {
        guard runs[run].freezer == .frozen, runs[run].attempt == attempt, runs[run].program == .running, !isQuiet
        else { return }
        faults.add(.continuedByOthers)
        traffic.runs[run].keptRests = []
        if streams.areUsed { traffic.runs[run].heldUpAt = now }
        endFrozenTime(run)
        runs[run].freezeLoss = .undelivered
        let delay = signalRandom.within(5...20 * .millisecond)
        deliver(.run(runs[run].id, .suspension(.freezeLost(attempt: attempt))), after: delay)
        performDeferred(run)
    }

    /// The core knows that the run is not frozen any more, and freezes or thaws it.
    mutating func freezeLossDelivered(_ run: Int, _ attempt: Int) {
        guard runs[run].attempt == attempt, runs[run].freezeLoss == .undelivered else { return }
        runs[run].freezeLoss = .delivered
        runs[run].isAskedToFreeze = false
    }

    private mutating func endFrozenTime(_ run: Int) {
        resumeWaits(run)
        runs[run].frozenTime = runs[run].frozenTime(at: now)
        runs[run].frozenSince = nil
        runs[run].freezer = .thawed
    }

    mutating func thaw(_ run: Int, _ attempt: Int) {
        runs[run].isAskedToFreeze = false
        runs[run].freezeLoss = .none
        endFrozenTime(run)
        let extraDelay = injects(.thawReportedLate) ? kernelRandom.within(0...8 * .second) : 0
        deliver(
            .run(runs[run].id, .suspension(.thawed(attempt: attempt))),
            after: kernelRandom.within(20...2000) + extraDelay)
        if injects(.diesAfterThaw) {
            schedule(.die(crash()), for: run, after: kernelRandom.within(0...200))
        }
        performDeferred(run)
        thawed(run)
    }

    // MARK: Ends

    /// Ends the main process. A crash needs a running process; SIGKILL waits until the process leaves uninterruptible
    /// sleep.
    private mutating func die(_ run: Int, _ status: ExitStatus) {
        switch runs[run].program {
        case .notCreated, .ended: return
        case .created, .running: break
        }
        let isKill = status == .kill
        if !isKill, runs[run].freezer == .frozen || runs[run].isStopped { return }
        if isKill, runs[run].blockedUntil > now {
            return schedule(.die(status), for: run, after: runs[run].blockedUntil - now)
        }
        runs[run].program = .ended
        runs[run].openTasks = []
        runs[run].deferred = []
        endChildrenThatMayBeAwaited(run)
        reportExit(run, status)
    }

    /// The OOM killer ends the main process; the daemon learns of it before it learns of the end.
    private mutating func runOutOfMemory(_ run: Int) {
        if runs[run].blockedUntil > now {
            return schedule(.outOfMemory, for: run, after: runs[run].blockedUntil - now)
        }
        switch runs[run].program {
        case .notCreated, .ended: return
        case .created, .running: break
        }
        runs[run].isKilledByKernel = true
        report(run, .run(runs[run].id, .memory(.outOfMemory(.machine))), after: 0)
        die(run, .kill)
    }

    /// A process that was forked after SIGTERM does not get it. Where the core may wait for it without a deadline, it ends by
    /// itself, or the app never becomes idle. A manifest that changes can make a deadline unlimited later.
    private mutating func endChildrenThatMayBeAwaited(_ run: Int) {
        let policy = apps[runs[run].app].policy
        guard runs[run].children > 0, policy.killMode == .controlGroup || scenario.changesManifests else { return }
        guard policy.terminateDeadline == nil || scenario.changesManifests else { return }
        schedule(.childrenEnd, for: run, after: childRandom.within(0...30 * .second))
    }

    private mutating func reportExit(_ run: Int, _ status: ExitStatus) {
        let exited = Event.run(
            runs[run].id,
            .process(
                .exited(
                    runs[run].isMainProcessAdopted ? .unknown : status, cpu: cpu(of: run),
                    memory: kernelRandom.chance(900) ? runs[run].memory : 0, remaining: runs[run].remaining)))
        let delay = kernelRandom.within(10...400)
        let isLast = runs[run].children == 0
        if isLast, injects(.emptiedBeforeExit) {
            becomeEmpty(run)
            report(run, exited, after: delay + kernelRandom.within(0...20 * .millisecond))
        } else {
            report(run, exited, after: delay)
            if isLast { becomeEmpty(run, notBefore: runs[run].lastMessage - now) }
        }
        if injects(.sendsAfterEnd) { sendUnexpected(run, after: delay + kernelRandom.within(0...5 * .millisecond)) }
    }

    mutating func kill(_ run: Int) {
        runs[run].killedAt = now
        if injects(.blocksKill) { block(run) }
        schedule(.killArrives, for: run, after: kernelRandom.within(10...500))
    }

    private mutating func killArrives(_ run: Int) {
        if runs[run].blockedUntil > now {
            return schedule(.killArrives, for: run, after: runs[run].blockedUntil - now)
        }
        switch runs[run].program {
        case .notCreated: break
        case .created, .running:
            runs[run].children = 0
            die(run, .kill)
        case .ended:
            runs[run].children = 0
            becomeEmpty(run)
        }
    }

    /// Reports that the last process of the cgroup has ended.
    private mutating func becomeEmpty(_ run: Int, notBefore: Microseconds = 0) {
        guard !runs[run].isEmpty else { return }
        runs[run].isEmpty = true
        runs[run].answers[DeadlineKind.terminate.index] = now
        giveUpMemory(run)
        let extraDelay = injects(.emptiedLate) ? kernelRandom.within(0...8 * .second) : 0
        deliver(.run(runs[run].id, .process(.emptied)), after: notBefore + kernelRandom.within(5...2000) + extraDelay)
    }

    /// Puts a process into uninterruptible sleep for a while.
    mutating func block(_ run: Int) {
        runs[run].blockedUntil = now + kernelRandom.within(10 * .millisecond...12 * .second)
    }

    mutating func crash() -> ExitStatus {
        switch kernelRandom.below(4) {
        case 0: .signaled(11, coreDumped: true)
        case 1: .signaled(6, coreDumped: false)
        case 2: .exited(0)
        default: .exited(1)
        }
    }

    /// The processor time of a run. It never decreases.
    func cpu(of run: Int) -> Duration { (now / 50).duration }
}

extension ExitStatus {
    static let kill = ExitStatus.signaled(9, coreDumped: false)
}
