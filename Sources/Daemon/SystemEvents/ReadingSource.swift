import LoopPolicy
import Posix
import Systemd

/// Reads something again after descriptors have reported changes: several soon after each other count as one, and a source that
/// reports changes without end is looked at five times a second.
final class ReadingSource {
    struct Trigger {
        let descriptor: SharedDescriptor
        /// Takes what the descriptor reports.
        /// - Returns: whether it is about what is read.
        let take: (SharedDescriptor) -> Bool
    }

    /// After a change, for those that come with it.
    private static let delay = Duration.milliseconds(20)
    static let interval = Duration.milliseconds(200)

    private let loop: EventLoop
    private var sources: [EventSource] = []
    private var timer: Timer?
    private var lastTime = Duration.zero
    private var isDue = false
    private let read: () -> Void

    /// - Parameter read: called first with the next turn of the loop.
    init(_ loop: EventLoop, _ triggers: [Trigger], read: @escaping () -> Void) throws(SystemError) {
        self.loop = loop
        self.read = read
        timer = try loop.makeTimer(kind: .timer) { [weak self] _ in self?.fire() }
        for trigger in triggers {
            sources.append(
                try loop.addDescriptor(trigger.descriptor, events: .readable, kind: .systemEvent) { [weak self] _ in
                    self?.changed(trigger)
                    return .progress
                })
        }
        readSoon()
    }

    deinit { timer?.cancel() }

    /// Reads in a later turn, as after a change.
    func readSoon() {
        isDue = true
        timer?.arm(at: loop.now())
    }

    /// Reads again after `interval`.
    func readAgain() {
        isDue = true
        timer?.arm(at: loop.now() + Self.interval)
    }

    private func changed(_ trigger: Trigger) {
        if trigger.take(trigger.descriptor) { isDue = true }
        for source in sources { source.isEnabled = false }
        timer?.arm(at: max(loop.now() + Self.delay, lastTime + Self.interval))
    }

    private func fire() {
        for source in sources { source.isEnabled = true }
        guard isDue else { return }
        isDue = false
        lastTime = loop.now()
        read()
    }
}
