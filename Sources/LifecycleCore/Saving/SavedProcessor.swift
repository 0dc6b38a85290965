extension AppPolicy.BackgroundCPU: SavedCase {}

extension BackgroundUse: SavedRecord {
    package static var blank: BackgroundUse { BackgroundUse(used: .zero, within: .zero, limit: 0) }

    package mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.required(1, &used)
        try coder.required(2, &within)
        try coder.required(3, &limit)
    }
}

extension ProcessorWatch.Sample: SavedRecord {
    package static var blank: ProcessorWatch.Sample { ProcessorWatch.Sample(at: .origin, used: .zero, waited: .zero) }

    package mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.required(1, &at)
        try coder.required(2, &used)
        try coder.field(3, &waited)
    }
}

extension ProcessorWatch.Throttle: SavedRecord {
    package static var blank: ProcessorWatch.Throttle { ProcessorWatch.Throttle(since: .origin, use: .blank) }

    package mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.required(1, &since)
        try coder.required(2, &use)
    }
}

extension ProcessorWatch: SavedRecord {
    package static var blank: ProcessorWatch { ProcessorWatch() }

    package mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.list(1, &samples, upTo: Self.maximumSamples)
        try coder.optional(2, &nextAt)
        try coder.optional(3, &askedAt)
        try coder.flag(4, &isWarned)
        try coder.optional(5, &throttle)
    }

    package var fault: String? { nextAt == nil && throttle != nil ? "a run is throttled, but not measured" : nil }
}
