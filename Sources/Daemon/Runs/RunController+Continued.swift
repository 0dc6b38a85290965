import Glibc
import LifecycleCore
import Linux
import Systemd

/// Process-group mode: any process of the same user can continue a stopped app with SIGCONT. The kernel reports it for children
/// of the daemon (WCONTINUED, waitid(2)); otherwise it is noticed when the app is examined for another reason.
extension RunController {
    /// How long no process may have been continued before the app counts as frozen again: a process that sends SIGCONT all
    /// the time would otherwise cause as many searches of /proc.
    static let continueInterval = Duration.milliseconds(100)

    /// The main process was continued while the run is to be frozen. The report may be an old one, from the last thaw.
    func mainProcessContinued() {
        if let stat = mainProcessStat { continued(stat) }
    }

    /// A process was continued while the run is to be frozen.
    func continued(_ stat: ProcessStat) {
        guard enclosure.path == nil, isFrozen, !stat.isStopped, !stat.isZombie else { return }
        if let attempt = reportedAttempt { return loseFreeze(attempt) }
        // The freeze is under way again.
        lastContinued = context.loop.now()
        sendSignal(SIGSTOP)
    }

    /// Examines a run that was reported as frozen. If it is not, it is frozen again.
    /// - Parameter scan: a complete search of /proc; `nil`: only the main process is examined.
    func checkFrozen(in scan: ProcessScan? = nil) {
        guard let attempt = reportedAttempt, isFrozen, enclosure.path == nil else { return }
        let isStopped: Bool
        if let scan {
            isStopped = (try? enclosure.isStopped(in: scan)) ?? true
        } else {
            // A process that waits in vfork(2) for its stopped child is uninterruptible.
            isStopped = mainProcessStat.map { $0.isStopped || $0.isZombie || $0.isUninterruptible } ?? true
        }
        if !isStopped { loseFreeze(attempt) }
    }

    private func loseFreeze(_ attempt: Int) {
        reportedAttempt = nil
        stopWatchingInput()
        lastContinued = context.loop.now()
        // The others follow with the freeze.
        sendSignal(SIGSTOP)
        if !isContinueLogged {
            isContinueLogged = true
            logWarning("a process outside greenroomd has continued the suspended app (SIGCONT); it is stopped again")
        }
        send(.suspension(.freezeLost(attempt: attempt)))
    }

    private var mainProcessStat: ProcessStat? {
        guard let pid = process?.pid else { return nil }
        return (try? ProcFS().stat(of: pid)) ?? nil
    }

    /// Whether a process was continued so lately that another one may be.
    var wasContinuedLately: Bool {
        lastContinued.map { context.loop.now() - $0 < Self.continueInterval } ?? false
    }
}
