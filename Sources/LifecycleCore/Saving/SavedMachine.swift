extension MemoryState: SavedRecord {
    package static var blank: MemoryState { MemoryState() }

    /// `apps` and `returning` follow from the apps and are counted again.
    package mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.size(1, &total)
        try coder.size(2, &available)
        try coder.field(3, &level)
        try coder.optional(4, &cause)
        try coder.flag(5, &isMeasuring)
        try coder.flag(6, &isStale)
        try coder.flag(7, &awaitsMeasure)
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
    package static var blank: ForegroundSlot { ForegroundSlot(app: 0, scene: .main) }

    package mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        var (app, scene) = (app, scene.number)
        try coder.required(1, &app)
        try coder.field(2, &scene)
        try coder.flag(3, &isDeferred)
        self = ForegroundSlot(app: app, scene: SceneID(number: scene), isDeferred: isDeferred)
    }
}
