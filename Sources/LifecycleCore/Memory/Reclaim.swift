/// What is pushed out of a suspended app (L37).
enum Reclaim: Hashable, Sendable {
    /// It begins at this instant, if there is somewhere to push it then.
    case due(Instant)
    /// It was due while another app was being pushed out.
    case waiting
    /// `Effect.reclaim` was asked for, and has not ended.
    case underWay
    /// Nothing more until the app has run again.
    case done
}

/// Memory comes back without a kill (L37): what a suspended app has is pushed out to swap, on suspension (`ReclaimOnSuspend=`) and
/// while memory is short.
extension LifecycleCore {
    /// An app that is woken every few seconds keeps its memory: to push it out and to read it again would cost more than it saves.
    static let reclaimDelay = Duration.seconds(10)
    /// A smaller app is not worth a wake that reads from swap. Dormice measured the same bound.
    static let smallestReclaim: UInt64 = 16 << 20

    /// How many bytes may be pushed out now: at most four fifths of the swap space are used for that.
    private var reclaimSpace: UInt64 { memoryState.swapFree.excess(over: memoryState.swapTotal / 5) }

    /// When an app is suspended. `nil`: it is pushed out only if memory gets short.
    func reclaimOfSuspension(_ index: AppIndex, _ now: Instant) -> Reclaim? {
        guard mayReclaim(index) else { return nil }
        switch apps[index].policy.reclaim {
        case .no: return nil
        case .yes: return .due(now + Self.reclaimDelay)
        case .automatic:
            // Where much is available, no other program needs it.
            let isScarce = memoryPools.contains { $0.available <= $0.total / 2 }
            return isScarce ? .due(now + Self.reclaimDelay) : nil
        }
    }

    /// When a suspended app is pushed out; `nil`: it is not, or it waits for another one.
    func reclaimDue(_ suspended: Suspended) -> Instant? {
        guard case .due(let at)? = suspended.reclaim else { return nil }
        return at
    }

    /// It was suspended for long enough.
    mutating func reclaimIsDue(_ index: AppIndex) {
        guard mayReclaim(index) else { return setReclaim(index, nil) }
        guard memoryState.reclaiming == nil else {
            memoryState.isReclaimAwaited = true
            return setReclaim(index, .waiting)
        }
        reclaim(index)
    }

    /// Once an event is carried out, after its thaw: another app may be pushed out now.
    mutating func reclaimWaiting() {
        guard memoryState.isReclaimAwaited, memoryState.reclaiming == nil else { return }
        for index in apps.indices {
            guard case .suspended(let suspended)? = apps[index].execution, suspended.reclaim == .waiting else {
                continue
            }
            if mayReclaim(index) { return reclaim(index) }
            setReclaim(index, nil)
        }
        memoryState.isReclaimAwaited = false
    }

    private func mayReclaim(_ index: AppIndex) -> Bool {
        min(self[run: index].memory, reclaimSpace) >= Self.smallestReclaim && !isShuttingDown
    }

    private mutating func reclaim(_ index: AppIndex) {
        let run = self[run: index].id
        memoryState.reclaiming = run
        setReclaim(index, .underWay)
        let bytes = min(self[run: index].memory, reclaimSpace)
        effects.append(.run(run, .memory(.reclaim(attempt: self[run: index].freezeAttempt, bytes: bytes))))
    }

    private mutating func setReclaim(_ index: AppIndex, _ reclaim: Reclaim?) {
        guard case .suspended(var suspended)? = apps[index].execution, suspended.reclaim != reclaim else { return }
        suspended.reclaim = reclaim
        update(index, .suspended(suspended))
        touch(index)
    }

    /// While memory is short, suspended apps are pushed out one after the other, in the order in which they would be killed: what one
    /// gives back may spare it. A budget counts what is swapped too, so that nothing is gained for it.
    mutating func reclaimUnderPressure(_ now: Instant) {
        guard memoryState.reclaiming == nil, memoryState.level > .normal, let cause = memoryState.cause else { return }
        switch cause {
        // Available memory may be critical beside it: kills wait for the push-out then.
        case .budget, .simulated: if memoryState.swappingSince == nil { return }
        case .available, .pressure, .limit: break
        }
        if let index = nextReclaim { reclaim(index) }
    }

    /// The suspended app that is pushed out next while memory is short; `nil`: there is none, or no space for it.
    private var nextReclaim: AppIndex? {
        guard reclaimSpace >= Self.smallestReclaim, !isShuttingDown else { return nil }
        var next: (rank: JetsamRank, index: AppIndex)?
        for index in apps.indices {
            guard case .suspended(let suspended)? = apps[index].execution, suspended.reclaim != .done,
                self[run: index].memory >= Self.smallestReclaim, let rank = jetsam.key(of: index)
            else { continue }
            if let next, next.rank <= rank { continue }
            next = (rank, index)
        }
        return next?.index
    }

    /// Called for each reading: how long available memory has been critical although the kernel can swap.
    mutating func recordSwapping(_ pools: MemoryPools, _ now: Instant) {
        guard let machine = pools.machine, machine.hasSwap, machine.isCritical else {
            memoryState.swappingSince = nil
            return
        }
        if memoryState.swappingSince == nil { memoryState.swappingSince = now }
    }

    /// Whether no app is killed for available memory yet (L35), because suspended apps are pushed out, or the kernel may just be swapping.
    /// Without pressure stall information the numbers alone decide: it is not known whether that is too slow.
    mutating func awaitsSwapping(_ now: Instant) -> Bool {
        guard memoryState.stalls != nil, let since = memoryState.swappingSince, reclaimSpace >= Self.smallestReclaim
        else {
            return false
        }
        if memoryState.reclaiming != nil || nextReclaim != nil { return true }
        let isSoon = now - since < Self.swappingTime
        if isSoon { memoryState.check(by: since + Self.swappingTime) }
        return isSoon
    }

    /// Comes before the thaw and before SIGKILL: nothing more is pushed out of a run that runs or ends.
    mutating func endReclaim(_ index: AppIndex) {
        guard case .suspended(let suspended)? = apps[index].execution, suspended.reclaim == .underWay else { return }
        setReclaim(index, .done)
        effects.append(.run(self[run: index].id, .memory(.stopReclaim)))
        memoryState.reclaiming = nil
    }

    mutating func reclaimed(_ index: AppIndex, _ attempt: Int, _ bytes: UInt64, _ now: Instant) {
        guard memoryState.reclaiming == self[run: index].id, attempt == self[run: index].freezeAttempt else { return }
        memoryState.reclaiming = nil
        setReclaim(index, .done)
        if bytes > 0 { report(.memoryReclaimed(apps[index].id, bytes)) }
        // What came back is seen before anything is killed.
        if memoryState.level > .normal { measureMemory(now) }
        reclaimUnderPressure(now)
    }

    /// After the thaw: before it, that was measured to be no faster. Where memory is critical there is no space for pages that may not be
    /// needed.
    mutating func bringBack(_ index: AppIndex) {
        guard memoryState.swapTotal > 0, memoryState.level < .critical, self[run: index].memory >= Self.smallestReclaim
        else { return }
        effects.append(.run(self[run: index].id, .memory(.bringBack)))
    }

    /// The daemon before has ended in the middle of it.
    mutating func cancelReclaimOfLastDaemon() {
        guard let run = memoryState.reclaiming else { return }
        memoryState.reclaiming = nil
        guard let index = runs[run.number] else { return }
        setReclaim(index, .done)
    }
}
