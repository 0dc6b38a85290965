import LifecycleCore
import Linux
import LoopPolicy
import Systemd

/// Looks at suspended runs whose timers are due by a signal (L51): nothing else shows when. It runs only while there are some.
final class SignalTimerPoll {
    private struct Entry {
        let attempt: Int
        let timers: [SignalTimer]
    }

    /// How late such a timer can be, and how many runs are looked at then: some 10 µs each. Further ones come later.
    private static let interval = Duration.milliseconds(500)
    private static let mostLooks = 200

    private let loop: EventLoop
    private unowned let runs: RunTable
    private var entries: [RunID: Entry] = [:]
    /// In the order in which they are looked at.
    private var order: [RunID] = []
    private var timer: Systemd.Timer?

    init(loop: EventLoop, runs: RunTable) {
        self.loop = loop
        self.runs = runs
    }

    /// The run was frozen, and has these timers.
    func add(_ run: RunController, _ timers: [SignalTimer]) {
        guard !timers.isEmpty, let attempt = run.reportedAttempt else { return }
        if entries.updateValue(Entry(attempt: attempt, timers: timers), forKey: run.id) == nil { order.append(run.id) }
        if timer == nil { timer = try? loop.makeTimer(kind: .appTimer) { [weak self] _ in self?.look() } }
        if order.count == 1 { arm() }
    }

    private func arm() { timer?.arm(at: order.isEmpty ? nil : loop.now() + Self.interval) }

    private func look() {
        let looked = Array(order.prefix(Self.mostLooks))
        order.removeFirst(looked.count)
        for id in looked {
            guard let entry = entries[id], let run = runs[id], run.isFrozen,
                run.reportedAttempt == entry.attempt
            else {
                entries[id] = nil
                continue
            }
            guard entry.timers.contains(where: { $0.isDue() }) else {
                order.append(id)
                continue
            }
            entries[id] = nil
            run.send(
                .traffic(.inputArrived(attempt: entry.attempt, Input(kind: .timer, pid: 0, descriptor: -1, bytes: 0))))
        }
        arm()
    }
}
