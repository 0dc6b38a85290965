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
    private var queue: [Event] = []
    private var isDraining = false
    /// Performs effects; set once, before the first event.
    var perform: (Effect) -> Void = { _ in }
    /// Called with each event once the core has taken it in and its effects were performed.
    var heard: (Event) -> Void = { _ in }
    /// Called when an event has been carried out with all that followed.
    var settled: () -> Void = {}

    init(loop: EventLoop, core: LifecycleCore) throws {
        self.core = core
        self.loop = loop
        // The handler needs the shell and the shell the timer: the box breaks the circle.
        let box = WeakShell()
        timer = try loop.makeTimer(priority: .important) { _ in box.shell?.send(.deadlineReached) }
        box.shell = self
    }

    var now: Instant { Instant(sinceOrigin: loop.now()) }

    func send(_ event: Event) {
        queue.append(event)
        guard !isDraining else { return }
        isDraining = true
        // Events that come while these are carried out are appended behind them.
        var next = 0
        while next < queue.count {
            let event = queue[next]
            next += 1
            for effect in core.handle(event, at: now) { perform(effect) }
            heard(event)
        }
        queue.removeAll(keepingCapacity: queue.capacity < 1024)
        isDraining = false
        timer.arm(at: core.nextDeadline?.sinceOrigin)
        settled()
    }
}

private final class WeakShell {
    weak var shell: Shell?
}
