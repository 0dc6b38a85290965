extension TimerMoment: SavedRecord {
    package static var blank: TimerMoment { TimerMoment(realtime: 0, monotonic: 0, boottime: 0) }

    package mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.required(1, &realtime)
        try coder.required(2, &monotonic)
        try coder.required(3, &boottime)
    }
}

extension TimerState: SavedRecord {
    package static var blank: TimerState { TimerState(began: .blank, calendarBase: 0) }

    package mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.required(1, &began)
        try coder.required(2, &calendarBase)
        try coder.optional(3, &lastTimer)
        try coder.optional(4, &lastTimerRealtime)
        try coder.optional(5, &lastFetch)
        try coder.optional(6, &lastLaunch)
        var factor = fetchFactor == 1 ? nil : fetchFactor
        try coder.optional(7, &factor)
        fetchFactor = min(max(1, factor ?? 1), Self.largestFetchFactor)
        try coder.optional(8, &timerRetry)
        try coder.optional(9, &fetchRetry)
    }
}

extension TimerEvent: SavedUnion {
    package func save(to writer: inout ByteWriter) {
        switch self {
        case .began(let moment, nil): writer.put(case: 1, moment)
        case .began(let moment, let last?): writer.put(case: 2, moment, last)
        case .rebased(let time): writer.put(case: 3, time)
        case .elapsed(.timer, let moment): writer.put(case: 4, moment)
        case .elapsed(.fetch, let moment): writer.put(case: 5, moment)
        }
    }

    package init?(case number: UInt64, _ values: inout RecordReader) throws(SavedError) {
        switch number {
        case 1: self = .began(try values.next(), last: nil)
        case 2:
            let (moment, last): (TimerMoment, Int) = (try values.next(), try values.next())
            self = .began(moment, last: last)
        case 3: self = .rebased(to: try values.next())
        case 4: self = .elapsed(.timer, try values.next())
        case 5: self = .elapsed(.fetch, try values.next())
        default: return nil
        }
    }
}
