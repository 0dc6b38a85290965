import LifecycleCore
import Linux
import LoopPolicy
import Posix
import Systemd

/// Watches for the ends of the main processes of all runs. Their pidfds are in one set, which is one source of the loop: a source for
/// each would take half a KiB of each suspended app.
final class MainProcessEnds {
    private let loop: EventLoop
    private let runs: RunTable
    private let ends: Epoll
    private var source: EventSource?
    /// By the number of the run.
    private var watched: [UInt64: Linux.Process] = [:]

    init(loop: EventLoop, runs: RunTable) throws(SystemError) {
        self.loop = loop
        self.runs = runs
        ends = try Epoll()
        source = try loop.addDescriptor(ends.descriptor, events: .readable, kind: .processEnd) { [weak self] _ in
            TurnResult(self?.ended() ?? true)
        }
    }

    /// Calls `mainProcessEnded` of the run once this process, its main process, has ended.
    func watch(_ process: Linux.Process, of run: RunID) throws(SystemError) {
        endWatch(of: run)
        let problem = ends.add(process.descriptor.raw, .readable, data: run.number)
        if problem != 0 { throw SystemError(call: "epoll_ctl", errno: problem) }
        watched[run.number] = process
    }

    /// Comes before the pidfd is closed: a copy in systemd's store would keep it in epoll(7).
    func endWatch(of run: RunID) {
        guard let process = watched.removeValue(forKey: run.number) else { return }
        ends.remove(process.descriptor.raw)
    }

    func isWatching(_ run: RunID) -> Bool { watched[run.number] != nil }

    /// - Returns: whether a process has ended.
    private func ended() -> Bool {
        let ready = (try? ends.take()) ?? []
        for next in ready {
            let id = RunID(next.data)
            // What came before in this turn may have ended the watch.
            guard let process = watched[id.number], process.isOver else { continue }
            if let run = runs[id] { run.mainProcessEnded() } else { endWatch(of: id) }
            // The others stay ready.
            if loop.isTurnOver { break }
        }
        return !ready.isEmpty
    }
}
