import LifecycleCore

/// What some seeds have beside the machine's memory: a tighter limit, swap, stalls, limits of apps. It follows from the number
/// of the seed and from a random stream of its own, so that the other seeds stay unchanged.
struct MemoryFeatures {
    var random: Random
    var refaulted: UInt64 = 0
    var stalled: Microseconds = 0
    /// When `stalled` was updated.
    var updated: Microseconds = 0
    /// What the kernel has killed below the limit.
    var kills: UInt64 = 0

    init(seed: UInt64) { random = Random(seed: seed ^ 0x6d65_6d6f_7279) }
}

extension World {
    private var hasLimit: Bool { scenario.seed % 6 == 1 }
    private var hasSwap: Bool { scenario.seed % 6 == 2 }
    private var knowsStalls: Bool { scenario.seed % 4 >= 2 }

    /// `MemoryMax=` and `SuspendedMemoryMax=`. The limits are sizes that apps reach.
    mutating func limitMemory(of index: Int) {
        guard scenario.seed % 9 == 4 else { return }
        if memory.random.chance(300) { apps[index].policy.memoryMax = UInt64(80 + memory.random.below(400)) << 20 }
        if memory.random.chance(300) {
            apps[index].policy.suspendedMemoryMax = UInt64(2 + memory.random.below(60)) << 20
        }
    }

    mutating func memoryReading(_ sizes: [MemoryReading.Size]) -> MemoryReading {
        var reading = MemoryReading(total: scenario.totalMemory, available: available, sizes: sizes)
        if hasSwap {
            reading.swapTotal = scenario.totalMemory / 2
            let isFull = !isQuiet && memory.random.chance(400)
            reading.swapFree = isFull ? 0 : reading.swapTotal / 4 + UInt64(memory.random.below(1 << 28))
            let isThrashing = !isQuiet && memory.random.chance(200)
            memory.refaulted += isThrashing ? scenario.totalMemory : UInt64(memory.random.below(1 << 20))
            reading.refaulted = memory.refaulted
        }
        if hasLimit {
            let total = scenario.totalMemory / 2
            let used = usedMemory + returning.reduce(0) { $0 + $1.bytes }
            reading.limit = MemoryReading.Limit(
                group: "/apps.slice", total: total, available: total - min(total, used), kills: memory.kills)
        }
        if knowsStalls {
            // Tasks stall for half of the time while memory is short.
            if available < scenario.totalMemory / 12 { memory.stalled += (now - memory.updated) / 2 }
            let some = memory.stalled.duration
            reading.stalls = MemoryReading.Stalls(some: some, full: some / 2)
        }
        memory.updated = now
        return reading
    }

    /// Suspended apps whose sizes are in readings: those whose pages may have been swapped.
    func isMeasuredFrozen(_ run: Int) -> Bool { scenario.seed % 4 == 3 && runs[run].freezer == .frozen }

    /// The kernel kills below the limit where that is exceeded, on the machine where nothing is available.
    mutating func countKill() { memory.kills += 1 }
}

extension World {
    /// In every fifth seed the order is `balanced`, whatever was drawn.
    mutating func balanceJetsam() {
        if scenario.seed % 5 == 3 { manager.jetsamOrder = .balanced }
    }
}
