import Glibc
import LifecycleCore
import Linux
import Systemd

/// Main processes that are not children of this daemon: the previous daemon started them, or the app named them with
/// `MAINPID=`. The kernel reports their stops and their exit status to their parent only, so the daemon polls for both.
extension RunController {
    /// Watches the main process of a recovered run. The outcome of its execve(2) was lost with the previous daemon;
    /// /proc shows whether it has executed its program.
    func watchRecoveredProcess() {
        guard let process else { return }
        waitedAtNotice = processorUse.waited
        // After reexec it is a child of this process still.
        isAdopted = (try? ProcFS().stat(of: process.pid))?.parent != getpid()
        watchExit()
        adoptedProbe = Retry.until(context.loop) { [weak self] in
            guard let self, let pid = self.process?.pid, let stat = try? ProcFS().stat(of: pid) else { return true }
            guard stat.hasExecuted else { return false }
            self.send(.process(.executed))
            if stat.isStopped, !self.isFrozen { self.send(.process(.stopped)) }
            // Called later, because the next probe replaces this one.
            self.context.loop.callLater { [weak self] in
                if let self, self.isAdopted { self.probeForStop() }
            }
            return true
        }
    }

    /// Polls for a stop of the main process while the app has to answer `didEnterBackground`: stopping itself is an
    /// answer (L17).
    func probeForStop() {
        // The probe of its exit status would be replaced, and its end never be known.
        if process?.isOver ?? true { return }
        adoptedProbe = Retry.until(context.loop) { [weak self] in
            guard let self, !self.isFrozen, self.context.events.isEntering(self.id) else { return true }
            guard self.hasStopped else { return false }
            self.send(.process(.stopped))
            return true
        }
    }

    /// Whether the main process has stopped itself.
    var hasStopped: Bool {
        guard let pid = process?.pid else { return false }
        return (try? ProcFS().stat(of: pid))?.isStopped ?? false
    }

    /// How long the parent of an adopted process has to reap it, if the daemon may not look into it before. After that its exit
    /// status is unknown.
    private static let exitStatusTimeout = Duration.seconds(2)

    /// Polls for the exit status of a main process that has ended and cannot be reaped.
    func probeExitStatus(of process: Linux.Process) {
        let limit = context.loop.now() + Self.exitStatusTimeout
        adoptedProbe = Retry.until(context.loop) { [weak self] in
            guard let self, self.process === process else { return true }
            // If its parent has ended, it is a child of the daemon now (PR_SET_CHILD_SUBREAPER(2const)).
            if let report = (try? process.reap()) ?? nil {
                self.exited(report)
                return true
            }
            self.relay?.drain()
            if let status = self.relay?.exitStatus {
                self.exited(status, cpu: .zero)
                return true
            }
            // A parent may take its time: process 1 of a container may reap every few seconds. If there is neither a zombie nor a
            // report by now, there will be no report. The kernel has the report once the zombie is gone, so it is asked afterwards.
            let isReaped = (try? ProcFS().stat(of: process.pid)) == nil
            let status = (try? process.exitStatus()) ?? nil
            let isKnown = (status != nil || isReaped) && self.relay?.isToReport != true
            guard isKnown || self.context.loop.now() >= limit else { return false }
            self.exited(status.map { ExitStatus($0) } ?? .unknown, cpu: .zero)
            return true
        }
    }
}
