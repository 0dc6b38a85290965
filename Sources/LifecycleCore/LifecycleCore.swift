/// The whole of what is decided, as a value: no clock, no I/O. The same events give the same effects, byte for byte.
///
/// An app's life is `Phase`; what comes in is `Event`, one method each in the extensions; what is to be done goes out as
/// `Effect`s, in order, from the one exit in `handle`.
package struct LifecycleCore: Hashable, Sendable {
    var apps: [App] = []
    /// Places in `apps` of which the app was forgotten.
    var freeSlots: [Int] = []
    var slots: [AppID: Int] = [:]
    var runs: [RunID: Int] = [:]
    /// Who waits, and at which app.
    var requests: [RequestID: Int] = [:]
    var manager = ManagerPolicy()
    /// The slots of apps in the foreground or on their way there, the longest ago activated first (L12).
    var foregroundPlaces: [Int] = []
    /// When there is next something to do for each app.
    var timers = IndexedHeap<Instant>()
    /// Who would be killed for memory, the first first (L38).
    var jetsam = IndexedHeap<JetsamRank>()
    var memoryState = MemoryState()
    var absence = Absence()
    var shutdown: Shutdown?
    var nextRun: UInt64
    var nextReceipt: UInt64
    /// Apps that are not suspended and have a process.
    var awakeCount = 0
    var runningCount = 0
    /// Apps in the foreground, and those that have not answered yet that they have left it.
    var visibleCount = 0

    private var scratch = Scratch()

    /// Of use within one event only: no part of what the core is.
    private struct Scratch: Hashable, Sendable {
        /// What `handle` is about to return.
        var effects: [Effect] = []
        /// The slots whose timer, rank and waiters may have changed in this event.
        var touched: [Int] = []

        static func == (_: Scratch, _: Scratch) -> Bool { true }
        func hash(into hasher: inout Hasher) {}
    }

    var effects: [Effect] {
        _read { yield scratch.effects }
        _modify { yield &scratch.effects }
    }
    var touched: [Int] {
        _read { yield scratch.touched }
        _modify { yield &scratch.touched }
    }

    struct Shutdown: Hashable, Sendable {
        var isFinished = false
    }

    /// - Parameters:
    ///   - firstRun: the number of the first run; larger than any used before.
    ///   - firstReceipt: the number of the first receipt; larger than any used before.
    package init(firstRun: UInt64 = 1, firstReceipt: UInt64 = 1) {
        nextRun = firstRun
        nextReceipt = firstReceipt
    }

    /// Takes in what happened and says what is to be done, in that order.
    package mutating func handle(_ event: Event, at now: Instant) -> [Effect] {
        effects.removeAll(keepingCapacity: true)
        dispatch(event, now)
        settle(now)
        allowSleepIfDone()
        finishShutdownIfDone()
        return effects
    }

    /// When `deadlineReached` is to come; `nil`: nothing is due, ever (law 8: then nothing runs).
    package var nextDeadline: Instant? {
        switch (timers.first?.key, memoryState.nextDue) {
        case (let app?, let memory?): min(app, memory)
        case (let app?, nil): app
        case (nil, let memory): memory
        }
    }

    private mutating func dispatch(_ event: Event, _ now: Instant) {
        switch event {
        case .registered(let id, let policy, let launches): registered(id, policy, launches, now)
        case .unregistered(let id): unregistered(id, now)
        case .configured(let policy): configured(policy, now)
        case .started: started(now)
        case .recovered: recovered(now)
        case .requested(let request, let id, let what): requested(request, id, what, now)
        case .requestAbandoned(let request): requestAbandoned(request)
        case .shutdownRequested(let immediately): shutdownRequested(immediately, now)
        case .sleepRequested: sleepRequested(now)
        case .awoke: awoke(now)
        case .locked: locked(now)
        case .unlocked: unlocked(now)
        case .deadlineReached: deadlineReached(now)
        case .memoryMeasured(let reading): memoryMeasured(reading, now)
        case .pressureStalled(let level): pressureStalled(level, now)
        case .pressureSimulated(let request, let level): pressureSimulated(request, level, now)
        case .run(let run, let what):
            // A report for a run that is over came too late to matter.
            guard let slot = runs[run] else { return }
            touch(slot)
            dispatch(what, slot, now)
        }
    }

    /// Events of a run that is not over.
    private mutating func dispatch(_ event: RunEvent, _ slot: Int, _ now: Instant) {
        switch event {
        case .spawned(let pid): spawned(slot, pid)
        case .executed: executed(slot, now)
        case .spawnFailed(let problem): spawnFailed(slot, problem, now)
        case .notified(let notice, let delivered, let cpu): notified(slot, notice, delivered, cpu, now)
        case .frozen(let attempt, let memory): frozen(slot, attempt, memory, now)
        case .thawed(let attempt): thawed(slot, attempt, now)
        case .inspected(let inspection): inspected(slot, inspection, now)
        case .exited(let status, let cpu, let memory): exited(slot, status, cpu, memory, now)
        case .emptied: emptied(slot, now)
        case .ready: becameReady(slot, now)
        case .backgroundEntered: answeredBackground(slot, now)
        case .stopped: stopped(slot, now)
        case .continued: self[run: slot].isStopped = false
        case .taskBegan(let name, let owner): taskBegan(slot, name, owner, now)
        case .taskEnded(let name): taskEnded(slot, name, now)
        case .timeoutExtended(let time): timeoutExtended(slot, time, now)
        case .wakeCompleted(let result): wakeCompleted(slot, result, now)
        case .heartbeat: heartbeat(slot, now)
        case .heartbeatGivenUp: heartbeatGivenUp(slot, now)
        case .stopping: stopping(slot, now)
        case .mainProcessChanged(let pid): self[run: slot].pid = pid
        case .reattached(let messagesKept, let noticesDelayed): reattached(slot, messagesKept, noticesDelayed, now)
        }
    }

    /// Once an event is carried out: what follows from the new state is brought up to date.
    private mutating func settle(_ now: Instant) {
        // A waiter's answer never touches another app, so this ends.
        for slot in touched {
            refresh(slot)
            apps[slot].isTouched = false
        }
        touched.removeAll(keepingCapacity: true)
        scheduleMemoryCheck(now)
    }

    /// Brings an app's timer, rank and waiters up to date.
    mutating func refresh(_ slot: Int) {
        guard !apps[slot].isForgotten else {
            timers.set(slot, to: nil)
            jetsam.set(slot, to: nil)
            return
        }
        timers.set(slot, to: nextTimer(slot)?.at)
        jetsam.set(slot, to: jetsamRank(slot))
        answerWaiters(slot)
    }

    // MARK: Small things that all the methods share

    subscript(app slot: Int) -> App {
        _read { yield apps[slot] }
        _modify { yield &apps[slot] }
    }

    /// The run of an app that is known to have one: every phase but `notRunning` has.
    subscript(run slot: Int) -> Run {
        _read { yield apps[slot].run! }
        _modify { yield &apps[slot].run! }
    }

    mutating func touch(_ slot: Int) {
        if apps[slot].isTouched { return }
        apps[slot].isTouched = true
        touched.append(slot)
    }

    mutating func report(_ report: Report) {
        effects.append(.report(report))
    }

    /// The one place where an app's phase changes.
    mutating func move(_ slot: Int, to phase: Phase, _ reason: StateReason, _ now: Instant) {
        let before = self[app: slot].phase
        self[app: slot].phase = phase
        touch(slot)
        count(before, -1)
        count(phase, +1)
        guard before.state != phase.state else { return }
        self[app: slot].since = now
        report(.stateChanged(self[app: slot].id, from: before.state, to: phase.state, reason: reason))
    }

    mutating func count(_ phase: Phase, _ change: Int) {
        switch phase {
        case .notRunning: break
        case .suspended: runningCount += change
        case .foreground, .entering:
            runningCount += change
            awakeCount += change
            visibleCount += change
        case .launching, .running, .suspending, .waking, .terminating:
            runningCount += change
            awakeCount += change
        case .ending(let ending):
            runningCount += change
            if !ending.isOverdue { memoryState.returning += change }
        }
    }
}
