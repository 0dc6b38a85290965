/// A daemon that died was replaced, and this core is what the dead one's was. What it had decided stands; what it was about
/// to hear is asked for again.
extension LifecycleCore {
    /// Once, before anything else: whoever waited for an answer went with the daemon, and so did an end of the house that was
    /// under way.
    mutating func recovered(_ now: Instant) {
        for slot in apps.indices { self[app: slot].waiters = [] }
        requests = [:]
        shutdown = nil
        // Who would have told that the machine is awake again told nobody.
        awoke(now)
        if memoryState.isMeasuring {
            memoryState.isMeasuring = false
            measureMemory()
        }
    }

    /// A run was found again. `isHeard`: what it said meanwhile was kept; else it may have answered, and nobody was there.
    /// `isLate`: it was told of its state only now.
    mutating func reattached(_ slot: Int, _ isHeard: Bool, _ isLate: Bool, _ now: Instant) {
        let id = self[run: slot].id
        if !isHeard { giveBenefitOfDoubt(slot, now) }
        if isLate { giveAllItsTime(slot, now) }
        giveTimeForNotice(slot, now)
        switch self[app: slot].phase {
        case .suspending(var suspending):
            suspending.giveUpAt = now + Self.freezeLimit
            self[app: slot].phase = .suspending(suspending)
            effects.append(.freeze(id, attempt: self[run: slot].freezeAttempt))
        case .waking(var waking):
            // Nobody thawed it: that is not the app's fault.
            waking.deadline?.start = now
            waking.deadline?.isInspected = false
            self[app: slot].phase = .waking(waking)
            report(.deadlineDeferred(self[app: slot].id, .resume))
            effects.append(.thaw(id, attempt: self[run: slot].freezeAttempt))
        case .ending(let ending): if ending.wasKilled { effects.append(.kill(id)) }
        case .launching, .foreground, .entering, .running, .suspended, .terminating, .notRunning: break
        }
        if lookedInto(slot) != nil { effects.append(.inspect(id)) }
    }

    /// Nobody has to answer before he was asked: deadlines that begin with what the app is told begin now.
    private mutating func giveAllItsTime(_ slot: Int, _ now: Instant) {
        let phase = self[app: slot].phase
        switch phase {
        case .launching, .terminating: deferDeadline(slot, phaseDeadline(phase), to: now)
        case .entering:
            deferDeadline(slot, phaseDeadline(phase), to: now)
            deferDeadline(slot, self[run: slot].backgroundTime, to: now)
        case .notRunning, .foreground, .running, .suspending, .suspended, .waking, .ending: break
        }
        deferDeadline(slot, self[run: slot].wake?.deadline, to: now)
    }

    /// L22: the end of a budget is announced before it comes, also where its time has come while no daemon was there.
    private mutating func giveTimeForNotice(_ slot: Int, _ now: Instant) {
        guard let time = self[run: slot].backgroundTime else { return }
        let notice = min(self[app: slot].policy.expirationNotice, time.allowed)
        guard time.remaining(at: now) < notice else { return }
        deferDeadline(slot, time, to: now + (notice - time.allowed))
    }

    private mutating func deferDeadline(_ slot: Int, _ deadline: Deadline?, to start: Instant) {
        guard var anew = deadline, anew.start < start else { return }
        anew.start = start
        anew.isInspected = false
        replace(slot, anew, by: anew)
        report(.deadlineDeferred(self[app: slot].id, anew.kind))
    }

    /// What the app can only have said into the void is not held against it: an answer counts as given when its time is
    /// over, and a task as ended.
    private mutating func giveBenefitOfDoubt(_ slot: Int, _ now: Instant) {
        switch self[app: slot].phase {
        case .launching(var launching):
            launching.deadline = inDoubt(slot, launching.deadline, .launch, now)
            self[app: slot].phase = .launching(launching)
        case .entering(var entering):
            entering.deadline = inDoubt(slot, entering.deadline, .background, now)
            self[app: slot].phase = .entering(entering)
        case .foreground(var foreground):
            if foreground.watchdog != nil {
                foreground.watchdog?.start = now
                foreground.watchdog?.isInspected = false
                report(.deadlineDeferred(self[app: slot].id, .watchdog))
            }
            self[app: slot].phase = .foreground(foreground)
        // Who is frozen can't have said anything.
        case .suspended, .ending, .notRunning: return
        case .running, .suspending, .waking, .terminating: break
        }
        self[run: slot].wake?.deadline.isDoubtful = true
        let hasBudget = self[run: slot].backgroundTime != nil || willHaveBudget(slot)
        let end = hasBudget ? nil : now + Self.longestDoubt
        for index in self[run: slot].tasks.indices {
            self[run: slot].tasks[index].isDoubtful = true
            // Without a budget nothing else would ever end it.
            if self[run: slot].tasks[index].end == nil { self[run: slot].tasks[index].end = end }
        }
    }

    private func willHaveBudget(_ slot: Int) -> Bool {
        switch self[app: slot].phase {
        case .launching, .foreground: self[app: slot].policy.backgroundTime != nil
        case .notRunning, .entering, .running, .suspending, .suspended, .waking, .terminating, .ending: false
        }
    }

    /// Who has all the time there is may have answered all the same: then it is taken for that after a while.
    private mutating func inDoubt(
        _ slot: Int, _ deadline: Deadline?, _ kind: DeadlineKind, _ now: Instant
    ) -> Deadline? {
        var deadline = deadline ?? begin(slot, kind, Self.longestDoubt, now)
        deadline?.isDoubtful = true
        return deadline
    }

    /// How long what has no end of its own is waited for after it may have ended unheard: as long as a budget is.
    private static let longestDoubt = Duration.seconds(30)

    /// The time is over of something that the app may have answered while nobody listened.
    mutating func assumeAnswered(_ slot: Int, _ kind: DeadlineKind, _ now: Instant) {
        switch kind {
        case .launch: becameReady(slot, now)
        case .background: answeredBackground(slot, now)
        case .wake:
            endWake(slot)
            assertionEnded(slot, now)
        case .backgroundTime, .watchdog, .terminate, .resume: preconditionFailure("\(kind) is never in doubt")
        }
    }

    /// The budget is over: tasks that may have ended unheard are taken for ended. Whether any other is left.
    mutating func dropDoubtfulTasks(_ slot: Int) -> Bool {
        while let index = self[run: slot].tasks.firstIndex(where: \.isDoubtful) {
            report(.taskEnded(self[app: slot].id, name: self[run: slot].tasks.remove(at: index).name))
        }
        return !self[run: slot].tasks.isEmpty
    }

    /// Runs that are not over, in order.
    package var runIDs: [RunID] { runs.keys.sorted() }

    /// Whether the house is coming to its end.
    package var isShuttingDown: Bool { shutdown != nil }

    package func pid(of run: RunID) -> Int32? { runs[run].flatMap { self[app: $0].run?.pid } }

    /// Whether the main process of a run has ended, as far as the core knows.
    package func hasExited(_ run: RunID) -> Bool {
        guard let slot = runs[run], case .ending(let ending) = self[app: slot].phase else { return false }
        return ending.receipt != nil
    }

    /// Whether a run was told that it is in the background, and has not answered.
    package func isEntering(_ run: RunID) -> Bool {
        guard let slot = runs[run], case .entering = self[app: slot].phase else { return false }
        return true
    }

    /// Whether a run is frozen, and the core knows.
    package func isSuspended(_ run: RunID) -> Bool {
        guard let slot = runs[run] else { return false }
        switch self[app: slot].phase {
        case .suspended: return true
        case .notRunning, .launching, .foreground, .entering, .running, .suspending, .waking, .terminating, .ending:
            return false
        }
    }
}
