/// The order in which apps are killed for memory (L38): the smallest first.
struct JetsamRank: Comparable, Hashable, Sendable {
    enum Class: Int, Comparable, Hashable, Sendable {
        case suspended, background, inactive, active
        static func < (a: Class, b: Class) -> Bool { a.rawValue < b.rawValue }
    }
    var group: Class
    var priority: Int
    var isWithinLimit: Bool
    /// `lru`: since when it is in its state; `largest`: always the same.
    var since: Instant
    /// `largest`: the less, the larger the app; `lru`: always the same.
    var smallness: UInt64

    static func < (a: JetsamRank, b: JetsamRank) -> Bool {
        if a.group != b.group { return a.group < b.group }
        if a.priority != b.priority { return a.priority < b.priority }
        if a.isWithinLimit != b.isWithinLimit { return !a.isWithinLimit }
        if a.since != b.since { return a.since < b.since }
        return a.smallness < b.smallness
    }
}

extension LifecycleCore {
    func jetsamRank(_ slot: Int) -> JetsamRank? {
        guard let group = jetsamClass(slot), let run = self[app: slot].run else { return nil }
        let policy = self[app: slot].policy
        let limit = group == .suspended ? policy.suspendedMemoryHigh : policy.memoryHigh
        let isLargestFirst = manager.jetsamOrder == .largest
        return JetsamRank(
            group: group, priority: policy.jetsamPriority, isWithinLimit: limit.map { run.memory <= $0 } ?? true,
            since: isLargestFirst ? .origin : self[app: slot].since,
            smallness: isLargestFirst ? .max - run.memory : 0)
    }

    /// `nil`: nothing to take, or it is on its way already. An app that is coming into the foreground stands with the
    /// inactive ones, one that was told to terminate with those in the background.
    private func jetsamClass(_ slot: Int) -> JetsamRank.Class? {
        switch self[app: slot].phase {
        case .notRunning, .ending: nil
        case .suspended: .suspended
        case .launching, .entering, .running, .suspending, .waking, .terminating:
            isInFront(slot) && !isTerminating(slot) ? .inactive : .background
        case .foreground(let foreground): foreground.isActive ? .active : .inactive
        }
    }

    func isTerminating(_ slot: Int) -> Bool {
        if case .terminating = self[app: slot].phase { true } else { false }
    }
}
