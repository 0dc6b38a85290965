import LoopPolicy
import Systemd

/// Repeats what a full file system has refused, until it succeeds: after 100ms, then at doubling intervals up to 10s. There is
/// one timer for all, and none while nothing waits.
final class StorageRetry {
    static let shortestInterval = Duration.milliseconds(100)
    /// An app waits at most this long for a notification after there is space again.
    static let longestInterval = Duration.seconds(10)

    private let loop: EventLoop
    private var jobs: [String: () -> Bool] = [:]
    private var timer: Systemd.Timer?
    private var interval = shortestInterval

    init(loop: EventLoop) { self.loop = loop }

    var isEmpty: Bool { jobs.isEmpty }

    /// Repeats `job` until it returns true. It replaces the job of this name.
    func add(_ name: String, _ job: @escaping () -> Bool) {
        let isFirst = jobs.isEmpty
        jobs[name] = job
        guard isFirst else { return }
        interval = Self.shortestInterval
        schedule()
    }

    func remove(_ name: String) { jobs[name] = nil }

    private func schedule() {
        if timer == nil { timer = try? loop.makeTimer(kind: .timer) { [weak self] _ in self?.repeatAll() } }
        timer?.arm(at: loop.now() + interval)
    }

    /// One piece of work for each job.
    private func repeatAll() {
        loop.work.add(each: jobs.keys.sorted()) { [weak self] name in
            if let job = self?.jobs[name], job() { self?.jobs[name] = nil }
        } completion: { [weak self] in
            guard let self, !self.jobs.isEmpty else { return }
            self.interval = min(Self.longestInterval, self.interval * 2)
            self.schedule()
        }
    }
}
