/// What a run in the background has used of the processors and of GPUs.
package enum ProcessorEvent: Hashable, Sendable {
    /// Since its launch the run has used so much processor time, and was ready to run for so long without a processor (L44).
    case measured(used: Duration, waited: Duration)
    /// Processes of the run have used a GPU since the watch began (L43), for so long; zero: the driver does not say for how long.
    case gpuUsed(Duration)
}

/// What a run gets of the processors, and what it uses of them and of the GPUs.
package enum ProcessorEffect: Hashable, Sendable {
    /// L19: lowers the CPU and I/O weights of an app in the background that works for itself.
    case throttle
    case unthrottle
    /// Measures what a run in the background uses of the processors (L44). → `processorMeasured`.
    case measure
    /// Limits the processor time of a run to so many thousandths of one processor (L44); `nil`: ends that.
    case limit(Int?)
    /// Begins or ends to watch whether the run uses a GPU (L43). What it has used before does not count. → `gpuUsed`, at each look that
    /// finds some.
    case watchGPU(Bool)
}

extension LifecycleCore {
    mutating func handle(_ event: ProcessorEvent, _ index: AppIndex, _ now: Instant) {
        switch event {
        case .measured(let used, let waited): processorMeasured(index, used, waited, now)
        case .gpuUsed(let time): gpuUsed(index, time, now)
        }
    }
}

extension ProcessorEvent: SavedUnion {
    package func save(to writer: inout ByteWriter) {
        switch self {
        case .measured(let used, let waited): writer.put(case: 41, used, waited)
        case .gpuUsed(let time): writer.put(case: 150, time)
        }
    }

    package init?(case number: UInt64, _ values: inout RecordReader) throws(SavedError) {
        switch number {
        case 41: self = .measured(used: try values.next(), waited: try values.next())
        case 150: self = .gpuUsed(try values.next())
        default: return nil
        }
    }
}
