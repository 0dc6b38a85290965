extension MemoryState: SavedRecord {
    package static var blank: MemoryState { MemoryState() }

    /// `apps` and `uncertain` follow from the apps and are counted again. Not used any more: 6, 7.
    package mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.size(1, &total)
        try coder.size(2, &available)
        try coder.field(3, &level)
        try coder.optional(4, &cause)
        try coder.flag(5, &isMeasuring)
        try coder.optional(8, &checkAt)
        try coder.field(9, &pressure)
        try coder.optional(10, &pressureUntil)
        try coder.optional(11, &pressureSince)
        try coder.optional(12, &pendingPressure)
        try coder.optional(13, &ignorePressureUntil)
        try coder.optional(14, &simulated)
        try coder.optional(15, &lastWarning)
        try coder.optional(16, &lastCriticalWarning)
        try coder.optional(17, &limit)
        try coder.sparseSize(18, &swapTotal)
        try coder.sparseSize(19, &swapFree)
        try coder.sparse(20, &fill)
        try coder.sparse(21, &limitFill)
        try coder.sparse(22, &refaults)
        try coder.optional(23, &stalls)
        try coder.list(24, &credits, upTo: SavedLimits.apps)
        try coder.flag(25, &hasFreed)
        try coder.optional(26, &criticalUntil)
        try coder.optional(27, &measuringSince)
        try coder.optional(28, &warnedSince)
        try coder.optional(29, &foregroundLook)
        try coder.sparse(30, &fullStall)
        try coder.optional(31, &swappingSince)
        try coder.list(40, &awaitedSizes, upTo: SavedLimits.apps)
        try coder.optional(41, &excess)
        try coder.sparseSize(42, &stored)
        try coder.optional(50, &reclaiming)
        try coder.flag(51, &isReclaimAwaited)
    }
}

extension MemoryExcess: SavedRecord {
    package static var blank: MemoryExcess { MemoryExcess(run: RunID(0), since: .origin) }

    package mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.required(1, &run)
        try coder.required(2, &since)
    }
}

extension MemoryCredit: SavedRecord {
    package static var blank: MemoryCredit { MemoryCredit(run: RunID(0), bytes: 0, due: .origin) }

    package mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.required(1, &run)
        try coder.size(2, &bytes)
        try coder.required(3, &due)
        try coder.flag(4, &isGone)
        try coder.flag(5, &isMeasured)
    }
}

extension MemoryRate: SavedRecord {
    package static var blank: MemoryRate { MemoryRate() }

    package mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.sparseSize(1, &perSecond)
        try coder.optional(2, &at)
        try coder.sparseSize(3, &bytes)
    }
}

extension MemoryLook: SavedRecord {
    package static var blank: MemoryLook { MemoryLook(at: .origin) }

    package mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.required(1, &at)
        try coder.optional(2, &stalls)
        try coder.field(3, &kills)
        try coder.flag(4, &hasStalled)
    }
}

extension Absence: SavedRecord {
    package static var blank: Absence { Absence() }

    package mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.flag(1, &isLocked)
        try coder.flag(2, &isSleeping)
        try coder.flag(3, &isSleepAllowed)
    }
}

extension LifecycleCore.Shutdown: SavedRecord {
    package static var blank: LifecycleCore.Shutdown { LifecycleCore.Shutdown() }

    package mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.flag(1, &isFinished)
        try coder.optional(2, &end)
        try coder.list(3, &waiting, upTo: SavedLimits.apps)
        try coder.list(4, &thawed, upTo: LifecycleCore.thawedAtOnce)
        try coder.optional(5, &nextStep)
        try coder.field(6, &position)
    }
}

extension ForegroundSlot: SavedRecord {
    package static var blank: ForegroundSlot { ForegroundSlot(app: AppIndex(0)) }

    package mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        // Releases before scenes had a number here, which was always 0.
        var (app, number) = (app, UInt64(0))
        try coder.required(1, &app)
        try coder.field(2, &number)
        try coder.flag(3, &isDeferred)
        var (scene, role) = (scene, role)
        try coder.field(110, &scene, unless: .main)
        try coder.field(111, &role, unless: .window)
        self = ForegroundSlot(app: app, scene: scene, role: role, isDeferred: isDeferred)
    }
}
