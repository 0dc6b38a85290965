/// The order in which the kernel's OOM killer is to take apps: that of the classes of L38. The daemon writes it to
/// `oom_score_adj` (proc_pid_oom_score_adj(5)).
package enum OOMClass: Int, CaseIterable, Hashable, Sendable {
    case suspended, background, inactive, active

    init(_ group: JetsamRank.Class) {
        switch group {
        case .suspended: self = .suspended
        case .background: self = .background
        case .inactive: self = .inactive
        case .active: self = .active
        }
    }
}

/// Why the kernel's OOM killer killed an app.
package enum OutOfMemory: CaseIterable, Hashable, Sendable {
    /// The app reached its own hard limit (`MemoryMax=`, L41).
    case limit
    /// The memory of the machine, or of a control group above the app's, was used up.
    case machine
}

extension LifecycleCore {
    /// Brings the order of the kernel's OOM killer up to date with the app's class in the order of jetsam (L38). It is derived from
    /// the state, so it is not saved.
    /// - Parameter rank: its position in that order now.
    @inline(__always)
    mutating func followOOMClass(_ index: AppIndex, _ rank: JetsamRank?) {
        guard setOOMClass(index, rank), hasOOMClass(index, rank) else { return }
        effects.append(.run(self[run: index].id, .memory(.setOOMClass(oomClasses[index.number]))))
    }

    /// A new run: the previous one may have ended in the same event.
    mutating func resetOOMClass(_ index: AppIndex) {
        if oomClasses.indices.contains(index.number) { oomClasses[index.number] = .active }
    }

    /// After a recovery: as `followOOMClass` left it. An app without a process, or whose process is ending, has the class with
    /// which a process starts.
    mutating func restoreOOMClass(_ index: AppIndex) { setOOMClass(index, jetsamRank(index)) }

    /// Whether it has a process that is not ending. An essential app has no rank, and the class of an active one.
    private func hasOOMClass(_ index: AppIndex, _ rank: JetsamRank?) -> Bool {
        guard case .running(let running) = apps[index].life, running.execution.exit == nil else { return false }
        return rank != nil || apps[index].policy.isEssential
    }

    /// - Returns: whether it is another one now.
    @inline(__always)
    @discardableResult
    private mutating func setOOMClass(_ index: AppIndex, _ rank: JetsamRank?) -> Bool {
        while oomClasses.count <= index.number { oomClasses.append(.active) }
        let new = rank.map { OOMClass($0.group) } ?? .active
        if oomClasses[index.number] == new { return false }
        oomClasses[index.number] = new
        return true
    }

    /// The next daemon does not know the class of a run, and the last effect may be lost.
    mutating func repeatOOMClass(_ index: AppIndex) {
        guard hasOOMClass(index, jetsamRank(index)) else { return }
        effects.append(.run(self[run: index].id, .memory(.setOOMClass(oomClasses[index.number]))))
    }
}
