import Glibc
import LifecycleCore
import Linux
import Systemd

/// Apps of an earlier daemon of which there is no record that can be read: one of another version, a damaged one, or none
/// at all. What they are doing nobody knows, so they can't go on; but they end in order, and each has a receipt (L45, L46).
struct OrphanedApps {
    /// L46's, as no manifest has been read yet.
    private static let deadline = Duration.seconds(5)
    /// How long what got SIGKILL may take. It is looked after later then.
    private static let patience = Duration.seconds(2)

    private final class OrphanedApp {
        let enclosure: Enclosure
        let app: AppID
        let state: AppState
        /// The one that began first; `nil`: it is gone already.
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
            memory = try enclosure.memoryBytes()
        }

        /// Of what began so many clock ticks after the boot.
        private static func age(_ start: UInt64) -> Duration {
            var now = timespec()
            clock_gettime(CLOCK_BOOTTIME, &now)
            let ticks = UInt64(max(sysconf(Int32(_SC_CLK_TCK)), 1))
            let began = Duration.milliseconds(Int64(clamping: start &* 1000 / ticks))
            return max(.zero, .seconds(now.tv_sec) + .nanoseconds(now.tv_nsec) - began)
        }
    }

    let containment: Containment
    let journal: Journal
    let receipts: ReceiptStore

    /// Before anything else begins. Takes as long as the slowest of them, at most some seconds.
    func end() {
        var all: [OrphanedApp] = []
        do {
            for enclosure in try containment.leftovers() where try enclosure.isPopulated() {
                guard let app = AppID(enclosure.app) else { continue }
                attempt { all.append(try OrphanedApp(enclosure, app)) }
            }
        } catch {
            logWarning("\(error)")
        }
        if all.isEmpty { return }
        logWarning("\(all.count) apps run of which nothing is known; they are told to terminate")
        for orphan in all { attempt { try tell(orphan) } }
        let start = EventLoop.now()
        while all.contains(where: { !$0.isOver }), EventLoop.now() < start + Self.deadline + Self.patience {
            let isLate = EventLoop.now() >= start + Self.deadline
            for orphan in all where !orphan.isOver {
                attempt { try look(at: orphan, isLate) }
                // At once: the next daemon would find nothing of it.
                if orphan.isOver { write(orphan) }
            }
            poll(nil, 0, 2)
        }
        for orphan in all where !orphan.isOver { write(orphan) }
    }

    private func tell(_ orphan: OrphanedApp) throws {
        try orphan.main?.signal(SIGTERM)
        // It hears of it first, and then goes on.
        try orphan.enclosure.thaw()
    }

    private func look(at orphan: OrphanedApp, _ isLate: Bool) throws {
        orphan.cpu = max(orphan.cpu, try orphan.enclosure.cpuTime())
        orphan.isOver = try !orphan.enclosure.isPopulated()
        if !orphan.isOver, !orphan.isKilled, isLate || orphan.main?.isOver ?? true {
            orphan.isKilled = isLate
            try orphan.enclosure.killAll()
        }
        guard orphan.exit == .unknown, let main = orphan.main, main.isOver else { return }
        // A child of ours only if its parent ended after this daemon began.
        let status = try main.reap()?.status ?? main.exitStatus()
        if let status { orphan.exit = ExitStatus(status) }
    }

    private func write(_ orphan: OrphanedApp) {
        let how = orphan.isKilled ? "killed, as it did not terminate in time" : "told to terminate"
        let receipt = Receipt(
            id: receipts.nextID, app: orphan.app, run: RunID(orphan.enclosure.run), pid: orphan.main?.pid,
            state: orphan.state, namespace: .exit, code: Receipt.Code.exited,
            explanation: "\(how): nothing is known of it, as an earlier greenroomd left no record that can be read",
            exit: orphan.exit, wall: orphan.age, cpu: orphan.cpu, memory: orphan.memory)
        attempt { try receipts.write(receipt) }
        journal.log(LogEntry(.ended(receipt)))
    }

    private func attempt(_ body: () throws -> Void) {
        do { try body() } catch { logWarning("\(error)") }
    }

    private func logWarning(_ sentence: String) { journal.log(.warning, MessageID.complaint, sentence) }
}
