/// The user is away, or is back (L15).
package enum AbsenceEvent: Hashable, Sendable {
    /// The machine is about to sleep or to power off, and waits for `Effect.allowSleep`.
    case sleepRequested
    /// The machine woke up, or did not sleep after all.
    case awoke
    /// The screen was locked.
    case locked
    case unlocked
}

extension LifecycleCore {
    mutating func handle(_ event: AbsenceEvent, _ now: Instant) {
        switch event {
        case .sleepRequested: sleepRequested(now)
        case .awoke: awoke(now)
        case .locked: locked(now)
        case .unlocked: unlocked(now)
        }
    }
}

extension AbsenceEvent: SavedUnion {
    package func save(to writer: inout ByteWriter) {
        switch self {
        case .sleepRequested: writer.put(case: 10)
        case .awoke: writer.put(case: 11)
        case .locked: writer.put(case: 12)
        case .unlocked: writer.put(case: 13)
        }
    }

    package init?(case number: UInt64, _ values: inout RecordReader) throws(SavedError) {
        switch number {
        case 10: self = .sleepRequested
        case 11: self = .awoke
        case 12: self = .locked
        case 13: self = .unlocked
        default: return nil
        }
    }
}
