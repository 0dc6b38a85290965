import LifecycleCore
import Schedule

/// Timers and fetches of some apps with the real core, over steps of the clock, sleep of the machine, deaths of the daemon and
/// reboots, in virtual time. The oracle knows nothing of `Schedule`: each calendar elapses at the multiples of a number of seconds.
package struct TimerSimulation {
    struct App {
        let id: AppID
        var policy = AppPolicy()
        var settings = TimerSettings()
        /// Its calendar elapses every so many microseconds; 0: it has none.
        var period = 0
        // What the daemon has.
        var plan = TimerPlan()
        var isReported = false
        /// The last time in the file that outlives the boot.
        var stamp: Int?
        // What the oracle has.
        /// Times of the calendar up to this have elapsed, or do not count.
        var base = 0
        /// CLOCK_BOOTTIME of the last fetch, or of the beginning.
        var lastFetch = 0
        var run: RunID?
        var isFrozen = false
        var wakeOpen = false
    }

    package private(set) var violations: [TimerRule: String] = [:]
    package private(set) var elapsed = 0
    package private(set) var fetched = 0
    var random: Random
    let fault: TimerFault?
    var core = LifecycleCore()
    var apps: [App] = []
    private var checkpoint: [UInt8] = []
    private var log: [[UInt8]] = []
    private let batch: TimerBatch
    /// CLOCK_MONOTONIC, and what the others are ahead of it, in microseconds.
    private(set) var now: Int = 1_000_000_000
    private var realtimeOffset = 1_800_000_000_000_000
    private var slept = 0
    /// Since when the daemon has run without a step of the clock: what was missed before elapses soon after.
    private var steadySince = 0
    private var lastRequest: UInt64 = 0
    /// Apps whose timers elapse at other times now.
    var needsPlan: Set<Int> = []

    package init(seed: UInt64, fault: TimerFault? = nil) {
        random = Random(seed: seed ^ 0x7469_6d65_7273)
        self.fault = fault
        batch = TimerBatch(seed: seed)
        for index in 0..<(1 + random.below(6)) { apps.append(makeApp(index)) }
    }

    private mutating func makeApp(_ index: Int) -> App {
        var app = App(id: Scenario.name(index))
        app.policy.role = random.chance(300) ? .worker : .app
        app.policy.backgroundTimePerHour = random.pick([.seconds(600), .seconds(60), nil])
        app.policy.hasTimers = true
        app.settings.accuracy = random.pick([1, 1_000_000, 10_000_000, 60_000_000])
        app.settings.randomizedDelay = random.pick([0, 0, 5_000_000])
        app.settings.isPersistent = random.chance(500)
        let seconds = random.pick([5, 10, 15, 20, 30, 60])
        if random.chance(800), let event = CalendarEvent(seconds == 60 ? "*:*:00 UTC" : "*:*:0/\(seconds) UTC") {
            app.settings.calendar = [event]
            app.period = seconds * CalendarEvent.second
        }
        if random.chance(600) || app.period == 0 {
            app.settings.fetchInterval = random.pick([30, 60, 300]) * CalendarEvent.second
            app.policy.backgroundModes = .fetch
        }
        return app
    }

    var clock: ClockReading { ClockReading(realtime: now + realtimeOffset, monotonic: now, boottime: now + slept) }

    // MARK: Time

    package mutating func run(steps: Int = 2000) {
        begin()
        for _ in 0..<steps where violations.isEmpty {
            let pause = random.pick([1, 100_000, 1_000_000, 7_000_000, 20_000_000])
            advance(to: now + random.below(pause) + 1)
            happen()
        }
        precondition(core.brokenInvariants.isEmpty, "\(core.brokenInvariants)")
    }

    private mutating func begin() {
        for index in apps.indices {
            handle(.configuration(.registered(apps[index].id, apps[index].policy, launches: 0)))
            beginTimers(index)
        }
        save()
    }

    /// The daemon reads the manifest.
    private mutating func beginTimers(_ index: Int) {
        let reading = clock
        let id = apps[index].id
        let isNew = core.timerState(of: id) == nil
        if fault == .losesBase, !isNew {
            handle(.configuration(.unregistered(id)))
            handle(.configuration(.registered(id, apps[index].policy, launches: 0)))
        }
        if isNew || fault == .losesBase {
            let last = apps[index].settings.isPersistent ? apps[index].stamp.map { min($0, reading.realtime) } : nil
            if isNew {
                apps[index].base = last ?? reading.realtime
                apps[index].lastFetch = reading.boottime
            }
            if apps[index].stamp == nil { apps[index].stamp = reading.realtime }
            handle(.timer(id, .began(TimerMoment(reading), last: isNew ? last : nil)))
        }
        apps[index].isReported = false
        plan(index)
    }

    private mutating func advance(to target: Int) {
        while violations.isEmpty {
            let deadline = core.nextDeadline.map { Int($0.microseconds) }
            let moment = batch.moment(of: apps.lazy.filter { !$0.isReported }.map(\.plan)).map { $0 - realtimeOffset }
            guard let next = [deadline, moment].compactMap({ $0 }).min(), next <= target else { break }
            now = max(now, next)
            if deadline == next { handle(.deadlineReached) } else { elapse() }
            checkNoneIsLost()
        }
        now = max(now, target)
        checkNoneIsLost()
    }

    // MARK: The daemon

    mutating func plan(_ index: Int) {
        guard let state = core.timerState(of: apps[index].id) else { return }
        let reading = clock
        if state.calendarBase > reading.realtime, fault != .missesSteps {
            handle(.timer(apps[index].id, .rebased(to: reading.realtime)))
        }
        let calendarBase = fault == .missesSteps ? state.calendarBase : min(state.calendarBase, reading.realtime)
        let history = TimerHistory(state, calendarBase: calendarBase)
        apps[index].plan = apps[index].settings.plan(history, now: reading, seed: UInt64(index)) { event, time in
            event.next(after: time, UTCClock())
        }
        if fault == .fetchesEarly { apps[index].plan.earlyFetch = 0 }
        if let last = state.lastTimer?.realtime { apps[index].stamp = last }
    }

    private mutating func elapse() {
        let realtime = clock.realtime
        let isFetching = TimerBatch.isFetching(apps.lazy.filter { !$0.isReported }.map(\.plan), at: realtime)
        for index in apps.indices where !apps[index].isReported {
            plan(index)
            let elapse = TimerBatch.elapse(apps[index].plan, at: realtime, isFetching: isFetching)
            if elapse.isEmpty { continue }
            apps[index].isReported = true
            let wakes = core.view(of: apps[index].id, at: Instant(Microseconds(now)))?.state
            var starts = 0
            if elapse.timer { starts += report(index, .timer) }
            if elapse.fetch { starts += report(index, .fetch) }
            check(
                starts <= 1, .wakesOnce,
                "\(apps[index].id) is launched or thawed \(starts) times from \(wakes ?? .notRunning)")
        }
    }

    /// - Returns: how often the app was launched or thawed for it.
    private mutating func report(_ index: Int, _ purpose: TimerPurpose) -> Int {
        let moment = TimerMoment(clock)
        check(moment, index, purpose)
        let starts = handle(.timer(apps[index].id, .elapsed(purpose, moment)), counting: apps[index].id)
        if fault == .reportsTwice, purpose == .timer, random.chance(100) {
            check(moment, index, purpose)
            handle(.timer(apps[index].id, .elapsed(purpose, moment)))
        }
        let id = apps[index].id
        let view = core.view(of: id, at: Instant(Microseconds(now)))
        let isAwake = view.map { $0.state == .active || $0.state == .inactive || $0.state == .background } ?? false
        let isComing =
            view.map { $0.launchWaiting != nil || $0.state == .launching || $0.state == .terminating } ?? false
        check(
            isAwake || isComing || starts > 0 || core.isTimerPostponed(id, purpose), .elapsedIsCarriedOut,
            "\(id): \(purpose) elapsed at \(moment.realtime), and nothing followed (\(view?.state ?? .notRunning))")
        return starts
    }

    // MARK: The oracle

    private mutating func check(_ moment: TimerMoment, _ index: Int, _ purpose: TimerPurpose) {
        let app = apps[index]
        switch purpose {
        case .timer:
            elapsed += 1
            let last = moment.realtime / max(1, app.period) * max(1, app.period)
            check(
                app.period > 0 && last > app.base, .noneIsDoubled,
                "\(app.id): every \(app.period) µs, at \(moment.realtime), which follows \(app.base)")
            apps[index].base = moment.realtime
        case .fetch:
            fetched += 1
            let interval = app.settings.fetchInterval ?? .max
            check(
                moment.boottime - app.lastFetch >= interval, .fetchesKeepTheirInterval,
                "\(app.id): \(moment.boottime - app.lastFetch) µs after the last fetch, of \(interval)")
            apps[index].lastFetch = moment.boottime
        }
    }

    /// What was due has elapsed, unless the daemon has not run for long enough since.
    private mutating func checkNoneIsLost() {
        let reading = clock
        for app in apps {
            let late = app.settings.accuracy + app.settings.randomizedDelay + CalendarEvent.second
            if app.period > 0 {
                let due = max((app.base / app.period + 1) * app.period, steadySince + realtimeOffset)
                check(
                    reading.realtime <= due + late, .noneIsLost,
                    "\(app.id): every \(app.period) µs, not since \(app.base), at \(reading.realtime)")
            }
            if let interval = app.settings.fetchInterval {
                let due = max(app.lastFetch + 4 * interval, steadySince + slept)
                check(
                    reading.boottime <= due + max(late, interval / 2), .fetchesCome,
                    "\(app.id): no fetch for \(reading.boottime - app.lastFetch) µs, of \(interval)")
            }
        }
    }

    mutating func check(_ holds: Bool, _ rule: TimerRule, _ sentence: String) {
        if !holds, violations[rule] == nil { violations[rule] = sentence }
    }

    // MARK: What happens

    private mutating func happen() {
        switch random.below(100) {
        case 0...3: stepClock()
        case 4...6: sleep()
        case 7...10: die()
        case 11: reboot()
        case 12...20: request()
        case 21...60: completeWake()
        default: break
        }
    }

    private mutating func stepClock() {
        let step = random.pick([-7200, -60, -5, -1, 1, 5, 60, 7200]) * CalendarEvent.second + random.below(1000)
        realtimeOffset += step
        for index in apps.indices { apps[index].base = min(apps[index].base, clock.realtime) }
        noticeClock()
    }

    /// No time passes on CLOCK_MONOTONIC.
    private mutating func sleep() {
        let time = random.pick([1, 30, 600, 30_000]) * CalendarEvent.second
        slept += time
        realtimeOffset += time
        noticeClock()
    }

    /// TFD_TIMER_CANCEL_ON_SET
    private mutating func noticeClock() {
        steadySince = now
        for index in apps.indices where !apps[index].isReported { plan(index) }
    }

    /// The daemon dies and another one follows. Apps keep running.
    private mutating func die() {
        recover()
        let pause = random.pick([1000, 100_000, 3_000_000, 90_000_000])
        if random.chance(300) { realtimeOffset -= random.below(20) * CalendarEvent.second }
        now += pause
        for index in apps.indices { apps[index].base = min(apps[index].base, clock.realtime) }
        steadySince = now
        handle(.recovered)
        for run in core.runIDs { handle(.run(run, .process(.reattached(messagesKept: true)))) }
        for index in apps.indices {
            handle(.configuration(.registered(apps[index].id, apps[index].policy, launches: 1)))
            beginTimers(index)
        }
    }

    private mutating func recover() {
        let before = core
        do {
            core = LifecycleCore(recovering: try SavedCore(reading: checkpoint))
            for entry in log {
                let logged = try LoggedEvent(reading: entry[...])
                _ = core.handle(logged.event, at: logged.at)
            }
            check(core.difference(from: before) == nil, .recoveryIsExact, core.difference(from: before) ?? "")
        } catch {
            check(false, .recoveryIsExact, "\(error)")
        }
        save()
    }

    /// Nothing but the files in the state folder is left.
    private mutating func reboot() {
        core = LifecycleCore(firstRun: 1 << 20, firstReceipt: 1 << 20)
        realtimeOffset += now + slept + 20 * CalendarEvent.second - 1_000_000
        (now, slept) = (1_000_000, 0)
        steadySince = now
        for index in apps.indices {
            (apps[index].run, apps[index].isFrozen, apps[index].wakeOpen) = (nil, false, false)
        }
        begin()
    }

    private mutating func request() {
        lastRequest += 1
        let request: Request =
            random.pick([.activate, .background, .terminate, .launch(.background, reason: .user, url: nil)])
        handle(.requested(RequestID(lastRequest), apps[random.below(apps.count)].id, request))
    }

    private mutating func completeWake() {
        let index = random.below(apps.count)
        guard let run = apps[index].run, apps[index].wakeOpen, !apps[index].isFrozen else { return }
        handle(.run(run, .wake(.completed(random.pick(WakeResult.allCases)))))
    }

    // MARK: The core

    /// - Returns: how often an app was launched or thawed.
    @discardableResult
    mutating func handle(_ event: Event, counting app: AppID? = nil) -> Int {
        var queue = [event]
        var starts = 0
        while !queue.isEmpty {
            let event = queue.removeFirst()
            let at = Instant(Microseconds(now))
            let effects = core.handle(event, at: at)
            log.append(LoggedEvent(event, at: at).savedBytes)
            for effect in effects {
                switch effect {
                case .spawn(let id, _, _): if id == app { starts += 1 }
                case .run(let run, .suspension(.thaw)):
                    if apps.contains(where: { $0.run == run && $0.id == app }) { starts += 1 }
                default: break
                }
                queue += outcomes(of: effect)
            }
        }
        if log.count > 100 { save() }
        for index in needsPlan.sorted() where needsPlan.remove(index) != nil { plan(index) }
        return starts
    }

    private mutating func save() {
        checkpoint = core.saved.bytes
        log = []
    }
}

extension TimerHistory {
    /// What the core knows of the timers of an app.
    init(_ state: TimerState, calendarBase: Int) {
        self.init(
            began: ClockReading(
                realtime: state.began.realtime, monotonic: state.began.monotonic, boottime: state.began.boottime),
            calendarBase: calendarBase)
        lastTimer = state.lastTimer?.monotonic
        lastLaunch = state.lastLaunch
        lastFetch = state.lastFetch?.boottime
        fetchFactor = state.fetchFactor
    }
}

extension TimerMoment {
    init(_ reading: ClockReading) {
        self.init(realtime: reading.realtime, monotonic: reading.monotonic, boottime: reading.boottime)
    }
}
