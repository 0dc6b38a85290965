/// What an app says that only a connection of its own can say.
package enum ConnectionEvent: Hashable, Sendable {
    /// A process of the app has connected, or a connection has ended: what all connections of the run handle together.
    case attached(HandledNotices)
    /// After `Notice.takeSnapshot`: the snapshot is stored, or there is none (L18).
    case snapshotTaken
    /// After `Notice.withdraw`: it advertises nothing any more (L43).
    case withdrawn
}

extension LifecycleCore {
    mutating func handle(_ event: ConnectionEvent, _ index: AppIndex, _ now: Instant) {
        switch event {
        case .attached(let handled): attached(index, handled, now)
        case .snapshotTaken: self[run: index].snapshotDue = nil
        case .withdrawn: self[run: index].withdrawal?.due = nil
        }
    }
}

extension ConnectionEvent: SavedUnion {
    package func save(to writer: inout ByteWriter) {
        switch self {
        case .attached(let handled): writer.put(case: 50, UInt64(handled.rawValue))
        case .snapshotTaken: writer.put(case: 140)
        case .withdrawn: writer.put(case: 182)
        }
    }

    package init?(case number: UInt64, _ values: inout RecordReader) throws(SavedError) {
        switch number {
        case 50: self = .attached(HandledNotices(rawValue: UInt32(truncatingIfNeeded: try values.next() as UInt64)))
        case 140: self = .snapshotTaken
        case 182: self = .withdrawn
        default: return nil
        }
    }
}
