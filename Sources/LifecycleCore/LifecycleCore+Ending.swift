/// The ways out, and what comes after them (L11, L20, L40, L42, L45 … L47).
extension LifecycleCore {
    /// After SIGKILL: how long until it is said that something of the app is still there, and until jetsam stops waiting
    /// for its memory.
    static let killLimit = Duration.seconds(5)
    static let longestKillLimit = Duration.seconds(60)
    /// L11: so many deaths in launch in a row are blamed on the restoration state, whoever launches.
    static let tolerableLaunchDeaths = 2

    /// L46: will-terminate, for an app that runs.
    mutating func terminate(_ slot: Int, _ cause: TerminationCause, _ now: Instant) {
        let from = self[app: slot].phase.state
        cancelDeadlines(slot)
        leavePlace(slot)
        self[run: slot].tasks = []
        // Five seconds are five seconds: it gets all of the processor for them.
        unthrottle(slot)
        if cause != .selfInitiated {
            effects.append(.notify(self[run: slot].id, .willTerminate))
            continueIfStopped(slot)
        }
        let deadline = begin(slot, .terminate, self[app: slot].policy.terminateDeadline, now)
        let terminating = Terminating(cause: cause, from: from, deadline: deadline)
        move(slot, to: .terminating(terminating), cause.reason, now)
    }

    /// There was nobody to tell yet, or no more: there is nothing to wait for, and nobody to blame.
    mutating func terminationUndelivered(_ slot: Int, _ now: Instant) {
        guard case .terminating(let terminating) = self[app: slot].phase else { return }
        switch terminating.cause {
        case .selfInitiated: break
        case .requested, .exitsOnSuspend: kill(slot, .terminatedWithoutNotice, terminating.cause.reason, now)
        case .shutdown: kill(slot, .shutdown, .shutdown, now)
        case .jetsam(let memory, let candidates):
            memoryState.awaitsMeasure = true
            kill(slot, .jetsam(memory, candidates), .jetsam, now)
        }
    }

    /// `STOPPING=1`: it ends itself, and has as long as if it had been told to.
    mutating func stopping(_ slot: Int, _ now: Instant) {
        switch self[app: slot].phase {
        case .launching, .foreground, .entering, .running:
            supersedeAll(slot)
            terminate(slot, .selfInitiated, now)
        case .notRunning, .suspending, .suspended, .waking, .terminating, .ending: break
        }
    }

    /// SIGKILL to everything of the run.
    mutating func kill(_ slot: Int, _ cause: KillCause, _ reason: StateReason, _ now: Instant) {
        var ending = makeEnding(slot, cause, now)
        ending.wasKilled = true
        effects.append(.kill(self[run: slot].id))
        move(slot, to: .ending(ending), reason, now)
    }

    /// The end of the run begins: nothing of what it had counts any more.
    private mutating func makeEnding(_ slot: Int, _ cause: KillCause?, _ now: Instant) -> Ending {
        let phase = self[app: slot].phase
        cancelDeadlines(slot)
        self[run: slot].tasks = []
        var ending = Ending(cause: cause, from: phase.state, start: now, complainAt: now + Self.killLimit)
        if hasPlace(slot) { ending.relaunch = .foreground }
        if case .terminating(let terminating) = phase {
            ending.from = terminating.from
            ending.next = terminating.next
        }
        if ending.next?.state != .foreground { leavePlace(slot) }
        return ending
    }

    // MARK: The outcomes

    mutating func exited(_ slot: Int, _ status: ExitStatus, _ cpu: Duration, _ memory: UInt64, _ now: Instant) {
        endRun(slot, status, cpu: cpu, peak: memory, now, explanation: nil)
        guard case .ending(let ending) = self[app: slot].phase else { return }
        if ending.isEmptied { finishRun(slot, ending, now) }
    }

    /// The main process has ended, or never came to be: the receipt, and whatever else is left of the app is killed (L47).
    mutating func endRun(
        _ slot: Int, _ status: ExitStatus, cpu: Duration, peak: UInt64, _ now: Instant, explanation: String?
    ) {
        let phase = self[app: slot].phase
        if case .ending(let ending) = phase, ending.receipt != nil { return }
        let receipt = makeReceipt(slot, phase, status, cpu: cpu, peak: peak, now, explanation: explanation)
        var ending = if case .ending(let ending) = phase { ending } else { makeEnding(slot, nil, now) }
        ending.receipt = receipt
        noteEnd(slot, phase, receipt, &ending, now)
        if !ending.wasKilled, !ending.isEmptied, explanation == nil {
            ending.wasKilled = true
            effects.append(.kill(self[run: slot].id))
        }
        self[app: slot].lastReceipt = receipt.id
        effects.append(.writeReceipt(receipt))
        report(.ended(receipt))
        move(slot, to: .ending(ending), .ended, now)
        answerAll(slot, .ended(receipt)) { $0.goal != .ended && !$0.isAfterEnd }
    }

    /// L11: ends that come early hold automatic launches back.
    private mutating func noteEnd(
        _ slot: Int, _ phase: Phase, _ receipt: Receipt, _ ending: inout Ending, _ now: Instant
    ) {
        let policy = self[app: slot].policy
        // Whoever ended it: this launch had succeeded, and what it was given for it is not to blame.
        if receipt.state != .launching { self[app: slot].launchDeaths = 0 }
        guard isOwnDoing(phase) else {
            ending.relaunch = nil
            self[app: slot].earlyEnds = 0
            return
        }
        // Where nobody tells how it ended, it failed if it was killed for something (as systemd has it of main processes
        // that are no children of its own).
        let hasFailed = receipt.exit == .unknown ? receipt.namespace != .exit : receipt.exit != .exited(0)
        let isFailure = hasFailed || receipt.state == .launching
        let isEarly = receipt.state == .launching || now - self[run: slot].created < Self.earlyEnd
        if isEarly, isFailure || policy.relaunch == .always {
            self[app: slot].earlyEnds += 1
            self[app: slot].postponedUntil = now + postponement(self[app: slot].earlyEnds)
        } else {
            self[app: slot].earlyEnds = 0
            self[app: slot].postponedUntil = nil
        }
        if receipt.state == .launching {
            self[app: slot].launchDeaths += 1
            if self[app: slot].launchDeaths >= Self.tolerableLaunchDeaths {
                effects.append(.dropRestorationState(self[app: slot].id))
            }
        }
        let wanted = policy.relaunch == .always || (policy.relaunch == .onFailure && isFailure)
        let isAllowed = shutdown == nil && !self[run: slot].isEndWanted
        ending.relaunch = wanted && isAllowed ? (ending.relaunch ?? .background) : nil
    }

    /// Whether the app itself brought its end about, by what it did or failed to do.
    private func isOwnDoing(_ phase: Phase) -> Bool {
        switch phase {
        case .notRunning, .launching, .foreground, .entering, .running, .suspending, .suspended, .waking: true
        case .terminating(let terminating): terminating.cause == .selfInitiated
        case .ending(let ending):
            switch ending.cause {
            case .missedDeadline, .leakedTasks, .wakeNotCompleted, .tooManyTasks, nil: true
            case .terminationIgnored(let cause, _): cause == .selfInitiated
            case .removed, .terminatedWithoutNotice, .shutdown, .jetsam: false
            }
        }
    }

    private func postponement(_ ends: Int) -> Duration {
        var time = Self.firstPostponement
        for _ in 1..<max(2, min(ends, 10)) where ends > 1 { time *= 2 }
        return min(time, Self.longestPostponement)
    }

    mutating func emptied(_ slot: Int, _ now: Instant) {
        switch self[app: slot].phase {
        case .ending(var ending):
            ending.isEmptied = true
            self[app: slot].phase = .ending(ending)
            if ending.receipt != nil { finishRun(slot, ending, now) }
        case .launching, .foreground, .entering, .running, .suspending, .suspended, .waking, .terminating:
            // All has ended at once; how the main process did is still to come.
            let phase = self[app: slot].phase
            var ending = makeEnding(slot, nil, now)
            ending.isEmptied = true
            if case .terminating(let terminating) = phase { ending.termination = terminating.cause }
            move(slot, to: .ending(ending), .ended, now)
        case .notRunning: break
        }
    }

    /// Nothing of the run is left.
    private mutating func finishRun(_ slot: Int, _ ending: Ending, _ now: Instant) {
        setMemory(slot, 0)
        if let run = self[app: slot].run { runs[run.id] = nil }
        self[app: slot].run = nil
        self[app: slot].notifications.reset()
        move(slot, to: .notRunning(NotRunning()), .ended, now)
        if let receipt = ending.receipt { answerAll(slot, .ended(receipt)) { $0.goal == .ended } }
        memoryCameBack(now)
        if !self[app: slot].isRegistered { return forget(slot) }
        if shutdown != nil { return leavePlace(slot) }
        if let next = ending.next {
            if let time = heldBack(slot, next, now) {
                leavePlace(slot)
                return answerAll(slot, .refused(.launchPostponed(by: time))) { $0.isAfterEnd }
            }
            for index in self[app: slot].waiters.indices { self[app: slot].waiters[index].isAfterEnd = false }
            launchAsAsked(slot, next, now)
        } else if let state = ending.relaunch {
            scheduleRelaunch(slot, state, now)
        }
    }

    private mutating func scheduleRelaunch(_ slot: Int, _ state: LaunchState, _ now: Instant) {
        let at = max(now, self[app: slot].postponedUntil ?? now)
        let id = self[app: slot].id
        report(.relaunchScheduled(id, after: at - now, deaths: self[app: slot].earlyEnds))
        self[app: slot].phase = .notRunning(NotRunning(relaunch: .init(at: at, state: state)))
        if at <= now { relaunchDue(slot, now) }
    }

    /// Who has taken the foreground meanwhile keeps it: nobody asked for the app that comes back.
    mutating func relaunchDue(_ slot: Int, _ now: Instant) {
        guard case .notRunning(let notRunning) = self[app: slot].phase, let relaunch = notRunning.relaunch else {
            return
        }
        let hasRoom = foregroundPlaces.count < foregroundLimit
        let state: LaunchState = relaunch.state == .foreground && hasRoom ? .foreground : .background
        launch(slot, Launch(state: state, reason: .relaunch), now)
    }

    /// Something of it can't be killed yet: say so, send SIGKILL again (it may have forked on), and let jetsam go on.
    mutating func endingTakesLong(_ slot: Int, _ now: Instant) {
        guard case .ending(var ending) = self[app: slot].phase else { return }
        ending.complainAt = now + min(Self.longestKillLimit, max(Self.killLimit, now - ending.start))
        ending.isOverdue = true
        report(.killTakesLong(self[app: slot].id))
        effects.append(.kill(self[run: slot].id))
        move(slot, to: .ending(ending), .ended, now)
        if memoryState.awaitsMeasure { measureMemory() } else { evaluateMemory(now) }
    }

    // MARK: The end of the house

    mutating func shutdownRequested(_ immediately: Bool, _ now: Instant) {
        if shutdown == nil { shutdown = Shutdown() }
        for slot in apps.indices where !apps[slot].isForgotten {
            touch(slot)
            supersedeAll(slot)
            end(slot, immediately, now)
        }
    }

    private mutating func end(_ slot: Int, _ immediately: Bool, _ now: Instant) {
        switch self[app: slot].phase {
        case .notRunning: self[app: slot].phase = .notRunning(NotRunning())
        case .launching, .foreground, .entering, .running, .waking:
            if immediately { kill(slot, .shutdown, .shutdown, now) } else { terminate(slot, .shutdown, now) }
        case .suspending, .suspended: kill(slot, .shutdown, .shutdown, now)
        case .terminating:
            setNext(slot, nil)
            if immediately { kill(slot, .shutdown, .shutdown, now) }
        case .ending: setNext(slot, nil)
        }
        leavePlace(slot)
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
