import LifecycleCore
import LoopPolicy
import Systemd

/// Wakes apps for what happens outside of them, each at most once in an interval: what happens meanwhile shares a wake.
final class SpacedWakes {
    private let loop: EventLoop
    private let interval: Duration
    /// When an app is to be woken, and when it was last.
    private var due: [AppID: Duration] = [:]
    private var last: [AppID: Duration] = [:]
    private var timer: Timer?
    /// Requests that an app is woken or launched.
    var wake: (AppID) -> Void = { _ in }

    init(loop: EventLoop, interval: Duration) {
        self.loop = loop
        self.interval = interval
    }

    deinit { timer?.cancel() }

    /// Wakes an app after a time, but not earlier than the interval after its last wake. If it is to be woken already, that
    /// wake stands for both.
    func request(_ app: AppID, after delay: Duration = .zero) {
        guard due[app] == nil else { return }
        due[app] = max(loop.now() + delay, last[app].map { $0 + interval } ?? .zero)
        arm()
    }

    func remove(_ app: AppID) {
        (due[app], last[app]) = (nil, nil)
        arm()
    }

    private func wakeDue() {
        let now = loop.now()
        for app in due.keys.sorted() where due[app].map({ $0 <= now }) ?? false {
            (due[app], last[app]) = (nil, now)
            wake(app)
        }
        arm()
    }

    private func arm() {
        if timer == nil, !due.isEmpty {
            timer = try? loop.makeTimer(kind: .timer) { [weak self] _ in self?.wakeDue() }
        }
        timer?.arm(at: due.values.min())
    }
}
