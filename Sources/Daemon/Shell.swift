import LifecycleCore
import Systemd

/// The one funnel: an event goes in, the core decides, the effects come out and are performed. It never decides
/// anything itself.
///
/// What an effect brings about at once (a program that could not be executed, a group that froze) is an event too; it
/// waits its turn here, so that the core is never entered twice.
final class Shell {
    private(set) var core: LifecycleCore
    private let loop: EventLoop
    /// The one timer, armed for the nearest deadline (law 8).
    private let timer: Systemd.Timer
    private let logbook: Logbook
    private var queue: [(event: Event, at: Instant)] = []
    private var isDraining = false
    /// Performs effects; set once, before the first event.
    var perform: (Effect) -> Void = { _ in }
    /// Called with each event once the core has taken it in and its effects were performed.
    var heard: (Event) -> Void = { _ in }
    /// Called when an event has been carried out with all that followed.
    var settled: () -> Void = {}

    init(loop: EventLoop, core: LifecycleCore, logbook: Logbook) throws {
        self.core = core
        self.logbook = logbook
        self.loop = loop
        // The handler needs the shell and the shell the timer: the box breaks the circle.
        let box = WeakShell()
        timer = try loop.makeTimer(priority: .important) { _ in box.shell?.send(.deadlineReached) }
        box.shell = self
    }

    var now: Instant { Instant(sinceOrigin: loop.now()) }

    /// From here on the event is kept: whatever becomes of this daemon, it is decided on.
    func send(_ event: Event) {
        let now = now
        logbook.keep(event, at: now)
        queue.append((event, now))
        if !isDraining { drain() }
    }

    /// What is sent in `body` is kept before any of it is carried out: a daemon that dies in between has lost nothing.
    func together(_ body: () -> Void) {
        guard !isDraining else { return body() }
        isDraining = true
        body()
        drain()
    }

    /// Goes on where a daemon before this one was: effects of an event that it had decided on, and events that it had not.
    /// They are in the logbook already, unless that was begun anew.
    func resume(_ recovered: RecoveredState) {
        isDraining = true
        for (event, at) in recovered.events {
            if recovered.place == nil { logbook.keep(event, at: at) }
            queue.append((event, at))
        }
        for (index, effect) in recovered.effects.enumerated() {
            perform(effect)
            if recovered.place != nil { logbook.performed(recovered.effectsPerformed + index + 1) }
        }
        drain()
    }

    private func drain() {
        isDraining = true
        // Events that come while these are carried out are appended behind them.
        var next = 0
        while next < queue.count {
            let (event, at) = queue[next]
            next += 1
            let effects = core.handle(event, at: at)
            logbook.beginEffects()
            for (index, effect) in effects.enumerated() {
                perform(effect)
                logbook.performed(index + 1)
            }
            heard(event)
        }
        queue.removeAll(keepingCapacity: queue.capacity < 1024)
        isDraining = false
        logbook.settle(core)
        timer.arm(at: core.nextDeadline?.sinceOrigin)
        settled()
    }
}

private final class WeakShell {
    weak var shell: Shell?
}
