/// An app whose manifest forbids it to use a GPU in the background is watched there, and killed if it does (L43).
extension LifecycleCore {
    /// Begins and ends the watch, once an event is carried out. An app that is entering the background may complete what it draws.
    mutating func followGPU(_ index: AppIndex) {
        guard case .running(let running) = apps[index].life else { return }
        let isWatched = running.sharedStorage.run.isGPUWatched
        guard isWatched || apps[index].policy.forbidsBackgroundGPU else { return }
        var isToBeWatched = false
        if case .background = running.execution {
            isToBeWatched = apps[index].policy.forbidsBackgroundGPU && !isInDrySleep(index)
        }
        guard isToBeWatched != isWatched else { return }
        self[run: index].isGPUWatched = isToBeWatched
        effects.append(.run(self[run: index].id, .processor(.watchGPU(isToBeWatched))))
    }

    /// A look that was under way when the watch ended counts for nothing.
    mutating func gpuUsed(_ index: AppIndex, _ time: Duration, _ now: Instant) {
        guard apps[index].phase == .background, self[run: index].isGPUWatched else { return }
        kill(index, .usedGPU(time), .gpuUsed, now)
    }
}
