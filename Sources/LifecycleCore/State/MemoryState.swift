/// The machine's memory, as far as the core knows it. Sizes are bytes.
struct MemoryState: Hashable, Sendable {
    var total: UInt64 = 0
    var available: UInt64 = 0
    /// The tightest limit below the machine's memory, as it was read last.
    var limit: MemoryReading.Limit?
    /// All apps together.
    var apps: UInt64 = 0
    var level = MemoryLevel.normal
    var cause: MemoryCause?
    /// Runs that were killed and whose memory is not free yet.
    var returning = 0

    /// `measureMemory` is under way.
    var isMeasuring = false
    /// The measurement under way was started before the last victim was gone.
    var isStale = false
    /// A victim was killed, and what that freed has not been measured yet (L39).
    var awaitsMeasure = false
    /// When to measure again.
    var checkAt: Instant?

    var pressure = MemoryLevel.normal
    var pressureUntil: Instant?
    /// Since when tasks have stalled without a break.
    var pressureSince: Instant?
    /// A trigger fired and was not acted on yet, because a measurement is awaited.
    var pendingPressure: MemoryLevel?
    /// Stalls before this instant are the ones that the last victim was killed for.
    var ignorePressureUntil: Instant?
    var simulated: MemoryLevel?
    /// When running apps were last warned of each level.
    var lastWarning: Instant?
    var lastCriticalWarning: Instant?

    var nextDue: Instant? {
        switch (checkAt, pressureUntil) {
        case (let check?, let pressure?): min(check, pressure)
        case (let check?, nil): check
        case (nil, let pressure): pressure
        }
    }

    /// An app has started to run: its memory is measured soon.
    mutating func checkSoon(_ now: Instant) {
        let soon = now + LifecycleCore.shortestCheck
        checkAt = checkAt.map { min($0, soon) } ?? soon
    }
}
