import CSystemd
package import Posix

/// A set of objects that any number of connections serve. Complete it before the first connection: existing connections do not
/// serve objects that are added later.
package final class BusObjects {
    private(set) var entries: [Entry] = []
    private(set) var managerPaths: [String] = []
    private(set) lazy var managed = ManagedObjects(self)

    /// Decides whether a user other than root and the user of this process may call a method of `BusAccess.owner`. It calls
    /// `decided` once, at once or later, with the error or with `nil`.
    package typealias Authorise = (MethodCall, PeerCredentials, _ decided: @escaping (BusError?) -> Void) -> Void

    /// `nil`: such calls are refused.
    package var authorise: Authorise?

    package init() {}

    /// Serves `interfaces` at one path.
    package func add(at path: String, _ interfaces: [BusInterface]) {
        entries.append(Entry(path: path, collection: nil, interfaces, owner: self))
    }

    /// Serves `interfaces` at each object directly below `prefix`. `contains` reports whether a name (unescaped) exists, and
    /// `list` returns all names.
    package func add(
        below prefix: String, contains: @escaping (String) -> Bool, list: @escaping () -> [String],
        _ interfaces: [BusInterface]
    ) {
        let collection = Collection(contains: contains, list: list)
        entries.append(Entry(path: prefix, collection: collection, interfaces, owner: self))
    }

    /// Serves the standard ObjectManager at `path`, which lists every object below it.
    package func addObjectManager(at path: String) {
        managerPaths.append(path)
    }

    /// Whether a method of this name takes descriptors.
    func takesDescriptors(_ member: String) -> Bool {
        entries.contains { $0.vtables.contains { $0.methods[member]?.takesDescriptors ?? false } }
    }

    struct Collection {
        let contains: (String) -> Bool
        let list: () -> [String]
    }

    /// The objects of one `add`.
    final class Entry {
        let path: String
        let collection: Collection?
        let vtables: [Vtable]
        private(set) weak var owner: BusObjects?

        init(path: String, collection: Collection?, _ interfaces: [BusInterface], owner: BusObjects) {
            self.owner = owner
            self.path = path
            self.collection = collection
            vtables = interfaces.map { Vtable($0) }
        }

        /// Returns the object at this path; `nil` without one.
        func target(_ path: String) -> BusTarget? {
            guard let collection else { return path == self.path ? BusTarget(path: path, id: "") : nil }
            guard let id = ObjectPath.decode(path, below: self.path), collection.contains(id) else { return nil }
            return BusTarget(path: path, id: id)
        }

        /// Returns the paths of all objects below the prefix.
        func paths() -> [String] {
            collection.map { $0.list().map { ObjectPath.encode($0, below: path) } } ?? []
        }
    }

    /// Registers all objects on a connection; `peer` gets its calls.
    func register(on bus: OpaquePointer, for peer: BusPeer) throws(SystemError) {
        for entry in entries { try entry.register(on: bus, for: peer) }
        for path in managerPaths {
            try check(sd_bus_add_object_manager(bus, nil, path), "sd_bus_add_object_manager", path)
        }
    }
}

extension BusObjects.Entry {
    func register(on bus: OpaquePointer, for peer: BusPeer) throws(SystemError) {
        for vtable in vtables {
            let name = vtable.interface.name
            try addSlot(Binding(self, vtable, peer), "vtable \(name)") { slot, userdata in
                collection == nil
                    ? sd_bus_add_object_vtable(bus, slot, path, name, vtable.entries, userdata)
                    : sd_bus_add_fallback_vtable(bus, slot, path, name, vtable.entries, findCallback, userdata)
            }
        }
        guard collection != nil else { return }
        try addSlot(Binding(self, nil, peer), "node enumerator") { slot, userdata in
            sd_bus_add_node_enumerator(bus, slot, path, enumeratorCallback, userdata)
        }
    }

    private func addSlot(
        _ binding: Binding, _ what: String,
        _ add: (UnsafeMutablePointer<OpaquePointer?>, UnsafeMutableRawPointer) -> Int32
    ) throws(SystemError) {
        var slot: OpaquePointer?
        let userdata = Unmanaged.passRetained(binding).toOpaque()
        let result = add(&slot, userdata)
        guard result >= 0, let slot else {
            releaseUserdata(userdata)
            throw SystemError(call: "registering the \(what) at", errno: -result, path: path)
        }
        float(slot)
    }
}
