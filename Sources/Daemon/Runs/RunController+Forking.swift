import LifecycleCore
import Linux
import Manifest
import Posix
import Systemd

/// How the first process of an app with `Type=forking` exited.
struct FirstExit {
    var status: ExitStatus
    var cpu: Duration
    /// In bytes; 0: unknown.
    var peakMemory: UInt64
}

/// `Type=forking`: the first process exits when the app is ready, and the process that `PIDFile=` names is the main process
/// then (systemd.service(5)).
extension RunController {
    /// The kernel's pids have at most seven digits.
    private static let maximumPIDFile = 64

    /// Waits for the main process after the first process has exited without an error. The launch deadline bounds the wait.
    /// - Returns: whether the run continues without the first process.
    func awaitsForked(_ exit: FirstExit) -> Bool {
        guard manifest.policy.readiness == .forked, firstExit == nil, context.events.isLaunching(id), isPopulated
        else { return false }
        switch exit.status {
        case .exited(0), .unknown: break
        case .exited, .signaled, .lost: return false
        }
        firstExit = exit
        forkProbe = Retry.until(context.loop) { [weak self] in
            guard let self, self.firstExit != nil else { return true }
            if self.process == nil {
                guard self.isPopulated else {
                    self.endWithFirstProcess()
                    return true
                }
                guard let pid = self.pidFromFile() else { return false }
                self.setMainProcess(toMember: pid)
            }
            guard self.process != nil else { return false }
            self.firstExit = nil
            self.send(.ready)
            return true
        }
        return true
    }

    /// No main process followed: the exit of the first process ends the run.
    func endWithFirstProcess() {
        guard let exit = firstExit else { return }
        firstExit = nil
        forkProbe = nil
        exited(exit.status, cpu: exit.cpu, peakMemory: exit.peakMemory, isFinal: true)
    }

    /// The pid in `PIDFile=`, if it belongs to a process of the group: an older file may name any process.
    private func pidFromFile() -> Int32? {
        guard let path = manifest.pidFile,
            let bytes = (try? readFileIfPresent(at: path, limit: Self.maximumPIDFile)) ?? nil,
            let pid = Int32(String(decoding: bytes.prefix { $0 != 10 && $0 != 32 }, as: UTF8.self)),
            pid > 0, (try? enclosure.contains(pid)) ?? false
        else { return nil }
        return pid
    }
}
