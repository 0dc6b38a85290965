/// What an app says of its scenes (L34).
package enum SceneEvent: Hashable, Sendable {
    /// It has created a scene, or wants to show one that it has.
    case began(SceneID, SceneRole)
    case ended(SceneID)
    /// After `Notice.takeSceneSnapshot`: the snapshot is stored, or there is none.
    case snapshotTaken(SceneID)
}

extension LifecycleCore {
    mutating func handle(_ event: SceneEvent, _ index: AppIndex, _ now: Instant) {
        switch event {
        case .began(let id, let role): if mayChangeScenes(index) { sceneBegan(index, id, role, now) }
        case .ended(let id): if mayChangeScenes(index) { sceneEnded(index, id, now) }
        case .snapshotTaken(let id): sceneSnapshotTaken(index, id)
        }
    }
}

extension SceneEvent: SavedUnion {
    package func save(to writer: inout ByteWriter) {
        switch self {
        case .began(let id, let role): writer.put(case: 120, id, role)
        case .ended(let id): writer.put(case: 121, id)
        case .snapshotTaken(let id): writer.put(case: 181, id)
        }
    }

    package init?(case number: UInt64, _ values: inout RecordReader) throws(SavedError) {
        switch number {
        case 120: self = .began(try values.next(), try values.next())
        case 121: self = .ended(try values.next())
        case 181: self = .snapshotTaken(try values.next())
        default: return nil
        }
    }
}
