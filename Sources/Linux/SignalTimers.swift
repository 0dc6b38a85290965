package import Posix

/// Timers that are due by a signal: setitimer(2), alarm(2) and timer_create(2). The kernel shows no due time of them, but the signal waits for
/// a frozen process.
package struct SignalTimer: Hashable, Sendable {
    let process: Int32
    /// The signals that waited before the freeze: signal n is bit n-1.
    let pending: UInt64
    /// A timer of timer_create(2) can send its signal to one thread.
    let isOfThreads: Bool

    /// The most threads whose signals are read.
    private static let mostThreads = 64
    /// SIGALRM
    private static let alarm: Int32 = 14

    /// - Returns: `nil` if the process has no such timer: it catches no SIGALRM, and has created none.
    package init?(of process: Int32, _ proc: ProcFS) throws(SystemError) {
        guard let bytes = try proc.readRecord("status", of: process), let status = ProcessStatus(parsing: bytes) else {
            return nil
        }
        // The file shows timers of timer_create(2) only.
        isOfThreads = !((try? proc.read("timers", of: process, limit: 1 << 16)) ?? nil ?? []).isEmpty
        guard isOfThreads || status.catches(Self.alarm) else { return nil }
        self.process = process
        // A signal that the process would have taken if it ran has come since the freeze.
        let taken = status.caughtSignals & ~status.blockedSignals
        pending = try ~taken & Self.pending(of: process, status, isOfThreads: isOfThreads, proc)
    }

    /// Whether a signal has arrived since the freeze.
    package func isDue(_ proc: ProcFS = ProcFS()) -> Bool {
        guard let bytes = (try? proc.readRecord("status", of: process)) ?? nil,
            let status = ProcessStatus(parsing: bytes),
            let now = try? Self.pending(of: process, status, isOfThreads: isOfThreads, proc)
        else { return false }
        return now & ~pending != 0
    }

    private static func pending(
        of process: Int32, _ status: ProcessStatus, isOfThreads: Bool, _ proc: ProcFS
    ) throws(SystemError) -> UInt64 {
        var pending = status.pendingSignals
        guard isOfThreads else { return pending }
        for thread in try proc.threads(of: process).prefix(mostThreads) where thread != process {
            guard let bytes = try proc.readRecord("task/\(thread)/status", of: process) else { continue }
            pending |= ProcessStatus(parsing: bytes)?.pendingSignals ?? 0
        }
        return pending
    }
}
