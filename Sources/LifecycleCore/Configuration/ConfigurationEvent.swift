/// What the manifests and the daemon's configuration say.
package enum ConfigurationEvent: Hashable, Sendable {
    /// A manifest was read, for the first time or again. `launches`: how often the app was launched before (L9).
    indirect case registered(AppID, AppPolicy, launches: Int)
    /// The manifest was removed. A running app keeps running and is removed at its end.
    case unregistered(AppID)
    indirect case configured(ManagerPolicy)
    /// All manifests are known: apps with `LaunchAtStart=` are launched.
    case started
}

extension LifecycleCore {
    mutating func handle(_ event: ConfigurationEvent, _ now: Instant) {
        switch event {
        case .registered(let id, let policy, let launches): registered(id, policy, launches, now)
        case .unregistered(let id): unregistered(id, now)
        case .configured(let policy): configured(policy, now)
        case .started: started(now)
        }
    }
}

extension ConfigurationEvent: SavedUnion {
    package func save(to writer: inout ByteWriter) {
        switch self {
        case .registered(let id, let policy, let launches): writer.put(case: 2, id, policy, launches)
        case .unregistered(let id): writer.put(case: 3, id)
        case .configured(let policy): writer.put(case: 4, policy)
        case .started: writer.put(case: 5)
        }
    }

    package init?(case number: UInt64, _ values: inout RecordReader) throws(SavedError) {
        switch number {
        case 2: self = .registered(try values.next(), try values.next(), launches: try values.next())
        case 3: self = .unregistered(try values.next())
        case 4: self = .configured(try values.next())
        case 5: self = .started
        default: return nil
        }
    }
}
