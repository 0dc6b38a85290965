/// Input at a suspended run (L50), and what a run in the background has to do (L51).
package enum TrafficEvent: Hashable, Sendable {
    /// After `frozen`: what is watched, and what cannot be.
    case inputWatched(attempt: Int, InputWatch)
    /// Input arrived at the suspended run. Comes once for each change at a descriptor, at bounded intervals.
    case inputArrived(attempt: Int, Input)
    indirect case workMeasured(RunWork)
    /// The app says that it has nothing to do until something arrives, or takes that back.
    case idleHinted(Bool)
}

/// What is found out about the input and the work of a run.
package enum TrafficEffect: Hashable, Sendable {
    /// Watches the descriptors of a suspended run for input (L50). → `inputWatched`, then `inputArrived` for what arrives.
    /// `onlyPeers`: only for local peers that wait because the buffer towards the app is more than half full.
    case watchInput(attempt: Int, onlyPeers: Bool)
    /// Ends the watch and closes its descriptors, before anything else happens to the run.
    case stopWatchingInput
    /// Measures what a run in the background has to do (L51), and once more a worker that was just frozen. → `workMeasured`.
    case measureWork(WorkLookKind)
}

extension LifecycleCore {
    mutating func handle(_ event: TrafficEvent, _ index: AppIndex, _ now: Instant) {
        switch event {
        case .inputWatched(let attempt, let watch): inputWatched(index, attempt, watch, now)
        case .inputArrived(let attempt, let input): inputArrived(index, attempt, input, now)
        case .workMeasured(let work): workMeasured(index, work, now)
        case .idleHinted(let isIdle): idleHinted(index, isIdle, now)
        }
    }
}

extension TrafficEvent: SavedUnion {
    package func save(to writer: inout ByteWriter) {
        switch self {
        case .inputWatched(let attempt, let watch): writer.put(case: 27, attempt, watch)
        case .inputArrived(let attempt, let input): writer.put(case: 28, attempt, input)
        case .workMeasured(let work): writer.put(case: 29, work)
        case .idleHinted(let isIdle): writer.put(case: 52, isIdle)
        }
    }

    package init?(case number: UInt64, _ values: inout RecordReader) throws(SavedError) {
        switch number {
        case 27: self = .inputWatched(attempt: try values.next(), try values.next())
        case 28: self = .inputArrived(attempt: try values.next(), try values.next())
        case 29: self = .workMeasured(try values.next())
        case 52: self = .idleHinted(try values.next())
        default: return nil
        }
    }
}
