import Glibc
import LifecycleCore
import Linux
import Reports
import Systemd

/// Running apps that the recovered state does not contain: nothing was recorded, the record is damaged, or it cannot be
/// read by this version. Their state is unknown, so they cannot continue. They are terminated in order, and each
/// has a receipt (L45, L46).
struct OrphanedApps {
    /// The default of `TerminateDeadlineSec=` (L46): manifests are not read yet.
    private static let deadline = Duration.seconds(5)
    /// How long the daemon waits for the end of processes after SIGKILL. After that, their groups are removed later.
    private static let killTimeout = Duration.seconds(2)

    private final class OrphanedApp {
        let enclosure: Enclosure
        let app: AppID
        let state: AppState
        /// The process that started first; `nil`: it has ended.
        let main: Linux.Process?
        let age: Duration
        let memory: UInt64
        var cpu = Duration.zero
        var exit = ExitStatus.unknown
        var isKilled = false
        var isOver = false

        init(_ enclosure: Enclosure, _ app: AppID) throws {
            self.enclosure = enclosure
            self.app = app
            state = try enclosure.isFrozen() ? .suspended : .background
            let stats = try enclosure.pids().compactMap { try ProcFS().stat(of: $0) }
            let first = stats.min { ($0.startTime, $0.pid) < ($1.startTime, $1.pid) }
            main = try first.flatMap { try Linux.Process.open($0.pid) }
            age = first.map { Self.age($0.startTime) } ?? .zero
            memory = try enclosure.footprint().bytes
        }

        /// - Parameter start: in clock ticks since boot.
        private static func age(_ start: UInt64) -> Duration {
            var now = timespec()
            clock_gettime(CLOCK_BOOTTIME, &now)
            let ticks = UInt64(max(sysconf(Int32(_SC_CLK_TCK)), 1))
            let startTime = Duration.milliseconds(Int64(clamping: start &* 1000 / ticks))
            return max(.zero, .seconds(now.tv_sec) + .nanoseconds(now.tv_nsec) - startTime)
        }
    }

    let containment: Containment
    let journal: Journal
    let receipts: ReceiptStore

    /// Ends all apps whose run is not in `known`. Called before anything else is done for apps. Returns when the
    /// slowest of them has ended, after some seconds at most.
    func end(except known: Set<RunID> = []) {
        var all: [OrphanedApp] = []
        do {
            for enclosure in try containment.orphanedEnclosures()
            where try !known.contains(RunID(enclosure.run)) && enclosure.isPopulated() {
                guard let app = AppID(enclosure.app) else { continue }
                attempt { all.append(try OrphanedApp(enclosure, app)) }
            }
        } catch {
            logWarning("\(error)")
        }
        if all.isEmpty { return }
        logWarning("found \(all.count) running apps whose state is unknown; terminating them")
        for orphan in all { attempt { try terminate(orphan) } }
        let start = EventLoop.now()
        while all.contains(where: { !$0.isOver }), EventLoop.now() < start + Self.deadline + Self.killTimeout {
            let isOverdue = EventLoop.now() >= start + Self.deadline
            for orphan in all where !orphan.isOver {
                attempt { try check(orphan, isOverdue) }
                // At once: if this daemon dies, the next one does not find an app that has ended.
                if orphan.isOver { writeReceipt(orphan) }
            }
            poll(nil, 0, 2)
        }
        for orphan in all where !orphan.isOver { writeReceipt(orphan) }
    }

    private func terminate(_ orphan: OrphanedApp) throws {
        try orphan.main?.signal(SIGTERM)
        // The default of `KillMode=`.
        try orphan.enclosure.signalAll(SIGTERM, except: orphan.main?.pid)
        // The signal is pending before the app runs again.
        try orphan.enclosure.thaw()
    }

    private func check(_ orphan: OrphanedApp, _ isOverdue: Bool) throws {
        orphan.cpu = max(orphan.cpu, try orphan.enclosure.cpuTime())
        orphan.isOver = try !orphan.enclosure.isPopulated()
        if !orphan.isOver, !orphan.isKilled, isOverdue {
            orphan.isKilled = true
            try orphan.enclosure.killAll()
            try orphan.main?.signal(SIGKILL)
        }
        guard orphan.exit == .unknown, let main = orphan.main, main.isOver else { return }
        // It can be reaped only if its parent ended after this daemon was started.
        let status = try main.reap()?.status ?? main.exitStatus()
        if let status { orphan.exit = ExitStatus(status) }
    }

    private func writeReceipt(_ orphan: OrphanedApp) {
        let how = orphan.isKilled ? "killed: exceeded its terminate deadline" : "terminated"
        let receipt = Receipt(
            id: receipts.nextID, app: orphan.app, run: RunID(orphan.enclosure.run), pid: orphan.main?.pid,
            state: orphan.state, namespace: .exit, code: Receipt.Code.exited,
            explanation: "\(how): its state is unknown, because the previous greenroomd left no usable record of it",
            exit: orphan.exit, wall: orphan.age, cpu: orphan.cpu, memory: orphan.memory)
        attempt { try receipts.write(receipt) }
        journal.log(LogEntry(.ended(receipt)))
    }

    private func attempt(_ body: () throws -> Void) {
        do { try body() } catch { logWarning("\(error)") }
    }

    private func logWarning(_ sentence: String) { journal.logWarning(sentence) }
}
