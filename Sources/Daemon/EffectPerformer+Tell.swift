import LifecycleCore
import Linux
import Manifest
import Systemd

/// Notices: each as the signal that the manifest names for it, one after the other.
extension EffectPerformer {
    /// Looks for a signal that is not taken, before the next is sent all the same: a second, at `Retry`'s distances.
    private static let mostLooks = 12
    /// Notices that wait for one signal; whoever asks for more has asked faster than anybody could follow.
    static let mostWaiting = 64

    /// L3: of several signals that wait together the kernel has its own order (signal(7)), so one is sent when the one
    /// before was taken. Where that one is blocked for long, order is worth less than the news.
    func tell(_ run: AppRun, _ notice: Notice) {
        run.notices.append(notice)
        // What ends it is not kept waiting.
        if notice == .willTerminate || run.notices.count > Self.mostWaiting { return tellAll(run) }
        if run.telling == nil { tellInOrder(run) }
        noteNotices(run)
    }

    /// Those that an earlier daemon did not come to.
    ///
    /// - Returns: whether there were any.
    func tellWaiting(_ run: AppRun) -> Bool {
        let isWaiting = !run.notices.isEmpty
        if run.telling == nil, !run.notices.isEmpty { tellInOrder(run) }
        noteNotices(run)
        return isWaiting
    }

    /// A signal that an earlier daemon has sent, and that is still to be taken, is waited for as one of our own: else the next
    /// could come before it.
    func findSent(_ run: AppRun) {
        guard let status = status(of: run) else { return }
        let signals = run.manifest.signals
        let all = [
            signals.resignActive, signals.enterBackground, signals.enterForeground, signals.becomeActive,
            signals.memoryWarning, signals.taskExpiring,
        ]
        run.lastSignal = all.compactMap(\.self).first { status.hasPending($0) }
    }

    /// What waits outlives this daemon: the core takes for told what was given here.
    private func noteNotices(_ run: AppRun) {
        guard !run.notices.isEmpty || run.hasNotedNotices else { return }
        run.hasNotedNotices = !run.notices.isEmpty
        keepNote(of: run)
    }

    private func tellInOrder(_ run: AppRun) {
        var looks = 0
        run.telling = Retry.until(loop) { [weak self, weak run] in
            guard let self, let run else { return true }
            while let notice = run.notices.first {
                let status = self.status(of: run)
                looks += 1
                let isHeard = run.signal(for: notice) != nil
                if isHeard, looks < Self.mostLooks, run.isPending(in: status) { return false }
                looks = 0
                run.notices.removeFirst()
                self.give(run, notice, status)
                self.noteNotices(run)
            }
            run.telling = nil
            return true
        }
    }

    /// All that waits, at once.
    func tellAll(_ run: AppRun) {
        run.telling = nil
        while !run.notices.isEmpty { give(run, run.notices.removeFirst(), status(of: run)) }
        noteNotices(run)
    }

    /// Nobody is left to hear it.
    func tellNothing(_ run: AppRun) {
        run.telling = nil
        run.notices = []
        noteNotices(run)
    }

    /// Signals go only to programs that catch them: of the others most would end by it. `Terminate=` is the exception.
    private func give(_ run: AppRun, _ notice: Notice, _ status: ProcessStatus?) {
        var delivered = false
        if let number = run.signal(for: notice), notice == .willTerminate || status?.catches(number) ?? false {
            delivered = signal(run, number)
            if delivered { run.lastSignal = number }
        }
        // The core moves on once this is told: who is to answer is looked at after that.
        if notice == .didEnterBackground, delivered, run.isAdopted {
            loop.callLater { [weak self, weak run] in run.map { self?.lookForStop($0) } }
        }
        if notice == .willTerminate, run.isAdopted, isStopped(run) { signal(run, Signals.continue) }
        guard notice.isAnswered else { return }
        send(.run(run.id, .notified(notice, delivered: delivered, cpu: run.cpu)))
    }

    private func status(of run: AppRun) -> ProcessStatus? {
        run.process.flatMap { try? ProcFS().status(of: $0.pid) }
    }

    @discardableResult
    func signal(_ run: AppRun, _ number: Int32) -> Bool {
        guard let process = run.process else { return false }
        do {
            return try process.signal(number) == .sent
        } catch {
            logWarning(run.app, "\(error)")
            return false
        }
    }
}

extension AppRun {
    /// Whether the last notice's signal is still to be taken.
    fileprivate func isPending(in status: ProcessStatus?) -> Bool {
        guard let lastSignal, let status else { return false }
        return status.hasPending(lastSignal)
    }
}
