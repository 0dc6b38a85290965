/// Snapshots: what an app showed last (L18). The core asks for them, and says which clients get them; the daemon keeps them.
extension LifecycleCore {
    /// How long the suspension waits for a snapshot. What the app does in that time is not hurried otherwise: a request that
    /// arrives meanwhile is carried out at once.
    package static let snapshotTime = Duration.milliseconds(500)

    /// The app is in the background now, and has saved what it has.
    mutating func askForSnapshot(_ index: AppIndex, _ now: Instant) {
        awaitSceneSnapshots(index, now)
        guard self[run: index].handled.contains(.takeSnapshot), maySnapshot(index) else { return }
        // The one that is on its way shows the same.
        if let due = self[run: index].snapshotDue, now < due { return }
        self[run: index].snapshotDue = now + Self.snapshotTime
        notify(index, .takeSnapshot)
    }

    /// A worker shows nothing.
    private func maySnapshot(_ index: AppIndex) -> Bool {
        !apps[index].policy.hidesSnapshot && apps[index].policy.role != .worker && shutdown == nil
    }

    // MARK: Scenes (L34)

    /// The scene is in the background now.
    mutating func askForSnapshot(_ index: AppIndex, of scene: SceneID) {
        guard self[run: index].handled.contains(.takeSceneSnapshot), maySnapshot(index) else { return }
        var snapshots = self[run: index].sceneSnapshots ?? SceneSnapshots()
        snapshots.awaited.removeAll { $0 == scene }
        snapshots.awaited.append(scene)
        self[run: index].sceneSnapshots = snapshots
        notify(index, .takeSceneSnapshot(scene))
    }

    /// The app has answered that it is in the background, or has new data: its suspension waits for what its scenes show.
    private mutating func awaitSceneSnapshots(_ index: AppIndex, _ now: Instant) {
        guard self[run: index].sceneSnapshots != nil else { return }
        self[run: index].sceneSnapshots?.due = now + Self.snapshotTime
    }

    /// It is stored, or there is none, or the scene has ended.
    mutating func sceneSnapshotTaken(_ index: AppIndex, _ scene: SceneID) {
        guard var snapshots = self[run: index].sceneSnapshots else { return }
        snapshots.awaited.removeAll { $0 == scene }
        self[run: index].sceneSnapshots = snapshots.awaited.isEmpty ? nil : snapshots
    }

    /// New data changes what the scene shows that a user sees next.
    private mutating func askForSnapshotOfFrontScene(_ index: AppIndex, _ now: Instant) {
        let front = mostActiveScene(index).id
        // One that is disconnected shows nothing.
        if let scene = listedScenes(index).first(where: { $0.id == front }), scene.shown == .unattached { return }
        let snapshots = self[run: index].sceneSnapshots
        // The one that is on its way shows the same.
        if let snapshots, snapshots.awaited.contains(front), let due = snapshots.due, now < due { return }
        askForSnapshot(index, of: front)
    }

    /// A wake has brought new data. An app that has not answered yet that it is in the background is asked after its answer.
    mutating func askForSnapshotAfterWake(_ index: AppIndex, _ now: Instant) {
        switch apps[index].phase {
        case .background: break
        // It is thawed to come to the foreground, or to end.
        case .waking: if apps[index].execution?.pending != nil { return }
        case .notRunning, .launching, .foreground, .enteringBackground, .suspending, .suspended, .terminating, .ending:
            return
        }
        askForSnapshotOfFrontScene(index, now)
        askForSnapshot(index, now)
    }
}

/// The scenes that were asked for their snapshots and have not answered.
struct SceneSnapshots: Hashable, Sendable {
    /// In the order of the questions. At most one for each scene.
    var awaited: [SceneID] = []
    /// Until when the app is not suspended without them; `nil`: it has not answered yet that it is in the background.
    var due: Instant?
}

/// Which clients give and get the snapshot of an app.
package struct SnapshotRules: Hashable, Sendable {
    /// No client gets it (`SnapshotPrivacy=hidden`).
    package var isHidden: Bool
    /// No client gets it now: it may show protected data, and the user is away (L15).
    package var isWithheld: Bool
    /// Its process gives it itself, when it is asked.
    package var isGivenByApp: Bool
}

extension LifecycleCore {
    /// Those for the snapshot of the app, or for that of a scene. `nil`: there is no such app.
    package func snapshotRules(of id: AppID, _ scene: SceneID? = nil) -> SnapshotRules? {
        guard let index = indices[id] else { return nil }
        let policy = apps[index].policy
        return SnapshotRules(
            isHidden: policy.hidesSnapshot, isWithheld: policy.usesProtectedData && absence.isAway,
            isGivenByApp: apps[index].run?.handled.contains(scene == nil ? .takeSnapshot : .takeSceneSnapshot) ?? false)
    }
}
