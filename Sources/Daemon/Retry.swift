import Systemd

/// Asks something again and again until it is so: at once, after a millisecond, then at doubling distances. For what the
/// kernel reports late: `cgroup.events` is read as true within microseconds, but announced up to 14 ms after.
///
/// There is no last time: whoever asks gives up by dropping it.
final class Retry {
    private let loop: EventLoop
    private let isDone: () -> Bool
    private var wait = Duration.milliseconds(1)
    private var timer: OneShot?

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
        timer = loop.after(wait) { [weak self] in
            guard let self, !self.isDone() else { return }
            self.wait = min(Self.longestWait, self.wait * 2)
            self.schedule()
        }
    }
}
