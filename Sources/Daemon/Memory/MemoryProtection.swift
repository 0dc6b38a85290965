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
        refresh()
    }

    /// The app left the foreground, or ended.
    func remove(_ run: RunID) {
        guard apps.removeValue(forKey: run) != nil else { return }
        attempt { try runs[run]?.enclosure.protectMemory(0) }
        refresh()
    }

    /// Called at each measurement of memory: the apps have grown.
    func refresh() {
        if apps.isEmpty, sum == 0 { return }
        let total = memory.read().total
        for (run, bytes) in apps {
            guard let enclosure = runs[run]?.enclosure, let footprint = try? enclosure.footprint().bytes else {
                continue
            }
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
