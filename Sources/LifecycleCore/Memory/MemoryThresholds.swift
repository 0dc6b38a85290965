/// The available memory, in bytes, below which something happens.
package struct MemoryThresholds: Hashable, Sendable {
    /// Running apps are warned (L36).
    package var warning: UInt64
    /// Suspended apps and apps in the background are killed (L38).
    package var critical: UInt64
    /// Apps in the foreground are killed too.
    package var foreground: UInt64

    package init(warning: UInt64, critical: UInt64, foreground: UInt64) {
        self.warning = warning
        self.critical = critical
        self.foreground = foreground
    }

    /// Each threshold is the next lower one.
    var lowered: MemoryThresholds {
        MemoryThresholds(warning: critical, critical: foreground, foreground: foreground)
    }
}

extension ManagerPolicy {
    /// How much must be available when the next kill takes effect depends on how fast programs fill memory, not on how much
    /// there is: one core fills 512 MiB in the 100 ms between two looks at 5 GiB/s. So the default percentages are bounded.
    /// docs/decisions/memory.md has the reasons.
    private static let warningRange: ClosedRange<UInt64> = 128 << 20...1 << 30
    private static let criticalRange: ClosedRange<UInt64> = 64 << 20...512 << 20
    private static let longestForeground: UInt64 = 128 << 20

    /// The thresholds for a machine, or for a limit, of `total` bytes. Apps are warned no later than they are killed: a default
    /// gives way to what is set, and a warning below the critical threshold is raised to it.
    package func thresholds(of total: UInt64) -> MemoryThresholds {
        var (warning, critical) = chosen(of: total)
        if criticalAvailable == nil { critical = min(critical, warning) } else { warning = max(warning, critical) }
        return MemoryThresholds(
            warning: warning, critical: critical, foreground: min(critical / 4, Self.longestForeground))
    }

    /// Whether the two thresholds, as they are set or by default, are in the wrong order.
    package func hasReversedThresholds(of total: UInt64) -> Bool {
        let (warning, critical) = chosen(of: total)
        return critical > warning
    }

    private func chosen(of total: UInt64) -> (warning: UInt64, critical: UInt64) {
        (
            warningAvailable?.bytes(of: total) ?? Self.share(10, of: total, Self.warningRange, total / 8),
            criticalAvailable?.bytes(of: total) ?? Self.share(5, of: total, Self.criticalRange, total / 16)
        )
    }

    /// `smallTotal`: what replaces the lower bound where that would be more than this share of a small total.
    private static func share(
        _ percent: Int, of total: UInt64, _ range: ClosedRange<UInt64>, _ smallTotal: UInt64
    ) -> UInt64 {
        let bytes = max(MemoryAmount.percent(percent).bytes(of: total), min(range.lowerBound, smallTotal))
        return min(bytes, range.upperBound)
    }
}
