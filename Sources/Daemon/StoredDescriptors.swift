import LifecycleCore
import Linux
import Posix

/// What apps store with us for their next launch (`FDSTORE=1`): bounded, and handed back as `LISTEN_FDS`.
final class StoredDescriptors {
    private final class Shelf {
        var entries: [Entry] = []
    }

    private struct Entry {
        var name: String
        var descriptor: SharedDescriptor
        /// By which it is found again by the next daemon.
        var serial: UInt64
    }

    /// Per app; systemd's FileDescriptorStoreMax= of its own services is rarely more.
    static let maximumPerApp = 64
    /// The restoration state, at most 1 MiB, and the snapshot, at most 8 MiB: memfds (docs: «What an app is given»).
    static let state = "state"
    static let snapshot = "snapshot"
    static let sizeLimits: [String: Int] = [state: 1 << 20, snapshot: 8 << 20]

    private var shelves: [AppID: Shelf] = [:]
    private var lastSerial: UInt64 = 0
    private let logbook: Logbook
    private let store: DescriptorStore
    /// Where there is no such store, or was none for the daemon before this one.
    private let files: StateFiles?
    /// What can't be kept beyond this daemon.
    var complain: (AppID, String) -> Void = { _, _ in }

    init(logbook: Logbook, store: DescriptorStore, files: StateFiles? = nil) {
        self.logbook = logbook
        self.store = store
        self.files = files
    }

    /// How it ended with a descriptor that was offered.
    enum Addition: Equatable {
        /// `written`: bytes copied for the daemon that follows.
        case stored(written: Int)
        /// Why it was not taken; it is closed then.
        case refused(String)
    }

    /// - Parameter closer: where it is closed when it is no longer stored.
    func add(
        _ descriptor: consuming Descriptor, _ name: String, of app: AppID, closer: DescriptorCloser
    ) -> Addition {
        let descriptor = SharedDescriptor(descriptor, closer: closer)
        let shelf = shelves[app] ?? Shelf()
        let isState = Self.sizeLimits[name] != nil
        if isState {
            // Before it is measured, so that it stays at that. One whose seals are sealed is measured again.
            try? MemoryFile.sealSize(descriptor.descriptor)
            if let refusal = Self.refusal(name, descriptor) { return .refused(refusal) }
        }
        let others = isState ? shelf.entries.count { $0.name != name } : shelf.entries.count
        guard others < Self.maximumPerApp else {
            return .refused("\(Self.maximumPerApp) descriptors are stored already; “\(name)” was closed")
        }
        lastSerial += 1
        let entry = Entry(name: name, descriptor: descriptor, serial: lastSerial)
        shelf.entries.append(entry)
        shelves[app] = shelf
        let written = keep(entry, of: app)
        // The one before it goes once this one is safe.
        if isState { drop(from: app) { $0.name == name && $0.serial != entry.serial } }
        return .stored(written: written)
    }

    /// - Returns: how many bytes were written for it.
    private func keep(_ entry: Entry, of app: AppID) -> Int {
        var written = 0
        if store.isThere {
            store.keep(entry.descriptor, HandedDescriptors.stored(entry.serial))
        } else {
            do {
                written = try files?.save(entry.descriptor, entry.name, entry.serial) ?? 0
            } catch {
                complain(app, "\(error)")
            }
        }
        var writer = ByteWriter()
        writer.put(app)
        writer.put(text: entry.name)
        logbook.note(Self.note(entry.serial), writer.bytes)
        return written
    }

    private static func note(_ serial: UInt64) -> String { "stored/\(serial)" }

    /// What a daemon before this one had, as far as it was handed over, or lies in files.
    func restore(_ notes: [String: [UInt8]], _ handed: HandedDescriptors) {
        let serials = notes.keys.compactMap { $0.hasPrefix("stored/") ? UInt64($0.dropFirst(7)) : nil }
        let closer = DescriptorCloser()
        for serial in serials.sorted() {
            lastSerial = max(lastSerial, serial)
            var reader = ByteReader(notes[Self.note(serial)] ?? [])
            guard let app: AppID = try? reader.take(), let name = try? reader.text(upTo: 256, "a name"),
                let descriptor = take(name, serial, of: app, handed)
            else {
                logbook.note(Self.note(serial), nil)
                continue
            }
            let shelf = shelves[app] ?? Shelf()
            shelf.entries.append(
                Entry(name: name, descriptor: SharedDescriptor(descriptor, closer: closer), serial: serial))
            shelves[app] = shelf
            // A daemon that died between storing one and dropping the one before it.
            if Self.sizeLimits[name] != nil { drop(from: app) { $0.name == name && $0.serial < serial } }
        }
        files?.removeOthers()
    }

    private func take(_ name: String, _ serial: UInt64, of app: AppID, _ handed: HandedDescriptors) -> Descriptor? {
        if let descriptor = handed.take(HandedDescriptors.stored(serial)) {
            files?.adopt(descriptor, name, serial)
            return descriptor
        }
        guard let files else { return nil }
        do {
            return try files.load(name, serial)
        } catch {
            complain(app, "\(error)")
            return nil
        }
    }

    /// Over a stop in order.
    func archive(in archive: StateArchive, complain: (String) -> Void) {
        var entries: [(app: AppID, name: String, descriptor: SharedDescriptor)] = []
        for (app, shelf) in shelves.sorted(by: { $0.key < $1.key }) {
            for entry in shelf.entries where Self.refusal(entry.name, entry.descriptor) == nil {
                entries.append((app, entry.name, entry.descriptor))
            }
        }
        archive.save(entries.filter { Self.sizeLimits[$0.name] != nil }, complain: complain)
        files?.close()
    }

    /// What is stored already is kept: it was taken out before, and may have been replaced since.
    func unarchive(from archive: StateArchive, complain: (String) -> Void) {
        let closer = DescriptorCloser()
        archive.take(complain: complain) { app, name, descriptor in
            if shelves[app]?.entries.contains(where: { $0.name == name }) ?? false { return }
            if case .refused(let refusal) = add(descriptor, name, of: app, closer: closer) { complain(refusal) }
        }
    }

    /// All, for whoever takes them along.
    var all: [(name: String, descriptor: SharedDescriptor)] {
        shelves.values.flatMap { shelf in
            shelf.entries.map { (HandedDescriptors.stored($0.serial), $0.descriptor) }
        }
    }

    func remove(_ name: String, of app: AppID) { drop(from: app) { $0.name == name } }

    private func drop(from app: AppID, where isMeant: (Entry) -> Bool) {
        guard let shelf = shelves[app] else { return }
        for entry in shelf.entries where isMeant(entry) { release(entry) }
        shelf.entries.removeAll(where: isMeant)
    }

    private func release(_ entry: Entry) {
        logbook.note(Self.note(entry.serial), nil)
        files?.remove(entry.serial)
        if store.isThere { store.forget(HandedDescriptors.stored(entry.serial)) }
    }

    func dropRestorationState(of app: AppID) {
        remove(Self.state, of: app)
        remove(Self.snapshot, of: app)
    }

    func forget(where isGone: (AppID) -> Bool) {
        for app in shelves.keys.filter(isGone) {
            drop(from: app) { _ in true }
            shelves[app] = nil
        }
    }

    /// In the order stored; they stay stored, as systemd's do. One that could not be sealed and has grown since is dropped.
    ///
    /// - Parameter complain: hears of what is dropped.
    func passed(to app: AppID, complain: (String) -> Void) -> [PassedDescriptor] {
        guard let shelf = shelves[app] else { return [] }
        shelf.entries.removeAll { entry in
            guard let refusal = Self.refusal(entry.name, entry.descriptor) else { return false }
            complain(refusal + ", and is dropped")
            release(entry)
            return true
        }
        return shelf.entries.map { PassedDescriptor($0.descriptor, name: $0.name) }
    }

    /// Why this can't be what its name says; `nil`: it can.
    private static func refusal(_ name: String, _ shared: SharedDescriptor) -> String? {
        guard let limit = sizeLimits[name] else { return nil }
        guard MemoryFile.isMemoryFile(shared.descriptor), let size = try? MemoryFile.size(shared.descriptor) else {
            return "FDNAME=\(name) has to be a memfd"
        }
        return size <= limit ? nil : "FDNAME=\(name) holds \(size) bytes; \(limit) are allowed"
    }
}
