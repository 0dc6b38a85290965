import LifecycleCore
import Linux
import Posix

/// Restoration states and snapshots as files, where nobody keeps descriptors beyond this daemon: their contents as they
/// were when they were offered. A descriptor of any other kind can't be kept so.
///
/// Written by the one thread: 8 MiB within a tmpfs are some milliseconds, and who offers more than one of that size in a
/// second waits (`AppChannel.bytesPerMessage`).
final class StateFiles {
    private let folder: String
    private var sizes: [UInt64: (name: String, bytes: Int)] = [:]

    /// In all, as the folder is in memory and the logbook beside it needs room: of states at their largest 128, of snapshots
    /// eight; of what apps store in truth some hundreds. Snapshots leave room for states, which are worth more.
    static let budgets: [String: Int] = [StoredDescriptors.state: 128 << 20, StoredDescriptors.snapshot: 64 << 20]

    init(folder: String) throws {
        self.folder = folder
        try createDirectories(at: folder, mode: 0o700)
    }

    private func path(_ serial: UInt64) -> String { "\(folder)/\(serial)" }

    /// - Returns: how many bytes were written.
    /// - Throws: why a daemon that follows will not have it.
    func save(_ shared: SharedDescriptor, _ name: String, _ serial: UInt64) throws -> Int {
        guard let limit = StoredDescriptors.sizeLimits[name], let budget = Self.budgets[name] else { return 0 }
        let size = try MemoryFile.size(shared.descriptor)
        let others = sizes.values.reduce(0) { $0 + ($1.name == name ? $1.bytes : 0) }
        guard others + size <= budget else {
            throw Problem("FDNAME=\(name) does not outlive this daemon: of all apps they take \(others + size) bytes")
        }
        try MemoryFile.save(shared.descriptor, at: path(serial), limit: limit)
        sizes[serial] = (name, size)
        return size
    }

    /// `nil`: there is none.
    func load(_ name: String, _ serial: UInt64) throws -> Descriptor? {
        guard let limit = StoredDescriptors.sizeLimits[name], exists(at: path(serial)) else { return nil }
        let memory = try MemoryFile.load(path(serial), name: name, limit: limit)
        sizes[serial] = (name, try MemoryFile.size(memory))
        return memory
    }

    /// Of a descriptor that was handed over: the file of it stays, if there is one.
    func adopt(_ descriptor: borrowing Descriptor, _ name: String, _ serial: UInt64) {
        guard exists(at: path(serial)) else { return }
        sizes[serial] = (name, (try? MemoryFile.size(descriptor)) ?? 0)
    }

    func remove(_ serial: UInt64) {
        guard sizes.removeValue(forKey: serial) != nil else { return }
        _ = try? removeFile(at: path(serial))
    }

    /// What lies there and belongs to nothing that is stored.
    func removeOthers() {
        for name in (try? folderEntries(at: folder)) ?? [] where UInt64(name).flatMap({ sizes[$0] }) == nil {
            _ = try? removeFile(at: folder + "/" + name)
        }
    }

    /// All of it.
    func close() {
        sizes = [:]
        removeOthers()
        _ = try? removeFile(at: folder, folder: true)
    }
}

/// Over a stop in order: what apps stored is in the state folder until the next daemon starts, for their next launch.
struct StateArchive {
    let folder: String

    private static let names = [StoredDescriptors.state, StoredDescriptors.snapshot]

    func save(_ entries: [(app: AppID, name: String, descriptor: SharedDescriptor)], complain: (String) -> Void) {
        guard !entries.isEmpty else { return }
        do {
            try createDirectories(at: folder, mode: 0o700)
        } catch {
            return complain("restoration states do not outlive this stop: \(error)")
        }
        var left = StateFiles.budgets
        for (app, name, descriptor) in entries {
            guard let limit = StoredDescriptors.sizeLimits[name] else { continue }
            let path = "\(folder)/\(app.name).\(name)"
            do {
                let size = try MemoryFile.size(descriptor.descriptor)
                guard size <= left[name] ?? 0 else { throw Problem("\(path): no room is left for \(size) bytes") }
                left[name]? -= size
                try MemoryFile.save(descriptor.descriptor, at: path, limit: limit)
            } catch {
                complain("\(error)")
            }
        }
    }

    /// All that lies there, once: it is removed.
    func take(complain: (String) -> Void, _ body: (AppID, String, consuming Descriptor) -> Void) {
        guard exists(at: folder) else { return }
        for file in ((try? folderEntries(at: folder)) ?? []).sorted() {
            let path = folder + "/" + file
            if let name = Self.names.first(where: { file.hasSuffix("." + $0) }),
                let app = AppID(String(file.dropLast(name.count + 1))), let limit = StoredDescriptors.sizeLimits[name]
            {
                do {
                    body(app, name, try MemoryFile.load(path, name: name, limit: limit))
                } catch {
                    complain("\(error)")
                }
            }
            _ = try? removeFile(at: path)
        }
        _ = try? removeFile(at: folder, folder: true)
    }
}
