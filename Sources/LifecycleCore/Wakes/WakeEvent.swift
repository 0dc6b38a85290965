/// What becomes of a wake (L26, L30).
package enum WakeEvent: Hashable, Sendable {
    /// `id`: the number of the wake; `nil`: the oldest one that is open.
    case completed(WakeResult, id: UInt64? = nil)
    /// The file of an event could not be written, because there is no space, for example. It is written later, perhaps when its
    /// wake is over: the wake need not be completed. `wake`: its number.
    case notificationDelayed(wake: UInt64)
}

/// The outcome of a wake, as the app reports it.
package enum WakeResult: String, CaseIterable, Hashable, Sendable {
    case newData = "new-data"
    case noData = "no-data"
    case failed
}

extension LifecycleCore {
    mutating func handle(_ event: WakeEvent, _ index: AppIndex, _ now: Instant) {
        switch event {
        case .completed(let result, let id): wakeCompleted(index, result, id, now)
        case .notificationDelayed(let wake): notificationDelayed(index, wake)
        }
    }
}

extension WakeEvent: SavedUnion {
    package func save(to writer: inout ByteWriter) {
        switch self {
        case .completed(let result, nil): writer.put(case: 18, result)
        case .completed(let result, let id?): writer.put(case: 31, result, id)
        case .notificationDelayed(let wake): writer.put(case: 40, wake)
        }
    }

    package init?(case number: UInt64, _ values: inout RecordReader) throws(SavedError) {
        switch number {
        case 18: self = .completed(try values.next())
        case 31:
            let (result, id): (WakeResult, UInt64) = (try values.next(), try values.next())
            self = .completed(result, id: id)
        case 40: self = .notificationDelayed(wake: try values.next())
        default: return nil
        }
    }
}

extension WakeResult: SavedCase {}
