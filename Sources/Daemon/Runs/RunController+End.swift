import Glibc
import LifecycleCore
import Linux
import LoopPolicy
import Manifest
import Posix
import Systemd

/// The end of the main process, and SIGKILL to the group (L45, L47).
extension RunController {
    /// The most processes whose memory is released right after SIGKILL: the main process and a few more.
    private static let releasedProcesses = 8

    /// `willTerminate`: the signal goes to the main process, wherever it is, and, with `KillMode=control-group`, to all
    /// processes of the group (L46).
    /// - Returns: whether it was sent to any process.
    func sendTerminate(_ number: Int32) -> Bool {
        let isSent = sendSignal(number)
        switch manifest.policy.killMode {
        case .mixed, .process: return isSent
        case .controlGroup:
            let signal = enclosure.beginSignal(number, except: process?.pid)
            // The first search, and the first processes.
            if isContinued(signal), isContinued(signal) {
                // The app may have thousands.
                context.loop.work.add { [weak self] in
                    guard let self, self.context.runs.contains(self) else { return false }
                    return self.isContinued(signal)
                }
            }
            return isSent || signal.sent > 0
        }
    }

    /// - Returns: whether there may be more processes to signal.
    private func isContinued(_ signal: GroupSignal) -> Bool {
        var hasMore = false
        attempt { hasMore = try signal.advance() }
        return hasMore
    }

    /// The processes of the group, once the main process has ended; `nil`: there are none.
    var remaining: RemainingProcesses? { remains.flatMap(RemainingProcesses.init) }

    /// `nil`: the group cannot be read.
    private var remains: Enclosure.Remains? { try? enclosure.remains(names: RemainingProcesses.maximumNames) }

    /// SIGKILL to all processes of the group, and to the main process, which may have left it.
    func killGroup() {
        var killed: [Linux.Process] = []
        attempt { killed = try enclosure.killAll(returning: Self.releasedProcesses) }
        sendSignal(SIGKILL)
        for process in killed { context.memory.releaser.release(process) }
    }

    /// Waits for the end of the main process.
    func watchExit() {
        guard let process else { return }
        do {
            try context.ends.watch(process, of: id)
        } catch {
            logWarning("\(error)")
            exitProbe = Retry.until(context.loop) { [weak self] in
                guard let self, self.process === process else { return true }
                guard process.isOver else { return false }
                self.mainProcessEnded()
                return true
            }
        }
    }

    func mainProcessEnded() {
        guard let process else { return }
        // Its last message may name another main process (`MAINPID=`). Then the run continues.
        socket.drain()
        connections.drain()
        guard self.process === process else { return }
        context.ends.endWatch(of: id)
        relay?.drain()
        if let status = relay?.exitStatus { return exited(status, cpu: .zero) }
        guard let report = try? process.reap() else { return probeExitStatus(of: process) }
        exited(report)
    }

    func exited(_ report: ExitReport) {
        exited(ExitStatus(report.status), cpu: report.cpu, peakMemory: peakMemory(report))
    }

    /// Reports the end of the main process, and waits for the end of the group.
    /// - Parameters:
    ///   - peakMemory: in bytes; 0: unknown.
    ///   - isFinal: no other main process follows.
    func exited(_ status: ExitStatus, cpu: Duration, peakMemory: UInt64 = 0, isFinal: Bool = false) {
        releaseMainProcess()
        if !isFinal, awaitsForked(FirstExit(status: status, cpu: cpu, peakMemory: peakMemory)) { return }
        transport.discard()
        reportKernelKill(status)
        let remains = self.remains
        send(
            .process(
                .exited(
                    status, cpu: max(cpu, remains?.cpuTime ?? .zero), memory: peakMemory,
                    remaining: remains.flatMap(RemainingProcesses.init))))
        // In process-group mode, another search of /proc would find the same.
        waitUntilEmpty(isEmpty: remains?.count == 0 && enclosure.path == nil)
    }

    /// The peak in bytes of the app's own program; 0: unknown. The kernel's peak includes the process before execve(2),
    /// a copy of the daemon. So only a larger one is the app's.
    private func peakMemory(_ report: ExitReport) -> UInt64 {
        report.maxRSS > OwnProcess.peakBytes ? report.maxRSS : 0
    }

    /// The main process was reaped, or is not a child of this daemon. Until now it has hidden orphans that ended after
    /// it.
    func releaseMainProcess() {
        guard let process else { return }
        // Before its descriptor is closed.
        context.ends.endWatch(of: id)
        self.process = nil
        context.runs.removeMainProcess(process.pid)
        context.runs.reapOrphans()
    }
}

extension RemainingProcesses {
    /// `nil`: there are none.
    fileprivate init?(_ remains: Enclosure.Remains) {
        guard remains.count > 0 else { return nil }
        self.init(count: remains.count, names: remains.names.map { $0.printable() })
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
