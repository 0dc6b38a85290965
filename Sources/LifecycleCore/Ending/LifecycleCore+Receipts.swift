/// Why a run ended, in a receipt (L45).
extension LifecycleCore {
    /// Of the app's life before the end. `cause`: why the processes that the main process left behind are killed.
    /// `explanation`: the reason, if it is not to be derived.
    mutating func makeReceipt(
        _ index: AppIndex, _ exit: MainExit, _ cause: KillCause?, _ now: Instant, explanation: String?
    ) -> Receipt {
        let life = apps[index].life
        let stored = storage(index)
        var verdict = Verdict(life, exit.status, stored.run.outOfMemory)
        if case .terminationIgnored(_, let use)? = cause { verdict.deadline = use }
        if case .terminationAnswered(_, let use)? = cause { verdict.deadline = use }
        if let remaining = exit.remaining { verdict.explanation.add(remaining) }
        let deadline = apps[index].transitionDeadline
        var receipt = Receipt(
            id: nextReceipt, app: apps[index].id, run: stored.run.id, pid: stored.run.pid, state: life.stateBeforeEnd,
            namespace: verdict.namespace, code: verdict.code, explanation: explanation ?? verdict.explanation,
            deadline: verdict.deadline ?? deadline.map { deadlineUse(index, $0, cpu: exit.cpu, now) },
            candidates: verdict.candidates, exit: exit.status, wall: now - stored.run.created, cpu: exit.cpu,
            // The kernel's peak, if nothing was measured.
            memory: [stored.run.memoryBeforeEnd, stored.run.memory, exit.peak].first { $0 > 0 } ?? 0)
        receipt.peakMemory = max(receipt.memory, stored.run.peakMemory)
        receipt.remaining = exit.remaining
        receipt.failure = explanation == nil ? verdict.failure : .notLaunched
        receipt.mayReturn = receipt.state == .suspended && (verdict.isUnloaded || verdict.namespace == .jetsam)
        receipt.isForMemory = verdict.isForMemory || verdict.namespace == .jetsam
        nextReceipt += 1
        return receipt
    }
}

extension String {
    /// Adds to a sentence that the processes were killed.
    fileprivate mutating func add(_ remaining: RemainingProcesses) {
        if last == "." { removeLast() }
        let were = remaining.count == 1 ? "process was" : "processes were"
        self += "; \(remaining.count) remaining \(were) killed"
        if !remaining.names.isEmpty { self += " (\(remaining.names.joined(separator: ", ")))" }
        self += "."
    }
}

extension ProcessLife {
    /// The state that users saw before the end began.
    fileprivate var stateBeforeEnd: AppState {
        switch self {
        case .running(let running):
            if case .terminating(let terminating) = running.execution { terminating.from } else { state }
        case .ending(let ending): ending.from
        case .notRunning: state
        }
    }
}

/// What a receipt says of the cause.
private struct Verdict {
    var namespace: Receipt.Namespace
    var code: UInt32
    /// One sentence, the cause first.
    var explanation: String
    var deadline: Receipt.DeadlineUse?
    var candidates: [Receipt.Candidate] = []
    var failure: Receipt.Failure?
    var isUnloaded = false
    var isForMemory = false

    private init(
        _ namespace: Receipt.Namespace, _ code: UInt32, _ explanation: String,
        deadline: Receipt.DeadlineUse? = nil, candidates: [Receipt.Candidate] = []
    ) {
        self.namespace = namespace
        self.code = code
        self.explanation = explanation
        self.deadline = deadline
        self.candidates = candidates
    }

    init(_ life: ProcessLife, _ status: ExitStatus, _ outOfMemory: OutOfMemory?) {
        self.init(life, status)
        if let outOfMemory, status.isKill && namespace == .signal || status == .unknown && namespace == .exit {
            self.init(killedByKernel: outOfMemory)
        }
    }

    private init(_ life: ProcessLife, _ status: ExitStatus) {
        switch life {
        case .ending(let ending):
            // SIGKILL is the daemon's if the daemon sent it; any other end is the app's own, however near the kill was.
            if let cause = ending.cause, status.isKill || status == .unknown {
                self.init(cause, from: ending.from)
            } else if let cause = ending.termination {
                self.init(terminated: cause, status)
            } else {
                self.init(own: status)
            }
        case .running(let running):
            if case .terminating(let terminating) = running.execution {
                self.init(terminated: terminating.cause, status)
            } else {
                self.init(own: status)
            }
        case .notRunning: self.init(own: status)
        }
    }

    /// An end that the daemon did not cause.
    private init(own status: ExitStatus) {
        switch status {
        case .exited(let code):
            self.init(.exit, Receipt.Code.exited, "Exited with status \(code).")
            failure = code == 0 ? nil : .failed
        case .signaled(let signal, let coreDumped):
            let name = signalName(signal)
            let isCrash = coreDumped || ExitStatus.crashSignals.contains(signal)
            self.init(
                .signal, Receipt.Code.signal,
                isCrash
                    ? "Crashed with \(name)\(coreDumped ? " (core dumped)" : "")."
                    : "Killed by \(name), which greenroomd did not send.")
            failure = isCrash ? .crashed : .failed
        case .unknown:
            self.init(
                .exit, Receipt.Code.exited,
                "Ended with unknown status: the main process was not a child of this greenroomd.")
        case .lost: self.init(.exit, Receipt.Code.exited, "Ended when the machine went down.")
        }
    }

    /// SIGKILL by the kernel's OOM killer.
    private init(killedByKernel cause: OutOfMemory) {
        switch cause {
        case .limit:
            self.init(
                .jetsam, Receipt.Code.perProcessLimit,
                "Killed by the kernel: exceeded its own memory limit (MemoryMax=).")
            failure = .failed
        case .machine: self.init(.jetsam, Receipt.Code.jetsam, "Killed by the kernel because memory was short.")
        }
    }

    /// The end of an app that got `willTerminate`.
    private init(terminated cause: TerminationCause, _ status: ExitStatus) {
        if let how = status.howTerminated { self.init(terminated: cause, how: how) } else { self.init(own: status) }
    }

    /// `how`: the rest of the sentence.
    private init(terminated cause: TerminationCause, how: String) {
        switch cause {
        case .requested: self.init(.exit, Receipt.Code.exited, "Terminated on request: \(how).")
        case .exitsOnSuspend:
            self.init(
                .exit, Receipt.Code.exited, "Terminated instead of being suspended (ExitsOnSuspend=yes): \(how).")
        case .shutdown: self.init(.exit, Receipt.Code.exited, "Terminated because greenroomd shuts down: \(how).")
        case .unloaded:
            self.init(.exit, Receipt.Code.exited, "Terminated after it was idle for UnloadAfterSec=: \(how).")
            isForMemory = true
        case .selfInitiated:
            self.init(.exit, Receipt.Code.exited, "Ended as the app had announced (STOPPING=1): \(how).")
        case .jetsam(let memory, let candidates):
            self.init(
                .jetsam, Receipt.Code.jetsam, "Terminated to free memory (\(memory.phrase)): \(how).",
                candidates: candidates)
        }
    }

    /// The end of a run that was killed. `from`: the state that users saw before.
    private init(_ cause: KillCause, from: AppState) {
        self.init(killedBy: cause, from: from)
        if case .unloaded = cause { (isUnloaded, isForMemory) = (true, true) }
        switch cause {
        case .missedDeadline, .leakedTasks, .wakeNotCompleted, .tooManyTasks, .terminationIgnored, .overMemoryLimit,
            .heldLocks, .overProcessorLimit, .usedGPU:
            failure = .failed
        case .removed, .terminationAnswered, .terminatedWithoutNotice, .unloaded, .shutdown, .jetsam: break
        }
    }

    private init(killedBy cause: KillCause, from: AppState) {
        switch cause {
        case .missedDeadline(let use):
            self.init(
                .watchdog, Receipt.Code.missedDeadline,
                "Killed: \(use.failure)\(use.unseen)\(use.unmet)\(use.usedCPU).",
                deadline: use)
        case .leakedTasks(let names, let use):
            self.init(
                .watchdog, Receipt.Code.leakedTask,
                "Killed: used up its background time (\(use.allowed.timeSpan)) with \(Self.list(names)) open"
                    + "\(use.usedCPU).", deadline: use)
        case .wakeNotCompleted(let reason, let use):
            self.init(
                .watchdog, Receipt.Code.wakeNotCompleted,
                "Killed: did not complete the \(reason.rawValue) that it was woken for within "
                    + "\(use.allowed.timeSpan)\(use.usedCPU).", deadline: use)
        case .tooManyTasks(let count):
            self.init(
                .lifecycle, Receipt.Code.tooManyTasks,
                "Killed: had \(count) background tasks open; the limit is \(LifecycleCore.maximumTasks).")
        case .heldLocks(let locks):
            self.init(
                .lifecycle, Receipt.Code.heldLock,
                "Killed: was about to be suspended while it held \(locks.phrase).")
        case .overProcessorLimit(let use):
            self.init(
                .resource, Receipt.Code.backgroundCPU,
                "Killed: used \(use.amount) in the background; the limit is \(use.limitText) (BackgroundCPULimit=).")
        case .usedGPU(let time):
            self.init(
                .resource, Receipt.Code.backgroundGPU,
                "Killed: used a GPU\(time > .zero ? " for \(time.timeSpan)" : "") in the background (BackgroundGPU=no)."
            )
        case .removed: self.init(.user, Receipt.Code.removedByUser, "Killed: removed by the user.")
        case .terminatedWithoutNotice:
            self.init(
                .exit, Receipt.Code.exited,
                from == .suspended
                    ? "Killed while suspended: terminated on request."
                    : "Killed without notice: terminated on request.")
        case .unloaded:
            self.init(.exit, Receipt.Code.exited, "Killed while suspended: it was idle for UnloadAfterSec=.")
        case .shutdown:
            self.init(
                .exit, Receipt.Code.exited,
                from == .suspended
                    ? "Killed while suspended: greenroomd shuts down." : "Killed: greenroomd shuts down.")
        case .jetsam(let memory, let candidates, let context):
            let state = from == .suspended ? " while suspended" : ""
            self.init(
                .jetsam, Receipt.Code.jetsam,
                context.excess.map { "Killed\(state): \($0.phrase)." }
                    ?? "Killed\(state) to free memory: \(memory.phrase)\(context.phrase).",
                candidates: candidates)
        case .overMemoryLimit(let limit, let size):
            let (state, key) = from == .suspended ? (" while suspended", "SuspendedMemoryMax=") : ("", "MemoryMax=")
            self.init(
                .jetsam, Receipt.Code.perProcessLimit,
                "Killed\(state): exceeded \(key) (\(limit.sizeText)) with \(size.sizeText) of memory.")
        case .terminationAnswered(let cause, let use):
            self.init(terminated: cause, how: "killed once it had answered")
            deadline = use
        case .terminationIgnored(let cause, let use):
            self.init(
                .watchdog, Receipt.Code.missedDeadline,
                "Killed: \(use.failure) after the notice to terminate (\(cause.reason.rawValue))\(use.usedCPU).",
                deadline: use)
        }
    }

    /// At most three by name: there can be a thousand.
    private static func list(_ names: [String]) -> String {
        let shown = names.prefix(3).map { "'\($0)'" }.joined(separator: ", ")
        let more = names.count > 3 ? " and \(names.count - 3) more" : ""
        return "the task\(names.count == 1 ? "" : "s") \(shown)\(more)"
    }
}

extension Receipt.DeadlineUse {
    /// The share of the processor tells a busy app from a hanging one.
    fileprivate var usedCPU: String { cpu.map { "; it used \($0.timeSpan) of CPU time" } ?? "" }

    /// The daemon may have missed that the app listens.
    fileprivate var unseen: String {
        hiddenSockets.map { "; whether it listens could not be seen (Type=listening): \($0.phrase)" } ?? ""
    }

    /// What was awaited.
    fileprivate var unmet: String { obstacle.map { "; \($0)" } ?? "" }

    /// The time that the app had, in words.
    private var allowedTime: String {
        let credit = credited >= .milliseconds(1) ? " and \(credited.timeSpan) without a processor" : ""
        return allowed.timeSpan + credit
    }

    fileprivate var failure: String {
        switch what {
        case .launch: "exceeded its launch deadline (\(allowedTime))"
        case .background: "exceeded its background deadline (\(allowedTime))"
        case .terminate: "exceeded its terminate deadline (\(allowedTime))"
        case .backgroundTime: "exceeded its background time (\(allowed.timeSpan))"
        case .wake: "exceeded the time of its wake (\(allowed.timeSpan))"
        case .watchdog where allowed == .zero: "reported an internal error (WATCHDOG=trigger)"
        case .watchdog: "sent no heartbeat (WATCHDOG=1) for \(allowed.timeSpan)"
        case .thaw: "did not run again within \(allowed.timeSpan) of its thaw"
        }
    }
}

extension AppPolicy.Readiness {
    /// What a launch that missed its deadline was awaiting, as the end of a sentence; `nil`: the daemon names it (`Inspection.obstacle`).
    var awaited: String? {
        switch self {
        case .executed: "its program has not been executed"
        case .notified: "it sent no READY=1 (Type=notify): set Type=exec or Type=listening if it never does"
        case .forked: nil
        case .listening:
            "none of its processes listens on a TCP or Unix stream socket (Type=listening): set Type=exec if it never does"
        }
    }
}

extension FileLocks {
    fileprivate var phrase: String {
        if isResource { return count == 1 ? "\(file) (Releases=)" : "\(file) and \(count - 1) more (Releases=)" }
        return count == 1 ? "a lock on \(file)" : "\(count) file locks, one of them on \(file)"
    }
}

extension MemoryCause {
    fileprivate var phrase: String {
        switch self {
        case .budget: "all apps together exceeded Budget="
        case .available: "the machine was low on available memory"
        case .pressure: "the machine stalled because memory was short"
        case .simulated: "simulated memory pressure"
        case .limit: "the memory that a limit leaves to the apps was short"
        }
    }
}

extension JetsamContext {
    /// What follows the cause.
    fileprivate var phrase: String {
        let time = hadNoTime ? "; it was filled too fast to wait for warned apps" : ""
        return time + (survivor.map { "; \($0), which was killed before, had not freed its memory in time" } ?? "")
    }
}

extension JetsamContext.Excess {
    fileprivate var phrase: String {
        "alone it used \(size.sizeText), more than the budget of all apps (\(budget.sizeText))"
    }
}

extension UInt64 {
    /// Bytes as systemd writes sizes: `512B`, `63.8M`, `2G`.
    package var sizeText: String {
        let units = ["K", "M", "G", "T"]
        guard self >= 1024 else { return "\(self)B" }
        var (unit, base) = (0, UInt64(1024))
        while unit + 1 < units.count, self / 1024 >= base {
            unit += 1
            base *= 1024
        }
        let tenth = self % base * 10 / base
        return tenth == 0 ? "\(self / base)\(units[unit])" : "\(self / base).\(tenth)\(units[unit])"
    }
}

extension ExitStatus {
    /// How a run ended that got `willTerminate`; `nil`: by something else than the notice.
    fileprivate var howTerminated: String? {
        switch self {
        case .exited(let code): "exited with status \(code)"
        // `Terminate=` can name any signal.
        case .signaled(let signal, let coreDumped):
            isKill || isCrash(signal, coreDumped) ? nil : "ended by \(signalName(signal))"
        case .unknown: "ended with unknown status"
        case .lost: nil
        }
    }

    private func isCrash(_ signal: Int32, _ coreDumped: Bool) -> Bool {
        coreDumped || Self.crashSignals.contains(signal)
    }

    /// Signals whose default action is to dump core because the program failed (signal(7)).
    fileprivate static let crashSignals: Set<Int32> = [4, 5, 6, 7, 8, 11, 31]
}

/// The name of a signal on Linux's common processors (signal(7)): `SIGSEGV`, `SIGRTMIN+1`.
package func signalName(_ number: Int32) -> String { knownSignalName(number) ?? "signal \(number)" }

/// The name as systemd writes it: `SEGV`, `RTMIN+1`.
package func shortSignalName(_ number: Int32) -> String {
    knownSignalName(number).map { String($0.dropFirst(3)) } ?? String(number)
}

private func knownSignalName(_ number: Int32) -> String? {
    // The real-time signals of programs. The kernel's first two, 32 and 33, belong to the C library.
    if (34...64).contains(number) { return "SIGRTMIN+\(number - 34)" }
    return signalNames[number]
}

private let signalNames: [Int32: String] = [
    1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 4: "SIGILL", 5: "SIGTRAP", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE",
    9: "SIGKILL", 10: "SIGUSR1", 11: "SIGSEGV", 12: "SIGUSR2", 13: "SIGPIPE", 14: "SIGALRM", 15: "SIGTERM",
    16: "SIGSTKFLT", 17: "SIGCHLD", 18: "SIGCONT", 19: "SIGSTOP", 20: "SIGTSTP", 21: "SIGTTIN", 22: "SIGTTOU",
    23: "SIGURG", 24: "SIGXCPU", 25: "SIGXFSZ", 26: "SIGVTALRM", 27: "SIGPROF",
    28: "SIGWINCH", 29: "SIGIO", 30: "SIGPWR",
    31: "SIGSYS",
]
