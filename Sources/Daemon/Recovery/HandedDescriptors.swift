import LifecycleCore
import Linux
import Posix

/// Descriptors that outlived the daemon before this one: in systemd's store, or through exec in place.
final class HandedDescriptors {
    private var all: [String: SharedDescriptor]

    init() { all = [:] }

    /// Takes over what was handed over, by name; of two of one name the first.
    init(adopting handed: [(name: String, descriptor: SharedDescriptor)]) {
        all = [:]
        for (name, descriptor) in handed where all[name] == nil { all[name] = descriptor }
    }

    static func notifySocket(_ run: RunID) -> String { "notify-\(run)" }
    static func process(_ run: RunID) -> String { "process-\(run)" }
    static func stored(_ serial: UInt64) -> String { "stored-\(serial)" }
    static let lock = "lock"
    static let controlSocket = "control"
    static let inhibitor = "inhibitor"

    /// Closes what nobody took, and has it taken out of the store as well: it would stay there for ever.
    func drop(from store: DescriptorStore) {
        if store.isThere { for name in all.keys.sorted() { store.forget(name) } }
        all = [:]
    }

    func has(_ name: String) -> Bool { all[name] != nil }

    /// `nil`: there is none of this name, or it can't be duplicated.
    func take(_ name: String) -> Descriptor? {
        guard let shared = all.removeValue(forKey: name) else { return nil }
        return try? shared.descriptor.duplicate()
    }
}
