import LifecycleCore
import Linux
import Posix

/// A main process that has left the group of its run: `su -l`, `systemd-run --scope`, or the program itself. The group's
/// freezer and `cgroup.kill` do not reach it there.
extension RunController {
    /// Whether the main process is in the group. If it is elsewhere the app is not suspended; the reason is logged and shown by
    /// `status`.
    func holdsMainProcess() -> Bool {
        // The end of a process that is over is reported in another way.
        guard let process, !process.isOver else { return true }
        do {
            if try enclosure.contains(process.pid) {
                reports.suspendProblem = nil
                return true
            }
            let group = try ProcFS().cgroup(of: process.pid)?.unified
            if process.isOver { return true }
            return cannotSuspend(
                "the main process (PID \(process.pid)) left the app's control group for \(group ?? "another"); start the program without "
                    + "su, sudo and systemd-run (User= sets its user)")
        } catch {
            return cannotSuspend("the control group of the main process cannot be read: \(error)")
        }
    }

    /// Logs each problem once: it is found again at each check of the freeze.
    private func cannotSuspend(_ problem: String) -> Bool {
        if reports.loggedProblem != problem { logWarning("cannot suspend: \(problem)") }
        reports.loggedProblem = problem
        reports.suspendProblem = problem
        return false
    }
}
