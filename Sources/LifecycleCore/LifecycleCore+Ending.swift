/// How runs end, and what comes after (L11, L20, L40, L42, L45 … L47).
extension LifecycleCore {
    /// How long processes may survive SIGKILL before a warning is logged, SIGKILL is sent again, and jetsam stops waiting
    /// for their memory. Doubles with each warning, up to `longestKillTimeout`.
    static let killTimeout = Duration.seconds(5)
    static let longestKillTimeout = Duration.seconds(60)
    /// L11: after this many deaths while launching in a row the restoration state is dropped.
    static let tolerableLaunchDeaths = 2

    /// L46: will-terminate, for an app that runs.
    mutating func terminate(_ index: Int, _ cause: TerminationCause, _ now: Instant) {
        let from = apps[index].state
        cancelDeadlines(index)
        leaveForegroundSlot(index)
        self[run: index].assertions.removeTasks()
        // The deadline assumes normal CPU weight.
        unthrottle(index)
        if cause != .selfInitiated {
            effects.append(.notify(self[run: index].id, .willTerminate))
            continueIfStopped(index)
        }
        let deadline = begin(index, .terminate, apps[index].policy.terminateDeadline, now)
        change(
            index, to: .terminating(Terminating(cause: cause, from: from, deadline: deadline)), cause.reason, now)
    }

    /// The process cannot receive the notice: there is nothing to wait for, and the app is not to blame.
    mutating func terminationUndelivered(_ index: Int, _ now: Instant) {
        guard case .terminating(let terminating)? = apps[index].execution else { return }
        switch terminating.cause {
        case .selfInitiated: break
        case .requested, .exitsOnSuspend: kill(index, .terminatedWithoutNotice, terminating.cause.reason, now)
        case .shutdown: kill(index, .shutdown, .shutdown, now)
        case .jetsam(let memory, let candidates):
            memoryState.awaitsMeasure = true
            kill(index, .jetsam(memory, candidates), .jetsam, now)
        }
    }

    /// `STOPPING=1`: the app ends itself, and has the terminate deadline for it.
    mutating func stopping(_ index: Int, _ now: Instant) {
        switch apps[index].phase {
        case .launching, .foreground, .enteringBackground, .background:
            supersedeAll(index)
            terminate(index, .selfInitiated, now)
        case .notRunning, .suspending, .suspended, .waking, .terminating, .ending: break
        }
    }

    /// Sends SIGKILL to all processes of the run.
    mutating func kill(_ index: Int, _ cause: KillCause, _ reason: StateReason, _ now: Instant) {
        var ending = makeEnding(index, cause, now)
        ending.isKilled = true
        effects.append(.kill(self[run: index].id))
        change(index, to: .ending(ending), reason, now)
    }

    /// The end of the run begins: none of its deadlines, tasks and wakes counts any more.
    private mutating func makeEnding(_ index: Int, _ cause: KillCause?, _ now: Instant) -> Ending {
        let execution = apps[index].execution
        let state = apps[index].state
        cancelDeadlines(index)
        self[run: index].assertions.removeTasks()
        var ending = Ending(self[run: index], cause: cause, from: state, start: now, warnAt: now + Self.killTimeout)
        if hasForegroundSlot(index) { ending.relaunch = .foreground }
        if case .terminating(let terminating)? = execution {
            ending.from = terminating.from
            ending.next = terminating.next
            ending.termination = terminating.cause
        }
        if ending.next?.state != .foreground { leaveForegroundSlot(index) }
        return ending
    }

    // MARK: Outcomes

    mutating func exited(_ index: Int, _ status: ExitStatus, _ cpu: Duration, _ memory: UInt64, _ now: Instant) {
        let wasEmpty = apps[index].ending?.remains == .exitStatus
        endRun(index, status, cpu: cpu, peak: memory, now, explanation: nil)
        if wasEmpty { emptied(index, now) }
    }

    /// The main process exited, or was never created: writes the receipt, and kills what is left of the run (L47).
    mutating func endRun(
        _ index: Int, _ status: ExitStatus, cpu: Duration, peak: UInt64, _ now: Instant, explanation: String?
    ) {
        let life = apps[index].life
        if apps[index].ending?.receipt != nil { return }
        let receipt = makeReceipt(index, life, status, cpu: cpu, peak: peak, now, explanation: explanation)
        var ending = apps[index].ending ?? makeEnding(index, nil, now)
        recordEnd(index, life, receipt, &ending, now)
        if !ending.isKilled, ending.remains != .exitStatus, explanation == nil {
            ending.isKilled = true
            effects.append(.kill(self[run: index].id))
        }
        ending.remains = .processes(receipt)
        apps[index].lastReceipt = receipt.id
        effects.append(.writeReceipt(receipt))
        report(.ended(receipt))
        change(index, to: .ending(ending), .ended, now)
        answerAll(index, .ended(receipt)) { $0.goal != .ended && !$0.isAfterEnd }
    }

    /// L11: early ends postpone automatic launches.
    private mutating func recordEnd(
        _ index: Int, _ life: ProcessLife, _ receipt: Receipt, _ ending: inout Ending, _ now: Instant
    ) {
        let policy = apps[index].policy
        // Whatever ended the app later: this launch succeeded, so the restoration state is not to blame.
        if receipt.state != .launching { apps[index].launchDeaths = 0 }
        guard isOwnDoing(life) else {
            ending.relaunch = nil
            apps[index].earlyEnds = 0
            return
        }
        // An unknown status counts as a failure if the run was killed for something, as systemd treats main processes that
        // are not its children.
        let hasFailed = receipt.exit == .unknown ? receipt.namespace != .exit : receipt.exit != .exited(0)
        let isFailure = hasFailed || receipt.state == .launching
        let isEarly = receipt.state == .launching || now - self[run: index].created < Self.earlyEnd
        if isEarly, isFailure || policy.relaunch == .always {
            apps[index].earlyEnds += 1
            apps[index].postponedUntil = now + postponement(after: apps[index].earlyEnds)
        } else {
            apps[index].earlyEnds = 0
            apps[index].postponedUntil = nil
        }
        if receipt.state == .launching {
            apps[index].launchDeaths += 1
            if apps[index].launchDeaths >= Self.tolerableLaunchDeaths {
                effects.append(.dropRestorationState(apps[index].id))
            }
        }
        let isWanted = policy.relaunch == .always || (policy.relaunch == .onFailure && isFailure)
        let isAllowed = shutdown == nil && !self[run: index].isTerminationRequested
        ending.relaunch = isWanted && isAllowed ? (ending.relaunch ?? .background) : nil
    }

    /// Whether the app caused its end by what it did or failed to do.
    private func isOwnDoing(_ life: ProcessLife) -> Bool {
        switch life {
        case .notRunning: return true
        case .running(let running):
            guard case .terminating(let terminating) = running.execution else { return true }
            return terminating.cause == .selfInitiated
        case .ending(let ending):
            switch ending.cause {
            case .missedDeadline, .leakedTasks, .wakeNotCompleted, .tooManyTasks, nil: return true
            case .terminationIgnored(let cause, _): return cause == .selfInitiated
            case .removed, .terminatedWithoutNotice, .shutdown, .jetsam: return false
            }
        }
    }

    private func postponement(after ends: Int) -> Duration {
        var time = Self.firstPostponement
        for _ in 1..<max(2, min(ends, 10)) where ends > 1 { time *= 2 }
        return min(time, Self.longestPostponement)
    }

    mutating func emptied(_ index: Int, _ now: Instant) {
        switch apps[index].life {
        case .ending(let ending):
            if let receipt = ending.receipt { return finishRun(index, ending, receipt, now) }
            var ending = ending
            ending.remains = .exitStatus
            apps[index].life = .ending(ending)
        case .running:
            // All processes ended at once. The exit status of the main process is still to come.
            var ending = makeEnding(index, nil, now)
            ending.remains = .exitStatus
            change(index, to: .ending(ending), .ended, now)
        case .notRunning: break
        }
    }

    /// No process of the run is left, and it has its receipt.
    private mutating func finishRun(_ index: Int, _ ending: Ending, _ receipt: Receipt, _ now: Instant) {
        setMemory(index, 0)
        runs[self[run: index].id.number] = nil
        apps[index].notifications.reset()
        change(index, to: .notRunning(NotRunning()), .ended, now)
        answerAll(index, .ended(receipt)) { $0.goal == .ended }
        memoryCameBack(now)
        if !apps[index].isRegistered { return remove(index) }
        if shutdown != nil { return leaveForegroundSlot(index) }
        if let next = ending.next {
            if let time = postponement(of: next, index, now) {
                leaveForegroundSlot(index)
                return answerAll(index, .refused(.launchPostponed(by: time))) { $0.isAfterEnd }
            }
            for waiter in apps[index].waiters.indices { apps[index].waiters[waiter].isAfterEnd = false }
            launchOnRequest(index, next, now)
        } else if let state = ending.relaunch {
            scheduleRelaunch(index, state, now)
        }
    }

    private mutating func scheduleRelaunch(_ index: Int, _ state: LaunchState, _ now: Instant) {
        let at = max(now, apps[index].postponedUntil ?? now)
        let id = apps[index].id
        report(.relaunchScheduled(id, after: at - now, deaths: apps[index].earlyEnds))
        apps[index].life = .notRunning(NotRunning(relaunch: .init(at: at, state: state)))
        if at <= now { relaunchDue(index, now) }
    }

    /// A relaunch does not displace an app that a user has activated meanwhile.
    mutating func relaunchDue(_ index: Int, _ now: Instant) {
        guard case .notRunning(let notRunning) = apps[index].life, let relaunch = notRunning.relaunch else {
            return
        }
        let isFree = foregroundSlots.count < foregroundLimit
        let state: LaunchState = relaunch.state == .foreground && isFree ? .foreground : .background
        launch(index, Launch(state: state, reason: .relaunch), now)
    }

    /// Processes survive SIGKILL: reports it, sends SIGKILL again (the app may have forked), and lets jetsam continue.
    mutating func endTakesLong(_ index: Int, _ now: Instant) {
        guard var ending = apps[index].ending else { return }
        ending.warnAt = now + min(Self.longestKillTimeout, max(Self.killTimeout, now - ending.start))
        ending.isOverdue = true
        report(.killTakesLong(apps[index].id))
        effects.append(.kill(ending.run.id))
        change(index, to: .ending(ending), .ended, now)
        if memoryState.awaitsMeasure { measureMemory() } else { evaluateMemory(now) }
    }

    // MARK: Shutdown

    mutating func shutdownRequested(_ immediately: Bool, _ now: Instant) {
        if shutdown == nil { shutdown = Shutdown() }
        for index in apps.indices where !apps[index].isRemoved {
            touch(index)
            supersedeAll(index)
            end(index, immediately, now)
        }
    }

    private mutating func end(_ index: Int, _ immediately: Bool, _ now: Instant) {
        switch apps[index].phase {
        case .notRunning: apps[index].life = .notRunning(NotRunning())
        case .launching, .foreground, .enteringBackground, .background, .waking:
            if immediately { kill(index, .shutdown, .shutdown, now) } else { terminate(index, .shutdown, now) }
        case .suspending, .suspended: kill(index, .shutdown, .shutdown, now)
        case .terminating:
            setNext(index, nil)
            if immediately { kill(index, .shutdown, .shutdown, now) }
        case .ending: setNext(index, nil)
        }
        leaveForegroundSlot(index)
    }

    mutating func finishShutdownIfDone() {
        guard shutdown?.isFinished == false, runningCount == 0 else { return }
        shutdown?.isFinished = true
        effects.append(.finish)
    }
}

extension TerminationCause {
    var reason: StateReason {
        switch self {
        case .requested: .requested
        case .exitsOnSuspend: .exitsOnSuspend
        case .shutdown: .shutdown
        case .selfInitiated: .ended
        case .jetsam: .jetsam
        }
    }
}
