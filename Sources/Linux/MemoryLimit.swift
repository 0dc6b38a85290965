/// A limit of a group's memory, and what is left below it. Sizes are in bytes.
package struct MemoryLimit: Equatable {
    /// As /proc/self/cgroup names it.
    package var group: String
    package var folder: String
    /// The file that has the limit: `memory.max`, `memory.high` or `memory.limit_in_bytes`.
    package var file: String
    package var total: UInt64
    /// What can be allocated without a kill or a delay: clean and dirty pages of files, and reclaimable slab, count as
    /// available, as in MemAvailable.
    package var available: UInt64
    /// How often the kernel's OOM killer has killed because of this limit.
    package var kills: UInt64
    /// The memory.pressure that counts the stalls of the apps below the limit; `nil`: only that of the machine does.
    package var pressurePath: String?
    /// Whether the group has memory.events (cgroup v2).
    package var hasEvents: Bool

    package init(
        group: String, folder: String, file: String, total: UInt64, available: UInt64, kills: UInt64 = 0,
        pressurePath: String? = nil, hasEvents: Bool = false
    ) {
        self.group = group
        self.folder = folder
        self.file = file
        self.total = total
        self.available = available
        self.kills = kills
        self.pressurePath = pressurePath
        self.hasEvents = hasEvents
    }
}

/// Parses a limit: a number of bytes, or `max` for none. `.some(nil)`: none; `nil`: the text is no limit.
package func parseLimit(_ bytes: [UInt8]) -> UInt64?? {
    var scanner = ByteScanner(bytes)
    guard let word = scanner.word() else { return nil }
    if word.elementsEqual("max".utf8) { return .some(nil) }
    return parseNumber(word).map { .some($0) }
}

/// The lines of a group's memory.stat that count for a limit. Those of v1 include the groups below with the prefix `total_`;
/// those of v2 always do.
package struct MemoryLimitStat: Equatable {
    /// Pages of files, without shared memory, which the kernel keeps in the lists of anonymous pages; and reclaimable slab.
    package var reclaimable: UInt64 = 0
    /// v1: what is in swap.
    package var swapped: UInt64 = 0
    /// v1: the smallest limit of this group and all above it, those outside of the cgroup namespace included.
    package var hierarchicalLimit: UInt64?

    package init(parsing bytes: [UInt8], _ version: MemoryPath.Version) {
        var scanner = ByteScanner(bytes)
        while let line = scanner.line() {
            var words = ByteScanner(line)
            guard let name = words.word(), let value: UInt64 = words.number() else { continue }
            func isNamed(_ other: StaticString) -> Bool { other.withUTF8Buffer { name.elementsEqual($0) } }
            switch version {
            case .two:
                if isNamed("active_file") || isNamed("inactive_file") || isNamed("slab_reclaimable") {
                    reclaimable = saturated(reclaimable, value)
                }
            case .one:
                if isNamed("total_active_file") || isNamed("total_inactive_file") {
                    reclaimable = saturated(reclaimable, value)
                } else if isNamed("total_swap") {
                    swapped = value
                } else if isNamed("hierarchical_memory_limit") {
                    hierarchicalLimit = value
                }
            }
        }
    }
}

/// Returns what can be allocated below a limit. `memory.high` may be exceeded, and every limit may be lowered below the use.
package func availableMemory(below limit: UInt64, used: UInt64, reclaimable: UInt64) -> UInt64 {
    let held = used - min(used, reclaimable)
    return limit - min(limit, held)
}

/// memory.events of a group (kernel: cgroup-v2.rst). `memory.events.local` counts what this group's own limits have caused;
/// `memory.events` includes the groups below, such as apps that exceed a limit of their own.
package struct MemoryEvents: Equatable {
    /// The use exceeded memory.high: the processes were delayed.
    package var high: UInt64 = 0
    /// The use was about to exceed memory.max.
    package var max: UInt64 = 0
    /// The use reached the limit, and nothing could be reclaimed.
    package var oom: UInt64 = 0
    /// Processes that an OOM killer killed, for whatever limit.
    package var kills: UInt64 = 0

    package init() {}

    package init(parsing bytes: [UInt8]) {
        high = flatKeyed(bytes, "high") ?? 0
        max = flatKeyed(bytes, "max") ?? 0
        oom = flatKeyed(bytes, "oom") ?? 0
        kills = flatKeyed(bytes, "oom_kill") ?? 0
    }
}

func saturated(_ a: UInt64, _ b: UInt64) -> UInt64 {
    let (sum, overflow) = a.addingReportingOverflow(b)
    return overflow ? .max : sum
}
