/// Modes begin and end: what the app says, and what others know of it (L28).
package enum ModeEvent: Hashable, Sendable {
    /// The app begins or ends a single mode.
    case began(BackgroundModes)
    case ended(BackgroundModes)
    /// What processes of the run inhibit with logind, and why; `nil`: nothing any more.
    case inhibitorChanged(String?)
    /// The modes that sources outside the program show of it, all of them: an audible stream of PipeWire, a player that plays.
    case shown(BackgroundModes)
    /// Of the modes that the app asserts, those that it does not use, all of them, as a service says that would have to know: they do not
    /// keep it awake.
    case unused(BackgroundModes)
}

extension LifecycleCore {
    mutating func handle(_ event: ModeEvent, _ index: AppIndex, _ now: Instant) {
        switch event {
        case .began(let mode): modeBegan(index, mode, now)
        case .ended(let mode): modeEnded(index, mode, now)
        case .inhibitorChanged(let inhibitor): inhibitorChanged(index, inhibitor, now)
        case .shown(let modes): modesShown(index, modes, now)
        case .unused(let modes): modesUnused(index, modes, now)
        }
    }
}

extension ModeEvent: SavedUnion {
    package func save(to writer: inout ByteWriter) {
        switch self {
        case .began(let mode): writer.put(case: 70, mode)
        case .ended(let mode): writer.put(case: 71, mode)
        case .inhibitorChanged(let inhibitor?): writer.put(case: 72, inhibitor)
        case .inhibitorChanged(nil): writer.put(case: 73)
        case .shown(let modes): writer.put(case: 180, modes)
        case .unused(let modes): writer.put(case: 190, modes)
        }
    }

    package init?(case number: UInt64, _ values: inout RecordReader) throws(SavedError) {
        switch number {
        case 70: self = .began(try values.next())
        case 71: self = .ended(try values.next())
        case 72: self = .inhibitorChanged(try values.next())
        case 73: self = .inhibitorChanged(nil)
        case 180: self = .shown(try values.next())
        case 190: self = .unused(try values.next())
        default: return nil
        }
    }
}
