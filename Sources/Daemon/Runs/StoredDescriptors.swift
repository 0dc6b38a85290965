import Control
import LifecycleCore
import Linux
import Posix
import Systemd

/// What is known of a snapshot, beside its contents.
struct SnapshotFacts: Hashable {
    /// The media type: the app names it, so the contents may be anything.
    var type: String
    /// When it was stored.
    var time: Timestamp
}

/// The descriptors that apps store for their next launch (`FDSTORE=1`). They are passed to it as `LISTEN_FDS`
/// (sd_listen_fds(3)).
final class StoredDescriptors {
    private struct Entry {
        var name: String
        var descriptor: SharedDescriptor
        /// Identifies the descriptor for the next daemon.
        var serial: UInt64
        /// What it has in memory, as it was measured last.
        var bytes: UInt64
        /// Of a snapshot.
        var about: SnapshotFacts?

        init(_ name: String, _ descriptor: SharedDescriptor, _ serial: UInt64, _ about: SnapshotFacts? = nil) {
            (self.name, self.descriptor, self.serial, self.about) = (name, descriptor, serial, about)
            bytes = MemoryFile.memory(descriptor.descriptor)
        }

        /// The app can write to it as long as it has the file open.
        mutating func measure() { bytes = MemoryFile.memory(descriptor.descriptor) }

        /// Whether the bytes count for `maximumBytesPerApp`. The state of the app and its snapshot have limits of their own.
        var isLimited: Bool { StoredDescriptors.sizeLimits[name] == nil }
    }

    /// The most descriptors of one app. systemd's services rarely set `FileDescriptorStoreMax=` to more.
    static let maximumPerApp = 64
    /// The most bytes in memory of the memfds of one app, beside its state and snapshot: they take memory also while the app does not
    /// run, and no kill gives it back. It is eight times the largest snapshot.
    static let maximumBytesPerApp: UInt64 = 64 << 20
    /// The restoration state and the snapshot: memfds of at most 1 MiB and 8 MiB.
    static let state = "state"
    static let snapshot = "snapshot"
    private static let sizeLimits: [String: Int] = [state: 1 << 20, snapshot: 8 << 20]

    /// The names of the restoration state and the snapshot of a scene (L34).
    static func state(of scene: SceneID) -> String { "\(state).\(scene)" }
    static func snapshot(of scene: SceneID) -> String { "\(snapshot).\(scene)" }

    /// `state` or `snapshot`, also of a scene: an app has one of each name, of a limited size. `nil`: any other descriptor.
    static func kind(of name: String) -> String? {
        if sizeLimits[name] != nil { return name }
        return [state, snapshot].first { scene(ofName: name, $0) != nil }
    }

    private static func scene(ofName name: String, _ kind: String) -> SceneID? {
        name.hasPrefix(kind + ".") ? SceneID(String(name.dropFirst(kind.count + 1))) : nil
    }

    private static func isSnapshot(_ name: String) -> Bool { kind(of: name) == snapshot }

    /// What the core has to know when a descriptor of this name is stored; `nil`: it is no snapshot.
    static func eventOfSnapshot(_ name: String) -> RunEvent? {
        name == snapshot
            ? .connection(.snapshotTaken) : scene(ofName: name, snapshot).map { .scene(.snapshotTaken($0)) }
    }

    /// The most bytes of a state or a snapshot; `nil`: it is any other descriptor.
    static func sizeLimit(of name: String) -> Int? { kind(of: name).flatMap { sizeLimits[$0] } }

    private var entries: [AppID: [Entry]] = [:]
    private var lastSerial: UInt64 = 0
    private let logbook: Logbook
    private let store: DescriptorStore
    /// Used if this daemon has no descriptor store, or the previous one had none. `nil`: states do not survive the
    /// daemon.
    private let files: StateFiles?
    private let journal: Journal
    /// Entries whose contents could not be written to a file yet.
    private var unsaved: Set<UInt64> = []
    /// Repeats what a full file system has refused.
    weak var retries: StorageRetry?
    /// Another snapshot of the app or of a scene is stored, or none any more.
    var onSnapshotChange: (AppID) -> Void = { _ in }

    init(logbook: Logbook, store: DescriptorStore, files: StateFiles? = nil, journal: Journal) {
        self.logbook = logbook
        self.store = store
        self.files = files
        self.journal = journal
    }

    // MARK: Storing

    /// The result of storing a descriptor.
    enum Addition: Equatable {
        /// `written`: how many bytes were copied to a file for it. `problem`: why the next daemon will not have it.
        case stored(written: Int, problem: String? = nil)
        /// The descriptor was closed, for the reason in this sentence.
        case refused(String)
    }

    /// Stores a descriptor. A restoration state or a snapshot replaces the previous one.
    /// - Parameters:
    ///   - type: of a snapshot; `nil`: it is a PNG.
    ///   - taken: when a snapshot was taken; `nil`: now.
    ///   - closer: closes it when it is no longer stored.
    ///   - check: for all descriptors of one message.
    func add(
        _ descriptor: consuming Descriptor, _ name: String, _ type: String? = nil, taken: Timestamp? = nil,
        of app: AppID, closer: DescriptorCloser, check: DescriptorCheck = DescriptorCheck()
    ) -> Addition {
        let descriptor = SharedDescriptor(descriptor, closer: closer)
        let isState = Self.kind(of: name) != nil
        if isState {
            // Sealed before it is measured, so that it keeps its size. One that cannot be sealed is measured again when
            // it is passed on.
            try? MemoryFile.sealSize(descriptor.descriptor)
        }
        let own = entries[app, default: []]
        if let reason = Self.refusal(name, descriptor) {
            let kept = own.contains { $0.name == name } ? "; the previous \(name) is kept" : ""
            return .refused("FDNAME=\(name) was refused: \(reason)\(kept)")
        }
        let others = isState ? own.count { $0.name != name } : own.count
        guard others < Self.maximumPerApp else {
            return .refused("FDNAME=\(name) was refused: \(Self.maximumPerApp) descriptors are stored already")
        }
        if !isState, let reason = check.reasonToRefuse(descriptor.descriptor) {
            return .refused("FDNAME=\(name) was refused: \(reason); accepted are \(DescriptorCheck.accepted)")
        }
        let about =
            Self.isSnapshot(name)
            ? SnapshotFacts(type: type ?? MediaType.png, time: taken ?? Timestamp.now()) : nil
        let entry = Entry(name, descriptor, lastSerial + 1, about)
        let replaced = isState ? name : nil
        if entry.isLimited, entry.bytes > 0, let reason = excess(of: measured(app, without: replaced) + entry.bytes) {
            return .refused("FDNAME=\(name) was refused: \(reason)")
        }
        lastSerial += 1
        entries[app, default: []].append(entry)
        let (written, problem) = persist(entry, of: app)
        // The previous one is removed when this one is safe.
        if isState { remove(of: app) { $0.name == name && $0.serial != entry.serial } }
        if about != nil { onSnapshotChange(app) }
        return .stored(written: written, problem: problem)
    }

    // MARK: Memory

    /// What counts for `maximumBytesPerApp` now, without the descriptor of a name.
    private func measured(_ app: AppID, without name: String? = nil) -> UInt64 {
        guard var own = entries[app] else { return 0 }
        for index in own.indices { own[index].measure() }
        entries[app] = own
        return own.reduce(0) { $0 + ($1.isLimited && $1.name != name ? $1.bytes : 0) }
    }

    /// The end of a sentence; `nil`: it is not too much.
    private func excess(of bytes: UInt64) -> String? {
        guard bytes > Self.maximumBytesPerApp else { return nil }
        return "the descriptors of the app have \(bytes.sizeText) in memory with it; the limit is "
            + Self.maximumBytesPerApp.sizeText
    }

    /// Removes the memfds that have grown beyond the limit, the newest first. Called when the app has ended, and before its launch.
    func limitMemory(of app: AppID) {
        var bytes = measured(app)
        while let reason = excess(of: bytes), let last = entries[app]?.last(where: { $0.isLimited && $0.bytes > 0 }) {
            journal.logWarning("FDNAME=\(last.name) was removed: \(reason)", app: app)
            bytes -= last.bytes
            remove(of: app) { $0.serial == last.serial }
        }
    }

    /// What the descriptors of an app have in memory, states and snapshots included, as it was measured last.
    func bytes(of app: AppID) -> UInt64 { entries[app]?.reduce(0) { $0 + $1.bytes } ?? 0 }

    /// The same of all of these apps.
    func bytes(where isCounted: (AppID) -> Bool) -> UInt64 {
        var sum: UInt64 = 0
        for (app, own) in entries where isCounted(app) { sum = own.reduce(sum) { $0 + $1.bytes } }
        return sum
    }

    // MARK: Keeping

    /// Keeps an entry for the next daemon.
    /// - Returns: how many bytes were written to a file, and why that failed.
    private func persist(_ entry: Entry, of app: AppID) -> (written: Int, problem: String?) {
        var (written, problem): (Int, String?) = (0, nil)
        if store.isAvailable {
            store.store(entry.descriptor, RecoveredDescriptors.stored(entry.serial))
        } else {
            do {
                written = try files?.save(entry.descriptor, entry.name, entry.serial) ?? 0
                unsaved.remove(entry.serial)
            } catch {
                problem = "\(error)"
                if error is SystemError { saveLater(entry) }
            }
        }
        let record = StoredDescriptorRecord(app: app, name: entry.name, about: entry.about)
        logbook.persist(record.savedBytes, as: Self.recordName(entry.serial))
        return (written, problem)
    }

    /// The file system is full, for example: the contents are written when it has space again.
    private func saveLater(_ entry: Entry) {
        unsaved.insert(entry.serial)
        retries?.add("stored") { [weak self] in self?.saveAgain() ?? true }
    }

    /// Saves what could not be saved before, up to the first entry that is refused again.
    /// - Returns: whether nothing is left.
    private func saveAgain() -> Bool {
        for (_, own) in entries.sorted(by: { $0.key < $1.key }) {
            for entry in own where unsaved.contains(entry.serial) {
                do {
                    _ = try files?.save(entry.descriptor, entry.name, entry.serial)
                } catch {
                    // Too large for the limit of all apps: a retry would not change that.
                    if error is SystemError { return false }
                }
                unsaved.remove(entry.serial)
            }
        }
        return true
    }

    private static let recordPrefix = "stored/"
    private static func recordName(_ serial: UInt64) -> String { recordPrefix + "\(serial)" }

    // MARK: Recovery

    /// The numbers of the descriptors that the previous daemon stored, oldest first.
    static func serials(_ records: [String: [UInt8]]) -> [UInt64] {
        records.keys.compactMap { name in
            name.hasPrefix(recordPrefix) ? UInt64(name.dropFirst(recordPrefix.count)) : nil
        }.sorted()
    }

    /// Takes over what the previous daemon stored, as far as its descriptors were passed on or are kept as files.
    func restore(_ records: [String: [UInt8]], _ descriptors: RecoveredDescriptors) {
        let closer = DescriptorCloser()
        for serial in Self.serials(records) { restore(serial, records, descriptors, closer) }
        endRestore()
    }

    /// Takes over one descriptor. Called in the order of the numbers, then `endRestore`.
    func restore(
        _ serial: UInt64, _ records: [String: [UInt8]], _ descriptors: RecoveredDescriptors, _ closer: DescriptorCloser
    ) {
        lastSerial = max(lastSerial, serial)
        guard let record = try? StoredDescriptorRecord(reading: records[Self.recordName(serial)] ?? []),
            let descriptor = take(record.name, serial, of: record.app, descriptors)
        else { return logbook.removeRecord(Self.recordName(serial)) }
        let (app, name) = (record.app, record.name)
        let shared = SharedDescriptor(descriptor, closer: closer)
        // Earlier releases stored descriptors of all kinds.
        if Self.kind(of: name) == nil, let reason = DescriptorCheck().reasonToRefuse(shared.descriptor) {
            journal.logWarning("FDNAME=\(name) was removed: \(reason)", app: app)
            store.remove(RecoveredDescriptors.stored(serial))
            return logbook.removeRecord(Self.recordName(serial))
        }
        let about =
            Self.isSnapshot(name)
            ? record.about ?? SnapshotFacts(type: MediaType.png, time: .init(microseconds: 0)) : nil
        entries[app, default: []].append(Entry(name, shared, serial, about))
        // The previous daemon died after it had stored this one and before it removed the one before.
        if Self.kind(of: name) != nil { remove(of: app) { $0.name == name && $0.serial < serial } }
    }

    /// Removes the files of descriptors that were not taken over.
    func endRestore() { files?.removeUnused() }

    private func take(
        _ name: String, _ serial: UInt64, of app: AppID, _ descriptors: RecoveredDescriptors
    ) -> Descriptor? {
        if let descriptor = descriptors.take(RecoveredDescriptors.stored(serial)) {
            files?.adopt(descriptor, name, serial)
            return descriptor
        }
        do {
            return try files?.load(name, serial)
        } catch {
            journal.logWarning("\(error)", app: app)
            return nil
        }
    }

    /// Writes the files of all states and snapshots again: their folder was removed.
    func writeFilesAgain() {
        guard let files, !store.isAvailable else { return }
        do { try files.createFolder() } catch { journal.logWarning("\(error)") }
        for (app, own) in entries.sorted(by: { $0.key < $1.key }) {
            for entry in own {
                if let problem = persist(entry, of: app).problem { journal.logWarning(problem, app: app) }
            }
        }
    }

    /// Saves states and snapshots for the next daemon after a stop.
    func archive(in archive: StateArchive) {
        var all: [StateArchive.Entry] = []
        for (app, own) in entries.sorted(by: { $0.key < $1.key }) {
            for entry in own
            where Self.kind(of: entry.name) != nil && Self.refusal(entry.name, entry.descriptor) == nil {
                all.append(StateArchive.Entry(app, entry.name, entry.descriptor, entry.about))
            }
        }
        archive.save(all)
        files?.close()
    }

    /// Takes over the states and snapshots of an archive. Those that are stored already are newer and stay.
    /// - Parameter keepsOverReboot: whether the snapshot of an app is kept if the machine was started since (`SnapshotPersistent=`).
    func restoreArchive(_ archive: StateArchive, keepsOverReboot: (AppID) -> Bool) {
        let closer = DescriptorCloser()
        archive.take(keepsOverReboot: keepsOverReboot) { app, name, about, descriptor in
            if entries[app, default: []].contains(where: { $0.name == name }) { return }
            switch add(descriptor, name, about?.type, taken: about?.time, of: app, closer: closer) {
            case .refused(let problem), .stored(_, let problem?): journal.logWarning(problem, app: app)
            case .stored: break
            }
        }
    }

    /// All descriptors, for a program that replaces this one by execve(2).
    var all: [(name: String, descriptor: SharedDescriptor)] {
        entries.values.joined().map { (RecoveredDescriptors.stored($0.serial), $0.descriptor) }
    }

    // MARK: Removing

    /// Removes all descriptors of this name.
    func remove(_ name: String, of app: AppID) { remove(of: app) { $0.name == name } }

    func drop(_ what: DroppedState, of app: AppID) {
        switch what {
        case .restoration: remove(of: app) { Self.kind(of: $0.name) != nil }
        case .everything: removeAll(of: app)
        case .scene(let scene):
            remove(of: app) { [Self.state(of: scene), Self.snapshot(of: scene)].contains($0.name) }
        }
    }

    /// Removes all descriptors of an app.
    func removeAll(of app: AppID) { remove(of: app) { _ in true } }

    /// Removes all descriptors of these apps.
    func removeAll(where isRemoved: (AppID) -> Bool) {
        for app in entries.keys.filter(isRemoved) { remove(of: app) { _ in true } }
    }

    private func remove(of app: AppID, where isRemoved: (Entry) -> Bool) {
        guard var own = entries[app] else { return }
        let snapshots = own.count { $0.about != nil }
        own.removeAll { entry in
            guard isRemoved(entry) else { return false }
            release(entry)
            return true
        }
        entries[app] = own.isEmpty ? nil : own
        if own.count(where: { $0.about != nil }) < snapshots { onSnapshotChange(app) }
    }

    private func release(_ entry: Entry) {
        unsaved.remove(entry.serial)
        logbook.removeRecord(Self.recordName(entry.serial))
        files?.remove(entry.serial)
        store.remove(RecoveredDescriptors.stored(entry.serial))
    }

    // MARK: Passing on

    /// A descriptor of this name with an offset of its own; `nil`: none is stored.
    func copy(of name: String, _ app: AppID) -> SharedDescriptor? {
        entries[app]?.first { $0.name == name }.map { MemoryFile.fromStart($0.descriptor) }
    }

    private func snapshotEntry(of app: AppID, _ scene: SceneID?) -> Entry? {
        let name = scene.map(Self.snapshot(of:)) ?? Self.snapshot
        return entries[app]?.first { $0.name == name }
    }

    /// What is known of the snapshot of an app, or of a scene of it; `nil`: it has none.
    func snapshotFacts(of app: AppID, _ scene: SceneID? = nil) -> SnapshotFacts? {
        snapshotEntry(of: app, scene)?.about
    }

    /// The snapshot of an app, or of a scene of it, for a client, who can only read it; `nil`: it has none.
    /// - Throws: a `SystemError`, or a `Problem` if it has grown too large since it was stored.
    func snapshot(of app: AppID, _ scene: SceneID?) throws -> (file: ReadOnlyMemoryFile, about: SnapshotFacts)? {
        guard let entry = snapshotEntry(of: app, scene), let about = entry.about,
            let limit = Self.sizeLimit(of: Self.snapshot)
        else { return nil }
        if let reason = Self.refusal(entry.name, entry.descriptor) { throw Problem("it has \(reason)") }
        return try ReadOnlyMemoryFile(entry.descriptor, limit: limit).map { ($0, about) }
    }

    /// The descriptors for the app's next process, in the order in which they were stored. They stay stored, as with
    /// systemd. A state or a snapshot is at offset 0, wherever the app that stored it has left it. A state that could not be
    /// sealed and has grown too large is removed.
    func passed(to app: AppID) -> [PassedDescriptor] {
        remove(of: app) { entry in
            guard let reason = Self.refusal(entry.name, entry.descriptor) else { return false }
            journal.logWarning("FDNAME=\(entry.name) was removed: \(reason)", app: app)
            return true
        }
        limitMemory(of: app)
        return entries[app, default: []].map { entry in
            let isState = Self.kind(of: entry.name) != nil
            let descriptor = isState ? MemoryFile.fromStart(entry.descriptor) : entry.descriptor
            return PassedDescriptor(descriptor, name: entry.name)
        }
    }

    /// Why a client's memfd is not taken over a bus, where it has to be sealed: a sentence without the full stop; `nil`: it is.
    static func reasonToRefuse(contentsOf shared: SharedDescriptor) -> String? {
        guard MemoryFile.isMemoryFile(shared.descriptor) else {
            return "the descriptor is not a memfd (memfd_create(2))"
        }
        guard MemoryFile.hasSealedContents(shared.descriptor) else {
            return "the memfd is not sealed; expected F_SEAL_SHRINK, F_SEAL_GROW and F_SEAL_WRITE"
        }
        return nil
    }

    /// Why a descriptor cannot be a state or a snapshot, as the end of a sentence; `nil`: it can, or has another name.
    private static func refusal(_ name: String, _ shared: SharedDescriptor) -> String? {
        guard let limit = sizeLimit(of: name) else { return nil }
        guard MemoryFile.isMemoryFile(shared.descriptor), let size = try? MemoryFile.size(shared.descriptor) else {
            return "not a memfd"
        }
        guard MemoryFile.isReadable(shared.descriptor) else { return "not open for reading" }
        guard size > limit else { return nil }
        let limitText = UInt64(limit).sizeText
        let text = UInt64(size).sizeText
        // A size that is rounded to the limit would not explain the refusal.
        return "\(text == limitText ? "\(size) bytes" : text); the limit is \(limitText)"
    }
}

/// The record of a stored descriptor.
private struct StoredDescriptorRecord: SavedRecord {
    var app: AppID
    var name: String
    var about: SnapshotFacts?

    static var blank: StoredDescriptorRecord { StoredDescriptorRecord(app: .blank, name: "") }

    mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.required(1, &app)
        try coder.required(2, &name)
        var (type, time) = (about?.type, about?.time.microseconds ?? 0)
        try coder.optional(3, &type)
        try coder.field(4, &time)
        about = type.map { SnapshotFacts(type: $0, time: Timestamp(microseconds: time)) }
    }

    package var fault: String? {
        about.flatMap { MediaType.isValid($0.type) ? nil : "the type of a snapshot is not valid" }
    }
}
