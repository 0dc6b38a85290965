import LifecycleCore
import Linux
import Systemd

/// Killing, and what is left after an end (L45, L47).
extension EffectPerformer {
    /// Whose memory is released at once after SIGKILL, instead of when they get to it: the main process and a few more.
    private static let releasedProcesses = 8

    /// SIGKILL to all of the run, a frozen one too.
    func kill(_ run: AppRun) {
        run.isFrozen = false
        run.lookAgain = nil
        tellNothing(run)
        if run.isPopulated { killAll(run) }
        // How the main process ended is still to be collected otherwise: a zombie does not populate its group, and a run
        // that was forgotten now would never be told to have exited.
        if run.process == nil, run.starting == nil { watchEmpty(run) }
    }

    private func killAll(_ run: AppRun) {
        // Before the kill: afterwards the pids may belong to others.
        let pids = (try? run.enclosure.pids()) ?? []
        let doomed = pids.prefix(Self.releasedProcesses).compactMap { try? Process.open($0) }
        attempt(run.app) { try run.enclosure.killAll() }
        for process in doomed { release(process) }
    }

    /// What it costs is the helper thread's; what came of it only empties the queue.
    private func release(_ process: Process) {
        guard let reaper else { return }
        if reaperSource == nil {
            reaperSource = try? loop.addDescriptor(reaper.descriptor, events: .readable) { _ in
                _ = try? reaper.completions()
            }
        }
        _ = try? reaper.release(process, token: 0)
    }

    func watchExit(_ run: AppRun) {
        guard let process = run.process else { return }
        do {
            run.exitSource = try loop.addDescriptor(process.descriptor, events: .readable) { [weak self, weak run] _ in
                guard let self, let run else { return }
                self.mainProcessEnded(run)
            }
        } catch {
            // An end that nobody hears of would be none: it is looked for then.
            logWarning(run.app, "\(error)")
            run.lookForEnd = Retry.until(loop) { [weak self, weak run] in
                guard let self, let run, run.process === process else { return true }
                guard process.isOver else { return false }
                self.mainProcessEnded(run)
                return true
            }
        }
    }

    func mainProcessEnded(_ run: AppRun) {
        guard let process = run.process else { return }
        // Its last words may be that another is the main process now (`MAINPID=`): then the app goes on.
        run.channel.drain()
        guard run.process === process else { return }
        let end = try? process.reap()
        run.exitSource = nil
        // Of one that is no child of ours the kernel may still say how it ended, once its parent has asked.
        guard let end else { return adoptedProcessEnded(run, process) }
        ended(run, end)
    }

    func ended(_ run: AppRun, _ end: ExitReport) {
        ended(run, ExitStatus(end.status), cpu: end.cpu, memory: ownPeak(end))
    }

    func ended(_ run: AppRun, _ status: ExitStatus, cpu: Duration, memory: UInt64 = 0) {
        tellNothing(run)
        forgetMainProcess(run)
        send(.run(run.id, .exited(status, cpu: max(cpu, run.cpu), memory: memory)))
        watchEmpty(run)
    }

    /// The kernel's peak of a process includes what it was before execve(2): a copy of ours. So only a larger one is the
    /// app's own; 0: not known.
    private func ownPeak(_ end: ExitReport) -> UInt64 { end.maxRSS > OwnProcess.peakBytes ? end.maxRSS : 0 }

    /// Waits until no process of the run is left, then removes what was made for it.
    func watchEmpty(_ run: AppRun) {
        run.lookAgain = Retry.until(loop) { [weak self, weak run] in
            guard let self, let run else { return true }
            guard !run.isPopulated else { return false }
            self.forget(run)
            self.send(.run(run.id, .emptied))
            return true
        }
    }

    /// The run is over, or never began: what was made for it goes.
    func forget(_ run: AppRun) {
        runs[run.id] = nil
        forgetNote(of: run)
        forgetMainProcess(run)
        run.channel.close()
        attempt(run.app) { try emptyInbox(of: run.app) }
        remove(run.enclosure)
    }

    /// Who failed to execute its program may still be on its way out, and its group is busy until it is.
    func remove(_ enclosure: Enclosure) {
        // By a number of its own: a run may have left several groups.
        lastClosing += 1
        let number = lastClosing
        closing[number] = Retry.until(loop) { [weak self] in
            guard let self else { return true }
            var isGone = true
            do {
                isGone = try enclosure.remove() == .removed
            } catch {
                self.journal.log(.warning, MessageID.complaint, "\(enclosure.app): \(error)")
            }
            if isGone { self.closing[number] = nil }
            return isGone
        }
    }

    // MARK: Children

    /// SIGCHLD: who has stopped or goes on, and orphans of apps, which are our children as we are their subreaper.
    func childrenChanged() {
        for change in (try? Reaping.reapStops()) ?? [] {
            guard let id = mainProcesses[change.pid], let run = runs[id], !run.isFrozen else { continue }
            switch change.change {
            case .stopped: send(.run(id, .stopped))
            case .continued: send(.run(id, .continued))
            }
        }
        reapOrphans()
    }

    /// Main processes are reaped by whoever watches their pidfd.
    func reapOrphans() {
        _ = try? Reaping.reapOrphans(sparing: { mainProcesses[$0] != nil })
    }

    /// It was reaped, or is no child of ours. Until now it hid orphans that ended after it.
    private func forgetMainProcess(_ run: AppRun) {
        guard let process = run.process else { return }
        // Before its descriptor is closed.
        run.exitSource = nil
        run.process = nil
        mainProcesses[process.pid] = nil
        reapOrphans()
    }
}

extension ExitStatus {
    init(_ status: EndStatus) {
        switch status {
        case .exited(let code): self = .exited(code)
        case .signaled(let signal, let coreDumped): self = .signaled(signal, coreDumped: coreDumped)
        }
    }
}
