import LifecycleCore
import Linux
import Posix

/// The descriptors that survived the previous daemon, by name: from the service manager's file descriptor store, or
/// passed on by reexec.
final class RecoveredDescriptors {
    private var all: [String: SharedDescriptor] = [:]

    init() {}

    /// Takes ownership of the descriptors. If several have the same name, all but the first are closed.
    init(adopting passed: [(name: String, descriptor: SharedDescriptor)]) {
        for (name, descriptor) in passed where all[name] == nil { all[name] = descriptor }
    }

    static func notifySocket(_ run: RunID) -> String { "notify-\(run)" }
    static func process(_ run: RunID) -> String { "process-\(run)" }
    static func stored(_ serial: UInt64) -> String { "stored-\(serial)" }
    static let lock = "lock"
    static let groupLock = "group-lock"
    static let controlSocket = "control"
    static let inhibitor = "inhibitor"
    /// The connection to the message bus.
    static let messageBus = "message-bus"
    /// A connection of the private socket.
    static func client(_ number: UInt64) -> String { clientPrefix + String(number) }
    private static let clientPrefix = "client-"

    /// The numbers of the private socket's connections, in ascending order.
    var clients: [UInt64] {
        all.keys.compactMap { name in
            name.hasPrefix(Self.clientPrefix) ? UInt64(name.dropFirst(Self.clientPrefix.count)) : nil
        }.sorted()
    }

    func contains(_ name: String) -> Bool { all[name] != nil }

    /// - Returns: `nil` if there is none of this name, or if it cannot be duplicated.
    func take(_ name: String) -> Descriptor? {
        guard let shared = all.removeValue(forKey: name) else { return nil }
        return try? shared.descriptor.duplicate()
    }

    /// Closes those that were not taken, and removes them from the store: nothing else would ever do so.
    func removeUnused(from store: DescriptorStore) {
        for name in all.keys.sorted() { store.remove(name) }
        all = [:]
    }
}
