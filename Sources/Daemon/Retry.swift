import Systemd

/// Asks something again and again until it is so: at once, after a millisecond, then at doubling distances. For what the
/// kernel reports late: `cgroup.events` is read as true within microseconds, but announced up to 14 ms after.
///
/// There is no last time: whoever asks gives up by dropping it.
final class Retry {
    private let loop: EventLoop
    private let isDone: () -> Bool
    private var wait = Duration.milliseconds(1)
    private var timer: Systemd.Timer?

    static let longestWait = Duration.milliseconds(250)

    /// `nil`: it was so at once, and nothing is left to do.
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
        if timer == nil { timer = try? loop.makeTimer { [weak self] _ in self?.look() } }
        timer?.arm(at: loop.now() + wait)
    }

    private func look() {
        guard !isDone() else { return }
        wait = min(Self.longestWait, wait * 2)
        schedule()
    }
}
