import LifecycleCore
import LoopPolicy
import Systemd

/// Passes events from the OS layer to the core.
protocol EventSink: AnyObject {
    /// Records an event and hands it to the core: at once, or after the event that the core is handling.
    func send(_ event: Event)
    /// Runs `body`. All events that it sends are recorded before the core handles the first of them.
    func batch(_ body: () -> Void)
    /// Whether the app was notified that it is in the background and has not answered yet.
    func isEntering(_ run: RunID) -> Bool
    /// Whether a run is launching.
    func isLaunching(_ run: RunID) -> Bool
    /// An app as the core sees it now; `nil`: it is not known.
    func view(of app: AppID) -> AppView?
    /// Whether a task of this name is open.
    func isTaskOpen(_ name: String, of run: RunID) -> Bool
    /// What the timers of an app have done; `nil`: it has none, or they have not begun.
    func timerState(of app: AppID) -> TimerState?
}

/// Performs the core's effects.
protocol EffectPerforming: AnyObject {
    /// - Parameter id: stays the same if this daemon dies meanwhile and the next one performs the effect again.
    func perform(_ effect: Effect, _ id: EffectID)
}

/// Identifies an effect across daemons. Later effects have greater IDs.
struct EffectID: Hashable, Comparable, Sendable {
    /// The number of the event, counted since the logbook was created.
    var event: UInt64
    /// The position among the effects of that event, from 1.
    var index: Int

    /// Precedes all effects.
    static let none = EffectID(event: 0, index: 0)

    static func < (a: EffectID, b: EffectID) -> Bool { (a.event, a.index) < (b.event, b.index) }
}

/// Delivers events to the core and has the resulting effects performed, in order.
///
/// An effect may cause an event at once (a program that could not be executed, a cgroup that is frozen already). Such
/// an event is queued, so the core handles one event at a time.
///
/// Effects that do not fit in a turn of the loop, such as 1,000 launches, are performed in later turns. Meanwhile all other
/// events are recorded and queued behind them. If the daemon dies in between, the logbook shows how far it came.
final class CoreDriver: EventSink {
    private(set) var core: LifecycleCore
    private let loop: EventLoop
    private let logbook: Logbook
    /// The only lifecycle timer, armed for the core's nearest deadline.
    private var timer: Systemd.Timer?
    /// Armed while the logbook cannot be written.
    private var logbookTimer: Systemd.Timer?
    private var queue: [(event: Event, at: Instant)] = []
    /// The position in `queue` of the next event.
    private var next = 0
    /// The last event that the core has handled, until all its effects are performed.
    private var handled: Event?
    /// The rest of the work in later turns: before more is read from apps and before other work.
    private lazy var continuation = DeferredCall(loop: loop, kind: .decisions) { [weak self] in self?.continueLater() }
    private var effects: [Effect] = []
    /// How many effects of that event were performed: by this daemon, and by the previous one.
    private var performed = 0
    private var performedBefore = 0
    /// Whether the logbook counts them: it contains the event.
    private var countsEffects = true
    private var isHandling = false
    /// How many broken invariants of the core were reported.
    private var brokenInvariants = 0
    /// The rest of the work waits for a later turn.
    private var isScheduled = false
    /// Events are only recorded, and no deadline is judged, until the recovery has got that far.
    private var isHeld = false
    private var holdsDeadlines = false
    private var performer: (any EffectPerforming)?
    private var observers: [any LifecycleObserver] = []

    /// The most events that wait for a later turn. If more come, they are handled in the turn in which they come, so that
    /// sources are not read faster than the core handles what they send.
    static let maximumBacklog = 4096

    init(loop: EventLoop, core: LifecycleCore, logbook: Logbook) throws {
        self.core = core
        self.logbook = logbook
        self.loop = loop
        timer = try loop.makeTimer(kind: .deadline) { [weak self] _ in self?.send(.deadlineReached) }
        logbookTimer = try loop.makeTimer(kind: .timer) { [weak self] _ in self?.writeLogbook() }
        logbook.onRetry = { [weak self] in self?.logbookTimer?.arm(at: $0) }
        if let at = logbook.nextAttempt { logbookTimer?.arm(at: at) }
    }

    /// Tries again to write the logbook. Between two events, so that the snapshot has neither queued events nor effects that
    /// are still to be performed; `settle` does the same.
    private func writeLogbook() {
        if isIdle, !isHandling, !isHeld { logbook.compactIfLarge(core, loop.work) }
    }

    /// Connects the parts that in turn need this driver. Called once, before the first event.
    func connect(performer: any EffectPerforming, observers: [any LifecycleObserver]) {
        precondition(self.performer == nil, "the driver is connected already")
        self.performer = performer
        self.observers = observers
    }

    var now: Instant { Instant(sinceOrigin: loop.now()) }

    /// Whether all events are handled and all effects are performed.
    var isIdle: Bool { next == queue.count && performed == effects.count }

    // MARK: Events

    func send(_ event: Event) {
        let now = now
        logbook.append(event, at: now)
        queue.append((event, now))
        if !isHandling { handleQueue() }
    }

    func batch(_ body: () -> Void) {
        guard !isHandling else { return body() }
        isHandling = true
        body()
        handleQueue()
    }

    /// While events wait the core does not know yet: then it counts as entering.
    func isEntering(_ run: RunID) -> Bool { core.isEntering(run) || !isIdle }
    func isLaunching(_ run: RunID) -> Bool { core.isLaunching(run) || !isIdle }
    func isTaskOpen(_ name: String, of run: RunID) -> Bool { core.isTaskOpen(name, of: run) }

    func view(of app: AppID) -> AppView? { core.view(of: app, at: now) }
    func timerState(of app: AppID) -> TimerState? { core.timerState(of: app) }

    // MARK: Recovery

    /// Takes over the events that the previous daemon recorded but did not handle. Until `resume`, events are recorded
    /// behind them and not handled.
    func hold(_ recovered: RecoveredState) {
        isHeld = true
        holdsDeadlines = true
        // A logbook that was created anew does not have them.
        if recovered.position == nil { for (event, at) in recovered.events { logbook.append(event, at: at) } }
        queue = recovered.events
    }

    /// Continues where the previous daemon stopped: performs the remaining effects of the last event that it handled,
    /// then handles the queued events. `isIdle` shows when that is done.
    func resume(_ recovered: RecoveredState) {
        effects = recovered.effects
        performedBefore = recovered.effectsPerformed
        countsEffects = recovered.position != nil
        isHeld = false
        handleQueue()
    }

    /// All apps are found again: from now on their deadlines count.
    func endRecovery() {
        holdsDeadlines = false
        if isIdle { armTimer() }
    }

    // MARK: Handling

    /// Replaces the events of the logbook by a snapshot, from which a daemon of another version can continue. A snapshot has
    /// neither queued events nor effects that are still to be performed, so all are handled and performed before.
    func saveSnapshot() {
        finishQueue()
        logbook.close(core)
    }

    /// Handles all events and performs all effects now.
    private func finishQueue() {
        precondition(!isHandling, "the driver waits for itself")
        isHandling = true
        while step() {}
        isHandling = false
        settle()
    }

    private func handleQueue() {
        guard !isHeld else { return isHandling = false }
        isHandling = true
        if isScheduled {
            while queue.count - next > Self.maximumBacklog, step() {}
        } else {
            while step(), !loop.isTurnOver {}
        }
        isHandling = false
        if isScheduled { return }
        if isIdle { return settle() }
        isScheduled = true
        continuation.schedule()
    }

    private func continueLater() {
        isHandling = true
        while step(), !loop.isTurnOver {}
        isHandling = false
        if next > Self.maximumBacklog {
            queue.removeFirst(next)
            next = 0
        }
        if !isIdle { return continuation.schedule() }
        isScheduled = false
        settle()
    }

    /// Performs the next effect, or lets the core handle the next event.
    /// - Returns: whether there was one.
    private func step() -> Bool {
        if performed < effects.count {
            let effect = effects[performed]
            performed += 1
            let index = performedBefore + performed
            performer?.perform(effect, EffectID(event: logbook.eventNumber, index: index))
            if countsEffects { logbook.performed(index) }
        } else if next < queue.count {
            let (event, at) = queue[next]
            next += 1
            // Released before the core makes new ones, so that it can use the same memory.
            effects = []
            (performed, performedBefore, countsEffects) = (0, 0, true)
            effects = core.handle(event, at: at)
            if core.brokenInvariants.count > brokenInvariants { reportBrokenInvariants() }
            logbook.beginEffects()
            handled = event
        } else {
            return false
        }
        if performed == effects.count, let event = handled {
            handled = nil
            for observer in observers { observer.observe(event) }
        }
        return true
    }

    private func reportBrokenInvariants() {
        for broken in core.brokenInvariants[brokenInvariants...] {
            for observer in observers { observer.observe(broken) }
        }
        brokenInvariants = core.brokenInvariants.count
    }

    /// Nothing waits any more.
    private func settle() {
        guard isIdle else { return }
        effects = []
        performed = 0
        next = 0
        // The space of most times, but not that of a start with many apps.
        queue.removeAll(keepingCapacity: queue.capacity <= 64)
        logbook.compactIfLarge(core, loop.work)
        armTimer()
    }

    private func armTimer() {
        if !holdsDeadlines { timer?.arm(at: core.nextDeadline?.sinceOrigin) }
    }
}
