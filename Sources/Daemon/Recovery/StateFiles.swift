import Control
import LifecycleCore
import Linux
import Posix
import Systemd

/// Restoration states and snapshots as files in the runtime folder, for a daemon without a descriptor store: copies of
/// their contents when they were stored. Other descriptors cannot be kept this way.
///
/// The daemon's only thread copies them: 8 MiB within a tmpfs take some milliseconds. An app that stores more than one
/// file of that size in a second has to wait (`NotifySocket.bytesPerMessage`).
final class StateFiles {
    private let folder: String
    private var sizes: [UInt64: (kind: String, bytes: Int)] = [:]

    /// The most bytes of each kind, of all apps, because the folder is in memory: 128 states and eight snapshots of the largest size.
    /// Snapshots have a budget of their own, so that they leave room for states, which are worth more.
    static let budgets: [String: Int] = [StoredDescriptors.state: 128 << 20, StoredDescriptors.snapshot: 64 << 20]

    init(folder: String) throws {
        self.folder = folder
        try createFolder()
    }

    func createFolder() throws { try createDirectories(at: folder, mode: 0o700) }

    /// - Returns: `nil` if the folder cannot be created, which is logged.
    static func open(folder: String, _ journal: Journal) -> StateFiles? {
        do {
            return try StateFiles(folder: folder)
        } catch {
            journal.logWarning("restoration states do not survive this daemon: \(error)")
            return nil
        }
    }

    private func path(_ serial: UInt64) -> String { "\(folder)/\(serial)" }

    /// Copies a state or a snapshot into a file.
    /// - Returns: how many bytes were written.
    /// - Throws: why it will not survive this daemon.
    func save(_ shared: SharedDescriptor, _ name: String, _ serial: UInt64) throws -> Int {
        guard let kind = StoredDescriptors.kind(of: name), let limit = StoredDescriptors.sizeLimit(of: name),
            let budget = Self.budgets[kind]
        else { return 0 }
        let size = try MemoryFile.size(shared.descriptor)
        let others = sizes.values.reduce(0) { $0 + ($1.kind == kind ? $1.bytes : 0) }
        guard others + size <= budget else {
            let total = UInt64(others + size).sizeText
            throw Problem(
                "FDNAME=\(name) does not survive this daemon: all apps' take \(total); the limit is "
                    + UInt64(budget).sizeText)
        }
        try MemoryFile.save(shared.descriptor, at: path(serial), limit: limit)
        sizes[serial] = (kind, size)
        return size
    }

    /// - Returns: a memfd with the contents of the file; `nil` if there is no file.
    func load(_ name: String, _ serial: UInt64) throws -> Descriptor? {
        guard let kind = StoredDescriptors.kind(of: name), let limit = StoredDescriptors.sizeLimit(of: name),
            exists(at: path(serial))
        else { return nil }
        let memory = try MemoryFile.load(path(serial), name: name, limit: limit)
        sizes[serial] = (kind, try MemoryFile.size(memory))
        return memory
    }

    /// Keeps the file of a descriptor that the previous daemon passed on, if there is one.
    func adopt(_ descriptor: borrowing Descriptor, _ name: String, _ serial: UInt64) {
        guard exists(at: path(serial)) else { return }
        sizes[serial] = (StoredDescriptors.kind(of: name) ?? name, (try? MemoryFile.size(descriptor)) ?? 0)
    }

    func remove(_ serial: UInt64) {
        guard sizes.removeValue(forKey: serial) != nil else { return }
        _ = try? removeFile(at: path(serial))
    }

    /// Removes the files of descriptors that are no longer stored.
    func removeUnused() {
        for name in (try? folderEntries(at: folder)) ?? [] where UInt64(name).flatMap({ sizes[$0] }) == nil {
            _ = try? removeFile(at: folder + "/" + name)
        }
    }

    /// Removes all files and the folder.
    func close() {
        sizes = [:]
        removeUnused()
        _ = try? removeFile(at: folder, folder: true)
    }
}

/// Restoration states and snapshots in the state folder, from a stop of the daemon until the next one starts.
struct StateArchive {
    let folder: String
    let journal: Journal

    /// A state or a snapshot.
    struct Entry {
        let app: AppID
        let name: String
        let descriptor: SharedDescriptor
        let about: SnapshotFacts?

        init(_ app: AppID, _ name: String, _ descriptor: SharedDescriptor, _ about: SnapshotFacts?) {
            (self.app, self.name, self.descriptor, self.about) = (app, name, descriptor, about)
        }
    }

    /// Separates the ID of a scene. No ID has it.
    private static let sceneMark: Character = "+"

    /// The names of the files: `APP.state`, `APP.snapshot` and, of a scene, `APP.state+SCENE` and `APP.snapshot+SCENE`.
    private static func file(_ app: AppID, _ name: String) -> String {
        let kind = StoredDescriptors.kind(of: name) ?? name
        let scene = name.dropFirst(kind.count + 1)
        return "\(app.name).\(kind)" + (scene.isEmpty ? "" : "\(sceneMark)\(scene)")
    }

    /// - Returns: `nil` if the file is none of these.
    private static func content(ofFile file: String) -> (app: AppID, name: String)? {
        let parts = file.split(separator: sceneMark, maxSplits: 1, omittingEmptySubsequences: false)
        let scene = parts.count > 1 ? ".\(parts[1])" : ""
        for kind in [StoredDescriptors.state, StoredDescriptors.snapshot] where parts[0].hasSuffix("." + kind) {
            guard let app = AppID(String(parts[0].dropLast(kind.count + 1))) else { continue }
            let name = kind + scene
            return StoredDescriptors.kind(of: name) == kind ? (app, name) : nil
        }
        return nil
    }

    func save(_ entries: [Entry]) {
        guard !entries.isEmpty else { return }
        do {
            try createDirectories(at: folder, mode: 0o700)
        } catch {
            return journal.logWarning("restoration states do not survive this stop: \(error)")
        }
        var left = StateFiles.budgets
        for entry in entries {
            let name = entry.name
            guard let kind = StoredDescriptors.kind(of: name), let limit = StoredDescriptors.sizeLimit(of: name) else {
                continue
            }
            let path = "\(folder)/\(Self.file(entry.app, name))"
            do {
                let size = try MemoryFile.size(entry.descriptor.descriptor)
                guard size <= left[kind] ?? 0 else {
                    throw Problem("\(path): \(size) bytes; \(left[kind] ?? 0) are left of the limit for all apps")
                }
                left[kind]? -= size
                try MemoryFile.save(entry.descriptor.descriptor, at: path, limit: limit)
                if let about = entry.about { try save(about, Self.file(entry.app, name)) }
            } catch {
                journal.logWarning("\(error)", app: entry.app)
            }
        }
    }

    // MARK: Facts about snapshots

    /// The names: `APP.snapshot-facts` and, of a scene, `APP.snapshot-facts+SCENE`. No ID of a scene has a `+`, so each follows its
    /// snapshot.
    private static let factsSuffix = "-facts"
    /// Bytes: a type, two numbers and a boot ID.
    private static let maximumFacts = 512

    /// - Parameter file: of the snapshot.
    private func path(ofFacts file: String) -> String {
        let parts = file.split(separator: Self.sceneMark, maxSplits: 1, omittingEmptySubsequences: false)
        return "\(folder)/\(parts[0])\(Self.factsSuffix)" + (parts.count > 1 ? "\(Self.sceneMark)\(parts[1])" : "")
    }

    /// Three lines: the type, the time in microseconds since 1970, and the boot ID.
    private func save(_ about: SnapshotFacts, _ file: String) throws(SystemError) {
        let text = "\(about.type)\n\(about.time.microseconds)\n\(bootID())\n"
        try replaceFile(at: path(ofFacts: file), with: Array(text.utf8), mode: 0o600)
    }

    /// - Returns: `nil` if the file is missing or damaged: an earlier release has written none.
    private func facts(of file: String) -> (about: SnapshotFacts, boot: String)? {
        guard let bytes = try? readFile(at: path(ofFacts: file), limit: Self.maximumFacts, following: false) else {
            return nil
        }
        let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n").map(String.init)
        guard lines.count == 3, MediaType.isValid(lines[0]), let time = UInt64(lines[1]) else { return nil }
        return (SnapshotFacts(type: lines[0], time: Timestamp(microseconds: time)), lines[2])
    }

    /// Removes all files from the archive and passes them to `body`.
    /// - Parameter keepsOverReboot: whether the snapshot of an app is passed on if the machine was started since.
    func take(
        keepsOverReboot: (AppID) -> Bool, _ body: (AppID, String, SnapshotFacts?, consuming Descriptor) -> Void
    ) {
        guard exists(at: folder) else { return }
        let boot = bootID()
        for file in ((try? folderEntries(at: folder)) ?? []).sorted() {
            let path = folder + "/" + file
            if let (app, name) = Self.content(ofFile: file), let limit = StoredDescriptors.sizeLimit(of: name) {
                let isSnapshot = StoredDescriptors.kind(of: name) == StoredDescriptors.snapshot
                let facts = isSnapshot ? facts(of: file) : nil
                let isOfThisBoot = facts.map { $0.boot == boot } ?? !isSnapshot
                do {
                    if isOfThisBoot || keepsOverReboot(app) {
                        body(app, name, facts?.about, try MemoryFile.load(path, name: name, limit: limit))
                    }
                } catch {
                    journal.logWarning("\(error)", app: app)
                }
            }
            // The facts come after the snapshot.
            _ = try? removeFile(at: path)
        }
        _ = try? removeFile(at: folder, folder: true)
    }
}
