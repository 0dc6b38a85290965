import Glibc
package import Posix

/// One search of /proc for the processes of all runs, in steps: with many processes it takes some
/// milliseconds. Zombies and kernel threads, init and this process are left out.
package final class ProcessScan {
    private let table: ProcessTable
    private let ownPID = getpid()
    /// When the search began, in clock ticks since boot. It finds no process that started later.
    private(set) var start: UInt64 = 0
    private var pids: ArraySlice<Int32>?
    private var stats: [ProcessStat] = []
    private var byKey: [ProcessKey: Int] = [:]
    private var byParent: [Int32: [Int]] = [:]
    private var bySession: [Int32: [Int]] = [:]
    private var byMarker: [String: [Int]] = [:]

    /// How many processes a step reads: about 10 µs each.
    private static let step = 16

    init(_ table: ProcessTable) {
        self.table = table
    }

    /// Reads the next processes.
    /// - Returns: whether there are more.
    package func advance() throws(SystemError) -> Bool {
        guard let rest = pids else {
            start = bootTicks()
            pids = try table.proc.pids()[...]
            return true
        }
        for pid in rest.prefix(Self.step) where pid != ownPID && pid != 1 {
            guard let stat = try table.proc.stat(of: pid), !stat.isDead, !stat.isKernelThread else { continue }
            let index = stats.count
            stats.append(stat)
            byKey[stat.key] = index
            byParent[stat.parent, default: []].append(index)
            bySession[stat.session, default: []].append(index)
            if let marker = try table.marker(of: stat) { byMarker[marker, default: []].append(index) }
        }
        let left = rest.dropFirst(Self.step)
        pids = left
        if left.isEmpty { table.prune(byKey.keys, count: stats.count) }
        return !left.isEmpty
    }

    subscript(key: ProcessKey) -> ProcessStat? { byKey[key].map { stats[$0] } }
    func children(of pid: Int32) -> [ProcessStat] { byParent[pid, default: []].map { stats[$0] } }
    func session(_ session: Int32) -> [ProcessStat] { bySession[session, default: []].map { stats[$0] } }
    func marked(_ value: String) -> [ProcessStat] { byMarker[value, default: []].map { stats[$0] } }
    /// The markers of all processes, sorted.
    var markers: [String] { byMarker.keys.sorted() }
}

/// The time since boot in clock ticks, as in the start times of processes.
private func bootTicks() -> UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_BOOTTIME, &time)
    let perSecond = UInt64(max(sysconf(Int32(_SC_CLK_TCK)), 1))
    return UInt64(time.tv_sec) * perSecond + UInt64(time.tv_nsec) / (1_000_000_000 / perSecond)
}
