/// Snapshots: what an app showed last (L18). The core asks for them, and says which clients get them; the daemon keeps them.
extension LifecycleCore {
    /// How long the suspension waits for a snapshot. What the app does in that time is not hurried otherwise: a request that
    /// arrives meanwhile is carried out at once.
    package static let snapshotTime = Duration.milliseconds(500)

    /// The app is in the background now, and has saved what it has.
    mutating func askForSnapshot(_ index: Int, _ now: Instant) {
        // A worker shows nothing.
        guard self[run: index].handled.contains(.takeSnapshot), !apps[index].policy.hidesSnapshot,
            apps[index].policy.role != .worker, shutdown == nil
        else { return }
        // The one that is on its way shows the same.
        if let due = self[run: index].snapshotDue, now < due { return }
        self[run: index].snapshotDue = now + Self.snapshotTime
        notify(index, .takeSnapshot)
    }

    /// A wake has brought new data. An app that has not answered yet that it is in the background is asked after its answer.
    mutating func askForSnapshotAfterWake(_ index: Int, _ now: Instant) {
        switch apps[index].phase {
        case .background: askForSnapshot(index, now)
        // It is thawed to come to the foreground, or to end.
        case .waking: if apps[index].execution?.pending == nil { askForSnapshot(index, now) }
        case .notRunning, .launching, .foreground, .enteringBackground, .suspending, .suspended, .terminating, .ending:
            break
        }
    }
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
    /// `nil`: there is no such app.
    package func snapshotRules(of id: AppID) -> SnapshotRules? {
        guard let index = indices[id] else { return nil }
        let policy = apps[index].policy
        return SnapshotRules(
            isHidden: policy.hidesSnapshot, isWithheld: policy.usesProtectedData && absence.isAway,
            isGivenByApp: apps[index].run?.handled.contains(.takeSnapshot) ?? false)
    }
}
