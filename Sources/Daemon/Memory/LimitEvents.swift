import LifecycleCore
import Linux
import LoopPolicy
import Posix
import Systemd

/// Reports that a group reached its limit (memory.events, cgroup v2), at most once in `interval`: the kernel counts each time,
/// up to 100 times a second, and a group whose page cache fills the limit reaches it all the time.
final class LimitEvents {
    private let folder: String
    private let file: ReopenedFile
    private let loop: EventLoop
    private unowned let events: any EventSink
    private var last: MemoryEvents
    private var source: EventSource?
    private var timer: Systemd.Timer?

    private static let interval = Duration.seconds(1)

    /// - Parameter folder: the group. `nil` if its events cannot be waited for, which is logged.
    init?(_ folder: String, _ loop: EventLoop, _ events: any EventSink, _ journal: Journal) {
        self.folder = folder
        self.loop = loop
        self.events = events
        // What apps do below limits of their own is not reported there (Linux 5.2).
        let local = ReopenedFile(folder + "/memory.events.local")
        let hasLocal = (try? local.read(limit: 4096)).flatMap { $0 } != nil
        file = hasLocal ? local : ReopenedFile(folder + "/memory.events")
        last = MemoryEvents(of: folder)
        do {
            // The kernel reports what changes after a read.
            guard try file.read(limit: 4096) != nil, let descriptor = file.descriptor else { return nil }
            source = try loop.addDescriptor(descriptor, events: .priority, kind: .memoryLimit) { [weak self] _ in
                self?.fired()
                return .progress
            }
            timer = try loop.makeTimer(kind: .appTimer) { [weak self] _ in self?.intervalEnded() }
        } catch {
            journal.logWarning("\(file.path.printable()) cannot be watched: \(error)")
            return nil
        }
    }

    deinit {
        source?.cancel()
        timer?.cancel()
    }

    private func fired() {
        source?.isEnabled = false
        _ = check()
        timer?.arm(at: loop.now() + Self.interval)
    }

    /// A kill follows the event that announces it: it is found now.
    private func intervalEnded() {
        if check() { timer?.arm(at: loop.now() + Self.interval) } else { source?.isEnabled = true }
    }

    /// - Returns: whether there was an event since the last check.
    private func check() -> Bool {
        guard (try? file.read(limit: 4096)).flatMap({ $0 }) != nil else {
            // The group was removed.
            source?.cancel()
            return false
        }
        let now = MemoryEvents(of: folder)
        let level = now.level(since: last)
        last = now
        if let level { events.send(.memory(.pressureStalled(level))) }
        return level != nil
    }
}

extension MemoryEvents {
    /// `critical`: the kernel has found nothing to reclaim, or has killed. `warning`: it has reclaimed, or has delayed processes.
    func level(since last: MemoryEvents) -> MemoryLevel? {
        if oom > last.oom || kills > last.kills { return .critical }
        return max > last.max || high > last.high ? .warning : nil
    }
}
