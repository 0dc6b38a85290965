/// Memory that can run out: the machine's, or that below the tightest limit. Sizes are bytes.
struct MemoryPool: Hashable, Sendable {
    var cause: MemoryCause
    var total: UInt64
    var available: UInt64
    var thresholds: MemoryThresholds
    /// How fast the available memory falls, in bytes a second.
    var fillRate: UInt64
    /// The kernel still gains memory by swapping.
    var hasSwap = false

    /// What is filled until the next look.
    var fill: UInt64 { fillRate / 10 }

    /// Less than the critical threshold is available, or hardly anything will be at the next look.
    var isCritical: Bool { available < thresholds.critical || isUsedUpSoon && !isPlenty }

    /// Hardly anything would be available at the next look, but more than a quarter is now. The rate may be that of programs that
    /// have stopped meanwhile, so nothing is killed for it (L35), and memory is measured again after `LifecycleCore.hastyCheck`.
    var needsHaste: Bool { isUsedUpSoon && isPlenty && !isCritical }

    private var isPlenty: Bool { available > total / 4 }
    private var isUsedUpSoon: Bool { available < thresholds.foreground.saturatingSum(fill) }

    /// Memory is so short, or is filled so fast, that it may be used up before apps can answer a warning.
    var isPressing: Bool {
        available
            < thresholds.foreground.saturatingSum(
                max(fill, fillRate * UInt64(LifecycleCore.warningLead.components.seconds)))
    }

    /// The deficit for apps that are not in the foreground: with what is filled until the next look (L39).
    /// `credited`: what is on its way.
    func deficit(credited: UInt64) -> UInt64 {
        guard isCritical else { return 0 }
        let wanted = available < thresholds.critical ? thresholds.critical : thresholds.foreground
        return wanted.saturatingSum(fill).excess(over: available.saturatingSum(credited))
    }

    /// The deficit for apps in the foreground.
    func foregroundDeficit(credited: UInt64) -> UInt64 {
        guard available < thresholds.foreground else { return 0 }
        return thresholds.foreground.saturatingSum(fill).excess(over: available.saturatingSum(credited))
    }

    /// The threshold that is passed next if less is available.
    var nextThreshold: UInt64 {
        if thresholds.warning < available { return thresholds.warning }
        if thresholds.critical < available { return thresholds.critical }
        return thresholds.foreground < available ? thresholds.foreground : 0
    }
}

/// The machine, and the limit below it, as far as they are known. Asked for several times in an event: without an array or an
/// iterator.
struct MemoryPools {
    var machine: MemoryPool?
    var limit: MemoryPool?

    @inline(__always)
    func contains(where isMeant: (MemoryPool) -> Bool) -> Bool {
        machine.map(isMeant) ?? false || limit.map(isMeant) ?? false
    }

    @inline(__always)
    func forEach(_ body: (MemoryPool) -> Void) {
        if let machine { body(machine) }
        if let limit { body(limit) }
    }
}

extension LifecycleCore {
    // Inlined, as what it calls: a call of a function that does not change the core copies the core.
    @inline(__always)
    var memoryPools: MemoryPools {
        var pools = MemoryPools()
        if memoryState.total > 0 { pools.machine = machinePool }
        // Without a copy of the limit, which has a name.
        if let total = memoryState.limit?.total, total > 0, let available = memoryState.limit?.available {
            pools.limit = MemoryPool(
                cause: .limit, total: total, available: available, thresholds: manager.thresholds(of: total),
                fillRate: memoryState.limitFill.perSecond)
        }
        return pools
    }

    @inline(__always)
    private var machinePool: MemoryPool {
        let thresholds = manager.thresholds(of: memoryState.total)
        let hasSwap = !isSwapLow && !isThrashing(thresholds) && !isStalled
        return MemoryPool(
            cause: .available, total: memoryState.total, available: memoryState.available,
            thresholds: hasSwap ? thresholds.lowered : thresholds, fillRate: memoryState.fill.perSecond,
            hasSwap: hasSwap)
    }

    /// Less than a tenth of the swap space is free, or there is none (lmkd's swap_free_low_percentage, earlyoom's `-s`, and
    /// systemd-oomd's SwapUsedLimit= have the same default).
    @inline(__always)
    private var isSwapLow: Bool { memoryState.swapFree <= memoryState.swapTotal / 10 }

    /// In a second as much was read again as is available: what is swapped and evicted is in use (lmkd's thrashing_limit).
    @inline(__always)
    func isThrashing(_ thresholds: MemoryThresholds) -> Bool {
        memoryState.refaults.perSecond > 0
            && memoryState.refaults.perSecond >= max(memoryState.available, thresholds.critical)
    }

    /// In a second all tasks have stalled for 700 ms: swap is too slow (lmkd's psi_complete_stall_ms).
    @inline(__always)
    private var isStalled: Bool { memoryState.fullStall.perSecond >= 700_000 }

    /// The next threshold of the pool that is nearest to one.
    var nextThreshold: UInt64 {
        let pools = memoryPools
        return [pools.machine, pools.limit].compactMap { $0 }
            .min { $0.available - $0.nextThreshold < $1.available - $1.nextThreshold }?.nextThreshold ?? 0
    }
}
