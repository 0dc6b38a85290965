import Glibc
import LifecycleCore
import Linux
import LoopPolicy
import Posix
import Systemd

/// Processes of the app beside the main process that have left its cgroup. They are looked for where it matters, before the app
/// is called suspended and at its end, and never in between (L1, L47).
extension RunController {
    /// How long until the next search, if one has found processes that cannot be moved back.
    private static let escapeInterval = Duration.seconds(5)
    /// The most searches in a row that move processes back. More follow after `escapeInterval`.
    private static let mostSearches = 4

    /// Whether processes of the app may write `cgroup.procs` of another group: those of root, and of the user to whom the
    /// daemon's groups are delegated.
    var mayLeaveGroup: Bool {
        guard enclosure.path != nil else { return false }
        let uid = owner?.uid ?? geteuid()
        return uid == 0 || uid == geteuid()
    }

    // MARK: Before suspension

    /// All processes in the group are frozen. Looks for others, and brings them back.
    /// - Parameters:
    ///   - round: how many searches in a row there were, with this one.
    ///   - completion: called when none is left.
    func searchEscaped(attempt: Int, round: Int = 1, completion: @escaping () -> Void) {
        context.escapes.search(for: enclosure) { [weak self] scan in
            guard let self, self.isFrozen, self.freezeAttempt == attempt, self.process != nil else { return }
            guard let scan else {
                _ = self.cannotSuspend("processes outside the control group cannot be found: /proc is unreadable")
                return self.searchLater(attempt)
            }
            switch self.bringBack(in: scan) {
            case .none: completion()
            case .moved where round < Self.mostSearches:
                self.awaitFrozen(attempt: attempt, round: round + 1)
            case .moved, .failed: self.searchLater(attempt)
            }
        }
    }

    private func searchLater(_ attempt: Int) {
        do {
            let timer = try context.loop.makeTimer(kind: .appTimer) { [weak self] _ in
                guard let self, self.isFrozen, self.freezeAttempt == attempt else { return }
                self.awaitFrozen(attempt: attempt, round: 1)
            }
            timer.arm(at: context.loop.now() + Self.escapeInterval)
            escapeTimer = timer
        } catch {
            logWarning("\(error)")
        }
    }

    private enum Outcome { case none, moved, failed }

    private func bringBack(in scan: ProcessScan) -> Outcome {
        var outcome = Outcome.none
        for escaped in escaped(in: scan) {
            let finding = sentence(escaped)
            do {
                try enclosure.take(escaped.process.pid)
                guard try escaped.process.isOver || enclosure.contains(escaped.process.pid) else {
                    _ = cannotSuspend("\(finding), and cannot be moved back")
                    return .failed
                }
                logWarning("\(finding); it was moved back")
                outcome = .moved
            } catch  where escaped.process.isOver {
                continue
            } catch {
                _ = cannotSuspend("\(finding), and cannot be moved back: \(error)")
                return .failed
            }
        }
        return outcome
    }

    // MARK: At the end

    /// The group is empty. Looks for processes that have left it, and kills them.
    /// - Parameter completion: called when none is left.
    func killEscaped(completion: @escaping () -> Void) {
        context.escapes.search(for: enclosure) { [weak self] scan in
            guard let self else { return }
            let killed = scan.map { self.escaped(in: $0) } ?? []
            if killed.isEmpty { return completion() }
            for escaped in killed {
                self.logWarning("\(self.sentence(escaped)); it was killed at the end of the app")
                self.attempt { try escaped.process.signal(SIGKILL) }
            }
            // It may have created others meanwhile.
            self.awaitEnds(of: killed.map(\.process)) { [weak self] in self?.killEscaped(completion: completion) }
        }
    }

    private func escaped(in scan: ProcessScan) -> [EscapedProcess] {
        do {
            return try enclosure.escaped(in: scan)
        } catch {
            logWarning("\(error)")
            return []
        }
    }

    private func sentence(_ escaped: EscapedProcess) -> String {
        let (pid, name) = (escaped.process.pid, escaped.name.printable())
        return "a process (PID \(pid), \(name)) left the app's control group for \(escaped.group ?? "another")"
    }
}
