import Glibc
import LifecycleCore
import Linux
import Systemd

/// Processes that an earlier daemon has begun: children of somebody else, unless this one is the same by exec.
extension EffectPerformer {
    /// Until its program is executed, then until it ends. What the dead daemon had of the start is lost: whether it came
    /// about is to be seen.
    func watchAdopted(_ run: AppRun) {
        guard let process = run.process else { return }
        run.isAdopted = (try? ProcFS().stat(of: process.pid))?.parent != getpid()
        watchExit(run)
        run.adoptedProcessProbe = Retry.until(loop) { [weak self, weak run] in
            guard let self, let run, let pid = run.process?.pid, let stat = try? ProcFS().stat(of: pid) else {
                return true
            }
            guard stat.hasExecuted else { return false }
            self.send(.run(run.id, .executed))
            if stat.isStopped, !run.isFrozen { self.send(.run(run.id, .stopped)) }
            // Not from within the look that is replaced by this one.
            self.loop.callLater { [weak self, weak run] in
                if let self, let run, run.isAdopted { self.lookForStop(run) }
            }
            return true
        }
    }

    /// The kernel tells a parent alone that its child has stopped (L17).
    func lookForStop(_ run: AppRun) {
        run.adoptedProcessProbe = Retry.until(loop) { [weak self, weak run] in
            guard let self, let run, !run.isFrozen, self.isEntering(run.id) else { return true }
            guard self.isStopped(run) else { return false }
            self.send(.run(run.id, .stopped))
            return true
        }
    }

    func isStopped(_ run: AppRun) -> Bool {
        guard let pid = run.process?.pid else { return false }
        return (try? ProcFS().stat(of: pid))?.isStopped ?? false
    }

    /// How long its parent may take to ask how it ended; after that nobody will know.
    private static let patience = Duration.seconds(2)

    func adoptedProcessEnded(_ run: AppRun, _ process: Linux.Process) {
        let limit = loop.now() + Self.patience
        run.adoptedProcessProbe = Retry.until(loop) { [weak self, weak run] in
            guard let self, let run, run.process === process else { return true }
            // If its parent has ended first it is ours (`PR_SET_CHILD_SUBREAPER`).
            if let end = (try? process.reap()) ?? nil {
                self.ended(run, end)
                return true
            }
            let status = (try? process.exitStatus()) ?? nil
            // Where there is no zombie any more and the kernel does not say, it never will.
            let isGone = (try? ProcFS().stat(of: process.pid)) == nil
            guard status != nil || isGone || self.loop.now() >= limit else { return false }
            self.ended(run, status.map { ExitStatus($0) } ?? .unknown, cpu: .zero)
            return true
        }
    }
}
