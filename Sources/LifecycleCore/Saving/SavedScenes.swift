extension SceneRole: SavedCase {}
extension SceneState: SavedCase {}
extension SceneNotice: SavedCase {}
extension SceneRequest: SavedCase {}

extension SceneID: SavedValue {
    package static var form: SavedForm { .bytes }
    package func save(to writer: inout ByteWriter) { writer.put(text: name) }
    package init(from reader: inout ByteReader) throws(SavedError) {
        let name = try reader.rest(upTo: SceneID.maximumLength, "the name of a scene")
        guard let id = SceneID(name) else { throw reader.error("not the name of a scene") }
        self = id
    }
}

extension Scene: SavedRecord {
    package static var blank: Scene { Scene(id: .main, role: .window, state: .unattached) }

    package mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        var (id, role) = (id, role)
        try coder.required(1, &id)
        try coder.field(2, &role)
        try coder.field(3, &state)
        var isDisconnected = !isConnected
        try coder.flag(4, &isDisconnected)
        var wasInFront = wasInFront
        try coder.flag(40, &wasInFront)
        var isClosed = isClosed
        try coder.flag(50, &isClosed)
        self = Scene(
            id: id, role: role, state: state, isConnected: !isDisconnected, isClosed: isClosed, wasInFront: wasInFront)
    }
}

/// Scenes, as one value of a case.
struct SavedScenes: SavedRecord {
    package static var blank: SavedScenes { SavedScenes(list: []) }
    var list: [SceneID]

    package mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.list(1, &list, upTo: LifecycleCore.maximumScenes)
    }
}

extension SceneSnapshots: SavedRecord {
    package static var blank: SceneSnapshots { SceneSnapshots() }

    package mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.list(1, &awaited, upTo: LifecycleCore.maximumScenes)
        try coder.optional(2, &due)
    }
}

/// Whether a foreground app is active, in the words of releases before scenes. The first one was never written.
enum SavedActivation: CaseIterable, SavedCase {
    case background, inactive, active

    init(_ isActive: Bool) { self = isActive ? .active : .inactive }
}
