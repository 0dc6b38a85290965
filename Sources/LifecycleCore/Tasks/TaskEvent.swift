/// What the app says of its background tasks (L21).
package enum TaskEvent: Hashable, Sendable {
    /// `owner`: the pid of the sender.
    case began(name: String, owner: Int32)
    case ended(name: String)
    indirect case progressed(name: String, TaskProgress)
}

extension LifecycleCore {
    mutating func handle(_ event: TaskEvent, _ index: AppIndex, _ now: Instant) {
        switch event {
        case .began(let name, let owner): taskBegan(index, name, owner, now)
        case .ended(let name): taskEnded(index, name, now)
        case .progressed(let name, let progress): taskProgressed(index, name, progress, now)
        }
    }
}

extension TaskEvent: SavedUnion {
    package func save(to writer: inout ByteWriter) {
        switch self {
        case .began(let name, let owner): writer.put(case: 15, name, owner)
        case .ended(let name): writer.put(case: 16, name)
        case .progressed(let name, let progress): writer.put(case: 210, name, progress)
        }
    }

    package init?(case number: UInt64, _ values: inout RecordReader) throws(SavedError) {
        switch number {
        case 15: self = .began(name: try values.next(), owner: try values.next())
        case 16: self = .ended(name: try values.next())
        case 210: self = .progressed(name: try values.next(), try values.next())
        default: return nil
        }
    }
}
