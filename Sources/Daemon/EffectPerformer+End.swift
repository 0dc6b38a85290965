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
        run.exitSource = attemptSource(run) {
            try loop.addDescriptor(process.descriptor, events: .readable) { [weak self, weak run] _ in
                guard let self, let run else { return }
                self.mainProcessEnded(run)
            }
        }
    }

    func attemptSource(_ run: AppRun, _ body: () throws -> EventSource) -> EventSource? {
        do { return try body() } catch {
            complain(run.app, "\(error)")
            return nil
        }
    }

    func mainProcessEnded(_ run: AppRun) {
        guard let process = run.process else { return }
        // Of a main process that is no child of ours (`MAINPID=`) only the end is known, not how.
        let end = try? process.reap()
        run.exitSource = nil
        forgetMainProcess(run)
        run.channel.drain()
        let cpu = max(end?.cpu ?? .zero, run.cpu)
        // Its size is what the core knows; the kernel's peak stands in for a life too short to be measured.
        let status = end.map { ExitStatus($0.status) } ?? .exited(0)
        send(.exited(run.id, status, cpu: cpu, memory: 0))
        watchEmpty(run)
    }

    /// Waits until no process of the run is left, then removes what was made for it.
    func watchEmpty(_ run: AppRun) {
        run.lookAgain = Retry.until(loop) { [weak self, weak run] in
            guard let self, let run else { return true }
            guard !run.isPopulated else { return false }
            self.forget(run)
            self.send(.emptied(run.id))
            return true
        }
    }

    /// The run is over, or never began: what was made for it goes.
    func forget(_ run: AppRun) {
        runs[run.id] = nil
        forgetMainProcess(run)
        run.channel.close()
        remove(run.enclosure, run.id, of: run.app)
    }

    /// Who failed to execute its program may still be on its way out, and its group is busy until it is.
    func remove(_ enclosure: Enclosure, _ run: RunID, of app: AppID) {
        closing[run] = Retry.until(loop) { [weak self] in
            guard let self else { return true }
            var isGone = true
            self.attempt(app) { isGone = try enclosure.remove() == .removed }
            if isGone { self.closing[run] = nil }
            return isGone
        }
    }

    // MARK: Children

    /// SIGCHLD: who has stopped or goes on, and orphans that became ours as a container's PID 1 or a subreaper.
    func childrenChanged() {
        for change in (try? Reaping.reapStops()) ?? [] {
            guard let id = mainProcesses[change.pid], let run = runs[id], !run.isFrozen else { continue }
            switch change.change {
            case .stopped: send(.stopped(id))
            case .continued: send(.continued(id))
            }
        }
        reapOrphans()
    }

    /// Main processes are reaped by whoever watches their pidfd.
    private func reapOrphans() {
        _ = try? Reaping.reapOrphans(sparing: { mainProcesses[$0] != nil })
    }

    /// It was reaped, or is no child of ours. Until now it hid orphans that ended after it.
    private func forgetMainProcess(_ run: AppRun) {
        guard let process = run.process else { return }
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
