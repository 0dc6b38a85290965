/// Decides everything, as a value without clock and I/O. The same events give the same effects, byte for byte.
///
/// An `Event` goes in; a method for each kind of event decides by the state of the app (`ProcessLife`, `Execution`); the
/// `Effect`s come out in order, from the one exit of `handle`.
package struct LifecycleCore: Hashable, Sendable {
    var apps = AppTable()
    /// Positions in `apps` that are free.
    var freeIndices: [AppIndex] = []
    var indices: [AppID: AppIndex] = [:]
    /// The app of each run. Only an app whose life holds that run is in here.
    var runs = NumberTable()
    /// The app at which each request waits.
    var requests = NumberTable()
    @Boxed var manager = ManagerPolicy()
    /// The apps in the foreground or on the way there, the one activated longest ago first (L12).
    var foregroundSlots: [ForegroundSlot] = []
    /// When something is due for each app.
    var timers = IndexedHeap<Instant>()
    /// The order in which apps would be killed for memory (L38).
    var jetsam = IndexedHeap<JetsamRank>()
    /// The level of `JetsamCredit`: the largest one of all apps.
    var jetsamLevel: UInt64 = 0
    /// The order in which launches that wait are carried out (L52).
    var launchQueue = IndexedHeap<Instant>()
    /// The order in which continued tasks expire when there are too many (L21), and how many there are.
    var continuedTasks = IndexedHeap<ContinuedRank>()
    var continuedTaskCount = 0
    /// By index of the app: the rank of its processes for the kernel's OOM killer, as in the last effect.
    var oomClasses: [OOMClass] = []
    /// The order in which apps that jetsam ended come back.
    var returnQueue = IndexedHeap<ReturnRank>()
    @Boxed var returns = Returns()
    /// The index of the home app (L49). It follows from the manifests.
    var home: AppIndex?
    var admission = Admission()
    @Boxed var memoryState = MemoryState()
    var absence = Absence()
    /// When the last suspended app is woken for the end of a connection: they are spread.
    var lastEndWake: Instant?
    @Rare var shutdown: Shutdown? = nil
    var nextRun: UInt64
    var nextReceipt: UInt64
    /// Apps that have a process and are not suspended.
    var awakeCount = 0
    var runningCount = 0
    /// Apps in the foreground, and those that have not answered yet that they left it.
    var visibleCount = 0

    private var scratch = Scratch()

    /// What is only used within one event: no part of the core's value.
    private struct Scratch: Hashable, Sendable {
        /// What `handle` is about to return.
        var effects: [Effect] = []
        /// Indices of apps whose timer, rank and waiters may have changed in this event.
        var touched: [AppIndex] = []
        /// How many these were at the end of the last event.
        var touchedCount = 0
        var invariants = InvariantLog()

        static func == (_: Scratch, _: Scratch) -> Bool { true }
        func hash(into hasher: inout Hasher) {}
    }

    var effects: [Effect] {
        _read { yield scratch.effects }
        _modify { yield &scratch.effects }
    }
    var invariantLog: InvariantLog {
        _read { yield scratch.invariants }
        _modify { yield &scratch.invariants }
    }
    var touched: [AppIndex] {
        _read { yield scratch.touched }
        _modify { yield &scratch.touched }
    }

    /// More than this come of one event only if it concerns many apps.
    private static let usualEffects = 64

    /// How many apps the last event concerned: what it took in time.
    package var lastEventSize: Int { scratch.touchedCount }

    /// - Parameters:
    ///   - firstRun: the number of the first run; larger than any used before.
    ///   - firstReceipt: the number of the first receipt; larger than any used before.
    package init(firstRun: UInt64 = 1, firstReceipt: UInt64 = 1) {
        nextRun = firstRun
        nextReceipt = firstReceipt
    }

    /// Takes in what happened.
    /// - Returns: what is to be done, in order.
    package mutating func handle(_ event: Event, at now: Instant) -> [Effect] {
        // The space of most events, but not that of the launches of a start.
        if !effects.isEmpty { effects.removeAll(keepingCapacity: effects.count <= Self.usualEffects) }
        dispatch(event, now)
        if isShuttingDown { continueShutdown(now) }
        settle(now)
        allowSleepIfDone()
        if isShuttingDown { finishShutdownIfDone() }
        verifyCounts()
        if case .deadlineReached = event { invariant(nextDeadline.map { $0 > now } ?? true, "something is due still") }
        return effects
    }

    /// A shutdown is in progress.
    package var isShuttingDown: Bool { _shutdown.isPresent }

    /// When `Event.deadlineReached` is to come; `nil`: nothing is due (law 9: then nothing runs).
    @inline(__always)
    package var nextDeadline: Instant? {
        var next = timers.first?.key
        func consider(_ other: Instant?) {
            guard let other else { return }
            if let earlier = next, earlier <= other { return }
            next = other
        }
        consider(memoryState.checkAt)
        consider(memoryState.pressureUntil)
        consider(memoryState.criticalUntil)
        if isShuttingDown {
            consider(shutdown?.end)
            consider(shutdown?.nextStep)
        }
        consider(nextLaunchCheck)
        consider(returns.checkAt)
        return next
    }

    private mutating func dispatch(_ event: Event, _ now: Instant) {
        switch event {
        case .run(let run, let what):
            // A report for a run that is over came too late to matter.
            guard let index = runs[run.number] else { return }
            touch(index)
            dispatch(what, index, now)
        case .configuration(let event): handle(event, now)
        case .recovered: recovered(now)
        case .requested(let request, let id, let what, let requester): requested(request, id, what, requester, now)
        case .requestAbandoned(let request): requestAbandoned(request, now)
        case .shutdownRequested(let immediately): shutdownRequested(immediately, now)
        case .absence(let event): handle(event, now)
        case .deadlineReached: deadlineReached(now)
        case .memory(let event): handle(event, now)
        case .socketsReady(let id, let input): socketsReady(id, input, now)
        case .timer(let id, let event): timerChanged(id, event, now)
        case .observed(let notification, let id): observed(notification, id)
        }
    }

    /// Events of a run that is not over.
    private mutating func dispatch(_ event: RunEvent, _ index: AppIndex, _ now: Instant) {
        switch event {
        case .process(let event): handle(event, index, now)
        case .transition(let event): handle(event, index, now)
        case .deadline(let event): handle(event, index, now)
        case .watchdog(let event): handle(event, index, now)
        case .suspension(let event): handle(event, index, now)
        case .memory(let event): handle(event, index, now)
        case .traffic(let event): handle(event, index, now)
        case .processor(let event): handle(event, index, now)
        case .hookEnded(let number, let outcome): hookEnded(index, number, outcome, now)
        case .task(let event): handle(event, index, now)
        case .mode(let event): handle(event, index, now)
        case .scene(let event): handle(event, index, now)
        case .wake(let event): handle(event, index, now)
        case .connection(let event): handle(event, index, now)
        }
    }

    /// Once an event is carried out: brings up to date what follows from the new state.
    private mutating func settle(_ now: Instant) {
        scratch.touchedCount = 0
        bringHome(now)
        reclaimWaiting()
        refreshTouched(now)
        if continuedTaskCount > 0 {
            limitContinuedTasks(now)
            refreshTouched(now)
        }
        if launchQueue.count > 0 {
            admitLaunches(now)
            refreshTouched(now)
            checkLaunches(now)
        }
        scheduleMemoryCheck(now)
        scheduleReturnCheck(now)
    }

    private mutating func refreshTouched(_ now: Instant) {
        // The answer to a waiter never touches another app, so this ends.
        if touched.isEmpty { return }
        scratch.touchedCount += touched.count
        var position = 0
        while position < touched.count {
            let index = touched[position]
            position += 1
            countUnrequestedTime(index, now)
            followWork(index, now)
            followProcessorUse(index, now)
            followGPU(index)
            followSockets(index, now)
            followSubscription(index)
            followScenes(index)
            refresh(index)
            if isGone(index) { removeInstance(index, now) }
            if invariantLog.checksApps, !apps[index].isRemoved { verify(index) }
            apps[index].isTouched = false
        }
        if touched.count > Self.usualEffects { touched = [] } else { while touched.popLast() != nil {} }
    }

    /// Brings an app's timer, ranks and waiters up to date.
    mutating func refresh(_ index: AppIndex) {
        let ranks = ranks(index)
        followOOMClass(index, ranks.jetsam)
        if !apps[index].isRemoved { followWake(index) }
        enter(index, ranks)
        if !apps[index].isRemoved { answerWaiters(index) }
    }

    /// The keys of an app in the orders of all apps; `nil`: it is not in that order.
    struct Ranks {
        var timer: Instant?
        var jetsam: JetsamRank?
        var launch: Instant?
        var continued: ContinuedRank?
        var comeback: ReturnRank?
    }

    /// As they follow from the app's state.
    @inline(__always)
    func ranks(_ index: AppIndex) -> Ranks {
        if apps[index].isRemoved { return Ranks() }
        var ranks = Ranks(timer: nextTimer(index)?.at)
        switch apps[index].life {
        case .notRunning:
            ranks.launch = launchRank(index)
            ranks.comeback = returnRank(index)
        case .running(let running):
            ranks.jetsam = jetsamRank(index, running)
            ranks.continued = continuedRank(running.sharedStorage, running.execution)
        case .ending: break
        }
        return ranks
    }

    @inline(__always)
    mutating func enter(_ index: AppIndex, _ ranks: Ranks) {
        timers.set(index, to: ranks.timer)
        jetsam.set(index, to: ranks.jetsam)
        if launchQueue.count > 0 || ranks.launch != nil { launchQueue.set(index, to: ranks.launch) }
        if returnQueue.count > 0 || ranks.comeback != nil { returnQueue.set(index, to: ranks.comeback) }
        if continuedTaskCount > 0 || ranks.continued != nil {
            continuedTaskCount += (ranks.continued?.count ?? 0) - (continuedTasks.key(of: index)?.count ?? 0)
            continuedTasks.set(index, to: ranks.continued)
        }
    }

    mutating func touch(_ index: AppIndex) {
        if apps[index].isTouched { return }
        apps[index].isTouched = true
        touched.append(index)
    }

    mutating func report(_ report: Report) {
        effects.append(.report(report))
    }
}

// MARK: The state of an app

extension LifecycleCore {
    /// The run of an app that has a process. Traps where there is none: every caller came here through `runs`, or through a
    /// phase that has a run.
    subscript(run index: AppIndex) -> Run {
        @inline(__always) _read { yield storage(index).run }
        _modify {
            let storage = apps[index].ownRunStorage()
            yield &storage.run
        }
    }

    /// The storage of that run, which is only read.
    @inline(__always)
    func storage(_ index: AppIndex) -> RunStorage {
        guard let storage = apps[index].sharedRunStorage else { preconditionFailure("the app has no run") }
        return storage
    }

    /// Replaces what a run does without changing its phase: a detail is another one now.
    mutating func update(_ index: AppIndex, _ execution: Execution) {
        let phase = apps[index].phase
        guard phase == execution.phase, case .running(var running) = apps[index].takeLife() else {
            preconditionFailure("\(apps[index].id): \(execution.phase) in \(phase)")
        }
        running.execution = execution
        apps[index].life = .running(running)
    }

    /// Changes what the run of an app does.
    mutating func change(_ index: AppIndex, to execution: Execution, _ reason: StateReason, _ now: Instant) {
        let before = Summary(apps[index].life)
        guard case .running(var running) = apps[index].takeLife() else {
            preconditionFailure("\(apps[index].id): \(execution.phase) after \(before.phase)")
        }
        invariant(!running.execution.isWatched || execution.isWatched, "a watched app leaves suspension", index)
        running.execution = execution
        switch execution {
        case .foreground, .waking, .terminating: running.run.idleHint = nil
        case .launching, .enteringBackground, .background, .suspending, .suspended: break
        }
        switch execution {
        case .foreground, .suspending, .terminating:
            running.run.snapshotDue = nil
            // Scenes are asked for theirs while their app leaves the foreground.
            if before.phase != .foreground || execution.phase != .foreground { running.run.sceneSnapshots = nil }
        case .launching, .enteringBackground, .background, .suspended, .waking: break
        }
        enter(index, .running(running), before, reason, now)
    }

    /// Changes whether an app has a process.
    mutating func change(_ index: AppIndex, to life: ProcessLife, _ reason: StateReason, _ now: Instant) {
        invariant(!(apps[index].execution?.isWatched ?? false), "a watched app ends", index)
        enter(index, life, Summary(apps[index].life), reason, now)
    }

    /// Every change of phase goes through here. Traps if the new phase must not follow the old one.
    private mutating func enter(
        _ index: AppIndex, _ life: ProcessLife, _ before: Summary, _ reason: StateReason, _ now: Instant
    ) {
        let after = Summary(life)
        precondition(
            before.phase.mayBecome(after.phase), "\(apps[index].id): \(after.phase) after \(before.phase)")
        apps[index].life = life
        touch(index)
        count(before, -1)
        count(after, +1)
        if before.phase == .background, after.phase != .background { endDrySleep(index, reason, now) }
        if before.phase == .launching, after.phase != .launching, let stored = apps[index].sharedRunStorage {
            leaveLaunchSlot(stored.run.id)
        }
        updateCredit(index, from: before, to: after, reason)
        guard before.state != after.state else { return }
        invariant(before.state.mayBecome(after.state), "a state is left out", index)
        apps[index].since = now
        report(.stateChanged(apps[index].id, from: before.state, to: after.state, reason: reason))
    }

    /// What the counts and reports need to know of a life.
    struct Summary {
        let phase: Phase
        let state: AppState

        init(_ life: ProcessLife) {
            switch life {
            case .notRunning: (phase, state) = (.notRunning, .notRunning)
            case .running(let running): (phase, state) = (running.execution.phase, running.execution.state)
            case .ending: (phase, state) = (.ending, .terminating)
            }
        }
    }

    mutating func count(_ summary: Summary, _ change: Int) {
        switch summary.phase {
        case .notRunning: break
        case .suspended, .ending: runningCount += change
        case .foreground, .enteringBackground:
            runningCount += change
            awakeCount += change
            visibleCount += change
        case .launching, .background, .suspending, .waking, .terminating:
            runningCount += change
            awakeCount += change
        }
    }
}
