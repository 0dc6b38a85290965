/// What a transition waits for: the outcome of its notice, and what the app answers.
package enum TransitionEvent: Hashable, Sendable {
    /// A notice with a deadline was sent. `delivered` is false if the program declares no signal for it or does not catch
    /// that signal: then it has nothing to finish (L17). `cpu`: processor time that the app had used so far.
    case notified(Notice, delivered: Bool, cpu: Duration)
    case ready
    case backgroundEntered
    /// `STOPPING=1`: the app is about to end by itself.
    case stopping
    /// The app has finished what it does after `willTerminate`: what is left of it may be killed at once (L46).
    case terminationAnswered
}

extension LifecycleCore {
    mutating func handle(_ event: TransitionEvent, _ index: AppIndex, _ now: Instant) {
        switch event {
        case .notified(let notice, let delivered, let cpu): notified(index, notice, delivered, cpu, now)
        case .ready: becameReady(index, now)
        case .backgroundEntered:
            setTakesPart(index, now)
            answeredBackground(index, now)
        case .stopping: stopping(index, now)
        case .terminationAnswered: terminationAnswered(index, now)
        }
    }
}

extension TransitionEvent: SavedUnion {
    package func save(to writer: inout ByteWriter) {
        switch self {
        case .notified(let notice, let delivered, let cpu): writer.put(case: 4, notice, delivered, cpu)
        case .ready: writer.put(case: 11)
        case .backgroundEntered: writer.put(case: 12)
        case .stopping: writer.put(case: 21)
        case .terminationAnswered: writer.put(case: 51)
        }
    }

    package init?(case number: UInt64, _ values: inout RecordReader) throws(SavedError) {
        switch number {
        case 4: self = .notified(try values.next(), delivered: try values.next(), cpu: try values.next())
        case 11: self = .ready
        case 12: self = .backgroundEntered
        case 21: self = .stopping
        case 51: self = .terminationAnswered
        default: return nil
        }
    }
}
