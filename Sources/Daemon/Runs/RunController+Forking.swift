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

/// The wait for the main process after the first process has exited.
final class Forking {
    var exit: FirstExit
    /// Looks for the process that `PIDFile=` names.
    fileprivate var probe: Retry?

    fileprivate init(_ exit: FirstExit) { self.exit = exit }
}

/// `Type=forking`: the first process exits when the app is ready, and the process that `PIDFile=` names is the main process
/// then (systemd.service(5)).
extension RunController {
    /// The kernel's pids have at most seven digits.
    private static let maximumPIDFile = 64

    private enum MainPID {
        case pid(Int32)
        /// The end of a sentence.
        case problem(String)
    }

    /// Why the launch is not finished, as the end of a sentence.
    var forkingObstacle: String? {
        guard manifest.policy.readiness == .forked, context.events.isLaunching(id) else { return nil }
        guard forking != nil else {
            let sentence =
                "its first process has not exited (Type=forking): set Type=exec if it stays in the foreground"
            return process == nil ? nil : sentence
        }
        guard process == nil, case .problem(let problem) = readPIDFile() else { return nil }
        return problem
    }

    /// Waits for the main process after the first process has exited without an error. The launch deadline bounds the wait.
    /// - Returns: whether the run continues without the first process.
    func awaitsForked(_ exit: FirstExit) -> Bool {
        guard manifest.policy.readiness == .forked, forking == nil, context.events.isLaunching(id), isPopulated
        else { return false }
        switch exit.status {
        case .exited(0), .unknown: break
        case .exited, .signaled, .lost: return false
        }
        let forking = Forking(exit)
        self.forking = forking
        forking.probe = Retry.until(context.loop) { [weak self] in
            guard let self, self.forking != nil else { return true }
            if self.process == nil {
                guard self.isPopulated else {
                    self.endWithFirstProcess()
                    return true
                }
                guard case .pid(let pid) = self.readPIDFile() else { return false }
                self.setMainProcess(toMember: pid)
            }
            guard self.process != nil else { return false }
            self.forking = nil
            self.send(.transition(.ready))
            return true
        }
        return true
    }

    /// No main process followed: the exit of the first process ends the run.
    func endWithFirstProcess() {
        guard let exit = forking?.exit else { return }
        forking = nil
        exited(exit.status, cpu: exit.cpu, peakMemory: exit.peakMemory, isFinal: true)
    }

    /// The pid in `PIDFile=`, if it belongs to a process of the group: an older file may name any process. Blanks before and after
    /// the number do not count, as in systemd.
    private func readPIDFile() -> MainPID {
        let path = manifest.pidFile ?? ""
        let file = "the PID file \(path.printable())"
        let bytes: [UInt8]?
        do {
            bytes = try readFileIfPresent(at: path, limit: Self.maximumPIDFile)
        } catch {
            return .problem("\(file) cannot be read: \(error)")
        }
        guard let bytes else { return .problem("\(file) does not exist") }
        let blanks: Set<UInt8> = [0x20, 0x09, 0x0a, 0x0d]
        let number = String(
            decoding: bytes.drop { blanks.contains($0) }.prefix { !blanks.contains($0) }, as: UTF8.self)
        guard let pid = Int32(number), pid > 0 else {
            return .problem("\(file) has no process ID: '\(number.printable())'")
        }
        guard (try? enclosure.contains(pid)) ?? false else {
            return .problem("\(file) names process \(pid), which is not a process of the app")
        }
        return .pid(pid)
    }
}
