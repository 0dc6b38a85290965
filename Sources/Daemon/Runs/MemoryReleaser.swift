import Linux
import LoopPolicy
import Posix
import Systemd

/// Releases the memory of killed processes at once (process_mrelease(2)), on a helper thread. Without the thread the
/// kernel releases it when each process exits.
final class MemoryReleaser {
    private let loop: EventLoop
    private let reaper: MemoryReaper?
    private var source: EventSource?

    init(loop: EventLoop) {
        self.loop = loop
        reaper = try? MemoryReaper()
    }

    /// Call it after SIGKILL was sent to the process.
    func release(_ process: Linux.Process) {
        guard let reaper else { return }
        if source == nil {
            // The results are of no interest; reading them empties the queue.
            source = try? loop.addDescriptor(reaper.descriptor, events: .readable, kind: .helperAnswer) { _ in
                TurnResult((try? reaper.completions())?.isEmpty == false)
            }
        }
        _ = try? reaper.release(process, token: 0)
    }
}
