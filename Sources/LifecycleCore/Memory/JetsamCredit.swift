/// What keeps an app from being killed with `JetsamOrder=balanced` (L38): GreedyDual-Size-Frequency, the replacement
/// algorithm of web caches (Cherkasova, 1998; Squid's `heap GDSF`), with apps as the objects.
///
/// The credit of an app is its uses divided by its size, added to a level. The app with the least credit is killed first,
/// and the level rises to its credit: apps that were used since then stand above it, the others age. So the credit of an app
/// changes only when something happens to it, and the order can be kept in a heap.
struct JetsamCredit: Hashable, Sendable {
    /// More uses count for nothing: an app that was needed often in the past becomes a victim all the same.
    static let maximumUses: UInt64 = 32
    /// KiB that are added to each size: to kill a small app frees little, and the next one has to be killed as well.
    static let minimumSize: UInt64 = 64 << 10
    /// The credit of one use of an app of 1 KiB. A use of a small app counts 2^24, one of an app with 16 GiB 2^16.
    static let scale: UInt64 = 1 << 40

    /// How often it was used lately. A launch, a wake and a stay in the foreground each count as a use; a launch halves what
    /// was counted before.
    var uses: UInt64 = 0
    /// The level at its last use: when it was launched or woken, or when its last stay in the foreground ended.
    var level: UInt64 = 0

    /// - Parameter size: in bytes.
    func credit(of size: UInt64) -> UInt64 {
        let earned = uses * (Self.scale / ((size >> 10) + Self.minimumSize))
        let (sum, isTooLarge) = level.addingReportingOverflow(earned)
        return isTooLarge ? .max : sum
    }

    mutating func countUse(isLaunch: Bool, at level: UInt64) {
        uses = min(Self.maximumUses, (isLaunch ? uses / 2 : uses) + 1)
        self.level = level
    }
}

extension LifecycleCore {
    /// Each change of phase. Uses are counted only while the order is `balanced`: with another order no app has a credit.
    mutating func updateCredit(_ index: AppIndex, from before: Summary, to after: Summary, _ reason: StateReason) {
        guard manager.jetsamOrder == .balanced, before.phase != after.phase else { return }
        switch after.phase {
        case .launching: apps[index].credit.countUse(isLaunch: true, at: jetsamLevel)
        case .waking, .foreground: apps[index].credit.countUse(isLaunch: false, at: jetsamLevel)
        case .ending where reason == .jetsam && before.state != after.state: raiseJetsamLevel(index)
        case .notRunning, .enteringBackground, .background, .suspending, .suspended, .terminating, .ending:
            if before.phase == .foreground { apps[index].credit.level = jetsamLevel }
        }
    }

    /// A victim has the least credit. It keeps the level until it is used again, so that the level is always the largest one
    /// of all apps: it need not be saved.
    private mutating func raiseJetsamLevel(_ victim: AppIndex) {
        let credit = apps[victim].credit.credit(of: self[run: victim].memory)
        jetsamLevel = max(jetsamLevel, credit)
        apps[victim].credit.level = jetsamLevel
    }
}
