/// What is measured of the machine's memory (L36).
package enum MemoryEvent: Hashable, Sendable {
    indirect case measured(MemoryReading)
    /// A PSI trigger fired: tasks stall because memory is short. It makes the core look: `measureMemory`.
    case pressureStalled(MemoryLevel)
    case pressureSimulated(RequestID, MemoryLevel)
}

/// L36.
package enum MemoryLevel: Int, Comparable, CaseIterable, Hashable, Sendable {
    case normal, warning, critical
    package static func < (a: MemoryLevel, b: MemoryLevel) -> Bool { a.rawValue < b.rawValue }
}

/// The machine's memory and the sizes of apps. Sizes are in bytes.
package struct MemoryReading: Hashable, Sendable {
    package struct Size: Hashable, Sendable {
        package var run: RunID
        package var bytes: UInt64
        /// By how much `bytes` may be too large: pages that processes share after a fork are counted for each.
        package var uncertainty: UInt64
        package init(run: RunID, bytes: UInt64, uncertainty: UInt64 = 0) {
            self.run = run
            self.bytes = bytes
            self.uncertainty = uncertainty
        }
    }

    /// The tightest limit that counts for the apps: of a container, or of the service (`MemoryMax=`), on the way up from the
    /// apps' group to the root.
    package struct Limit: Hashable, Sendable {
        /// The group that has the limit, as /proc/self/cgroup names it.
        package var group: String
        package var total: UInt64
        /// What programs can allocate below the limit without a kill: page cache and reclaimable slab count as available.
        package var available: UInt64
        /// How often the kernel's OOM killer has killed below this limit (`oom_kill` of memory.events).
        package var kills: UInt64

        package init(group: String, total: UInt64, available: UInt64, kills: UInt64 = 0) {
            self.group = group
            self.total = total
            self.available = available
            self.kills = kills
        }
    }

    /// How long tasks have stalled on memory since the machine, or the group that has the limit, was started (PSI `total=`).
    package struct Stalls: Hashable, Sendable {
        /// At least one task.
        package var some: Duration
        /// All tasks that could run.
        package var full: Duration

        package init(some: Duration, full: Duration) {
            self.some = some
            self.full = full
        }
    }

    package var total: UInt64
    package var available: UInt64
    /// 0: the machine has no swap.
    package var swapTotal: UInt64 = 0
    package var swapFree: UInt64 = 0
    /// What was read again from disk or swap soon after it was evicted, since the machine was started
    /// (`workingset_refault_*` of /proc/vmstat, in bytes).
    package var refaulted: UInt64 = 0
    /// `nil`: no limit below the machine's memory.
    package var limit: Limit?
    /// `nil`: the kernel has no pressure stall information.
    package var stalls: Stalls?
    /// What apps without a process have stored in memory for their next launch (`FDSTORE=1`).
    package var stored: UInt64 = 0
    package var sizes: [Size]

    package init(total: UInt64, available: UInt64, sizes: [Size]) {
        self.total = total
        self.available = available
        self.sizes = sizes
    }
}

extension LifecycleCore {
    mutating func handle(_ event: MemoryEvent, _ now: Instant) {
        switch event {
        case .measured(let reading): memoryMeasured(reading, now)
        case .pressureStalled(let level): pressureStalled(level, now)
        case .pressureSimulated(let request, let level): pressureSimulated(request, level, now)
        }
    }
}

extension MemoryEvent: SavedUnion {
    package func save(to writer: inout ByteWriter) {
        switch self {
        case .measured(let reading): writer.put(case: 15, reading)
        case .pressureStalled(let level): writer.put(case: 16, level)
        case .pressureSimulated(let request, let level): writer.put(case: 17, request, level)
        }
    }

    package init?(case number: UInt64, _ values: inout RecordReader) throws(SavedError) {
        switch number {
        case 15: self = .measured(try values.next())
        case 16: self = .pressureStalled(try values.next())
        case 17: self = .pressureSimulated(try values.next(), try values.next())
        default: return nil
        }
    }
}

extension MemoryReading: SavedRecord {
    package static var blank: MemoryReading { MemoryReading(total: 0, available: 0, sizes: []) }

    package mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.size(1, &total)
        try coder.size(2, &available)
        try coder.list(3, &sizes, upTo: SavedLimits.apps)
        try coder.size(4, &swapTotal)
        try coder.size(5, &swapFree)
        try coder.size(6, &refaulted)
        try coder.optional(7, &limit)
        try coder.optional(8, &stalls)
        try coder.sparseSize(9, &stored)
    }
}

extension MemoryReading.Limit: SavedRecord {
    package static var blank: MemoryReading.Limit { MemoryReading.Limit(group: "", total: 0, available: 0) }

    package mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.required(1, &group)
        try coder.size(2, &total)
        try coder.size(3, &available)
        try coder.size(4, &kills)
    }
}

extension MemoryReading.Stalls: SavedRecord {
    package static var blank: MemoryReading.Stalls { MemoryReading.Stalls(some: .zero, full: .zero) }

    package mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.required(1, &some)
        try coder.required(2, &full)
    }
}

extension MemoryReading.Size: SavedRecord {
    package static var blank: MemoryReading.Size { MemoryReading.Size(run: RunID(0), bytes: 0) }

    package mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.required(1, &run)
        try coder.size(2, &bytes)
        try coder.sparseSize(3, &uncertainty)
    }
}
