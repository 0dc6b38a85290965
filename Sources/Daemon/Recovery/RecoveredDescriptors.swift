import LifecycleCore
import Linux
import Posix
import Systemd

/// A descriptor of the previous daemon that nothing of this one has taken yet. It may be an app's, whose close(2) can block: a
/// helper thread closes it if it is not taken.
final class UntakenDescriptor {
    private var number: Int32?
    private let closer: DescriptorCloser

    init(_ descriptor: consuming Descriptor, closer: DescriptorCloser = DescriptorCloser()) {
        number = descriptor.release()
        self.closer = closer
    }

    /// The descriptor itself, not a duplicate: closing one of two can block as well.
    /// - Returns: `nil` the second time.
    func take() -> Descriptor? {
        guard let number else { return nil }
        self.number = nil
        return Descriptor(adopting: number)
    }

    deinit {
        if let number { closer.close(Descriptor(adopting: number)) }
    }
}

/// The descriptors that survived the previous daemon, by name: from the service manager's file descriptor store, or
/// passed on by reexec.
final class RecoveredDescriptors {
    private var all: [String: UntakenDescriptor] = [:]
    /// Whether the previous program has executed this one: it has said all that it had to say.
    private(set) var isReexecuted = false

    init() {}

    /// Takes ownership of the descriptors. If several have the same name, all but the first are closed.
    init(adopting passed: [(name: String, descriptor: UntakenDescriptor)], isReexecuted: Bool = false) {
        self.isReexecuted = isReexecuted
        for (name, descriptor) in passed where all[name] == nil { all[name] = descriptor }
    }

    static func notifySocket(_ run: RunID) -> String { "notify-\(run)" }
    static func connectionSocket(_ run: RunID) -> String { "self-\(run)" }
    static func process(_ run: RunID) -> String { "process-\(run)" }
    static func stored(_ serial: UInt64) -> String { "stored-\(serial)" }
    static let socketPrefix = "socket-"
    static func socket(_ serial: UInt64) -> String { socketPrefix + "\(serial)" }
    static let lock = "lock"
    static let groupLock = "group-lock"
    static let controlSocket = "control"
    static let inhibitor = "inhibitor"

    func contains(_ name: String) -> Bool { all[name] != nil }
    var names: [String] { all.keys.sorted() }

    /// - Returns: `nil` if there is none of this name.
    func take(_ name: String) -> Descriptor? {
        guard let untaken = all.removeValue(forKey: name) else { return nil }
        return untaken.take()
    }

    /// Closes those that were not taken, and removes them from the store: nothing else would ever do so.
    func removeUnused(from store: DescriptorStore) {
        for name in all.keys.sorted() { store.remove(name) }
        all = [:]
    }
}
