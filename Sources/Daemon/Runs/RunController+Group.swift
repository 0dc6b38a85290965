import LifecycleCore
import Linux
import Posix

/// A main process that has left the group of its run: `su -l`, `systemd-run --scope`, or the program itself. The group's
/// freezer and `cgroup.kill` do not reach it there.
extension RunController {
    /// Whether the main process is in the group. One that is elsewhere is moved back; if that is impossible, the reason is
    /// logged and shown by `status`, and the app is not suspended.
    func holdsMainProcess() -> Bool {
        // The end of a process that is over is reported in another way.
        guard let process, !process.isOver else { return true }
        do {
            if try enclosure.contains(process.pid) { return foundMainProcess() }
            let group = try ProcFS().cgroup(of: process.pid)?.unified
            if process.isOver { return true }
            let finding = "the main process (PID \(process.pid)) left the app's control group for \(group ?? "another")"
            do {
                try enclosure.take(process.pid)
            } catch {
                return cannotSuspend("\(finding), and cannot be moved back: \(error)")
            }
            guard try process.isOver || enclosure.contains(process.pid) else {
                return cannotSuspend("\(finding), and cannot be moved back")
            }
            logWarning("\(finding); it was moved back")
            return foundMainProcess()
        } catch {
            return cannotSuspend("the control group of the main process cannot be read: \(error)")
        }
    }

    private func foundMainProcess() -> Bool {
        suspendProblem = nil
        return true
    }

    /// Logs each problem once: it is found again at each check of the freeze.
    func cannotSuspend(_ problem: String) -> Bool {
        if loggedProblem != problem { logWarning("cannot suspend: \(problem)") }
        loggedProblem = problem
        suspendProblem = problem
        return false
    }
}
