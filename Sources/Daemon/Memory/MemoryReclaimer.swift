import Glibc
import LifecycleCore
import Linux
import LoopPolicy
import Posix
import Systemd

/// Pushes suspended apps out to swap, one at a time, and has the pages of their last wake read first when they are woken (L37). The core
/// says which, and stops it.
final class MemoryReclaimer {
    private struct Job {
        var run: RunID
        var attempt: Int
        /// Another number for each job: the slice of a job that was stopped may still be under way.
        var token: UInt64
        var reclaim: MemoryReclaim
    }

    private let loop: EventLoop
    private let runs: RunTable
    private let journal: Journal
    private unowned let events: any EventSink
    private var thread: HelperThread?
    private var source: EventSource?
    private var job: Job?
    private var lastToken: UInt64 = 0
    /// The pages of a wake are read for at most so long: then the app has read what it needs itself, or the swap is too slow. A reexec waits
    /// for so long.
    private static let longestReturn = Duration.seconds(1)

    init(loop: EventLoop, runs: RunTable, journal: Journal, events: any EventSink) {
        (self.loop, self.runs, self.journal, self.events) = (loop, runs, journal, events)
    }

    func begin(_ run: RunID, attempt: Int, bytes: UInt64) {
        guard let controller = runs[run] else { return }
        controller.pages = nil
        do {
            lastToken += 1
            let reclaim = try MemoryReclaim(controller.enclosure, upTo: bytes, thread: try startedThread())
            job = Job(run: run, attempt: attempt, token: lastToken, reclaim: reclaim)
            try advance()
        } catch {
            fail(error)
            if job == nil { events.send(.run(run, .memory(.reclaimed(attempt: attempt, bytes: 0)))) }
            finish()
        }
    }

    /// No further slice is asked for. The run is about to run or to end, so its size is measured anew.
    func stop(_ run: RunID) { if job?.run == run { job = nil } }

    /// Asks for the pages that the run touched at its last wake. Their record is used once: what it touches now is found when it is pushed out
    /// again.
    func bringBack(_ run: RunID) {
        guard let controller = runs[run], let pages = controller.pages.take() else { return }
        let owner = controller.app.name
        // It can have mapped a file of a file system that never answers there by now. That blocks one thread of its own.
        guard BlockedHelper.examining(for: owner, limit: 1) == 0 else { return }
        do {
            let thread = try HelperThread(name: "bring-back", .examines, owner: owner)
            let file = try MemoryFile.sealed("pages", pages)
            _ = try thread.bringBack(file, until: EventLoop.now() + Self.longestReturn, token: 0)
            controller.bringingBack = thread
        } catch {
            fail(error)
        }
    }

    private func startedThread() throws(SystemError) -> HelperThread {
        if let thread { return thread }
        let started = try HelperThread(name: "reclaim", .reports)
        guard let completions = started.completions else { throw SystemError(call: "pipe2", errno: EBADF) }
        source = try loop.addDescriptor(completions, events: .readable, kind: .helperAnswer) {
            [weak self] _ in TurnResult(self?.collect() ?? true)
        }
        thread = started
        return started
    }

    /// - Returns: whether the thread has answered.
    private func collect() -> Bool {
        let completions = (try? thread?.collect()) ?? []
        for completion in completions where completion.token == job?.token {
            do {
                job?.reclaim.completed(completion)
                if let job { runs[job.run]?.pages = job.reclaim.pages }
                try advance()
            } catch {
                fail(error)
                finish()
            }
        }
        return !completions.isEmpty
    }

    private func advance() throws(SystemError) {
        guard let job else { return }
        if try !job.reclaim.submit(token: job.token) { finish() }
    }

    private func finish() {
        guard let ended = job else { return }
        job = nil
        var bytes: UInt64 = 0
        if let controller = runs[ended.run], controller.isFrozen, let result = try? ended.reclaim.result() {
            controller.frozenFootprint = result.footprint
            bytes = result.bytes
        }
        events.send(.run(ended.run, .memory(.reclaimed(attempt: ended.attempt, bytes: bytes))))
    }

    private func fail(_ error: SystemError) {
        if !error.meansGone { journal.logWarning("\(error)") }
    }
}
