import LifecycleCore

/// Simulates apps. Each app acts according to its personality and its own random stream.
extension World {
    // MARK: Triggers

    /// Starts the actions of a program that was executed.
    mutating func programStarted(_ run: Int) {
        let policy = apps[runs[run].app].policy
        if let watchdog = policy.watchdog { plan(.heartbeat, by: run, after: watchdog.microseconds / 3) }
        let isWoken = runs[run].launch.state == .background
        switch runs[run].readiness {
        case .executed: runs[run].isReady = true
        case .listening: planAnswer(.ready, run, policy.launchDeadline)
        case .notified, .forked:
            if isInStorm { beginComputing(run) } else { planAnswer(.ready, run, policy.launchDeadline) }
        }
        planConnections(run)
        planScenes(run)
        if isWoken { planWake(run) }
        plan(.actSpontaneously, by: run, after: pause(run))
    }

    /// Reacts to a notice.
    mutating func receive(_ run: Int, _ notice: Notice) {
        let policy = apps[runs[run].app].policy
        switch notice {
        case .willResignActive, .willEnterForeground, .openURL, .willSuspend, .didResume, .scene,
            .sceneClosed, .didDiscardScenes:
            break
        case .withdraw: withdraw(run)
        case .takeSnapshot: takeSnapshot(run)
        case .takeSceneSnapshot(let scene): takeSnapshot(run, of: scene)
        case .didBecomeActive:
            runs[run].isInForeground = true
            beginExport(run)
            if let watchdog = policy.watchdog { plan(.heartbeat, by: run, after: watchdog.microseconds / 3) }
        case .didEnterBackground:
            runs[run].isInForeground = false
            runs[run].isBackgroundAnswerDue = true
            planAnswer(.answerBackground, run, policy.backgroundDeadline)
            let chance = apps[runs[run].app].personality.evades ? 900 : 150
            if !isQuiet, apps[runs[run].app].random.chance(chance) { plan(.begin(1), by: run, after: 300) }
        case .willTerminate:
            runs[run].isTerminateAnswerDue = true
            planTerminationAnswer(run)
            if !isQuiet, apps[runs[run].app].personality.ignoresSIGTERM, allows(.ignoresTerminate) { return }
            if runs[run].isAware {
                planAnswer(.exitOnTerminate, run, policy.terminateDeadline)
            } else {
                plan(.exitOnTerminate, by: run, after: 100)
            }
        case .memoryWarning: if apps[runs[run].app].random.chance(500) { shrink(run) }
        case .tasksExpiring:
            let chance = apps[runs[run].app].personality.evades ? 0 : 700
            if isQuiet || apps[runs[run].app].random.chance(chance) {
                planAnswer(.endAllTasks, run, policy.expirationNotice)
            }
        }
    }

    /// Reacts to the end of a freeze.
    mutating func thawed(_ run: Int) {
        guard runs[run].program == .running else { return }
        if apps[runs[run].app].random.chance(500) { planWake(run) }
        let chance = apps[runs[run].app].personality.evades ? 900 : 100
        if !isQuiet, apps[runs[run].app].random.chance(chance) { plan(.begin(1), by: run, after: 50) }
    }

    mutating func planWake(_ run: Int) {
        if apps[runs[run].app].personality.evades, !isQuiet { return }
        let result = apps[runs[run].app].random.pick(WakeResult.allCases)
        planAnswer(.completeWake(result), run, .seconds(30))
    }

    /// Performs the actions that were deferred while the app could not run.
    mutating func performDeferred(_ run: Int) {
        guard runs[run].canRun, !runs[run].deferred.isEmpty else { return }
        let actions = runs[run].deferred
        runs[run].deferred = []
        for action in actions {
            let delay =
                action.isForPeers ? traffic.random.within(10...5000) : apps[runs[run].app].random.within(10...5000)
            plan(action, by: run, after: delay)
        }
    }

    // MARK: Answers

    /// Plans an answer that is due within `deadline`.
    private mutating func planAnswer(_ action: AppAction, _ run: Int, _ deadline: Duration?) {
        let limit = deadline?.microseconds ?? 10 * .second
        let app = runs[run].app
        if isQuiet { return plan(action, by: run, after: 100) }
        let drawn = AnswerTiming(rawValue: apps[app].random.weighted(apps[app].personality.timings)) ?? .prompt
        switch drawn {
        case .prompt: plan(action, by: run, after: apps[app].random.within(0...60 * .millisecond))
        case .slow: plan(action, by: run, after: apps[app].random.within(limit / 2...limit))
        case .atDeadline:
            guard allows(.answersAtDeadline) else { return plan(action, by: run, after: 1000) }
            planAtDeadline(action, run, limit)
        case .late:
            guard allows(.answersLate) else { return plan(action, by: run, after: 1000) }
            plan(action, by: run, after: apps[app].random.within(limit...limit + limit / 2 + 1000))
        case .never:
            guard allows(.neverAnswers) else { return plan(action, by: run, after: 1000) }
        case .crashing:
            guard allows(.crashes) else { return plan(action, by: run, after: 1000) }
            let status = crash()
            if apps[app].random.chance(500) {
                plan(.end(status), by: run, after: apps[app].random.within(0...limit + 1000))
            } else {
                faults.add(.diesAtDeadline)
                planAtDeadline(.end(status), run, limit)
            }
        }
    }

    /// Plans an action at the deadline, or a few microseconds before or after. The message may take additional time.
    private mutating func planAtDeadline(_ action: AppAction, _ run: Int, _ limit: Microseconds) {
        let offset = [-2, -1, 0, 0, 1, 2, -300, 300][apps[runs[run].app].random.below(8)]
        plan(action, by: run, after: limit + Microseconds(offset))
    }

    private mutating func pause(_ run: Int) -> Microseconds {
        let app = runs[run].app
        return apps[app].random.within(apps[app].personality.interval)
    }

    // MARK: Actions

    mutating func perform(_ action: AppAction, by run: Int) {
        guard runs[run].program == .running else { return }
        guard runs[run].canRun else { return runs[run].deferred.append(action) }
        let id = runs[run].id
        switch action {
        case .ready:
            runs[run].isReady = true
            guard runs[run].readiness == .listening else { return send(run, .run(id, .transition(.ready))) }
            runs[run].answers[DeadlineKind.launch.index] = now
        case .answerBackground:
            runs[run].isBackgroundAnswerDue = false
            if apps[runs[run].app].personality.stops, !isQuiet { return stop(run) }
            send(run, .run(id, .transition(.backgroundEntered)))
        case .stop: if !isQuiet { stop(run) }
        case .end(let status): if !isQuiet { schedule(.die(status), for: run, after: 0) }
        case .exitOnTerminate:
            let isAsked = runs[run].isAware && apps[runs[run].app].random.chance(800)
            schedule(.die(isAsked ? .exited(0) : .signaled(15, coreDumped: false)), for: run, after: 0)
        case .begin(let count): if !isQuiet { beginTasks(run, count) }
        case .endTask: endTask(run)
        case .endAllTasks:
            while !runs[run].openTasks.isEmpty { endTask(run) }
            endExports(run)
        case .extend(let time): send(run, .run(id, .deadline(.extended(by: time.duration))))
        case .heartbeat: heartbeat(run)
        case .completeWake(let result): completeWakes(run, result)
        case .actSpontaneously: actSpontaneously(run)
        case .send(let event): if !isOfLostEnd(event, run) { send(run, event) }
        case .readInput: readInput(run)
        case .accept: acceptClients(run)
        case .answerRequests: answerRequests(run)
        case .unlockFile: traffic.runs[run].locks = nil
        case .beginMode(let mode, let time): beginMode(run, mode, for: time)
        case .endMode(let mode): send(run, .run(id, .mode(.ended(mode))))
        }
    }

    /// Sends a message. Messages of one app arrive in order.
    mutating func send(_ run: Int, _ event: Event) {
        let app = runs[run].app
        let slowest: Microseconds = isQuiet ? 200 : 2 * .millisecond
        let delay = apps[app].random.chance(300) ? 0 : apps[app].random.within(0...slowest)
        sendMessage(run, event, after: delay)
    }

    private mutating func sendMessage(_ run: Int, _ event: Event, after delay: Microseconds) {
        if case .run(_, let message) = event, let kind = message.answeredDeadline {
            runs[run].answers[kind.index] = now
        }
        report(run, event, after: delay)
    }

    /// Reports what a run did, after what it did before.
    mutating func report(_ run: Int, _ event: Event, after delay: Microseconds) {
        let time = max(runs[run].lastMessage, now + delay)
        runs[run].lastMessage = time
        queue.push(.deliver(event), at: time)
    }

    private mutating func stop(_ run: Int) {
        runs[run].isStopped = true
        traffic.runs[run].lastStop = now
        sendMessage(run, .run(runs[run].id, .process(.stopped)), after: kernelRandom.within(5...500))
    }

    private mutating func beginTasks(_ run: Int, _ count: Int) {
        for _ in 0..<count where runs[run].openTasks.count < 1200 {
            runs[run].tasksBegun += 1
            let isCommon = apps[runs[run].app].random.chance(100)
            let name = isCommon ? "sync" : "task-\(runs[run].tasksBegun)"
            runs[run].openTasks.append(name)
            send(run, .run(runs[run].id, .task(.began(name: name, owner: runs[run].pid))))
            if count < 100 { planProgress(run, name) }
        }
    }

    private mutating func endTask(_ run: Int) {
        guard let name = runs[run].openTasks.popLast() else { return }
        send(run, .run(runs[run].id, .task(.ended(name: name))))
    }

    private mutating func heartbeat(_ run: Int) {
        let app = runs[run].app
        guard let watchdog = apps[app].policy.watchdog, runs[run].isInForeground else { return }
        let isMissed = !isQuiet && apps[app].random.chance(30) && allows(.missesHeartbeat)
        if !isMissed { send(run, .run(runs[run].id, .watchdog(.heartbeat))) }
        let next = watchdog.microseconds / 3
        if apps[app].random.chance(990) || isQuiet { plan(.heartbeat, by: run, after: isMissed ? next * 4 : next) }
    }

    /// Completes all pushes that the app has received, by number, the last one first; of single ones some as the oldest wake.
    /// Without a push it completes what it was launched or thawed for.
    private mutating func completeWakes(_ run: Int, _ result: WakeResult) {
        let pushes = runs[run].pushes
        runs[run].pushes = []
        guard let last = pushes.last else {
            // It does not know what it was woken for.
            if runs[run].hasUnread, !isQuiet { return }
            return send(run, .run(runs[run].id, .wake(.completed(result))))
        }
        let isNamed = pushes.count > 1 || last % 3 > 0
        for push in isNamed ? pushes : pushes.dropLast() { runs[run].completed[push] = now }
        send(run, .run(runs[run].id, .wake(.completed(result, id: isNamed ? last : nil))))
        for push in pushes.dropLast().reversed() {
            sendMessage(run, .run(runs[run].id, .wake(.completed(result, id: push))), after: 0)
        }
    }

    // MARK: Spontaneous actions

    private mutating func actSpontaneously(_ run: Int) {
        if isQuiet { return }
        plan(.actSpontaneously, by: run, after: pause(run))
        if isInStorm { return }
        let app = runs[run].app
        let action =
            SpontaneousAction(rawValue: apps[app].random.weighted(apps[app].personality.spontaneous)) ?? .nothing
        let id = runs[run].id
        switch action {
        case .nothing: break
        case .beginTask:
            if runs[run].openTasks.count > 2 { faults.add(.leaksTask) }
            beginTasks(run, 1)
        case .endTask: endTask(run)
        case .endAllTasks: perform(.endAllTasks, by: run)
        case .beginManyTasks: beginManyTasks(run)
        case .grow: grow(run)
        case .shrink: shrink(run)
        case .fork: if allows(.forks) { fork(run) }
        case .stop: if allows(.stopsItself) { stop(run) }
        case .crash: if allows(.crashes) { schedule(.die(crash()), for: run, after: 0) }
        case .exit: schedule(.die(.exited(0)), for: run, after: 0)
        case .extend:
            guard allows(.extendsTimeout) else { return }
            // An app with an unlimited budget or deadline may not extend for ever, or it never becomes idle. A manifest that changes can
            // make a budget unlimited later.
            let policy = apps[app].policy
            let mayBeUnlimited =
                policy.backgroundTime == nil || policy.extendedDeadlineMax == nil || scenario.changesManifests
            let most: Microseconds = mayBeUnlimited ? 30 * .second : .max
            let time = apps[app].random.pick([0, 1 * .millisecond, 1 * .second, 5 * .second, 90 * .second, most])
            perform(.extend(time), by: run)
        case .sendUnexpected: if allows(.sendsUnexpected) { sendUnexpected(run, after: 0) }
        case .changeMainProcess:
            guard allows(.changesMainProcess) else { return }
            runs[run].isMainProcessAdopted = true
            send(run, .run(id, .process(.mainProcessChanged(pid: runs[run].pid))))
        case .block: if allows(.blocksKill) { block(run) }
        case .giveUpHeartbeat: if allows(.givesUpHeartbeat) { send(run, .run(id, .watchdog(.triggered))) }
        case .askForApp: if allows(.asksForApps) { askForApp(run) }
        case .announceEnd:
            runs[run].isTerminateAnswerDue = true
            send(run, .run(id, .transition(.stopping)))
            planAnswer(.end(.exited(0)), run, apps[app].policy.terminateDeadline)
        }
    }

    private mutating func beginManyTasks(_ run: Int) {
        guard allows(.beginsManyTasks) else { return }
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

    /// Sends a message that does not fit the app's state.
    mutating func sendUnexpected(_ run: Int, after delay: Microseconds) {
        let id = runs[run].id
        let events: [Event] = [
            .run(id, .transition(.ready)), .run(id, .transition(.backgroundEntered)), .run(id, .process(.continued)),
            .run(id, .task(.ended(name: "never-begun"))),
            .run(id, .wake(.completed(.noData))), .run(id, .watchdog(.heartbeat)),
            .run(id, .deadline(.extended(by: .seconds(1)))),
            .run(id, .task(.began(name: "late", owner: runs[run].pid))), .run(id, .transition(.stopping)),
            .run(id, .transition(.ready)),
        ]
        let event = apps[runs[run].app].random.pick(events)
        if case .run(_, .task(.began)) = event { runs[run].openTasks.append("late") }
        if event == .run(id, .transition(.stopping)) { runs[run].isTerminateAnswerDue = true }
        sendMessage(run, event, after: delay)
    }
}

extension RunEvent {
    /// The deadline that the app meets with it. `wakesAreCompleted` checks those of wakes.
    fileprivate var answeredDeadline: DeadlineKind? {
        switch self {
        case .transition(.ready): .launch
        case .transition(.backgroundEntered), .process(.stopped): .background
        case .watchdog(.heartbeat): .watchdog
        case .process, .transition, .deadline, .watchdog, .suspension, .memory, .traffic, .processor, .hookEnded, .task,
            .mode, .scene, .wake, .connection:
            nil
        }
    }
}
