import LifecycleCore
import Linux
import Posix
import Systemd

/// Protects the memory of apps in the foreground from reclaim (`memory.low`), up to their footprint. With a memory controller only.
final class MemoryProtection {
    private let runs: RunTable
    private let memory: MemoryWatch
    private let containment: Containment
    private let journal: Journal
    /// What is set, in bytes.
    private var apps: [RunID: UInt64] = [:]
    /// The memory of the machine, in bytes. 0: not read yet.
    private var total: UInt64 = 0
    /// What is set for all apps together, in bytes.
    private var sum: UInt64 = 0
    private var isFailureLogged = false

    /// All apps in the foreground together: the kernel must find something to reclaim elsewhere.
    private static let share: UInt64 = 4

    init(runs: RunTable, memory: MemoryWatch, containment: Containment, journal: Journal) {
        (self.runs, self.memory, self.containment, self.journal) = (runs, memory, containment, journal)
    }

    /// The app entered the foreground.
    func insert(_ run: RunID) {
        guard apps[run] == nil, runs[run]?.enclosure.hasMemoryController == true else { return }
        apps[run] = 0
        renew()
    }

    /// The app left the foreground, or ended.
    func remove(_ run: RunID) {
        guard apps.removeValue(forKey: run) != nil else { return }
        attempt { try runs[run]?.enclosure.protectMemory(0) }
        renew()
    }

    /// Called at each measurement of memory: the apps have grown.
    /// - Parameter total: the memory of the machine, in bytes.
    func measured(_ sizes: [MemoryReading.Size], total: UInt64) {
        self.total = total
        if apps.isEmpty { return }
        protect { run in sizes.first { $0.run == run }?.bytes }
    }

    /// Shares what may be protected anew, after their number has changed.
    private func renew() {
        if total == 0 { total = memory.read().total }
        protect { try? runs[$0]?.enclosure.footprint().bytes }
    }

    private func protect(footprints: (RunID) -> UInt64?) {
        for (run, bytes) in apps {
            guard let enclosure = runs[run]?.enclosure, let footprint = footprints(run), footprint > 0 else { continue }
            let wanted = min(footprint, total / Self.share / UInt64(apps.count))
            // A small change is not worth a write.
            if wanted > bytes + bytes / 8 || wanted < bytes - bytes / 8 || bytes == 0 {
                attempt { try enclosure.protectMemory(wanted) }
                apps[run] = wanted
            }
        }
        let all = apps.values.reduce(0, +)
        if all != sum { attempt { try containment.protectMemory(all) } }
        sum = all
    }

    /// Logs only the first failure: all have the same reason.
    private func attempt(_ body: () throws -> Void) {
        do {
            try body()
        } catch {
            if !isFailureLogged {
                journal.logWarning("memory of apps in the foreground is not protected: \(error)")
            }
            isFailureLogged = true
        }
    }
}
