/// The order in which apps are killed for memory (L38): the smallest rank first.
struct JetsamRank: Comparable, Hashable, Sendable {
    enum Class: Int, Comparable, Hashable, Sendable {
        case suspended, background, inactive, active
        static func < (a: Class, b: Class) -> Bool { a.rawValue < b.rawValue }
    }
    var group: Class
    var priority: Int
    var isWithinLimit: Bool
    /// `balanced`: see `JetsamCredit`; otherwise always the same.
    var credit: UInt64 = 0
    /// `lru` and `balanced`: since when it is in its state; `largest`: always the same.
    var since: Instant
    /// `largest`: the smaller, the larger the app; otherwise always the same.
    var smallness: UInt64

    static func < (a: JetsamRank, b: JetsamRank) -> Bool {
        if a.group != b.group { return a.group < b.group }
        if a.priority != b.priority { return a.priority < b.priority }
        if a.isWithinLimit != b.isWithinLimit { return !a.isWithinLimit }
        if a.credit != b.credit { return a.credit < b.credit }
        if a.since != b.since { return a.since < b.since }
        return a.smallness < b.smallness
    }
}

extension LifecycleCore {
    /// `nil`: there is nothing to kill, the run is ending already, or others depend on the app (`Essential=`).
    func jetsamRank(_ index: AppIndex) -> JetsamRank? {
        if case .running(let running) = apps[index].life { jetsamRank(index, running) } else { nil }
    }

    func jetsamRank(_ index: AppIndex, _ running: Running) -> JetsamRank? {
        if apps[index].policy.isEssential { return nil }
        let group = jetsamClass(index, running.execution)
        let memory = running.sharedStorage.run.memory
        let limit =
            group == .suspended ? apps[index].policy.suspendedMemoryHigh : apps[index].policy.memoryHigh
        let order = manager.jetsamOrder
        return JetsamRank(
            group: group, priority: apps[index].policy.jetsamPriority,
            isWithinLimit: limit.map { memory <= $0 } ?? true,
            credit: order == .balanced ? apps[index].credit.credit(of: memory) : 0,
            since: order == .largest ? .origin : apps[index].since,
            smallness: order == .largest ? .max - memory : 0)
    }

    /// An app on its way to the foreground ranks with the inactive ones, one that is terminating with those in the background.
    private func jetsamClass(_ index: AppIndex, _ execution: Execution) -> JetsamRank.Class {
        switch execution {
        case .suspended: .suspended
        case .terminating: .background
        case .launching, .enteringBackground, .background, .suspending, .waking:
            isInFront(index) ? .inactive : .background
        case .foreground(let foreground): foreground.isActive ? .active : .inactive
        }
    }
}
