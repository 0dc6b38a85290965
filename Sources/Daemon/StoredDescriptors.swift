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
        if let limit = Self.sizeLimits[name] {
            guard MemoryFile.isMemoryFile(descriptor.raw), let size = try? MemoryFile.size(descriptor.raw) else {
                return "FDNAME=\(name) has to be a memfd"
            }
            guard size <= limit else { return "FDNAME=\(name) holds \(size) bytes; \(limit) are allowed" }
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

    func forget(_ app: AppID) {
        shelves[app] = nil
    }

    /// In the order stored; they stay stored, as systemd's do.
    func passed(to app: AppID) -> [PassedDescriptor] {
        shelves[app]?.entries.map { PassedDescriptor(fd: $0.descriptor.raw, name: $0.name) } ?? []
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
