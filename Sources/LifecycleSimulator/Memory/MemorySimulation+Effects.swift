import LifecycleCore

/// Carries out the effects of the core, and checks its kills.
extension MemorySimulation {
    /// What was true before an event, for the checks of the kills in it.
    private struct Before {
        let states: [AppState]
        let areLaunchedToFront: [Bool]
        /// What is available, and what comes back from runs that were killed before.
        var available: Int
        var onItsWay: Int
        let isAvailableShort: Bool
    }

    mutating func handle(_ event: Event) {
        outcome.events += 1
        let effects = core.handle(event, at: Instant(now))
        guard !effects.isEmpty else { return }
        var before: Before?
        for effect in effects {
            // What was true before the first kill was true before the event.
            if case .run(_, .kill) = effect, before == nil { before = state(before: event) }
            perform(effect)
            guard case .report(.stateChanged(let id, _, let state, let reason)) = effect, let app = indexes[id] else {
                continue
            }
            if reason == .jetsam, state == .terminating {
                var known = before ?? self.state(before: event)
                checkVictim(app, &known)
                before = known
            }
            states[app] = state
        }
    }

    private func state(before event: Event) -> Before {
        Before(
            states: states, areLaunchedToFront: isLaunchedToFront, available: machine.available, onItsWay: onItsWay,
            isAvailableShort: isShort(event))
    }

    /// Whether this is a measurement by which too little is available.
    private func isShort(_ event: Event) -> Bool {
        guard case .memory(.measured(let reading)) = event else { return false }
        let available = reading.limit?.available ?? reading.available
        return available < max(UInt64(criticalBytes), 64 << 20)
    }

    /// Memory of runs that is not free yet, of which the core knows that they end.
    private var onItsWay: Int {
        processes.reduce(0) { sum, process in
            guard let process, process.endsAt != nil, !process.isKilledByKernel else { return sum }
            // Longer than that the core does not count on it (L39).
            let time = Microseconds(1 + process.size >> 30) * 100 * Microseconds.millisecond
            guard now - process.killedAt < time else { return sum }
            return sum + machine.givenBack(resident: process.resident, swapped: process.swapped)
        }
    }

    /// On the way to the foreground counts as in the foreground.
    private static func isInFront(_ state: AppState, _ isLaunchedToFront: Bool) -> Bool {
        switch state {
        case .active, .inactive: true
        case .launching: isLaunchedToFront
        case .notRunning, .background, .suspended, .terminating: false
        }
    }

    // MARK: Kills

    /// An app was killed for memory, or notified of its end.
    private mutating func checkVictim(_ app: Int, _ before: inout Before) {
        guard let process = processes[app] else { return }
        let name = "\(scenario.apps[app].id), \(before.states[app]), at \(now / 1000) ms"
        let size = machine.givenBack(resident: process.resident, swapped: process.swapped)
        let total = scenario.hardware.total
        let enough = max(criticalBytes, 64 << 20) + fastestFill
        let wasFront = Self.isInFront(before.states[app], before.areLaunchedToFront[app])
        let hasSpace = before.available + before.onItsWay > warningBytes + fastestFill
        outcome.kills += 1
        if let budget = scenario.budget { return checkBudgetVictim(app, budget, before.states[app]) }
        victims.append((app, process.size, now, hasSpace))
        let survivor = states.indices.first {
            $0 != app && states[$0] == .suspended && processes[$0] != nil && processes[$0]?.endsAt == nil
        }
        outcome.check(
            !wasFront || survivor == nil, .foregroundOutlivesSuspended,
            "\(name), is killed while \(survivor.map { "\(scenario.apps[$0].id)" } ?? "") is suspended")
        outcome.check(
            before.available <= total / 4, .noKillsInPlenty,
            "\(name), is killed while \(before.available >> 20) of \(total >> 20) MiB are available")
        outcome.check(
            !hasSpace, .killsNeedScarcity,
            "\(name), is killed while \(before.available >> 20) MiB are available and \(before.onItsWay >> 20) come back, of"
                + " \(total >> 20)")
        outcome.check(
            !before.isAvailableShort || before.available + before.onItsWay < enough, .lastVictimWasNecessary,
            "\(name), is killed although \(before.available >> 20) MiB are available and \(before.onItsWay >> 20) come back;"
                + " \(enough >> 20) are enough")
        before.onItsWay += size
    }

    /// What apps and other programs allocate in 100 ms, now or a little before: a core may free memory for it in advance, and sees
    /// the end of it only at the next reading. If a run has ended between two readings, it keeps the last rate, for a second at most.
    private var fastestFill: Int { now - peakFill.at <= Self.fillMemory ? max(fill, peakFill.bytes) : fill }

    private static var fillMemory: Microseconds { .second }

    /// Called at each tick.
    mutating func recordFill() {
        let fill = fill
        if fill >= peakFill.bytes || now - peakFill.at > Self.fillMemory { peakFill = (fill, now) }
    }

    private var fill: Int {
        let apps = scenario.apps.indices.filter { app in
            processes[app].map { !$0.isFrozen && $0.endsAt == nil && ($0.wanted == 0 || $0.size < $0.wanted) } ?? false
        }
        return apps.reduce(scenario.othersRate) { $0 + scenario.apps[$1].rate } * 100
    }

    /// The kernel's OOM killer. It prefers apps by `oom_score_adj`, which the daemon sets by state, and then large ones.
    mutating func killForKernel() {
        func score(_ app: Int) -> (Int, Int) {
            let adjustment =
                switch states[app] {
                case .suspended: 3
                case .background, .terminating: 2
                case .launching, .inactive, .notRunning: 1
                case .active: 0
                }
            return (adjustment, processes[app]?.size ?? 0)
        }
        let alive = processes.indices.filter { processes[$0] != nil && processes[$0]?.endsAt == nil }
        guard let victim = alive.max(by: { score($0) < score($1) }) else { return }
        let name = "\(scenario.apps[victim].id), \(states[victim]), at \(now / 1000) ms"
        let suspended = alive.count { states[$0] == .suspended }
        outcome.kernelKills += 1
        machine.kills += 1
        outcome.check(suspended == 0, .kernelDoesNotKill, "the kernel kills \(name), of \(suspended) suspended apps")
        outcome.check(
            !Self.isInFront(states[victim], isLaunchedToFront[victim]) || suspended == 0, .foregroundOutlivesSuspended,
            "the kernel kills \(name), while \(suspended) apps are suspended")
        victims.append((victim, processes[victim]?.size ?? 0, now, false))
        end(victim, .signaled(9, coreDumped: false), after: scenario.killTime)
        processes[victim]?.isKilledByKernel = true
    }

    private mutating func end(_ app: Int, _ status: ExitStatus, after time: Microseconds) {
        guard processes[app] != nil else { return }
        let endsAt = min(now + time, processes[app]?.endsAt ?? .max)
        if processes[app]?.endsAt == nil { processes[app]?.killedAt = now }
        processes[app]?.endsAt = endsAt
        processes[app]?.status = status
        processes[app]?.isFrozen = false
    }

    // MARK: Effects

    private mutating func perform(_ effect: Effect) {
        switch effect {
        case .spawn(let id, let run, let launch): spawn(id, run, launch)
        case .run(let run, .notify(let notice)): notify(run, notice)
        case .run(let run, .suspension(.freeze(let attempt))):
            guard let app = appsByRun[run], processes[app]?.run == run else { return }
            processes[app]?.isFrozen = true
            processes[app]?.frozenAt = now
            queue.push(.frozen(app, run, attempt: attempt), at: now + .millisecond)
        case .run(let run, .suspension(.thaw(let attempt))):
            guard let app = appsByRun[run], processes[app]?.run == run else { return }
            processes[app]?.isFrozen = false
            deliver(.run(run, .suspension(.thawed(attempt: attempt))), after: .millisecond)
        case .run(let run, .deadline(.inspect)):
            var inspection = Inspection(traced: false, cpu: .zero, memory: 0)
            if let app = appsByRun[run], let process = processes[app] {
                (inspection.memory, inspection.uncertainty) = estimate(app, process)
            }
            deliver(.run(run, .deadline(.inspected(inspection))), after: .millisecond)
        case .run(let run, .deadline(.measureActivity)):
            deliver(
                .run(run, .deadline(.activityMeasured(RunActivity(cpu: .zero, waited: .zero)))), after: .millisecond)
        case .run(let run, .traffic(.watchInput(let attempt, _))):
            deliver(.run(run, .traffic(.inputWatched(attempt: attempt, InputWatch(watched: 4)))), after: .millisecond)
        case .run(let run, .traffic(.measureWork)):
            deliver(.run(run, .traffic(.workMeasured(RunWork(cpu: .zero)))), after: .millisecond)
        case .run(let run, .processor(.measure)):
            deliver(.run(run, .processor(.measured(used: .zero, waited: .zero))), after: .millisecond)
        case .run(let run, .continueStopped): deliver(.run(run, .process(.continued)), after: .millisecond)
        case .run(let run, .kill):
            guard let app = appsByRun[run], processes[app]?.run == run else { return }
            end(app, .signaled(9, coreDumped: false), after: scenario.apps[app].killTime ?? scenario.killTime)
        case .run(let run, .memory(.measureSize)):
            guard let app = appsByRun[run] else { return }
            queue.push(.exact(app, run), at: now + scenario.exactTime)
        case .measureMemory: queue.push(.measure, at: now + scenario.measureTime)
        case .run(let run, .memory(.reclaim(let attempt, let bytes))):
            guard let app = appsByRun[run], processes[app]?.isFrozen == true else { return }
            reclaiming = Reclaiming(app: app, run: run, attempt: attempt, left: Int(bytes))
        case .run(let run, .memory(.stopReclaim)): if reclaiming?.run == run { reclaiming = nil }
        case .run, .recordLaunch, .writeReceipt, .dropRestorationState, .identify, .answer, .report, .allowSleep,
            .sockets, .removeInstance, .scheduleTimers, .subscribe, .finish:
            break
        }
    }

    private mutating func deliver(_ event: Event, after time: Microseconds) {
        queue.push(.deliver(event), at: now + time)
    }

    private mutating func spawn(_ id: AppID, _ run: RunID, _ launch: Launch) {
        guard let app = indexes[id] else { return }
        processes[app] = Process(run: run)
        appsByRun[run] = app
        isLaunchedToFront[app] = launch.state == .foreground
        outcome.launches += 1
        deliver(.run(run, .process(.spawned(pid: Int32(truncatingIfNeeded: run.number)))), after: .millisecond)
        queue.push(.execute(app, run), at: now + 3 * .millisecond)
    }

    private mutating func notify(_ run: RunID, _ notice: Notice) {
        guard notice.isAnswered, let app = appsByRun[run], processes[app]?.run == run else { return }
        deliver(.run(run, .transition(.notified(notice, delivered: true, cpu: .zero))), after: .millisecond)
        if notice == .willTerminate {
            end(app, .exited(0), after: 50 * .millisecond)
        } else {
            deliver(.run(run, .transition(.backgroundEntered)), after: 3 * .millisecond)
        }
    }
}
