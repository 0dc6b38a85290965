/// Why a run ended, in a receipt (L45).
extension LifecycleCore {
    mutating func makeReceipt(
        _ slot: Int, _ phase: Phase, _ status: ExitStatus, cpu: Duration, peak: UInt64, _ now: Instant,
        explanation: String?
    ) -> Receipt {
        let run = self[run: slot]
        let verdict = verdict(phase, status)
        let receipt = Receipt(
            id: nextReceipt, app: self[app: slot].id, run: run.id, pid: run.pid, state: stateBeforeEnd(phase),
            namespace: verdict.namespace, code: verdict.code, explanation: explanation ?? verdict.explanation,
            deadline: verdict.deadline ?? phaseDeadline(phase).map { deadlineUse(slot, $0, cpu: cpu, now) },
            candidates: verdict.candidates, exit: status, wall: now - run.created, cpu: cpu,
            memory: run.memory > 0 ? run.memory : peak)
        nextReceipt += 1
        return receipt
    }

    private func stateBeforeEnd(_ phase: Phase) -> AppState {
        switch phase {
        case .terminating(let terminating): terminating.from
        case .ending(let ending): ending.from
        case .notRunning, .launching, .foreground, .entering, .running, .suspending, .suspended, .waking: phase.state
        }
    }

    private struct Verdict {
        var namespace: Receipt.Namespace
        var code: UInt32
        var explanation: String
        var deadline: Receipt.DeadlineUse?
        var candidates: [Receipt.Candidate] = []
    }

    private func verdict(_ phase: Phase, _ status: ExitStatus) -> Verdict {
        switch phase {
        case .ending(let ending):
            // SIGKILL is ours if we sent it; any other end was the app's own, however near ours was.
            if let cause = ending.cause, status.isKill || status == .unknown { return verdict(cause) }
            if let cause = ending.termination { return verdict(cause, status) }
            return ownEnd(status)
        case .terminating(let terminating): return verdict(terminating.cause, status)
        case .notRunning, .launching, .foreground, .entering, .running, .suspending, .suspended, .waking:
            return ownEnd(status)
        }
    }

    private func ownEnd(_ status: ExitStatus) -> Verdict {
        switch status {
        case .exited(let code):
            Verdict(namespace: .exit, code: Receipt.Code.exited, explanation: "exited by itself with status \(code)")
        case .signaled(let signal, let coreDumped):
            Verdict(
                namespace: .signal, code: Receipt.Code.signal,
                explanation: "ended by \(signalName(signal))\(coreDumped ? " (core dumped)" : ""), "
                    + "which nobody here sent")
        case .unknown:
            Verdict(
                namespace: .exit, code: Receipt.Code.exited,
                explanation: "ended; how is not known, as it was no child of this greenroomd")
        case .lost: Verdict(namespace: .exit, code: Receipt.Code.exited, explanation: "was lost with the machine")
        }
    }

    /// The end of an app that was told to terminate.
    private func verdict(_ cause: TerminationCause, _ status: ExitStatus) -> Verdict {
        switch status {
        case .signaled(let signal, _) where signal != ExitStatus.sigterm: return ownEnd(status)
        case .lost: return ownEnd(status)
        case .exited, .signaled, .unknown: break
        }
        let how =
            switch status {
            case .exited(let code): "exited with status \(code)"
            case .signaled, .lost: "ended by SIGTERM"
            case .unknown: "ended, how is not known, as it was no child of this greenroomd"
            }
        var verdict = Verdict(namespace: .exit, code: Receipt.Code.exited, explanation: "")
        switch cause {
        case .requested: verdict.explanation = "terminated on request: \(how)"
        case .exitsOnSuspend: verdict.explanation = "ended instead of being suspended (ExitsOnSuspend=yes): \(how)"
        case .shutdown: verdict.explanation = "terminated as Greenroom shuts down: \(how)"
        case .selfInitiated: verdict.explanation = "ended as it had announced: \(how)"
        case .jetsam(let memory, let candidates):
            verdict.namespace = .jetsam
            verdict.code = Receipt.Code.jetsam
            verdict.explanation = "terminated to give memory back (\(memory.sentence)): \(how)"
            verdict.candidates = candidates
        }
        return verdict
    }

    private func verdict(_ cause: KillCause) -> Verdict {
        switch cause {
        case .missedDeadline(let use):
            Verdict(
                namespace: .watchdog, code: Receipt.Code.missedDeadline,
                explanation: "\(use.what.failure) within \(use.allowed.inSeconds)\(use.usedCPU)", deadline: use)
        case .leakedTasks(let names, let use):
            Verdict(
                namespace: .watchdog, code: Receipt.Code.leakedTask,
                explanation: "its background time of \(use.allowed.inSeconds) was used up with "
                    + "\(taskList(names)) open\(use.usedCPU)", deadline: use)
        case .wakeNotCompleted(let reason, let use):
            Verdict(
                namespace: .watchdog, code: Receipt.Code.wakeNotCompleted,
                explanation: "the \(reason.rawValue) it was woken for was not completed within "
                    + "\(use.allowed.inSeconds)\(use.usedCPU)", deadline: use)
        case .tooManyTasks(let count):
            Verdict(
                namespace: .lifecycle, code: Receipt.Code.tooManyTasks,
                explanation: "had \(count) background tasks open; \(LifecycleCore.maximumTasks) are allowed")
        case .removed:
            Verdict(namespace: .user, code: Receipt.Code.removedByUser, explanation: "removed by the user")
        case .terminatedWithoutNotice:
            Verdict(
                namespace: .exit, code: Receipt.Code.exited,
                explanation: "terminated on request: killed without notice, which it could not have heard")
        case .shutdown:
            Verdict(namespace: .exit, code: Receipt.Code.exited, explanation: "killed as Greenroom shuts down")
        case .jetsam(let memory, let candidates):
            Verdict(
                namespace: .jetsam, code: Receipt.Code.jetsam,
                explanation: "killed to give memory back: \(memory.sentence)", candidates: candidates)
        case .terminationIgnored(let cause, let use):
            Verdict(
                namespace: .watchdog, code: Receipt.Code.missedDeadline,
                explanation: "was told to terminate (\(cause.reason.rawValue)) and did not end within "
                    + "\(use.allowed.inSeconds)\(use.usedCPU)", deadline: use)
        }
    }

    /// At most three by name: there may be a thousand.
    private func taskList(_ names: [String]) -> String {
        let shown = names.prefix(3).map { "“\($0)”" }.joined(separator: ", ")
        let more = names.count > 3 ? " and \(names.count - 3) more" : ""
        return "the task\(names.count == 1 ? "" : "s") \(shown)\(more)"
    }
}

extension Receipt.DeadlineUse {
    /// How much of the time went to the processor tells a busy app from a hanging one.
    fileprivate var usedCPU: String {
        cpu.map { "; it used \($0.inSeconds) of processor time" } ?? ""
    }
}

extension DeadlineKind {
    fileprivate var failure: String {
        switch self {
        case .launch: "did not finish launching"
        case .background: "did not answer that it had entered the background"
        case .terminate: "did not end"
        case .backgroundTime: "did not end its tasks"
        case .wake: "did not complete what it was woken for"
        case .watchdog: "gave no heartbeat (WATCHDOG=1)"
        case .resume: "did not run again after the thaw"
        }
    }
}

extension MemoryCause {
    fileprivate var sentence: String {
        switch self {
        case .budget: "all apps together were over their budget"
        case .available: "the machine had little memory available"
        case .pressure: "the machine stalled for want of memory"
        case .simulated: "a simulated shortage"
        }
    }
}

extension Duration {
    /// "5 s", "0.31 s", "0.004 s": hundredths, or thousandths of what is less than one, and no more zeros than it takes.
    package var inSeconds: String {
        let (seconds, attoseconds) = components
        let thousandths = attoseconds / 1_000_000_000_000_000
        let isTiny = seconds == 0 && thousandths < 10
        let digits = String(String(1000 + thousandths).dropFirst().prefix(isTiny ? 3 : 2))
        let significant = digits.lastIndex { $0 != "0" }.map { digits[...$0] } ?? ""
        return significant.isEmpty ? "\(seconds) s" : "\(seconds).\(significant) s"
    }
}

/// A signal's name as on all of Linux's common processors (signal(7)).
package func signalName(_ number: Int32) -> String {
    let names: [Int32: String] = [
        1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 4: "SIGILL", 5: "SIGTRAP", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE",
        9: "SIGKILL", 10: "SIGUSR1", 11: "SIGSEGV", 12: "SIGUSR2", 13: "SIGPIPE", 14: "SIGALRM", 15: "SIGTERM",
        16: "SIGSTKFLT", 24: "SIGXCPU", 25: "SIGXFSZ", 26: "SIGVTALRM", 27: "SIGPROF", 29: "SIGIO", 30: "SIGPWR",
        31: "SIGSYS",
    ]
    return names[number] ?? "signal \(number)"
}
