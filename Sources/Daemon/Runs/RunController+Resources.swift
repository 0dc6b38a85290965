import LifecycleCore
import Linux
import LoopPolicy
import Manifest
import Posix
import Systemd

/// What the state of an app means for the scheduler and for the kernel's OOM killer (L19, L38, L41).
extension RunController {
    /// Timers of apps in the background may expire this much later, in nanoseconds, so that the processor sleeps longer
    /// (L19). systemd and Android use the same value for background work.
    private static let backgroundTimerSlack: UInt64 = 40_000_000

    func setWeights(background: Bool) {
        hasBackgroundWeights = background
        attempt {
            switch try writeWeights(background: background) {
            // With a cpu controller the kernel ignores the autogroups of the group's processes.
            case .cgroup: break
            case .threads, .none: try context.background.autogroups.setWeights(of: self, background: background)
            }
        }
        context.background.secondSettings.add(self)
    }

    private func writeWeights(background: Bool) throws(SystemError) -> WeightMeans {
        try enclosure.setWeights(background: background, timerSlack: background ? Self.backgroundTimerSlack : nil)
    }

    /// By now processes that were being created have joined the group.
    func applyAgain() {
        applyOOMClass()
        if let background = hasBackgroundWeights { attempt { _ = try writeWeights(background: background) } }
    }

    /// Without a cpu controller the weights alone give the app less of the processor.
    /// - Parameter limit: thousandths of one processor; `nil`: no limit.
    func limitProcessor(_ limit: Int?) { attempt { try enclosure.limitProcessor(limit) } }

    // MARK: Memory

    /// Sets `oom_score_adj` of all processes, and what is protected from reclaim while the app is in the foreground.
    func setOOMClass(_ oomClass: OOMClass) {
        self.oomClass = oomClass
        applyOOMClass()
        // A frozen app creates no process. Its thaw sets them again.
        if oomClass == .suspended {
            context.background.secondSettings.remove(self)
        } else {
            context.background.secondSettings.add(self)
        }
        switch oomClass {
        case .active, .inactive: context.memory.protection.insert(id)
        case .background, .suspended: context.memory.protection.remove(id)
        }
    }

    /// Between clone(2) and execve(2) the process sets the base itself.
    func applyOOMClass() {
        guard start == nil else { return }
        let base = manifest.oomScoreAdjust ?? OOMClass.defaultBase ?? OOMClass.ownScore
        // The administrator has excluded the app from the OOM killer.
        if base <= OOMClass.neverKilled { return }
        let priority = manifest.policy.jetsamPriority
        let own = OOMClass.allCases.map { $0.score(base: base, priority: priority) }
        // The previous daemon may have set others: its manifest was another one.
        let isFirst = !isOOMScoreSet
        isOOMScoreSet = true
        attempt {
            try enclosure.setOOMScore(own[oomClass.rawValue], isFrozen: oomClass == .suspended) {
                isFirst || own.contains($0)
            }
        }
    }

    /// Reports that the kernel killed the main process because memory was short. Called before the group is removed.
    func reportKernelKill(_ status: ExitStatus) {
        switch status {
        case .signaled(9, coreDumped: _): break
        case .unknown where enclosure.hasMemoryController: break
        case .exited, .signaled, .unknown, .lost: return
        }
        guard let kill = try? enclosure.kernelKill() else {
            if context.memory.kernelKills.take() { send(.memory(.outOfMemory(.machine))) }
            return
        }
        switch kill {
        case .nothing: break
        case .ownLimit: send(.memory(.outOfMemory(manifest.memoryMax == nil ? .machine : .limit)))
        case .elsewhere: send(.memory(.outOfMemory(.machine)))
        }
    }
}

extension OOMClass {
    /// `oom_score_adj` with which the kernel never kills (proc_pid_oom_score_adj(5)).
    static let neverKilled = -1000
    static let ownScore = ownOOMScore()

    /// The `oom_score_adj` of active apps whose manifest sets none: 0 if the daemon's own is negative (`OOMScoreAdjust=` of its
    /// unit). `nil`: the daemon's, because only privileged processes may lower it.
    static let defaultBase: Int? = ownScore < 0 ? 0 : nil

    /// The value of `oom_score_adj`. Between two classes are 325 thousandths of the machine's memory, so the class counts more than
    /// the size of any but the largest apps; inside a class the kernel takes the largest.
    /// - Parameters:
    ///   - base: that of an active app.
    ///   - priority: `JetsamPriority=`, -1000 … 1000. It moves the value by at most 25, and that of an active app not at all.
    func score(base: Int, priority: Int) -> Int {
        let shift = max(-1000, min(1000, priority)) / 40
        switch self {
        case .active: return base
        case .inactive: return min(1000, base + 325 - shift)
        case .background: return min(1000, base + 650 - shift)
        case .suspended: return min(1000, base + 975 - shift)
        }
    }
}

extension Enclosure {
    /// The limits of an app that does not run yet (L41): all its processes are killed at once, and not above `MemoryMax=`.
    func limitMemory(of manifest: AppManifest) throws {
        try killAtOnce()
        if let limit = manifest.memoryMax { try limitMemory(limit) }
    }
}
