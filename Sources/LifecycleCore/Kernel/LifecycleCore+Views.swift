/// What others may ask the core.
extension LifecycleCore {
    /// All apps, by name.
    package var appIDs: [AppID] { indices.keys.sorted() }

    /// All apps, in an order without meaning: to sort them takes time.
    package var unsortedAppIDs: [AppID] {
        var ids: [AppID] = []
        ids.reserveCapacity(indices.count)
        for index in apps.indices where !apps[index].isRemoved { ids.append(apps[index].id) }
        return ids
    }

    /// Apps of which processes hold an inhibitor of logind, as far as the core knows.
    package var inhibitingApps: [AppID] {
        apps.compactMap { app in
            app.run.flatMap { run in run.modes.contains { $0.mode == nil } ? app.id : nil }
        }
    }

    /// Apps of which sources show modes, declared or not.
    package var appsWithShownModes: [AppID] {
        apps.compactMap { app in app.run.flatMap { $0.shownModes.isEmpty ? nil : app.id } }
    }

    /// Apps that assert a mode, whether they use it or not.
    package func appsAsserting(_ mode: BackgroundModes) -> [AppID] {
        apps.compactMap { app in
            app.run.flatMap { $0.modeSet.union($0.unusedModes).contains(mode) ? app.id : nil }
        }
    }

    /// Apps in the foreground or on their way there, the one activated longest ago first.
    package var foregroundApps: [AppID] {
        var indices: Set<AppIndex> = []
        let last = foregroundSlots.reversed().filter { indices.insert($0.app).inserted }
        return last.reversed().map { apps[$0.app].id }
    }

    package func app(of run: RunID) -> AppID? { runs[run.number].map { apps[$0].id } }

    package func run(of app: AppID) -> RunID? { indices[app].flatMap { apps[$0].run?.id } }

    package func state(of app: AppID) -> AppState? { indices[app].map { apps[$0].state } }

    /// Runs that are not over, in order.
    package var runIDs: [RunID] { runs.numbers.map(RunID.init) }

    /// Whether all apps have ended after `shutdownRequested`.
    package var isFinished: Bool { shutdown?.isFinished ?? false }

    package func pid(of run: RunID) -> Int32? { runs[run.number].flatMap { self[run: $0].pid } }

    /// Whether the main process of a run has exited, as far as the core knows.
    package func hasExited(_ run: RunID) -> Bool {
        runs[run.number].map { apps[$0].ending?.receipt != nil || apps[$0].execution?.exit != nil } ?? false
    }

    /// Whether a run was notified that it is in the background, and has not answered.
    package func isEntering(_ run: RunID) -> Bool { phase(of: run) == .enteringBackground }

    /// The hook of a run that has not ended, and its number; `nil`: none runs.
    package func runningHook(of run: RunID) -> (hook: Hook, number: Int)? {
        guard let index = runs[run.number], let hooks = self[run: index].hooks, let running = hooks.running else {
            return nil
        }
        return (running.hook, hooks.number)
    }

    /// Whether a run is launching.
    package func isLaunching(_ run: RunID) -> Bool { phase(of: run) == .launching }

    /// The freeze of a run that is frozen, as far as the core knows; `nil`: it is not.
    package func freezeAttempt(ofSuspended run: RunID) -> Int? {
        guard phase(of: run) == .suspended, let index = runs[run.number] else { return nil }
        return self[run: index].freezeAttempt
    }

    /// Whether a run is being frozen, by this attempt.
    package func isSuspending(_ run: RunID, attempt: Int) -> Bool {
        guard phase(of: run) == .suspending, let index = runs[run.number] else { return false }
        return self[run: index].freezeAttempt == attempt
    }

    /// Whether a suspended run may have a timer that is due by a signal.
    package func hasSignalTimers(_ run: RunID) -> Bool {
        guard let index = runs[run.number], case .suspended(let suspended)? = apps[index].execution else {
            return false
        }
        return suspended.hasSignalTimers
    }

    /// Whether `requestAbandoned` would change anything: the request waits, or its interruption ends with the connection.
    package func awaitsDisconnect(of request: RequestID) -> Bool { requests[request.number] != nil }

    /// Whether the app has an open task of this name.
    package func isTaskOpen(_ name: String, of run: RunID) -> Bool {
        guard let index = runs[run.number] else { return false }
        return storage(index).run.assertions.all.contains { $0.taskName == name }
    }

    private func phase(of run: RunID) -> Phase? { runs[run.number].map { apps[$0].phase } }

    package func view(of id: AppID, at now: Instant) -> AppView? {
        guard let index = indices[id] else { return nil }
        let app = apps[index]
        let run = app.run
        var view = AppView(
            id: id, state: app.state, run: run?.id, pid: run?.pid, since: app.since, memory: run?.memory ?? 0,
            tasks: run.map { taskViews($0, app.policy, now) } ?? [], deadline: deadlineView(app, now),
            backgroundTimeRemaining: run.flatMap { timeLeft($0, app.policy, now) }, isForeground: isInFront(index),
            interruptions: run?.interruptions ?? 0, launches: app.launches, lastReceipt: app.lastReceipt,
            launchPostponed: app.postponedUntil.flatMap { $0 > now ? $0 - now : nil },
            launchWaiting: app.queuedLaunch.map { now - $0.since },
            relaunchesIn: app.relaunch.map { max(.zero, $0.at - now) },
            memoryAwaited: app.memoryWait.map { _ in app.lastFootprint },
            unrequestedTime: app.unrequestedTime.used(at: now), unrequestedTimeLimit: app.policy.backgroundTimePerHour,
            awake: awake(app, now), wakes: run.map { wakeViews($0, now) } ?? [])
        view.isTransient = app.policy.isTransient
        view.dryRun = app.drySleep?.result(.idle, now)
        view.connectionsWaiting = app.sockets.wait.flatMap { $0.isPostponed ? now - $0.since : nil }
        addTraffic(to: &view, app, index, now)
        return view
    }

    private func addTraffic(to view: inout AppView, _ app: App, _ index: AppIndex, _ now: Instant) {
        view.ownScenes = sceneViews(app)
        guard let run = app.run else { return }
        view.shownModes = run.shownModes
        view.unusedModes = run.unusedModes
        for held in run.modes {
            switch held.kind {
            case .mode(let mode): view.modes.insert(mode)
            case .inhibitor(let text): view.inhibitor = text
            }
        }
        view.trafficWakes = run.traffic.wakes
        view.lastInput = run.traffic.lastInput
        view.lastInputAt = run.traffic.lastInputAt
        view.shortestWait = run.traffic.shortestWait
        view.hadNoWaker = run.traffic.hadNoWaker
        view.processorExcess = run.processor.throttle?.use
        view.throttledSince = run.processor.throttle?.since
        switch app.execution {
        case .suspended(let suspended)?:
            view.watch = suspended.isWatching ? suspended.watch : nil
            view.onlyRequestsWake = onlyRequestsWake(index, suspended)
            view.heldLocks = run.lockHold?.locks
            view.timerIn = suspended.timerDue.map { max(.zero, $0 - now) }
            view.pulseIn = suspended.pulseDue.map { max(.zero, $0 - now) }
            view.unloadsIn = unloadDue(index, suspended).map { max(.zero, $0 - now) }
            view.deferredWake = suspended.deferred.map {
                AppView.DeferredWake(input: $0.input, remaining: max(.zero, $0.due - now))
            }
        case .background(let background)?:
            view.timerIn = background.look?.before?.due.map { max(.zero, $0 - now) }
            if run.traffic.isUnwatchable { view.watch = InputWatch(unwatched: run.traffic.unwatched) }
            guard !isHeldAwake(index), app.drySleep == nil, background.look?.reason == nil,
                let timer = nextTimer(index, forLifecycle: true),
                timer.kind == .work || timer.kind == .suspend
            else { return }
            view.suspendsIn = max(.zero, max(timer.at, staysAwakeUntil(index) ?? timer.at) - now)
        case .launching?: if isAwaitingListener(index) { view.hiddenSockets = run.startUp?.hiddenSockets }
        case .terminating(let terminating)?: view.terminationReason = terminating.cause.reason
        case nil, .foreground?, .enteringBackground?, .suspending?, .waking?: break
        }
    }

    package var memory: MemoryView {
        MemoryView(
            level: memoryState.level, cause: memoryState.cause, total: memoryState.total,
            available: memoryState.available, apps: memoryState.counted, budget: manager.budget,
            limit: memoryState.limit)
    }

    /// `memory` with what takes longer to find: the next threshold, and the next victims.
    package var memoryView: MemoryView {
        var view = memory
        view.threshold = nextThreshold
        view.candidates = candidates
        return view
    }

    /// The one answer to "why is this app awake?". Empty: it has no process, is suspended, or is ending.
    private func awake(_ app: App, _ now: Instant) -> [AppView.Awake] {
        guard case .running(let running) = app.life else { return [] }
        let run = running.run
        switch running.execution {
        case .launching: return [AppView.Awake(reason: .launching, since: app.since)]
        case .foreground: return [AppView.Awake(reason: .foreground, since: app.since)] + hook(run)
        case .enteringBackground(let entering):
            if entering.isAnswered { return held(run) }
            return [AppView.Awake(reason: .enteringBackground, since: app.since)] + held(run)
        case .background(let background):
            if let sleep = app.drySleep { return [AppView.Awake(reason: .dryRun, since: sleep.since)] }
            return awake(run, background, isSuspendable: app.policy.effectiveSuspension != .no, now)
        // The state is the background since before.
        case .suspending: return [AppView.Awake(reason: .suspending, since: nil)]
        case .suspended: return []
        case .waking: return [AppView.Awake(reason: .waking, since: nil)] + held(run)
        case .terminating: return [AppView.Awake(reason: .terminating, since: app.since)]
        }
    }

    private func awake(
        _ run: Run, _ background: Background, isSuspendable: Bool, _ now: Instant
    ) -> [AppView.Awake] {
        var all = held(run)
        let (look, traffic) = (background.look, run.traffic)
        if let reason = look?.reason {
            all.append(
                AppView.Awake(
                    reason: .work(reason), detail: reason.hasDetail ? traffic.detail ?? "" : "", since: look?.since))
        }
        if traffic.isUnwatchable { all.append(AppView.Awake(reason: .notWatchable, since: traffic.unwatchableSince)) }
        if let hold = run.lockHold {
            let file = hold.locks.file
            all.append(
                AppView.Awake(reason: hold.locks.isResource ? .resource(file) : .fileLock(file), since: hold.since))
        }
        if let until = traffic.awakeUntil, until > now, all.isEmpty {
            // It stays awake since the wake that was one too many, which is the last one.
            all.append(AppView.Awake(reason: .wokenTooOften, since: traffic.lastInputAt))
        }
        if !isSuspendable { all.append(AppView.Awake(reason: .neverSuspended, since: nil)) }
        if !all.isEmpty { return all }
        // Of an app that is looked at it is not known when in the time between two looks it became idle.
        let since = background.idleSince.map { min($0, now) }
        return [AppView.Awake(reason: .suspendDelay, since: look == nil ? since : nil)]
    }

    /// What holds it awake, whatever it does.
    private func held(_ run: Run) -> [AppView.Awake] {
        var all = run.assertions.all.map { AppView.Awake(reason: AwakeReason($0), since: $0.began) }
        // Of several wakes for the same reason the oldest is shown.
        for wake in run.assertions.laterWakes where !all.contains(where: { $0.reason == .wake(wake.reason) }) {
            all.append(AppView.Awake(reason: .wake(wake.reason), since: wake.deadline.start))
        }
        for held in run.modes {
            let reason: AwakeReason =
                switch held.kind {
                case .mode(let mode): .mode(mode, isShown: held.isShown)
                case .inhibitor(let text): .inhibitor(text)
                }
            all.append(AppView.Awake(reason: reason, since: held.began))
        }
        all += hook(run)
        if let startUp = run.startUp { all.append(AppView.Awake(reason: .startUp, since: startUp.began)) }
        return all
    }

    private func hook(_ run: Run) -> [AppView.Awake] {
        guard let running = run.hooks?.running else { return [] }
        return [AppView.Awake(reason: .hook(running.hook.kind), since: running.began)]
    }

    /// Until the app is suspended or killed for its tasks, whatever it reports; `nil`: unlimited.
    private func timeLeft(_ run: Run, _ policy: AppPolicy, _ now: Instant) -> Duration? {
        let budget = run.budget.remaining(at: now)
        guard run.assertions.hasContinuedTasks, !run.assertions.hasLimitedTasks else { return budget }
        let times = run.assertions.tasks.map { timeLeft($0, run, policy, now) }
        return times.contains(nil) ? nil : times.compactMap { $0 }.max()
    }

    /// Until a task is over; `nil`: unlimited. A continued one expires when it stalls, and not before the others.
    private func timeLeft(_ task: Assertion, _ run: Run, _ policy: AppPolicy, _ now: Instant) -> Duration? {
        guard let budget = run.budget.remaining(at: now) else { return nil }
        guard task.isContinued, let progress = task.progress else { return budget }
        return policy.taskProgressTime.map { max(budget, progress.advanced + ($0 + policy.expirationNotice) - now) }
    }

    private func taskViews(_ run: Run, _ policy: AppPolicy, _ now: Instant) -> [AppView.Task] {
        return run.assertions.all.compactMap { task in
            guard let name = task.taskName else { return nil }
            let own = task.end.map { max(.zero, $0 - now) }
            let limit = [own, timeLeft(task, run, policy, now)].compactMap { $0 }.min()
            let owner: Int32 =
                switch task.owner {
                case .process(let pid): pid
                case .daemon: 0
                }
            var view = AppView.Task(name: name, age: now - task.began, remaining: limit, owner: owner)
            view.progress = task.progress?.report
            view.isContinued = task.isContinued
            view.isCancelled = task.isCancelled
            view.isExpiring = task.isCancelled || run.budget.isNoticeGiven && !task.isContinued
            return view
        }
    }

    private func wakeViews(_ run: Run, _ now: Instant) -> [AppView.Wake] {
        run.assertions.wakes.map { wake in
            AppView.Wake(id: wake.id, reason: wake.reason, remaining: wake.deadline.remaining(at: now))
        }
    }

    /// The nearest of the deadlines that count for the app now.
    private func deadlineView(_ app: App, _ now: Instant) -> AppView.Deadline? {
        guard let run = app.run else { return nil }
        var all: [Deadline?] = [app.transitionDeadline]
        for wake in run.assertions.wakes { all.append(wake.deadline) }
        if run.assertions.hasLimitedTasks { all.append(run.budget.deadline) }
        return all.compactMap { $0 }.min { $0.end < $1.end }
            .map { AppView.Deadline(what: $0.kind, remaining: $0.remaining(at: now)) }
    }
}

extension AwakeReason {
    init(_ assertion: Assertion) {
        switch assertion.kind {
        case .task(let name): self = .task(name: name)
        case .wake(let wake): self = .wake(wake.reason)
        }
    }
}
