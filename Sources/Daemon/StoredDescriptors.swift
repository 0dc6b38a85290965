import LifecycleCore
import Linux

/// What apps store with us for their next launch (`FDSTORE=1`): bounded, and handed back as `LISTEN_FDS`.
final class StoredDescriptors {
    private final class Shelf {
        var entries: [(name: String, descriptor: SharedDescriptor)] = []
    }

    /// Per app; systemd's FileDescriptorStoreMax= of its own services is rarely more.
    static let maximumPerApp = 64
    /// The restoration state, at most 1 MiB, and the snapshot, at most 8 MiB: memfds (docs: «What an app is given»).
    static let state = "state"
    static let snapshot = "snapshot"
    static let sizeLimits: [String: Int] = [state: 1 << 20, snapshot: 8 << 20]

    private var shelves: [AppID: Shelf] = [:]

    /// - Parameter closer: where it is closed when it is no longer stored.
    /// - Returns: why it was not taken; it is closed then.
    func add(
        _ descriptor: consuming Descriptor, _ name: String, of app: AppID, closer: DescriptorCloser
    ) -> String? {
        let descriptor = SharedDescriptor(descriptor, closer: closer)
        let shelf = shelves[app] ?? Shelf()
        if Self.sizeLimits[name] != nil {
            // Before it is measured, so that it stays at that. One whose seals are sealed is measured again.
            try? MemoryFile.sealSize(descriptor.raw)
            if let refusal = Self.refusal(name, descriptor.raw) { return refusal }
            shelf.entries.removeAll { $0.name == name }
        }
        guard shelf.entries.count < Self.maximumPerApp else {
            return "\(Self.maximumPerApp) descriptors are stored already; “\(name)” was closed"
        }
        shelf.entries.append((name, descriptor))
        shelves[app] = shelf
        return nil
    }

    func remove(_ name: String, of app: AppID) {
        shelves[app]?.entries.removeAll { $0.name == name }
    }

    func dropRestorationState(of app: AppID) {
        remove(Self.state, of: app)
        remove(Self.snapshot, of: app)
    }

    func forget(where isGone: (AppID) -> Bool) {
        for app in shelves.keys.filter(isGone) { shelves[app] = nil }
    }

    /// In the order stored; they stay stored, as systemd's do. One that could not be sealed and has grown since is dropped.
    ///
    /// - Parameter complain: hears of what is dropped.
    func passed(to app: AppID, complain: (String) -> Void) -> [PassedDescriptor] {
        guard let shelf = shelves[app] else { return [] }
        shelf.entries.removeAll { entry in
            guard let refusal = Self.refusal(entry.name, entry.descriptor.raw) else { return false }
            complain(refusal + ", and is dropped")
            return true
        }
        return shelf.entries.map { PassedDescriptor(fd: $0.descriptor.raw, name: $0.name) }
    }

    /// Why this can't be what its name says; `nil`: it can.
    private static func refusal(_ name: String, _ raw: Int32) -> String? {
        guard let limit = sizeLimits[name] else { return nil }
        guard MemoryFile.isMemoryFile(raw), let size = try? MemoryFile.size(raw) else {
            return "FDNAME=\(name) has to be a memfd"
        }
        return size <= limit ? nil : "FDNAME=\(name) holds \(size) bytes; \(limit) are allowed"
    }
}

/// A descriptor in a collection, which can't hold what can't be copied.
final class SharedDescriptor {
    let raw: Int32
    private let closer: DescriptorCloser?

    /// - Parameter closer: of whoever sent it; `nil`: it is our own.
    init(_ descriptor: consuming Descriptor, closer: DescriptorCloser? = nil) {
        raw = descriptor.take()
        self.closer = closer
    }

    deinit {
        guard let closer else { return _ = Descriptor(adopting: raw) }
        closer.close(raw)
    }
}
