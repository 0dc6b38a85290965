/// Scenes that outlive their process, as UIKit's sessions do (L34): they are unattached until the app, or a user, connects them again.
extension LifecycleCore {
    /// The process ends. Its scenes stay as long as their restoration states. `main` does not need to: each process begins with it.
    mutating func keepScenes(_ index: AppIndex) {
        guard let list = apps[index].sharedRunStorage?.run.scenes else { return }
        let front = mostActiveScene(index)
        self[run: index].scenes = nil
        let ended = list.filter { $0.id != .main && !$0.isClosed }.map {
            Scene(id: $0.id, role: $0.role, state: .unattached)
        }
        let all = (apps[index].keptScenes ?? []) + ended
        let kept = all.suffix(Self.maximumScenes)
        for scene in all.dropLast(kept.count) {
            effects.append(.dropRestorationState(apps[index].id, .scene(scene.id)))
        }
        apps[index].keptScenes = kept.isEmpty ? nil : Array(kept)
        // One that an app still owes its user, because it was not in the foreground since, is not exchanged for another.
        if front.role == .window, !kept.contains(where: \.wasInFront) { chooseKept(index, front.id) }
    }

    /// Which one comes back with the app; `nil`: none.
    mutating func chooseKept(_ index: AppIndex, _ front: SceneID?) {
        guard var kept = apps[index].keptScenes else { return }
        for position in kept.indices { kept[position].wasInFront = kept[position].id == front }
        apps[index].keptScenes = kept
    }

    /// The scene is connected, or closed: it is not kept any more. Returns `nil` if it was not.
    mutating func takeKept(_ index: AppIndex, _ id: SceneID) -> Scene? {
        guard apps[index].hasKeptScenes, var kept = apps[index].keptScenes,
            let position = kept.firstIndex(where: { $0.id == id })
        else { return nil }
        let scene = kept.remove(at: position)
        apps[index].keptScenes = kept.isEmpty ? nil : kept
        return scene
    }

    // MARK: Closed by a user

    /// The user does not want the scene any more.
    mutating func discard(_ index: AppIndex, _ id: SceneID) {
        effects.append(.dropRestorationState(apps[index].id, .scene(id)))
        let earlier = (apps[index].discardedScenes ?? []).filter { $0 != id }
        apps[index].discardedScenes = Array((earlier + [id]).suffix(Self.maximumScenes))
        notifyOfDiscardedScenes(index)
    }

    /// It is there again.
    mutating func takeBackDiscarded(_ index: AppIndex, _ id: SceneID) {
        guard apps[index].hasDiscardedScenes, let discarded = apps[index].discardedScenes else { return }
        let left = discarded.filter { $0 != id }
        apps[index].discardedScenes = left.isEmpty ? nil : left
    }

    /// Once for each scene: when it is closed, or when the app runs again.
    mutating func notifyOfDiscardedScenes(_ index: AppIndex) {
        guard apps[index].hasDiscardedScenes, let discarded = apps[index].discardedScenes,
            apps[index].sharedRunStorage?.run.handled.contains(.didDiscardScenes) ?? false
        else { return }
        switch apps[index].phase {
        case .notRunning, .suspending, .suspended, .terminating, .ending: return
        case .launching, .foreground, .enteringBackground, .background, .waking: break
        }
        apps[index].discardedScenes = nil
        notify(index, .didDiscardScenes(discarded))
    }

    /// Nothing is left of its scenes for the next process.
    mutating func dropScenes(_ index: AppIndex) {
        apps[index].keptScenes = nil
        apps[index].discardedScenes = nil
    }

    // MARK: The one in front

    /// The app is in the foreground. It comes back with the window that was in front when an earlier process ended. An app that does
    /// not handle scenes could not create it.
    mutating func restoreScene(_ index: AppIndex) {
        guard apps[index].hasKeptScenes, self[run: index].handled.contains(.scenes),
            let front = apps[index].keptScenes?.first(where: \.wasInFront),
            listedScenes(index).count < Self.maximumScenes,
            let slot = foregroundSlots.lastIndex(where: { $0.app == index && $0.role == .window })
        else { return }
        connect(index, front.id, front.role, state: .unattached)
        foregroundSlots[slot].scene = front.id
    }
}
