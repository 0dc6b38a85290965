/// The sizes of runs: estimates, and exact ones where an estimate that may be too large could kill (L39).
extension LifecycleCore {
    /// After this time an exact size is measured again, if it counts.
    static let exactSizeTime = Duration.seconds(60)

    /// Records an estimate. `uncertainty`: by how many bytes it may be too large.
    mutating func estimateSize(_ index: AppIndex, _ bytes: UInt64, _ uncertainty: UInt64) {
        // Most measurements change nothing.
        if storage(index).hasEstimate(bytes, doubt: uncertainty) { return }
        var size = storage(index).run.size
        size.setEstimate(bytes, doubt: uncertainty)
        setSize(index, size)
    }

    /// Only its rank in the order of jetsam, and whether it is over its limit, follow from the size of a run.
    mutating func setSize(_ index: AppIndex, _ size: SizeRecord) {
        let bytes = size.bytes
        let stored = apps[index].ownRunStorage()
        let (before, memory) = (stored.run.size.uncertainty, stored.run.memory)
        stored.run.size = size
        stored.run.memory = bytes
        stored.run.peakMemory = max(bytes, stored.run.peakMemory)
        memoryState.uncertain = memoryState.uncertain - before + size.uncertainty
        if memory == bytes { return }
        memoryState.apps = memoryState.apps - memory + bytes
        jetsam.set(index, to: jetsamRank(index))
        if apps[index].policy.suspendedMemoryMax != nil { touch(index) }
    }

    /// Asks for the exact size of a run, unless that is under way. Until it has come, the run is killed for nothing that depends on
    /// it.
    mutating func measureSize(_ index: AppIndex) {
        let run = self[run: index].id
        guard apps[index].execution != nil, !memoryState.awaitedSizes.contains(run) else { return }
        memoryState.awaitedSizes.append(run)
        effects.append(.run(run, .memory(.measureSize)))
    }

    /// `bytes`: the exact size. `estimate`: what the estimate of the same time was.
    mutating func sizeMeasured(_ index: AppIndex, _ bytes: UInt64, _ estimate: UInt64, _ now: Instant) {
        dropAwaitedSize(self[run: index].id)
        guard apps[index].execution != nil else { return }
        var size = self[run: index].size
        size.setExact(bytes, estimate: estimate, at: now)
        setSize(index, size)
        checkLimit(index, now)
        // A stall waits for it.
        if memoryState.pendingPressure != nil { measureMemory(now) }
        evaluateMemory(now)
    }

    mutating func dropAwaitedSize(_ run: RunID) {
        if let position = memoryState.awaitedSizes.firstIndex(of: run) { memoryState.awaitedSizes.remove(at: position) }
    }

    /// An exact size that counts is measured again from time to time.
    mutating func renewSize(_ index: AppIndex, _ now: Instant) {
        guard manager.budget != nil || apps[index].policy.memoryMax != nil else { return }
        if self[run: index].size.isOutdated(now) { measureSize(index) }
    }

    // MARK: The limit of an app (L41)

    /// How long a suspended app may be over its limit. The size at the freeze may be an estimate, and the exact one follows.
    static let limitGrace = Duration.seconds(1)

    /// Kills a running app that is over its limit. If that depends on an estimate, the exact size is measured first. While an app
    /// ends it has no limit.
    mutating func checkLimit(_ index: AppIndex, _ now: Instant) {
        let limit: UInt64?
        switch apps[index].phase {
        case .launching, .foreground, .enteringBackground, .background, .waking: limit = apps[index].policy.memoryMax
        case .suspended: limit = apps[index].policy.suspendedMemoryMax
        case .notRunning, .suspending, .terminating, .ending: limit = nil
        }
        guard let limit, self[run: index].memory > limit else { return }
        if self[run: index].size.certain <= limit { return measureSize(index) }
        // A suspended one has some time: `suspendedLimitDue`.
        if apps[index].phase != .suspended || apps[index].since + Self.limitGrace <= now {
            killOverLimit(index, limit, now)
        }
    }

    /// When a suspended app is killed for its size; `nil`: it is within its limit.
    func suspendedLimitDue(_ index: AppIndex, _ stored: RunStorage) -> Instant? {
        guard let limit = apps[index].policy.suspendedMemoryMax, stored.run.memory > limit,
            stored.run.size.certain > limit
        else { return nil }
        return apps[index].since + Self.limitGrace
    }

    mutating func suspendedLimitPassed(_ index: AppIndex, _ now: Instant) {
        guard let limit = apps[index].policy.suspendedMemoryMax else { return }
        killOverLimit(index, limit, now)
    }

    private mutating func killOverLimit(_ index: AppIndex, _ limit: UInt64, _ now: Instant) {
        touch(index)
        kill(index, .overMemoryLimit(limit: limit, size: self[run: index].memory), .jetsam, now)
    }
}
