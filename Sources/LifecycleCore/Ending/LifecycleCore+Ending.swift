/// How runs end, and what comes after (L11, L20, L40, L42, L45 … L47).
extension LifecycleCore {
    /// How long processes may survive SIGKILL before a warning is logged and SIGKILL is sent again. Doubles with each
    /// warning, up to `longestKillTimeout`.
    static let killTimeout = Duration.seconds(5)
    static let longestKillTimeout = Duration.seconds(60)
    /// L11: after this many deaths while launching in a row the restoration state is dropped.
    static let tolerableLaunchDeaths = 2

    /// L46: will-terminate, for an app that runs.
    mutating func terminate(_ index: AppIndex, _ cause: TerminationCause, _ now: Instant) {
        let from = apps[index].state
        self[run: index].memoryBeforeEnd = self[run: index].memory
        cancelDeadlines(index)
        keepScenes(index)
        leaveForegroundSlot(index)
        self[run: index].assertions.removeTasks()
        self[run: index].modes = []
        // One that runs is a process of the app from now on, and ends with it.
        self[run: index].hooks = nil
        if cause != .selfInitiated {
            // The deadline assumes normal CPU weight. An app in the background does not get that by announcing its end.
            endProcessorThrottle(index)
            unthrottle(index)
            notify(index, .willTerminate)
            continueIfStopped(index)
        }
        let deadline = begin(index, .terminate, apps[index].policy.terminateDeadline, now)
        change(
            index, to: .terminating(Terminating(cause: cause, from: from, deadline: deadline)), cause.reason, now)
    }

    /// The process cannot receive the notice: there is nothing to wait for, and the app is not to blame.
    mutating func terminationUndelivered(_ index: AppIndex, _ now: Instant) {
        guard case .terminating(let terminating)? = apps[index].execution else { return }
        switch terminating.cause {
        case .selfInitiated: break
        case .requested, .exitsOnSuspend: kill(index, .terminatedWithoutNotice, terminating.cause.reason, now)
        case .unloaded: kill(index, .unloaded, .unloaded, now)
        case .shutdown: kill(index, .shutdown, .shutdown, now)
        case .jetsam(let memory, let candidates):
            kill(index, .jetsam(memory, candidates, JetsamContext()), .jetsam, now)
        }
    }

    /// `STOPPING=1`: the app ends itself, and has the terminate deadline for it.
    mutating func stopping(_ index: AppIndex, _ now: Instant) {
        switch apps[index].phase {
        case .launching, .foreground, .enteringBackground, .background, .waking:
            supersedeAll(index)
            terminate(index, .selfInitiated, now)
        case .notRunning, .suspending, .suspended, .terminating, .ending: break
        }
    }

    /// Sends SIGKILL to all processes of the run, before anything is reported: to write the log and to tell clients takes time, and
    /// the app may do harm meanwhile.
    /// - Parameter problem: what is reported first; `nil`: only what follows from the end.
    mutating func kill(
        _ index: AppIndex, _ cause: KillCause, _ reason: StateReason, reporting problem: Report? = nil, _ now: Instant
    ) {
        if let exit = apps[index].execution?.exit {
            if let problem { report(problem) }
            return endRun(index, exit, cause, now)
        }
        endWatch(index)
        invariant(apps[index].execution != nil, "a run is killed that is ending", index)
        effects.append(.run(self[run: index].id, .kill))
        if let problem { report(problem) }
        var ending = makeEnding(index, cause, now)
        ending.isKilled = true
        change(index, to: .ending(ending), reason, now)
    }

    /// The end of the run begins: none of its deadlines, tasks and wakes counts any more.
    private mutating func makeEnding(_ index: AppIndex, _ cause: KillCause?, _ now: Instant) -> Ending {
        endWatch(index)
        let execution = apps[index].execution
        let state = apps[index].state
        expectMemory(index, now)
        cancelDeadlines(index)
        self[run: index].assertions.removeTasks()
        self[run: index].modes = []
        keepScenes(index)
        self[run: index].hooks = nil
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

    mutating func exited(_ index: AppIndex, _ exit: MainExit, _ now: Instant) {
        if case .terminating(var terminating)? = apps[index].execution {
            if terminating.exit != nil { return }
            // The others received the signal too: they have the rest of the deadline (L46).
            if exit.remaining != nil, terminating.cause != .selfInitiated,
                apps[index].policy.killMode == .controlGroup
            {
                terminating.exit = exit
                return update(index, .terminating(terminating))
            }
        }
        let wasEmpty = apps[index].ending?.remains == .exitStatus
        endRun(index, exit, nil, now)
        if wasEmpty { emptied(index, now) }
    }

    /// The main process exited, or was never created: writes the receipt, and kills what is left of the run (L47).
    /// - Parameters:
    ///   - cause: why the processes that the main process left behind are killed now; `nil`: because it exited.
    ///   - explanation: the reason, if it is not to be derived. No process was created then.
    mutating func endRun(
        _ index: AppIndex, _ exit: MainExit, _ cause: KillCause?, _ now: Instant, explanation: String? = nil
    ) {
        if apps[index].ending?.receipt != nil { return }
        var exit = exit
        // The daemon killed them together with the main process.
        if apps[index].ending?.isKilled ?? false { exit.remaining = nil }
        let receipt = makeReceipt(index, exit, cause, now, explanation: explanation)
        let origin = origin(index)
        var ending = apps[index].ending ?? makeEnding(index, cause, now)
        recordEnd(index, origin, receipt, &ending, now)
        if !ending.isKilled, ending.remains != .exitStatus, explanation == nil {
            ending.isKilled = true
            effects.append(.run(self[run: index].id, .kill))
        }
        conclude(index, ending, receipt, now)
    }

    /// The receipt is known.
    private mutating func conclude(_ index: AppIndex, _ ending: Ending, _ receipt: Receipt, _ now: Instant) {
        invariant(apps[index].ending?.receipt == nil, "a run has two receipts", index)
        var ending = ending
        ending.remains = .processes(receipt)
        apps[index].lastReceipt = receipt.id
        effects.append(.writeReceipt(receipt))
        report(.ended(receipt))
        change(index, to: .ending(ending), .ended, now)
        answerAll(index, .ended(receipt)) { $0.goal != .ended && !$0.isAfterEnd }
    }

    /// L11: early ends postpone automatic launches.
    private mutating func recordEnd(
        _ index: AppIndex, _ origin: Origin, _ receipt: Receipt, _ ending: inout Ending, _ now: Instant
    ) {
        let policy = apps[index].policy
        // Whatever ended the app later: this launch succeeded, so the restoration state is not to blame.
        if receipt.state != .launching { apps[index].launchDeaths = 0 }
        let isTaken = origin.isJetsam || isTakenByKernel(index, receipt)
        guard origin.isOwn, !isTaken else {
            ending.relaunch = isTaken ? stateAfterJetsam(index, ending, receipt.memory, now) : nil
            apps[index].earlyEnds = 0
            return
        }
        // An unknown status counts as a failure if the run was killed for something, as systemd treats main processes that
        // are not its children.
        let hasFailed = receipt.exit == .unknown ? receipt.namespace != .exit : receipt.exit != .exited(0)
        let isFailure = hasFailed || receipt.state == .launching
        let isEarly = receipt.state == .launching || now - self[run: index].created < Self.earlyEnd
        let isAlwaysWanted = policy.relaunch == .always || index == home
        if isEarly, isFailure || isAlwaysWanted || exitsTooOften(index, now) {
            apps[index].earlyEnds += 1
            apps[index].postponedUntil = now + postponement(after: apps[index].earlyEnds)
        } else {
            apps[index].earlyEnds = 0
            apps[index].postponedUntil = nil
            if !isEarly { apps[index].sockets.earlyExits = nil }
        }
        // A program that was never executed, or that the kernel killed for memory, cannot have failed because of its restoration
        // state.
        if receipt.state == .launching, self[run: index].isExecuted, self[run: index].outOfMemory != .machine {
            apps[index].launchDeaths += 1
            if apps[index].launchDeaths >= Self.tolerableLaunchDeaths {
                effects.append(.dropRestorationState(apps[index].id))
                dropScenes(index)
            }
        }
        let isWanted = isAlwaysWanted || (policy.relaunch == .onFailure && isFailure)
        let isAllowed = shutdown == nil && !self[run: index].isTerminationRequested
        ending.relaunch = isWanted && isAllowed ? (ending.relaunch ?? .background) : nil
    }

    /// What began the end of a run. Taken from its life, which is not kept: it would share the run, which would be copied at its next
    /// change.
    private struct Origin {
        var isOwn: Bool
        var isJetsam: Bool
    }

    private func origin(_ index: AppIndex) -> Origin {
        Origin(isOwn: isOwnDoing(apps[index].life), isJetsam: apps[index].life.isEndedByJetsam)
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
            case .missedDeadline, .leakedTasks, .wakeNotCompleted, .tooManyTasks, .overMemoryLimit, .heldLocks,
                .overProcessorLimit, .usedGPU:
                return true
            // All processes ended before the exit status of the main process was known.
            case nil: return ending.termination.map { $0 == .selfInitiated } ?? true
            case .terminationIgnored(let cause, _): return cause == .selfInitiated
            case .removed, .terminationAnswered, .terminatedWithoutNotice, .unloaded, .shutdown, .jetsam: return false
            }
        }
    }

    func postponement(after ends: Int) -> Duration {
        var time = Self.firstPostponement
        for _ in 1..<max(2, min(ends, 10)) where ends > 1 { time *= 2 }
        return min(time, Self.longestPostponement)
    }

    mutating func emptied(_ index: AppIndex, _ now: Instant) {
        switch apps[index].phase {
        case .ending:
            if let receipt = apps[index].ending?.receipt { return finishRun(index, receipt, now) }
            guard var ending = apps[index].ending else { return }
            ending.remains = .exitStatus
            apps[index].life = .ending(ending)
        case .launching, .foreground, .enteringBackground, .background, .suspending, .suspended, .waking, .terminating:
            if let exit = apps[index].execution?.exit { return remainingEnded(index, exit, now) }
            // All processes ended at once. The exit status of the main process is still to come.
            var ending = makeEnding(index, nil, now)
            ending.remains = .exitStatus
            change(index, to: .ending(ending), .ended, now)
        case .notRunning: break
        }
    }

    /// After the main process, the others have ended by themselves.
    private mutating func remainingEnded(_ index: AppIndex, _ exit: MainExit, _ now: Instant) {
        var exit = exit
        exit.remaining = nil
        let receipt = makeReceipt(index, exit, nil, now, explanation: nil)
        let origin = origin(index)
        var ending = makeEnding(index, nil, now)
        recordEnd(index, origin, receipt, &ending, now)
        conclude(index, ending, receipt, now)
        finishRun(index, receipt, now)
    }

    /// No process of the run is left, and it has its receipt.
    private mutating func finishRun(_ index: AppIndex, _ receipt: Receipt, _ now: Instant) {
        let (next, relaunch) = apps[index].afterEnd
        let (run, bytes) = (self[run: index].id, self[run: index].memory)
        setSize(index, SizeRecord())
        runs[run.number] = nil
        dropInterruptions(index)
        resetDeliveries(index)
        apps[index].urls.pending = []
        change(index, to: .notRunning(NotRunning()), .ended, now)
        answerAll(index, .ended(receipt)) { $0.goal == .ended }
        memoryCameBack(run, bytes, now)
        if returnQueue.count > 0 { checkReturnsSoon(now) }
        if !apps[index].isRegistered { return remove(index) }
        if shutdown != nil {
            answerAll(index, .refused(.shuttingDown)) { _ in true }
            dropNextDeliveries(index)
            return leaveForegroundSlot(index)
        }
        if let next {
            guard let refusal = refusal(of: next, index, now) else {
                for waiter in apps[index].waiters.indices { apps[index].waiters[waiter].isAfterEnd = false }
                apps[index].urls.beginNext()
                launchOnRequest(index, next, now)
                return beginNextDeliveries(index)
            }
            dropNextDeliveries(index)
            leaveForegroundSlot(index)
            answerAll(index, .refused(refusal)) { $0.isAfterEnd }
        }
        guard let state = relaunch else { return apps[index].isTaken = false }
        if apps[index].isTaken { beginReturn(index, state, now) } else { scheduleRelaunch(index, state, now) }
    }

    private mutating func scheduleRelaunch(_ index: AppIndex, _ state: LaunchState, _ now: Instant) {
        // A relaunch into the foreground continues what a user asked for (L53).
        let isFree = state == .foreground && isSlotFree(index) && !absence.isAway
        let available = isFree ? now : unrequestedTimeAvailable(index, now) ?? now
        let at = max(now, apps[index].postponedUntil ?? now, available)
        let id = apps[index].id
        report(.relaunchScheduled(id, after: at - now, deaths: apps[index].earlyEnds))
        apps[index].life = .notRunning(NotRunning(relaunch: .init(at: at, state: state)))
        if at <= now { relaunchDue(index, now) }
    }

    /// A relaunch does not displace an app that a user has activated meanwhile.
    mutating func relaunchDue(_ index: AppIndex, _ now: Instant) {
        guard case .notRunning(let notRunning) = apps[index].life, let relaunch = notRunning.relaunch else {
            return
        }
        // A shutdown has not come to this app yet.
        guard shutdown == nil else { return apps[index].life = .notRunning(NotRunning()) }
        if isUnneededHome(index, relaunch) { return apps[index].life = .notRunning(NotRunning()) }
        if apps[index].isTaken { return awaitMemory(index, relaunch.state, now) }
        self.relaunch(index, into: relaunch.state, now)
    }

    /// Launches an app that is to run again, or postpones that until it has background time for it (L53).
    mutating func relaunch(_ index: AppIndex, into planned: LaunchState, _ now: Instant) {
        let wanted = apps[index].policy.reached(from: planned)
        let state: LaunchState = wanted == .foreground && isSlotFree(index) ? .foreground : .background
        // While the user is away, an app in the foreground is in the background (L15).
        if state == .background || absence.isAway, let available = unrequestedTimeAvailable(index, now) {
            apps[index].life = .notRunning(NotRunning(relaunch: .init(at: available, state: wanted)))
            return report(
                .relaunchScheduled(apps[index].id, after: available - now, deaths: apps[index].earlyEnds))
        }
        launch(index, Launch(state: state, reason: .relaunch, isUnrequested: true), isRequested: false, now)
    }

    /// Processes survive SIGKILL: reports it, sends SIGKILL again (the app may have forked).
    mutating func endTakesLong(_ index: AppIndex, _ now: Instant) {
        guard var ending = apps[index].ending else { return }
        ending.warnAt = now + min(Self.longestKillTimeout, max(Self.killTimeout, now - ending.start))
        // Without a process left there is nothing to kill: only the exit status is still to be reported.
        if ending.remains != .exitStatus {
            report(.killTakesLong(apps[index].id))
            effects.append(.run(ending.run.id, .kill))
        }
        change(index, to: .ending(ending), .ended, now)
    }
}

extension TerminationCause {
    var reason: StateReason {
        switch self {
        case .requested: .requested
        case .exitsOnSuspend: .exitsOnSuspend
        case .unloaded: .unloaded
        case .shutdown: .shutdown
        case .selfInitiated: .ended
        case .jetsam: .jetsam
        }
    }
}
