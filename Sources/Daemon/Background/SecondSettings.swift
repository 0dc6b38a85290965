import LifecycleCore
import LoopPolicy
import Posix
import Systemd

/// Sets the weights and the `oom_score_adj` of runs a second time, 1 s after the last change.
///
/// A process that is being created while those of its parent are set has copied the old values, and is not yet in the group. It has joined
/// it by then, unless its fork(2) waits for a processor that long. One queue and one timer: apps by the hundred change their state at
/// once.
final class SecondSettings {
    private let loop: EventLoop
    private let runs: RunTable
    /// In the order in which they are due. Each run is in it once.
    private var queue: [(run: RunID, at: Duration)] = []
    private var timer: Systemd.Timer?

    private static let delay = Duration.seconds(1)
    /// How many runs one turn of the loop serves.
    private static let runsAtOnce = 16

    init(loop: EventLoop, runs: RunTable) {
        self.loop = loop
        self.runs = runs
    }

    func add(_ run: RunController) {
        let at = loop.now() + Self.delay
        let isQueued = run.setAgainAt != nil
        run.setAgainAt = at
        if isQueued { return }
        queue.append((run.id, at))
        if queue.count == 1 { arm() }
    }

    /// The run needs no second time.
    func remove(_ run: RunController) {
        guard run.setAgainAt != nil else { return }
        run.setAgainAt = nil
        queue.removeAll { $0.run == run.id }
    }

    /// Without a timer the second time is left out.
    private func arm() {
        guard let next = queue.first else {
            (timer, queue) = (nil, [])
            return
        }
        if timer == nil { timer = try? loop.makeTimer(kind: .appTimer) { [weak self] _ in self?.apply() } }
        timer?.arm(at: next.at)
    }

    private func apply() {
        let now = loop.now()
        let due = queue.prefix { $0.at <= now }.prefix(Self.runsAtOnce)
        queue.removeFirst(due.count)
        for (id, _) in due {
            guard let run = runs[id], let at = run.setAgainAt else { continue }
            if at > now {
                // It has changed again meanwhile.
                queue.append((id, at))
            } else {
                run.setAgainAt = nil
                run.applyAgain()
            }
        }
        arm()
    }
}
