import LifecycleCore

/// Simulates Linux and the apps. It answers each effect immediately, as a healthy machine does. A test that changes a
/// behaviour delivers the outcome itself.
struct Kernel {
    /// The behaviour of one app.
    struct Behaviour {
        enum Launching {
            case becomesReady
            /// The program is executed; with `Type=notify` it never becomes ready.
            case executes
            /// The process exists; the program is not executed.
            case spawns
            case fails(SpawnProblem)
            /// No outcome at all.
            case hangs
        }
        enum Entering {
            case answers
            /// The app answers by stopping itself (L17).
            case stops
            /// The app cannot be notified (L17).
            case cannotBeNotified
            /// The app is notified and does not answer.
            case isSilent
            /// No outcome at all.
            case hangs
        }
        enum Terminating {
            case exits(Int32)
            case diesOfSignal
            case ignores
            case cannotBeNotified
        }
        var launching = Launching.becomesReady
        var entering = Entering.answers
        var terminating = Terminating.exits(0)
        /// The names of the processes that the main process leaves behind.
        var children: [String] = []
        /// Whether those end when they receive SIGTERM.
        var childrenEnd = true
        var freezes = true
        var thaws = true
        /// Whether SIGKILL has an effect.
        var dies = true
        var isInspected = true
        var isTraced = false
        var cpu = Duration.zero
        /// For how long it was ready to run and got no processor.
        var waited = Duration.zero
        var listens = false
        var hiddenSockets: HiddenSockets?
        var memory = 10 * mebibyte
        /// By how much `memory` may be too large.
        var uncertainty: UInt64 = 0
        /// The exact size; `nil`: it is being measured.
        var exact: UInt64?
        /// What is watched when it is suspended; `nil`: there is no answer.
        var watch: InputWatch? = InputWatch(watched: 3)
        /// What it has to do; `nil`: there is no answer.
        var work: RunWork? = RunWork(cpu: .zero)
        /// What it has had of the processors when it is measured for L44; `nil`: there is no answer.
        var processor: (used: Duration, waited: Duration)? = (.zero, .zero)
        /// The file locks that it holds.
        var locks: FileLocks?
        /// How its hooks end; `nil`: they do not.
        var hook: HookOutcome? = .ended(.exited(0))
        /// How many bytes are pushed out of it; `nil`: that does not end.
        var reclaimed: UInt64? = 0
        /// Whether it accepts the clients that wait at its held sockets when it runs.
        var accepts = true

        var remaining: RemainingProcesses? {
            children.isEmpty ? nil : RemainingProcesses(count: children.count, names: children)
        }
    }

    struct Process {
        var app: AppID
        var isFrozen = false
        var isAlive = true
        var isEmpty = false
        var attempt = 0
    }

    var behaviours: [AppID: Behaviour] = [:]
    /// What waits at the sockets that the daemon holds, by app.
    var clients: [AppID: Input] = [:]
    private(set) var watchedSockets: Set<AppID> = []
    var processes: [RunID: Process] = [:]
    private var order: [RunID] = []
    private var lastPID: Int32 = 100

    var measures = true
    var measuresActivity = true
    var total = 16 * gibibyte
    /// The memory that other programs use.
    var others = 2 * gibibyte
    /// What apps without a process have stored.
    var stored: UInt64 = 0
    var swapTotal: UInt64 = 0
    var swapFree: UInt64 = 0
    var refaulted: UInt64 = 0
    var limit: MemoryReading.Limit?
    var stalls: MemoryReading.Stalls?
    /// Suspended apps whose sizes are in readings.
    var measuredSuspended: [AppID] = []

    func app(of run: RunID) -> AppID? { processes[run]?.app }

    func behaviour(of run: RunID) -> Behaviour {
        processes[run].flatMap { behaviours[$0.app] } ?? Behaviour()
    }

    mutating func react(to effect: Effect, _ policies: [AppID: AppPolicy]) -> [Event] {
        switch effect {
        case .spawn(let app, let run, _): return spawn(app, run, policies[app]?.readiness ?? .executed)
        case .run(let run, .notify(let notice)): return notify(run, notice)
        case .run(let run, .suspension(.freeze(let attempt))):
            processes[run]?.attempt = attempt
            return freeze(run, attempt)
        case .run(let run, .suspension(.thaw(let attempt))):
            guard behaviour(of: run).thaws else { return [] }
            processes[run]?.isFrozen = false
            if let app = app(of: run), behaviour(of: run).accepts { clients[app] = nil }
            return [.run(run, .suspension(.thawed(attempt: attempt)))]
        case .run(let run, .continueStopped): return [.run(run, .process(.continued))]
        case .run(let run, .deadline(.inspect)):
            let behaviour = behaviour(of: run)
            guard behaviour.isInspected else { return [] }
            var inspection = inspection(behaviour)
            if processes[run]?.isAlive == false { inspection.remaining = behaviour.remaining }
            return [.run(run, .deadline(.inspected(inspection)))]
        case .run(let run, .deadline(.measureActivity(let listeners))):
            guard measuresActivity else { return [] }
            let behaviour = behaviour(of: run)
            var activity = RunActivity(cpu: behaviour.cpu, waited: behaviour.waited)
            if listeners {
                activity.listens = behaviour.listens
                activity.hiddenSockets = behaviour.hiddenSockets
            }
            return [.run(run, .deadline(.activityMeasured(activity)))]
        case .run(let run, .traffic(.watchInput(let attempt, _))):
            return behaviour(of: run).watch.map { [.run(run, .traffic(.inputWatched(attempt: attempt, $0)))] } ?? []
        case .run(let run, .traffic(.measureWork(let kind))):
            return behaviour(of: run).work.map { [.run(run, .traffic(.workMeasured(measured($0, kind))))] } ?? []
        case .run(let run, .processor(.measure)):
            guard let use = behaviour(of: run).processor else { return [] }
            return [.run(run, .processor(.measured(used: use.used, waited: use.waited)))]
        case .run(let run, .memory(.reclaim(let attempt, _))):
            guard let bytes = behaviour(of: run).reclaimed else { return [] }
            return [.run(run, .memory(.reclaimed(attempt: attempt, bytes: bytes)))]
        case .run(let run, .hook(.run(_, let number))):
            return behaviour(of: run).hook.map { [.run(run, .hookEnded(number: number, $0))] } ?? []
        case .run(let run, .kill):
            guard behaviour(of: run).dies else { return [] }
            return end(run, .signaled(9, coreDumped: false)) + endChildren(of: run)
        case .measureMemory: return measures ? [.memory(.measured(reading))] : []
        case .run(let run, .memory(.measureSize)):
            let behaviour = behaviour(of: run)
            guard let bytes = behaviour.exact else { return [] }
            return [.run(run, .memory(.sizeMeasured(bytes: bytes, estimate: behaviour.memory)))]
        case .sockets(let app, .watch):
            guard let input = clients[app] else {
                watchedSockets.insert(app)
                return []
            }
            return [.socketsReady(app, input)]
        case .sockets(let app, .stopWatching):
            watchedSockets.remove(app)
            return []
        case .sockets(let app, .reject):
            if clients[app]?.kind != .datagram { clients[app] = nil }
            return []
        case .removeInstance(let app):
            clients[app] = nil
            return []
        case .run, .recordLaunch, .writeReceipt, .dropRestorationState, .identify, .answer, .report, .allowSleep,
            .scheduleTimers, .subscribe, .finish:
            return []
        }
    }

    private func measured(_ work: RunWork, _ kind: WorkLookKind) -> RunWork {
        guard kind == .first || kind == .brief else { return work }
        var brief = RunWork(cpu: work.cpu)
        (brief.unsent, brief.isBrief) = (work.unsent, true)
        return brief
    }

    /// A client comes to a held socket.
    mutating func connect(_ app: AppID, _ input: Input) -> [Event] {
        clients[app] = input
        return watchedSockets.remove(app) == nil ? [] : [.socketsReady(app, input)]
    }

    func inspection(_ behaviour: Behaviour) -> Inspection {
        Inspection(
            traced: behaviour.isTraced, cpu: behaviour.cpu, memory: behaviour.memory, waited: behaviour.waited)
    }

    private mutating func spawn(_ app: AppID, _ run: RunID, _ readiness: AppPolicy.Readiness) -> [Event] {
        processes[run] = Process(app: app)
        order.append(run)
        lastPID += 1
        let spawned = Event.run(run, .process(.spawned(pid: lastPID)))
        switch behaviours[app]?.launching ?? .becomesReady {
        case .becomesReady:
            if behaviours[app]?.accepts ?? true { clients[app] = nil }
            return [spawned, .run(run, .process(.executed))]
                + (readiness == .notified ? [.run(run, .transition(.ready))] : [])
        case .executes: return [spawned, .run(run, .process(.executed))]
        case .spawns: return [spawned]
        case .fails(let problem):
            processes[run]?.isAlive = false
            return [.run(run, .process(.spawnFailed(problem)))]
        case .hangs: return []
        }
    }

    private mutating func notify(_ run: RunID, _ notice: Notice) -> [Event] {
        let behaviour = behaviour(of: run)
        let notified = Event.run(run, .transition(.notified(notice, delivered: true, cpu: behaviour.cpu)))
        switch notice {
        case .didEnterBackground:
            switch behaviour.entering {
            case .answers: return [notified, .run(run, .transition(.backgroundEntered))]
            case .stops: return [notified, .run(run, .process(.stopped))]
            case .cannotBeNotified:
                return [.run(run, .transition(.notified(notice, delivered: false, cpu: behaviour.cpu)))]
            case .isSilent: return [notified]
            case .hangs: return []
            }
        case .willTerminate:
            switch behaviour.terminating {
            case .exits(let status): return [notified] + end(run, .exited(status))
            case .diesOfSignal: return [notified] + end(run, .signaled(15, coreDumped: false))
            case .ignores: return [notified]
            case .cannotBeNotified:
                return [.run(run, .transition(.notified(notice, delivered: false, cpu: behaviour.cpu)))]
            }
        case .willResignActive, .willEnterForeground, .didBecomeActive, .memoryWarning, .tasksExpiring, .openURL,
            .withdraw, .willSuspend, .didResume, .scene, .sceneClosed, .didDiscardScenes, .takeSnapshot,
            .takeSceneSnapshot:
            return []
        }
    }

    private mutating func freeze(_ run: RunID, _ attempt: Int) -> [Event] {
        let behaviour = behaviour(of: run)
        guard behaviour.freezes else { return [] }
        processes[run]?.isFrozen = true
        let found = behaviour.locks.map { [Event.run(run, .suspension(.locksFound(attempt: attempt, $0)))] } ?? []
        return found + [
            .run(
                run,
                .suspension(.frozen(attempt: attempt, memory: behaviour.memory, uncertainty: behaviour.uncertainty)))
        ]
    }

    private mutating func end(_ run: RunID, _ status: ExitStatus) -> [Event] {
        guard processes[run]?.isAlive == true else { return [] }
        processes[run]?.isAlive = false
        let behaviour = behaviour(of: run)
        let remaining = status == .signaled(9, coreDumped: false) ? nil : behaviour.remaining
        let exited = RunEvent.process(
            .exited(
                status, cpu: behaviour.cpu, memory: behaviour.memory, remaining: remaining))
        if remaining != nil, !behaviour.childrenEnd { return [.run(run, exited)] }
        return [.run(run, exited)] + endChildren(of: run)
    }

    private mutating func endChildren(of run: RunID) -> [Event] {
        guard processes[run]?.isEmpty == false else { return [] }
        processes[run]?.isEmpty = true
        return [.run(run, .process(.emptied))]
    }

    /// The current memory of the machine.
    var reading: MemoryReading {
        let alive = order.filter { processes[$0]?.isAlive == true }
        let used = alive.reduce(others) { $0 + behaviour(of: $1).memory }
        let measured = alive.filter { run in
            processes[run].map { !$0.isFrozen || measuredSuspended.contains($0.app) } ?? false
        }
        let sizes = measured.map { run in
            MemoryReading.Size(
                run: run, bytes: behaviour(of: run).memory, uncertainty: behaviour(of: run).uncertainty)
        }
        var reading = MemoryReading(total: total, available: total - min(total, used), sizes: sizes)
        (reading.swapTotal, reading.swapFree, reading.refaulted) = (swapTotal, swapFree, refaulted)
        (reading.limit, reading.stalls, reading.stored) = (limit, stalls, stored)
        return reading
    }
}
