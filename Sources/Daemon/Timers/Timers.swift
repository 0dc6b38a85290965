import Control
import LifecycleCore
import Linux
import LoopPolicy
import Manifest
import Posix
import Reports
import Schedule
import Systemd

/// The timers and fetches of apps (L30): finds out when they elapse, and says so to the core. One descriptor waits for the nearest
/// moment of all apps; without timers there is none.
final class Timers {
    private struct Entry {
        var settings: TimerSettings
        var plan = TimerPlan()
        /// It was reported to the core that it elapses, and it is not handled yet.
        var isReported = false
    }

    private let loop: EventLoop
    private let journal: Journal
    private let stamps: LaunchStore
    private unowned let events: any EventSink
    private var entries: [AppID: Entry] = [:]
    private let batch: TimerBatch
    private let machine: UInt64
    private var watch: TimerWatch?
    /// Sets the descriptor once in a turn, however many apps have changed.
    private lazy var arming = DeferredCall(loop: loop, kind: .wakeTimer) { [weak self] in self?.arm() }
    /// The daemon is about to end: nothing elapses any more.
    private var isStopped = false

    init(loop: EventLoop, journal: Journal, stamps: LaunchStore, events: any EventSink) {
        self.loop = loop
        self.journal = journal
        self.stamps = stamps
        self.events = events
        machine = Self.hash(MachineFacts.machineID ?? "")
        batch = TimerBatch(seed: machine)
    }

    // MARK: Manifests

    /// The core knows the app of this manifest.
    func update(_ manifest: AppManifest) {
        let (app, settings) = (manifest.id, manifest.timers)
        guard manifest.policy.hasTimers else { return remove(app) }
        let before = entries[app]?.settings
        guard before != settings else { return }
        entries[app] = Entry(settings: settings)
        for problem in settings.calendar.compactMap(\.zoneProblem) {
            journal.logWarning("OnCalendar=\(problem)", app: app)
        }
        let now = ClockReading.now()
        if events.timerState(of: app) == nil {
            events.send(.timer(app, .began(TimerMoment(now), last: settings.isPersistent ? stamp(app, now) : nil)))
        } else if let before, before.calendar != settings.calendar {
            // A new time that has passed today is not one that was missed.
            events.send(.timer(app, .rebased(to: now.realtime)))
        }
        changed(app)
    }

    /// When the timers of an app with `Persistent=` elapsed last, before this boot or this daemon. The first time counts, too.
    private func stamp(_ app: AppID, _ now: ClockReading) -> Int? {
        let last = stamps.count(app)
        if last > now.realtime {
            journal.logWarning("the last time of its timers is ignored: it is in the future", app: app)
        } else if last > 0 {
            return last
        }
        record(app, now.realtime)
        return nil
    }

    private func record(_ app: AppID, _ time: Int) {
        do { try stamps.record(app, time) } catch { journal.logWarning("\(error)", app: app) }
    }

    func remove(_ app: AppID) {
        if entries.removeValue(forKey: app) != nil { arming.schedule() }
    }

    /// Nothing is left of the app.
    func removeStamp(_ app: AppID) throws { try stamps.remove(app) }

    /// Nothing elapses any more. What was missed until the next start elapses then, with `Persistent=`.
    func stop() {
        isStopped = true
        watch = nil
    }

    // MARK: Plans

    /// The core has handled what was reported of the app's timers, or launched the app, or a fetch of it has ended.
    func changed(_ app: AppID) {
        guard entries[app] != nil else { return }
        entries[app]?.isReported = false
        plan(app, .now())
        arming.schedule()
    }

    /// The clock was set, the machine has slept, or the time zone may be another one.
    private func planAll() {
        loop.work.add(each: entries.keys.sorted()) { [weak self] app in
            self?.plan(app, .now())
        } completion: { [weak self] in
            self?.arming.schedule()
        }
    }

    private func plan(_ app: AppID, _ now: ClockReading) {
        guard let settings = entries[app]?.settings, let state = events.timerState(of: app) else { return }
        if state.calendarBase > now.realtime, !settings.calendar.isEmpty {
            // The clock was set back: times that come again elapse again (systemd.timer(5)).
            events.send(.timer(app, .rebased(to: now.realtime)))
        }
        var history = TimerHistory(state)
        history.calendarBase = min(history.calendarBase, now.realtime)
        let seed = machine ^ Self.hash(app.name)
        entries[app]?.plan = settings.plan(history, now: now, seed: seed) { event, time in event.next(after: time) }
        guard settings.isPersistent, let last = state.lastTimer?.realtime, last != stamps.count(app) else { return }
        record(app, last)
    }

    private var waiting: some Sequence<TimerPlan> { entries.values.lazy.filter { !$0.isReported }.map(\.plan) }

    private func arm() {
        guard !isStopped, let moment = batch.moment(of: waiting) else { return watch = nil }
        do {
            if watch == nil { watch = try TimerWatch(loop) { [weak self] in self?.fire($0) } }
            try watch?.timer.arm(at: moment)
        } catch {
            journal.logWarning("timers do not elapse: \(error)")
        }
    }

    // MARK: The moment

    private func fire(_ change: TimerWatch.Change) {
        switch change {
        case .clockSet, .zoneFolderChanged: planAll()
        case .elapsed: elapse()
        }
    }

    private func elapse() {
        let now = ClockReading.now()
        let isFetching = TimerBatch.isFetching(waiting, at: now.realtime)
        let due = entries.filter { _, entry in
            !entry.isReported && !TimerBatch.elapse(entry.plan, at: now.realtime, isFetching: isFetching).isEmpty
        }
        loop.work.add(each: due.keys.sorted()) { [weak self] app in
            self?.elapse(app, isFetching)
        } completion: { [weak self] in
            self?.arming.schedule()
        }
    }

    private func elapse(_ app: AppID, _ isFetching: Bool) {
        let now = ClockReading.now()
        // The clock may have been set, and the app launched, since.
        plan(app, now)
        guard !isStopped, let entry = entries[app], !entry.isReported else { return }
        let elapse = TimerBatch.elapse(entry.plan, at: now.realtime, isFetching: isFetching)
        guard !elapse.isEmpty else { return }
        entries[app]?.isReported = true
        for (isDue, purpose) in [(elapse.timer, TimerPurpose.timer), (elapse.fetch, .fetch)] where isDue {
            events.send(.timer(app, .elapsed(purpose, TimerMoment(now))))
        }
    }

    // MARK: Status

    /// When each kind of timer of an app elapses next, and did last.
    func status(of app: AppID) -> [TimerStatus] {
        guard let entry = entries[app] else { return [] }
        let state = events.timerState(of: app)
        var list: [TimerStatus] = []
        if entry.settings.hasTimers {
            list.append(TimerStatus(.timer, next: entry.plan.timer?.start, last: state?.lastTimerRealtime))
        }
        if entry.settings.fetchInterval != nil {
            list.append(TimerStatus(.fetch, next: entry.plan.fetch?.start, last: state?.lastFetch?.realtime))
        }
        return list
    }

    /// FNV-1a.
    private static func hash(_ text: String) -> UInt64 {
        text.utf8.reduce(0xcbf2_9ce4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
    }
}

extension TimerMoment {
    init(_ now: ClockReading) { self.init(realtime: now.realtime, monotonic: now.monotonic, boottime: now.boottime) }
}

extension TimerHistory {
    init(_ state: TimerState) {
        let began = state.began
        self.init(
            began: ClockReading(realtime: began.realtime, monotonic: began.monotonic, boottime: began.boottime),
            calendarBase: state.calendarBase)
        lastTimer = state.lastTimer?.monotonic
        lastLaunch = state.lastLaunch
        lastFetch = state.lastFetch?.boottime
        fetchFactor = state.fetchFactor
    }
}

extension TimerStatus {
    fileprivate init(_ purpose: TimerPurpose, next: Int?, last: Int?) {
        self.init()
        kind = purpose.rawValue
        self.next = next.map { Timestamp(microseconds: UInt64(max(0, $0))) }
        self.last = last.map { Timestamp(microseconds: UInt64(max(0, $0))) }
    }
}
