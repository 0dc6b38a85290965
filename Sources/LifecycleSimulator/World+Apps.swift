import LifecycleCore

/// What apps do, each as its personality and its own random stream say.
extension World {
    // MARK: Occasions

    /// Its program has been executed.
    mutating func begins(_ run: Int) {
        let policy = apps[runs[run].app].policy
        if let watchdog = policy.watchdog { plan(.heartbeat, by: run, after: watchdog.microseconds / 3) }
        let isWoken = runs[run].launch.state == .background
        switch policy.readiness {
        case .executed: runs[run].isReady = true
        case .notified: owe(.ready, run, policy.launchDeadline)
        }
        if isWoken { planWake(run) }
        plan(.whim, by: run, after: pause(run))
    }

    /// It is given a notice, and catches it.
    mutating func hear(_ run: Int, _ notice: Notice) {
        let policy = apps[runs[run].app].policy
        switch notice {
        case .willResignActive, .willEnterForeground: break
        case .didBecomeActive:
            runs[run].isInForeground = true
            if let watchdog = policy.watchdog { plan(.heartbeat, by: run, after: watchdog.microseconds / 3) }
        case .didEnterBackground:
            runs[run].isInForeground = false
            runs[run].owesBackground = true
            owe(.answerBackground, run, policy.backgroundDeadline)
            if !isQuiet, apps[runs[run].app].random.chance(150) { plan(.begin(1), by: run, after: 300) }
        case .willTerminate:
            runs[run].owesTerminate = true
            if !isQuiet, apps[runs[run].app].personality.isDeaf, allows(.ignoresTerminate) { return }
            if runs[run].isAware {
                owe(.obeyTerminate, run, policy.terminateDeadline)
            } else {
                plan(.obeyTerminate, by: run, after: 100)
            }
        case .memoryWarning: if apps[runs[run].app].random.chance(500) { shrink(run) }
        case .tasksExpiring:
            if isQuiet || apps[runs[run].app].random.chance(700) { owe(.endAllTasks, run, policy.expirationNotice) }
        }
    }

    /// Its group was frozen, and runs again.
    mutating func thawed(_ run: Int) {
        guard runs[run].program == .running else { return }
        if apps[runs[run].app].random.chance(500) { planWake(run) }
        if !isQuiet, apps[runs[run].app].random.chance(100) { plan(.begin(1), by: run, after: 50) }
    }

    mutating func planWake(_ run: Int) {
        let result = apps[runs[run].app].random.pick(WakeResult.allCases)
        owe(.completeWake(result), run, .seconds(30))
    }

    /// What was put off as it could not run.
    mutating func resumeActs(_ run: Int) {
        guard runs[run].canRun, !runs[run].deferred.isEmpty else { return }
        let acts = runs[run].deferred
        runs[run].deferred = []
        for act in acts { plan(act, by: run, after: apps[runs[run].app].random.within(10...5000)) }
    }

    // MARK: Manners

    /// Plans an act that is due within `deadline`.
    private mutating func owe(_ act: AppAct, _ run: Int, _ deadline: Duration?) {
        let limit = deadline?.microseconds ?? 10 * .second
        let app = runs[run].app
        if isQuiet { return plan(act, by: run, after: 100) }
        let drawn = Manner(rawValue: apps[app].random.weighted(apps[app].personality.manners)) ?? .prompt
        switch drawn {
        case .prompt: plan(act, by: run, after: apps[app].random.within(0...60 * .millisecond))
        case .slow: plan(act, by: run, after: apps[app].random.within(limit / 2...limit))
        case .atDeadline:
            guard allows(.answersAtDeadline) else { return plan(act, by: run, after: 1000) }
            planAtDeadline(act, run, limit)
        case .late:
            guard allows(.answersLate) else { return plan(act, by: run, after: 1000) }
            plan(act, by: run, after: apps[app].random.within(limit...limit + limit / 2 + 1000))
        case .never:
            guard allows(.neverAnswers) else { return plan(act, by: run, after: 1000) }
        case .crashing:
            guard allows(.crashes) else { return plan(act, by: run, after: 1000) }
            let status = crash()
            if apps[app].random.chance(500) {
                plan(.end(status), by: run, after: apps[app].random.within(0...limit + 1000))
            } else {
                faults.add(.diesAtDeadline)
                planAtDeadline(.end(status), run, limit)
            }
        }
    }

    /// On the very microsecond, or one or a few beside it. (A message then takes its time to arrive: one that takes none
    /// is the worst.)
    private mutating func planAtDeadline(_ act: AppAct, _ run: Int, _ limit: Microseconds) {
        let offset = [-2, -1, 0, 0, 1, 2, -300, 300][apps[runs[run].app].random.below(8)]
        plan(act, by: run, after: limit + Microseconds(offset))
    }

    private mutating func pause(_ run: Int) -> Microseconds {
        let app = runs[run].app
        return apps[app].random.within(apps[app].personality.tempo)
    }

    // MARK: Acts

    mutating func perform(_ act: AppAct, by run: Int) {
        guard runs[run].program == .running else { return }
        guard runs[run].canRun else { return runs[run].deferred.append(act) }
        let id = runs[run].id
        switch act {
        case .ready:
            runs[run].isReady = true
            say(run, .run(id, .ready))
        case .answerBackground:
            runs[run].owesBackground = false
            if apps[runs[run].app].personality.stops, !isQuiet { return stop(run) }
            say(run, .run(id, .backgroundEntered))
        case .stop: if !isQuiet { stop(run) }
        case .end(let status): if !isQuiet { schedule(.die(status), for: run, after: 0) }
        case .obeyTerminate:
            let isAsked = runs[run].isAware && apps[runs[run].app].random.chance(800)
            schedule(.die(isAsked ? .exited(0) : .signaled(15, coreDumped: false)), for: run, after: 0)
        case .begin(let count): if !isQuiet { beginTasks(run, count) }
        case .endTask: endTask(run)
        case .endAllTasks: while !runs[run].openTasks.isEmpty { endTask(run) }
        case .extend(let time): say(run, .run(id, .timeoutExtended(by: time.duration)))
        case .heartbeat: heartbeat(run)
        case .completeWake(let result): say(run, .run(id, .wakeCompleted(result)))
        case .whim: followWhim(run)
        case .say(let event): say(run, event)
        }
    }

    /// A message takes a moment, and never overtakes another of the same app.
    mutating func say(_ run: Int, _ event: Event) {
        let app = runs[run].app
        let slowest: Microseconds = isQuiet ? 200 : 2 * .millisecond
        let delay = apps[app].random.chance(300) ? 0 : apps[app].random.within(0...slowest)
        let time = max(runs[run].lastMessage, now + delay)
        runs[run].lastMessage = time
        queue.push(.deliver(event), at: time)
    }

    private mutating func stop(_ run: Int) {
        runs[run].isStopped = true
        deliver(.run(runs[run].id, .stopped), after: kernelRandom.within(5...500))
    }

    private mutating func beginTasks(_ run: Int, _ count: Int) {
        for _ in 0..<count where runs[run].openTasks.count < 1200 {
            runs[run].tasksBegun += 1
            let isCommon = apps[runs[run].app].random.chance(100)
            let name = isCommon ? "sync" : "task-\(runs[run].tasksBegun)"
            runs[run].openTasks.append(name)
            say(run, .run(runs[run].id, .taskBegan(name: name, owner: runs[run].pid)))
        }
    }

    private mutating func endTask(_ run: Int) {
        guard let name = runs[run].openTasks.popLast() else { return }
        say(run, .run(runs[run].id, .taskEnded(name: name)))
    }

    private mutating func heartbeat(_ run: Int) {
        let app = runs[run].app
        guard let watchdog = apps[app].policy.watchdog, runs[run].isInForeground else { return }
        let isMissed = !isQuiet && apps[app].random.chance(30) && allows(.missesHeartbeat)
        if !isMissed { say(run, .run(runs[run].id, .heartbeat)) }
        let next = watchdog.microseconds / 3
        if apps[app].random.chance(990) || isQuiet { plan(.heartbeat, by: run, after: isMissed ? next * 4 : next) }
    }

    // MARK: Whims

    private mutating func followWhim(_ run: Int) {
        if isQuiet { return }
        plan(.whim, by: run, after: pause(run))
        let app = runs[run].app
        let whim = Whim(rawValue: apps[app].random.weighted(apps[app].personality.whims)) ?? .nothing
        let id = runs[run].id
        switch whim {
        case .nothing: break
        case .beginTask:
            if runs[run].openTasks.count > 2 { faults.add(.leaksTask) }
            beginTasks(run, 1)
        case .endTask: endTask(run)
        case .endAllTasks: perform(.endAllTasks, by: run)
        case .beginStorm: storm(run)
        case .grow: grow(run)
        case .shrink: shrink(run)
        case .fork: if allows(.forks) { fork(run) }
        case .stop: if allows(.stopsItself) { stop(run) }
        case .crash: if allows(.crashes) { schedule(.die(crash()), for: run, after: 0) }
        case .exit: schedule(.die(.exited(0)), for: run, after: 0)
        case .extend:
            guard allows(.extendsTimeout) else { return }
            // For ever only where a budget ends it: an app that may run for ever comes to no rest.
            let most: Microseconds = apps[app].policy.backgroundTime == nil ? 30 * .second : .max
            let time = apps[app].random.pick([0, 1 * .millisecond, 1 * .second, 5 * .second, 90 * .second, most])
            perform(.extend(time), by: run)
        case .chatter: if allows(.speaksOutOfTurn) { sayNonsense(run, after: 0) }
        case .changeMainProcess:
            guard allows(.changesMainProcess) else { return }
            runs[run].isMainAdopted = true
            say(run, .run(id, .mainProcessChanged(pid: runs[run].pid)))
        case .block: if allows(.blocksKill) { block(run) }
        case .giveUpHeartbeat: if allows(.givesUpHeartbeat) { say(run, .run(id, .heartbeatGivenUp)) }
        case .announceEnd:
            runs[run].owesTerminate = true
            say(run, .run(id, .stopping))
            owe(.end(.exited(0)), run, apps[app].policy.terminateDeadline)
        }
    }

    private mutating func storm(_ run: Int) {
        guard allows(.beginsStorm) else { return }
        let app = runs[run].app
        if apps[app].random.chance(scenario.rates[Fault.beginsTooMany.rawValue]), allows(.beginsTooMany) {
            return beginTasks(run, 1010)
        }
        beginTasks(run, 1 + apps[app].random.below(20))
        if apps[app].random.chance(700) { perform(.endAllTasks, by: run) }
    }

    private mutating func fork(_ run: Int) {
        runs[run].children += 1
        if apps[runs[run].app].random.chance(300) {
            schedule(.childrenEnd, for: run, after: kernelRandom.within(0...30 * .second))
        }
    }

    /// Something that is true of some app at some time, but not of this one now.
    mutating func sayNonsense(_ run: Int, after delay: Microseconds) {
        let id = runs[run].id
        let events: [Event] = [
            .run(id, .ready), .run(id, .backgroundEntered), .run(id, .continued),
            .run(id, .taskEnded(name: "never-begun")),
            .run(id, .wakeCompleted(.noData)), .run(id, .heartbeat), .run(id, .timeoutExtended(by: .seconds(1))),
            .run(id, .taskBegan(name: "late", owner: runs[run].pid)), .run(id, .stopping), .run(id, .ready),
        ]
        let event = apps[runs[run].app].random.pick(events)
        if case .run(_, .taskBegan) = event { runs[run].openTasks.append("late") }
        if event == .run(id, .stopping) { runs[run].owesTerminate = true }
        let time = max(runs[run].lastMessage, now + delay)
        runs[run].lastMessage = time
        queue.push(.deliver(event), at: time)
    }
}
