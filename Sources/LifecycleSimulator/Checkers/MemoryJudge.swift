import LifecycleCore

/// What jetsam may and must do, computed from readings, sizes and ends, without the core.
struct MemoryJudge {
    struct Pool {
        var total: UInt64
        var available: UInt64
        var thresholds: MemoryThresholds
        /// Bytes that are filled in 100 ms.
        var fill: UInt64

        /// While more than a quarter is available, what may be filled counts for nothing.
        var isCritical: Bool {
            available < thresholds.critical || available <= total / 4 && available < thresholds.foreground + fill
        }
        /// Used up within a second.
        var isPressing: Bool { available < thresholds.foreground + 10 * fill }

        func missing(credited: UInt64) -> UInt64 {
            if !isCritical { return 0 }
            let wanted = available < thresholds.critical ? thresholds.critical : thresholds.foreground
            let need = wanted > .max - fill ? .max : wanted + fill
            let have = available > .max - credited ? .max : available + credited
            return need > have ? need - have : 0
        }
    }

    /// A fall or rise between two readings, in bytes a second.
    private struct Rate {
        var at: Microseconds?
        var bytes: UInt64 = 0
        var perSecond: UInt64 = 0

        mutating func record(
            _ value: UInt64, _ now: Microseconds, every least: Microseconds, isKnown: Bool, rises: Bool
        ) {
            if let at {
                let time = now - at
                if time < least { return }
                let change = rises ? (value > bytes ? value - bytes : 0) : (bytes > value ? bytes - value : 0)
                if isKnown || time > .second {
                    perSecond = min(4 << 30, min(change, 240 << 30) * 1_000_000 / UInt64(time))
                }
            }
            at = now
            bytes = value
        }
    }

    /// What an ending run gives back.
    struct Credit {
        var app: Int
        var bytes: UInt64
        var due: Microseconds
        var isGone = false
        var isMeasured = false
    }

    private(set) var reading: MemoryReading?
    private var fill = Rate()
    private var limitFill = Rate()
    private var refaults = Rate()
    /// A run has ended since the last reading.
    var hasFreed = false
    /// The kernel has killed below the limit since the reading before.
    private(set) var hasKernelKilled = false
    /// An app whose memory is gone may have been launched, and have ended, again.
    private var credits: [Credit] = []
    private var manager = ManagerPolicy()

    // MARK: Readings

    mutating func record(_ measured: MemoryReading, _ now: Microseconds) {
        let before = reading?.limit
        reading = measured
        if measured.available <= measured.total / 2 {
            fill.record(measured.available, now, every: 50 * .millisecond, isKnown: !hasFreed, rises: false)
            refaults.record(measured.refaulted, now, every: 1 * .second, isKnown: true, rises: true)
        } else {
            (fill, refaults) = (Rate(), Rate())
        }
        if let limit = measured.limit, limit.group == before?.group, limit.available <= limit.total / 2 {
            limitFill.record(limit.available, now, every: 50 * .millisecond, isKnown: !hasFreed, rises: false)
        } else {
            limitFill = Rate()
        }
        hasFreed = false
        hasKernelKilled = before.map { $0.kills < measured.limit?.kills ?? 0 } ?? false
        credits.removeAll(where: \.isMeasured)
    }

    mutating func record(_ policy: ManagerPolicy) { manager = policy }

    mutating func measurementBegins() {
        for index in credits.indices where credits[index].isGone { credits[index].isMeasured = true }
    }

    // MARK: Ends

    mutating func end(of app: Int, _ bytes: UInt64, _ now: Microseconds) {
        let begun = min(60, bytes == 0 ? 0 : 1 + (bytes - 1) >> 30)
        credits.append(Credit(app: app, bytes: bytes, due: now + Int64(begun) * 100 * .millisecond))
    }

    /// `bytes`: its last size. A run that was not measured before its end may have been inspected during it.
    mutating func runIsGone(_ app: Int, _ bytes: UInt64, isAwaited: Bool) {
        hasFreed = true
        guard let index = credits.firstIndex(where: { $0.app == app && !$0.isGone }) else { return }
        if credits[index].bytes == 0 { credits[index].bytes = bytes }
        if isAwaited { credits[index].isGone = true } else { credits.remove(at: index) }
    }

    /// What is on its way.
    func credited(_ now: Microseconds) -> UInt64 {
        credits.reduce(0) { sum, credit in credit.isGone || credit.due > now ? sum + credit.bytes : sum }
    }

    func expectsMemory(_ now: Microseconds) -> Bool {
        credits.contains { $0.bytes > 0 && ($0.isGone || $0.due > now) }
    }

    // MARK: Verdicts

    var pools: [Pool] {
        guard let reading else { return [] }
        var thresholds = manager.thresholds(of: reading.total)
        if reading.swapFree > reading.swapTotal / 10, !isThrashing(thresholds) {
            thresholds = MemoryThresholds(
                warning: thresholds.critical, critical: thresholds.foreground, foreground: thresholds.foreground)
        }
        let machine = Pool(
            total: reading.total, available: reading.available, thresholds: thresholds, fill: fill.perSecond / 10)
        guard let limit = reading.limit else { return [machine] }
        return [
            machine,
            Pool(
                total: limit.total, available: limit.available, thresholds: manager.thresholds(of: limit.total),
                fill: limitFill.perSecond / 10),
        ]
    }

    private func isThrashing(_ thresholds: MemoryThresholds) -> Bool {
        guard let reading else { return false }
        return refaults.perSecond > 0 && refaults.perSecond >= max(reading.available, thresholds.critical)
    }

    /// A stall can be ended by a kill.
    var isScarce: Bool {
        guard let reading else { return false }
        return pools.contains { $0.available < $0.thresholds.warning }
            || (reading.available <= reading.total / 4 && isThrashing(manager.thresholds(of: reading.total)))
    }

    /// More than a quarter is available, on the machine and below the limit.
    var isPlenty: Bool {
        pools.allSatisfy { $0.available > max($0.total / 4, $0.thresholds.warning) && !$0.isCritical }
    }

    /// Whether a pool lacks memory, beside what is on its way.
    func isShort(_ now: Microseconds) -> Bool {
        let credited = credited(now)
        return pools.contains { $0.missing(credited: credited) > 0 }
    }

    /// The same of the pools that are about to be used up.
    func isShortWhilePressing(_ now: Microseconds) -> Bool {
        let credited = credited(now)
        return pools.contains { $0.isCritical && $0.isPressing && $0.missing(credited: credited) > 0 }
    }

    var isPressing: Bool { pools.contains { $0.isCritical && $0.isPressing } }

    /// Whether memory is so short that apps in the foreground may be killed.
    var isShortInForeground: Bool { pools.contains { $0.available < $0.thresholds.foreground } }

    var budget: UInt64? { manager.budget }

    /// Less is available than is needed, whatever is on its way.
    var isCritical: Bool { pools.contains(where: \.isCritical) }
}
