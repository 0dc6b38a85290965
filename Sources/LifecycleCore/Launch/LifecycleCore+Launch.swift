/// From the request to launch until the app is ready (L6, L7, L9, L11).
extension LifecycleCore {
    /// L11: how long automatic launches wait after an early end; doubles with each, up to `longestPostponement`.
    static let firstPostponement = Duration.seconds(10)
    static let longestPostponement = Duration.seconds(300)
    /// L11: a run that ends within this time of its creation ended early, whatever its exit status, and whether or not it
    /// said that it is ready. Relaunching it immediately would only loop.
    static let earlyEnd = Duration.seconds(10)

    /// An explicit launch by the user ends the postponement of automatic launches (L11). A launch for a wake is not a
    /// user's, whatever state it launches into, nor is one that an app asks for.
    mutating func launchOnRequest(_ index: AppIndex, _ launch: Launch, _ now: Instant) {
        if !launch.reason.wakes, !launch.isUnrequested {
            apps[index].earlyEnds = 0
            apps[index].postponedUntil = nil
            apps[index].returnFailures = 0
        }
        self.launch(index, launch, isRequested: true, now)
    }

    /// Why an app is not launched now (L11, L53); `nil`: it is.
    func refusal(of launch: Launch, _ index: AppIndex, _ now: Instant) -> Refusal? {
        if launch.reason.wakes || launch.isUnrequested, let until = apps[index].postponedUntil, until > now {
            return .launchPostponed(by: until - now)
        }
        return launch.isUnrequested && launch.state == .background ? unrequestedTimeRefusal(index, now) : nil
    }

    /// Creates the process of a launch that was admitted.
    mutating func beginLaunch(_ index: AppIndex, _ queued: QueuedLaunch, _ now: Instant) {
        var launch = queued.launch
        launch.isFirst = apps[index].launches == 0
        // The manifest may have made it a worker since the launch was planned.
        launch.state = apps[index].policy.reached(from: launch.state)
        takeLaunchURL(index, &launch)
        let id = RunID(nextRun)
        nextRun += 1
        runs[id.number] = index
        apps[index].isTaken = false
        assumeProtectedData(index)
        var launching = Launching(launch: launch, readiness: apps[index].policy.readiness, wake: queued.wake)
        var run = Run(id: id, created: now)
        run.isUnrequested = launch.isUnrequested
        change(index, to: .running(Running(run: run, execution: .launching(launching))), .launched, now)
        effects.append(.spawn(apps[index].id, id, launch))
        timersSeeLaunch(index, now)
        resetOOMClass(index)
        takeLaunchSlot(id, now)
        launching.deadline = begin(index, .launch, apps[index].policy.launchDeadline, now)
        update(index, .launching(launching))
        if launch.state == .foreground { takeForegroundSlot(index, now) }
        memoryState.checkSoon(now)
    }

    mutating func executed(_ index: AppIndex, _ now: Instant) {
        // L9: counted here and not before, because a launch that fails in `execve` was no launch of the program.
        let isNew = !self[run: index].isExecuted
        if isNew {
            self[run: index].isExecuted = true
            apps[index].launches += 1
            effects.append(.recordLaunch(apps[index].id, count: apps[index].launches))
        }
        guard case .launching(let launching)? = apps[index].execution else { return }
        if isNew {
            slotExecuted(index, now)
            beginStartUp(index, launching.readiness, now)
        }
        switch launching.readiness {
        case .executed: becameReady(index, now)
        case .listening, .notified, .forked: break
        }
    }

    /// L4: counts only once in a process.
    mutating func becameReady(_ index: AppIndex, _ now: Instant) {
        guard case .launching(let launching)? = apps[index].execution else { return }
        metTransitionDeadline(index, now)
        apps[index].sockets.wait = nil
        switch launching.pending {
        case .terminate: return terminate(index, .requested, now)
        case .foreground: if mayEnterForeground(index, now) { return enterForeground(index, .ready, now) }
        case .background: break
        case nil:
            if launching.launch.state == .foreground, mayEnterForeground(index, now) {
                return enterForeground(index, .ready, now)
            }
        }
        beginPendingWakes(index, launching.wake, now)
        enterBackground(index, .ready, now)
        // L3: the app is notified of its state first, then of the event that it was launched for.
        deliverNotifications(index, inForeground: false)
    }

    /// No program runs, whatever the app was taken to do meanwhile, and whatever was about to end it.
    mutating func spawnFailed(_ index: AppIndex, _ problem: SpawnProblem, _ now: Instant) {
        let explanation = "Could not be launched: \(problem.sentence)."
        let exit = MainExit(status: .exited(problem.exitStatus), cpu: .zero, peak: 0)
        // Nothing of the run is left, its watch included.
        if case .suspended(var suspended)? = apps[index].execution {
            suspended.isWatching = false
            update(index, .suspended(suspended))
        }
        endRun(index, exit, nil, now, explanation: explanation)
        emptied(index, now)
    }
}

extension LaunchReason {
    /// Whether it wakes an app for something to do, with time of its own (L26), rather than for a user to see.
    var wakes: Bool {
        switch self {
        case .push, .fetch, .socket, .timer, .accessory, .location: true
        case .user, .url, .relaunch: false
        }
    }

    /// The mode that makes it an error not to complete such a wake (L30).
    var completedMode: BackgroundModes? {
        switch self {
        case .push: .push
        case .fetch: .fetch
        case .user, .url, .socket, .timer, .accessory, .location, .relaunch: nil
        }
    }
}
