import LifecycleCore

/// Performs the effects of the core, or refuses an effect that is invalid for the events that the core has received. An
/// effect that crosses an undelivered event is valid and does nothing.
extension World {
    /// - Returns: why the effect is invalid, as a sentence; `nil`: it was performed.
    mutating func perform(_ effect: Effect) -> String? {
        switch effect {
        case .spawn(let app, let run, let launch): return performSpawn(app, run, launch)
        case .recordLaunch(let app, let count): return performRecord(app, count)
        case .measureMemory:
            if isMeasuring { return "a measurement is requested while one is in progress" }
            measure()
            return nil
        case .allowSleep: return performSleep()
        case .finish: return performFinish()
        case .run(let id, let effect):
            guard let run = index(of: id) else { return "there is no run \(id)" }
            if let problem = problem(effect, for: runs[run]) ?? watchProblem(effect, for: run)
                ?? reclaimProblem(effect, for: run)
            {
                return "\(problem) (run \(id))"
            }
            perform(effect, on: run)
            return nil
        case .sockets, .removeInstance: return performSockets(effect)
        case .report(.stateChanged(let id, _, let state, _)):
            notifyProvider(id, state)
            return nil
        case .writeReceipt, .dropRestorationState, .identify, .answer, .report, .scheduleTimers: return nil
        case .subscribe(let id, let kinds):
            if let app = indexes[id] { subscribed(app, kinds) }
            return nil
        }
    }

    /// Checks the effects of one event together.
    mutating func problemAfterEffects() -> String? {
        if deliveredWhileFrozen.isEmpty { return nil }
        defer { deliveredWhileFrozen = [] }
        guard let run = deliveredWhileFrozen.first(where: { runs[$0].isAskedToFreeze }) else { return nil }
        return "notices or notifications are delivered to a frozen run that is not thawed (run \(runs[run].id))"
    }

    private func problem(_ effect: RunEffect, for run: FakeRun) -> String? {
        let delivered = run.delivered
        if delivered.isOver { return "the run is over" }
        switch effect {
        case .notify(let notice):
            if delivered.isEnding { return "\(notice) is sent to a run that has ended" }
            if run.killedAt != nil { return "\(notice) is sent to a run that was killed" }
            // Of its scenes it reads when it is thawed in the same event.
            if notice.isOfScene { return nil }
            if run.isAskedToFreeze { return "\(notice) is sent to a frozen run" }
        case .hook(.run(_, let number)):
            if delivered.isEnding || run.killedAt != nil { return "a hook is run for a run that has ended" }
            if run.isAskedToFreeze { return "a hook is run in a frozen group" }
            if number <= run.lastHook { return "hook \(number) comes after hook \(run.lastHook)" }
        case .hook(.kill(let number)):
            if number != run.lastHook { return "hook \(number) is killed, which does not run" }
        case .suspension(.freeze(let attempt)):
            if delivered.isEnding || run.killedAt != nil { return "a run that has ended is frozen" }
            if run.isAskedToFreeze { return "a frozen run is frozen again" }
            if attempt <= run.attempt { return "freeze \(attempt) comes after freeze \(run.attempt)" }
        case .suspension(.thaw(let attempt)):
            if !run.isAskedToFreeze { return "a run that is not frozen is thawed" }
            if attempt != run.attempt { return "thaw \(attempt) comes after freeze \(run.attempt)" }
        case .kill:
            if let killed = run.killedAt, now - killed < 5 * .second { return "the run is killed twice within 5 s" }
        case .deadline(.inspect) where delivered.hasExited && run.killedAt == nil,
            .memory(.measureSize) where delivered.hasExited && run.killedAt == nil:
            if delivered.isEmptied { return "a run without processes is inspected" }
        case .deadline, .continueStopped, .processor, .deliver, .traffic(.watchInput), .traffic(.measureWork),
            .memory(.setOOMClass),
            .memory(.measureSize), .memory(.bringBack):
            if delivered.isEnding || run.killedAt != nil { return "\(effect.verb) applies to a run that has ended" }
        // A message may come after the exit of the main process.
        case .warn, .traffic(.stopWatchingInput), .memory(.reclaim), .memory(.stopReclaim): break
        }
        return nil
    }

    /// A watch that was lost with a daemon can be asked for again, and can end.
    private func watchProblem(_ effect: RunEffect, for run: Int) -> String? {
        let watch = traffic.runs[run].watch
        switch effect {
        case .traffic(.watchInput): return watch.map(\.isLost) ?? true ? nil : "a watched run is watched again"
        case .traffic(.stopWatchingInput): return watch == nil ? "the watch of a run that is not watched ends" : nil
        default: return nil
        }
    }

    /// Memory is pushed out of one run at a time, which is frozen until that has ended (L37).
    private func reclaimProblem(_ effect: RunEffect, for run: Int) -> String? {
        switch effect {
        case .memory(.reclaim(let attempt, _)):
            if reclaiming != nil { return "memory is pushed out of two runs at a time" }
            // A process outside the daemon may just have continued it.
            let isFrozen = runs[run].isAskedToFreeze && runs[run].attempt == attempt
            return isFrozen ? nil : "memory is pushed out of a run that is not frozen"
        // It may just have ended by itself.
        case .memory(.stopReclaim):
            return reclaiming ?? run == run ? nil : "another reclaim is stopped than the one under way"
        case .memory(.bringBack): return runs[run].isAskedToFreeze ? "pages are read of a run that is not thawed" : nil
        case .suspension(.thaw), .kill:
            return reclaiming == run ? "memory is pushed out of a run that is thawed or killed" : nil
        default: return nil
        }
    }

    private mutating func perform(_ effect: RunEffect, on run: Int) {
        switch effect {
        case .notify(let notice): notify(run, notice)
        case .suspension(.freeze(let attempt)): freeze(run, attempt)
        case .suspension(.thaw(let attempt)): thaw(run, attempt)
        case .continueStopped: continueStopped(run)
        case .deadline(.inspect): inspect(run)
        case .deadline(.measureActivity(let listeners)): measureActivity(run, listeners: listeners)
        case .traffic(.watchInput(let attempt, let onlyPeers)): watchInput(run, attempt, onlyPeers: onlyPeers)
        case .traffic(.stopWatchingInput): stopWatchingInput(run)
        case .memory(.reclaim(let attempt, let bytes)):
            reclaiming = run
            schedule(
                .reclaimEnds(attempt: attempt, bytes: bytes), for: run,
                after: reclaimRandom.within(10 * .millisecond...5 * .second))
        case .memory(.stopReclaim): reclaiming = nil
        case .traffic(.measureWork(let kind)): measureWork(run, kind)
        case .processor(.measure): measureProcessor(run)
        case .processor(.limit(let limit)): limitProcessor(run, limit)
        case .memory(.measureSize):
            let sizes = RunEvent.memory(
                .sizeMeasured(bytes: runs[run].memory, estimate: runs[run].estimate ?? runs[run].memory))
            deliver(.run(runs[run].id, sizes), after: footprintRandom.within(1 * .millisecond...500 * .millisecond))
        case .kill: kill(run)
        case .hook(.run(let hook, let number)): runHook(hook, number, of: run)
        // No app of the simulation is forbidden to use a GPU.
        case .hook(.kill), .processor(.watchGPU): break
        case .memory(.bringBack): break
        case .processor(.throttle): runs[run].isThrottled = true
        case .processor(.unthrottle): runs[run].isThrottled = false
        case .memory(.setOOMClass(let oomClass)): runs[run].oomClass = oomClass
        case .deliver(let notifications): receiveNotifications(run, notifications)
        case .warn: break
        }
    }

    private mutating func performSpawn(_ id: AppID, _ runID: RunID, _ launch: Launch) -> String? {
        guard let app = indexes[id] else { return "an unknown app is spawned: \(id)" }
        guard runID.number == scenario.firstRun + UInt64(runs.count) else { return "run \(runID) is out of sequence" }
        if let last = apps[app].run, !runs[last].delivered.isOver {
            return "\(id) is spawned while run \(runs[last].id) is not over"
        }
        if isShuttingDown { return "\(id) is spawned during a shutdown" }
        if launch.isFirst != (apps[app].launches == 0) {
            return "\(id)'s launch has the wrong value for the first launch (L9)"
        }
        let pid = Int32(truncatingIfNeeded: 1000 + runs.count % 30_000)
        spawn(
            FakeRun(
                id: runID, app: app, pid: pid, launch: launch,
                isAware: apps[app].personality.isAware && !traffic.isServer(app),
                readiness: apps[app].knownReadiness))
        return nil
    }

    private mutating func performRecord(_ id: AppID, _ count: Int) -> String? {
        guard let app = indexes[id] else { return "a launch of an unknown app is recorded: \(id)" }
        guard count == apps[app].launches + 1 else {
            return "launch \(count) of \(id) is recorded after launch \(apps[app].launches)"
        }
        switch apps[app].run.map({ runs[$0].program }) {
        case .notCreated, .created, nil: return "a launch of \(id) is recorded before its program is executed (L9)"
        case .running, .ended: break
        }
        apps[app].launches = count
        return nil
    }

    private mutating func performFinish() -> String? {
        if isFinished { return "finished twice" }
        if !isShuttingDown { return "finished without having been asked to shut down" }
        isFinished = true
        if let run = runs.last(where: { !$0.isEmpty }) { return "finished while run \(run.id) has processes" }
        return nil
    }

    // MARK: Signals and inspections

    private mutating func notify(_ run: Int, _ notice: Notice) {
        if notice.isOfScene, runs[run].isAskedToFreeze { deliveredWhileFrozen.append(run) }
        let isDelivered: Bool
        switch runs[run].program {
        case .notCreated: isDelivered = false
        case .created, .running: isDelivered = runs[run].isAware || notice == .willTerminate
        // A zombie accepts signals; a reaped process does not.
        case .ended: isDelivered = kernelRandom.chance(500)
        }
        if notice.isAnswered {
            let extraDelay = injects(.notifiedLate) ? kernelRandom.within(0...3 * .second) : 0
            deliver(
                .run(runs[run].id, .transition(.notified(notice, delivered: isDelivered, cpu: cpu(of: run)))),
                after: kernelRandom.within(0...300) + extraDelay)
        }
        if !isDelivered { return }
        if notice == .willTerminate { terminateChildren(run) }
        switch runs[run].program {
        case .created: runs[run].isNotifiedBeforeExec = true
        case .running: receive(run, notice)
        case .notCreated, .ended: break
        }
    }

    /// SIGTERM to the processes beside the main process (`KillMode=control-group`): some end soon, some at the deadline,
    /// some not at all.
    private mutating func terminateChildren(_ run: Int) {
        let policy = apps[runs[run].app].policy
        guard runs[run].children > 0, policy.killMode == .controlGroup else { return }
        let limit = policy.terminateDeadline?.microseconds ?? 10 * .second
        switch childRandom.below(4) {
        case 0 where !isQuiet && policy.terminateDeadline != nil: break
        case 1: schedule(.childrenEnd, for: run, after: childRandom.within(0...limit))
        case 2: schedule(.childrenEnd, for: run, after: limit)
        default: schedule(.childrenEnd, for: run, after: childRandom.within(0...100 * .millisecond))
        }
    }

    private mutating func inspect(_ run: Int) {
        let extraDelay = injects(.inspectedLate) ? kernelRandom.within(0...2 * .second) : 0
        if runs[run].tracedInspectionsLeft == 0, injects(.traced) {
            runs[run].tracedInspectionsLeft = 1 + kernelRandom.below(3)
        }
        let isTraced = runs[run].tracedInspectionsLeft > 0
        if isTraced { runs[run].tracedInspectionsLeft -= 1 }
        let inspection = Inspection(
            traced: isTraced, cpu: cpu(of: run), memory: runs[run].memory,
            remaining: runs[run].program == .ended ? runs[run].remaining : nil, waited: waitedTime(run))
        lateness += extraDelay
        reportListener(run)
        let time = max(now + kernelRandom.within(5...1000) + extraDelay, runs[run].lastMessage)
        runs[run].lastInspection = max(runs[run].lastInspection, time)
        runs[run].pendingInspections += 1
        queue.push(.deliver(.run(runs[run].id, .deadline(.inspected(inspection)))), at: time)
    }

    private mutating func continueStopped(_ run: Int) {
        guard runs[run].isStopped else { return }
        runs[run].isStopped = false
        if runs[run].freezer != .frozen { send(run, .run(runs[run].id, .process(.continued))) }
        performDeferred(run)
    }

    private mutating func receiveNotifications(_ run: Int, _ notifications: [Notification]) {
        if runs[run].isAskedToFreeze { deliveredWhileFrozen.append(run) }
        let pushes = notifications.filter { $0.kind == Notification.push }
        let delayed = delayedPushes(run, pushes)
        runs[run].pushes += pushes.map(\.id).filter { !delayed.contains($0) }
        for wake in delayed { deliver(.run(runs[run].id, .wake(.notificationDelayed(wake: wake))), after: 0) }
        if !delayed.isEmpty { runs[run].hasUnread = true }
        runs[run].unread.formUnion(delayed)
        // Also for those that it cannot read, so that the random stream of the app stays the same.
        if !pushes.isEmpty { planWake(run) }
    }

    /// The pushes whose files cannot be written, because the file system is full: every second one in some seeds.
    private mutating func delayedPushes(_ run: Int, _ pushes: [Notification]) -> [UInt64] {
        let delayed = pushes.map(\.id).filter { ($0 + runs[run].id.number) % 2 == 0 }
        return !delayed.isEmpty && allows(.inboxFull) ? delayed : []
    }
}

extension RunEffect {
    /// The name of the effect, for messages.
    var verb: String {
        let whole = String(describing: self)
        return String(whole.prefix { $0 != "(" })
    }
}
