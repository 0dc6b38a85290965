import LoopPolicy
import Systemd

/// Checks a condition until it is true: at once, after 1 ms, then at doubling intervals up to 250 ms. It is for what
/// the kernel reports late or not at all: `cgroup.events` reads right within microseconds, but its event comes up to 14
/// ms later.
///
/// There is no limit; drop the object to stop.
final class Retry {
    private let loop: EventLoop
    private let isDone: () -> Bool
    private var interval = Duration.milliseconds(1)
    private var timer: Systemd.Timer?

    static let longestInterval = Duration.milliseconds(250)

    /// - Returns: `nil` if the condition was true at the first check.
    static func until(_ loop: EventLoop, _ isDone: @escaping () -> Bool) -> Retry? {
        if isDone() { return nil }
        let retry = Retry(loop, isDone)
        retry.schedule()
        return retry
    }

    private init(_ loop: EventLoop, _ isDone: @escaping () -> Bool) {
        self.loop = loop
        self.isDone = isDone
    }

    private func schedule() {
        if timer == nil { timer = try? loop.makeTimer(kind: .appTimer) { [weak self] _ in self?.check() } }
        timer?.arm(at: loop.now() + interval)
    }

    private func check() {
        guard !isDone() else {
            // The owner may keep this object for long.
            timer = nil
            return
        }
        interval = min(Self.longestInterval, interval * 2)
        schedule()
    }
}
