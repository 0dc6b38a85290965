import LifecycleCore
import Systemd

/// Passes events from the OS layer to the core.
protocol EventSink: AnyObject {
    /// Records an event and hands it to the core: at once, or after the event that the core is handling.
    func send(_ event: Event)
    /// Runs `body`. All events that it sends are recorded before the core handles the first of them.
    func batch(_ body: () -> Void)
    /// Whether the app was notified that it is in the background and has not answered yet.
    func isEntering(_ run: RunID) -> Bool
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
final class CoreDriver: EventSink {
    private(set) var core: LifecycleCore
    private let loop: EventLoop
    private let logbook: Logbook
    /// The only lifecycle timer, armed for the core's nearest deadline.
    private var timer: Systemd.Timer?
    private var queue: [(event: Event, at: Instant)] = []
    private var isHandling = false
    private var performer: (any EffectPerforming)?
    private var observers: [any LifecycleObserver] = []

    init(loop: EventLoop, core: LifecycleCore, logbook: Logbook) throws {
        self.core = core
        self.logbook = logbook
        self.loop = loop
        timer = try loop.makeTimer(priority: .important) { [weak self] _ in self?.send(.deadlineReached) }
    }

    /// Connects the parts that in turn need this driver. Called once, before the first event.
    func connect(performer: any EffectPerforming, observers: [any LifecycleObserver]) {
        precondition(self.performer == nil, "the driver is connected already")
        self.performer = performer
        self.observers = observers
    }

    var now: Instant { Instant(sinceOrigin: loop.now()) }

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

    func isEntering(_ run: RunID) -> Bool { core.isEntering(run) }

    /// Continues where the previous daemon stopped: performs the remaining effects of the last event that it handled,
    /// then handles the events that it recorded but did not handle.
    func resume(_ recovered: RecoveredState) {
        isHandling = true
        for (event, at) in recovered.events {
            // A logbook that was created anew does not have them.
            if recovered.position == nil { logbook.append(event, at: at) }
            queue.append((event, at))
        }
        for (index, effect) in recovered.effects.enumerated() {
            let position = recovered.effectsPerformed + index + 1
            performer?.perform(effect, EffectID(event: logbook.eventNumber, index: position))
            if recovered.position != nil { logbook.performed(position) }
        }
        handleQueue()
    }

    private func handleQueue() {
        isHandling = true
        // Events that are sent meanwhile are appended.
        var next = 0
        while next < queue.count {
            let (event, at) = queue[next]
            next += 1
            let effects = core.handle(event, at: at)
            logbook.beginEffects()
            for (index, effect) in effects.enumerated() {
                performer?.perform(effect, EffectID(event: logbook.eventNumber, index: index + 1))
                logbook.performed(index + 1)
            }
            for observer in observers { observer.observe(event) }
        }
        queue.removeAll(keepingCapacity: queue.capacity < 1024)
        isHandling = false
        logbook.compactIfLarge(core)
        timer?.arm(at: core.nextDeadline?.sinceOrigin)
    }
}
