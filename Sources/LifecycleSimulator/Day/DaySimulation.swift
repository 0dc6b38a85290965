import LifecycleCore
import Schedule

/// Plays the day of a handheld with the lifecycle core, in virtual time, and counts what wakes each app and what that costs. Apps do
/// at once what is asked of them.
struct DaySimulation {
    /// What wakes an app, or launches it.
    enum Cause: String, CaseIterable { case user, push, fetch, timer }

    struct App {
        let settings: DayScenario.App
        var run: RunID?
        var state = AppState.notRunning
        var since: Microseconds = 0
        var plan = TimerPlan()
        var isReported = false
        // What is counted.
        var launches = 0
        var kills = 0
        /// By state: the time for which the machine was awake.
        var times: [AppState: Microseconds] = [:]
    }

    /// An app is launched or thawed, and later suspended again.
    struct Wake {
        let app: Int
        let time: Microseconds
        let cause: Cause
        let isLaunch: Bool
        /// For how long the app is awake, while the machine is.
        var cost: Microseconds = 0
    }

    private enum Item {
        case step(DayScenario.Step)
        case event(Event)
    }

    private var core = LifecycleCore()
    private(set) var apps: [App]
    /// In the order of their times.
    private(set) var wakes: [Wake] = []
    private var queue = EventQueue<Item>()
    private let batch = TimerBatch(seed: 1)
    /// CLOCK_REALTIME from midnight on, and for how long the machine has slept.
    private var now = DayScenario.start
    private(set) var slept: Microseconds = 0
    private var sleepTime: Microseconds = 0
    private var lastRequest: UInt64 = 0
    /// What wakes the app of the event that is handled.
    private var cause = Cause.user

    init() {
        let scenario = DayScenario()
        apps = scenario.apps.map { App(settings: $0) }
        for (time, step) in scenario.steps { queue.push(.step(step), at: time) }
        handle(.absence(.locked))
        for index in apps.indices {
            handle(.configuration(.registered(apps[index].settings.id, apps[index].settings.policy, launches: 0)))
            handle(.timer(apps[index].settings.id, .began(TimerMoment(clock), last: nil)))
            plan(index)
        }
        run()
        for index in apps.indices { enter(apps[index].state, index) }
    }

    // MARK: Time

    /// CLOCK_MONOTONIC. The machine has booted at midnight.
    private var monotonic: Microseconds { now - slept }
    private var clock: ClockReading { ClockReading(realtime: Int(now), monotonic: Int(monotonic), boottime: Int(now)) }

    private mutating func run() {
        while true {
            let deadline = core.nextDeadline.map { $0.microseconds + slept }
            let elapse = batch.moment(of: apps.lazy.filter { !$0.isReported }.map(\.plan)).map { Microseconds($0) }
            guard let next = [deadline, elapse, queue.nextTime].compactMap({ $0 }).min(), next < DayScenario.end else {
                break
            }
            now = max(now, next)
            if next == deadline {
                handle(.deadlineReached)
            } else if next == elapse {
                elapseTimers()
            } else if let (_, item) = queue.pop() {
                carryOut(item)
            }
        }
        now = DayScenario.end
    }

    private mutating func carryOut(_ item: Item) {
        cause = .user
        switch item {
        case .event(let event): handle(event)
        case .step(.lock): handle(.absence(.locked))
        case .step(.unlock): handle(.absence(.unlocked))
        case .step(.open(let app)): request(.activate, app)
        case .step(.push(let app)):
            cause = .push
            request(.push(payload: "message"), app)
        case .step(.mode(let app, let mode, let isOn)):
            if let run = apps[app].run { handle(.run(run, isOn ? .mode(.began(mode)) : .mode(.ended(mode)))) }
        case .step(.sleep(let time)):
            sleepTime = time
            handle(.absence(.sleepRequested))
        }
    }

    private mutating func request(_ request: Request, _ app: Int) {
        lastRequest += 1
        handle(.requested(RequestID(lastRequest), apps[app].settings.id, request))
    }

    /// No time passes on CLOCK_MONOTONIC.
    private mutating func sleep() {
        now += sleepTime
        slept += sleepTime
        handle(.absence(.awoke))
        for index in apps.indices where !apps[index].isReported { plan(index) }
    }

    private mutating func plan(_ index: Int) {
        guard let state = core.timerState(of: apps[index].settings.id) else { return }
        let history = TimerHistory(state, calendarBase: state.calendarBase)
        apps[index].plan = apps[index].settings.timers.plan(history, now: clock, seed: UInt64(index)) { event, time in
            event.next(after: time, UTCClock())
        }
    }

    private mutating func elapseTimers() {
        let isFetching = TimerBatch.isFetching(apps.lazy.filter { !$0.isReported }.map(\.plan), at: Int(now))
        for index in apps.indices where !apps[index].isReported {
            let elapse = TimerBatch.elapse(apps[index].plan, at: Int(now), isFetching: isFetching)
            let due = [(elapse.timer, TimerPurpose.timer, Cause.timer), (elapse.fetch, .fetch, .fetch)].filter(\.0)
            if !due.isEmpty { apps[index].isReported = true }
            for (_, purpose, cause) in due {
                self.cause = cause
                handle(.timer(apps[index].settings.id, .elapsed(purpose, TimerMoment(clock))))
            }
        }
    }

    // MARK: The core

    private mutating func handle(_ event: Event) {
        var events = [event]
        var replanned: [Int] = []
        var isSleepAllowed = false
        while !events.isEmpty {
            for effect in core.handle(events.removeFirst(), at: Instant(monotonic)) {
                record(effect)
                if case .scheduleTimers(let id) = effect, let index = index(of: id) { replanned.append(index) }
                if case .allowSleep = effect { isSleepAllowed = true }
                events += outcomes(of: effect)
            }
        }
        for index in replanned {
            apps[index].isReported = false
            plan(index)
        }
        if isSleepAllowed { sleep() }
    }

    private func index(of app: AppID) -> Int? { apps.firstIndex { $0.settings.id == app } }
    private func index(of run: RunID) -> Int? { apps.firstIndex { $0.run == run } }

    private mutating func record(_ effect: Effect) {
        switch effect {
        case .spawn(let id, let run, _):
            guard let index = index(of: id) else { return }
            apps[index].run = run
            apps[index].launches += 1
            wakes.append(Wake(app: index, time: now, cause: cause, isLaunch: true))
        case .run(let run, .suspension(.thaw)):
            if let index = index(of: run) { wakes.append(Wake(app: index, time: now, cause: cause, isLaunch: false)) }
        case .run(let run, .kill): if let index = index(of: run) { apps[index].kills += 1 }
        case .report(.stateChanged(let id, _, let state, _)): if let index = index(of: id) { enter(state, index) }
        default: break
        }
    }

    private mutating func enter(_ state: AppState, _ index: Int) {
        let time = monotonic - apps[index].since
        apps[index].times[apps[index].state, default: 0] += time
        let isAwake = apps[index].state != .suspended && apps[index].state != .notRunning
        if isAwake, let wake = wakes.lastIndex(where: { $0.app == index }) { wakes[wake].cost += time }
        (apps[index].state, apps[index].since) = (state, monotonic)
        if state == .notRunning { apps[index].run = nil }
    }

    // MARK: Apps

    /// - Returns: what comes of an effect at once.
    private mutating func outcomes(of effect: Effect) -> [Event] {
        switch effect {
        case .spawn(_, let run, _): return [.run(run, .process(.spawned(pid: 7))), .run(run, .process(.executed))]
        case .run(let run, .notify(.didEnterBackground)):
            return [.run(run, .transition(.backgroundEntered))]
        case .run(let run, .notify(.takeSnapshot)): return [.run(run, .connection(.snapshotTaken))]
        case .run(let run, .suspension(.freeze(let attempt))):
            return [.run(run, .suspension(.frozen(attempt: attempt, memory: size(of: run))))]
        case .run(let run, .suspension(.thaw(let attempt))): return [.run(run, .suspension(.thawed(attempt: attempt)))]
        case .run(let run, .deadline(.inspect)):
            return [.run(run, .deadline(.inspected(Inspection(traced: false, cpu: .zero, memory: size(of: run)))))]
        case .run(let run, .memory(.measureSize)):
            return [.run(run, .memory(.sizeMeasured(bytes: size(of: run), estimate: size(of: run))))]
        case .measureMemory: return [.memory(.measured(reading))]
        case .run(let run, .kill), .run(let run, .notify(.willTerminate)):
            return [.run(run, .process(.exited(.kill, cpu: .zero, memory: 0))), .run(run, .process(.emptied))]
        case .report(.deadlineStarted(let id, .wake, _, _)):
            guard let index = index(of: id), let run = apps[index].run else { return [] }
            queue.push(.event(.run(run, .wake(.completed(.newData)))), at: now + apps[index].settings.work)
            return []
        default: return []
        }
    }

    private func size(of run: RunID) -> UInt64 { index(of: run).map { apps[$0].settings.size } ?? 0 }

    private var reading: MemoryReading {
        let live = apps.filter { $0.run != nil }
        let used = live.reduce(DayScenario.others) { $0 + $1.settings.size }
        let sizes = live.filter { $0.state != .suspended }.compactMap { app in
            app.run.map { MemoryReading.Size(run: $0, bytes: app.settings.size) }
        }
        return MemoryReading(
            total: DayScenario.total, available: DayScenario.total - min(DayScenario.total, used), sizes: sizes)
    }
}
