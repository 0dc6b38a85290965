/// What is measured of the memory of a run, and what becomes of it.
package enum RunMemoryEvent: Hashable, Sendable {
    /// The exact size in bytes; of processes that the daemon may not examine, the least that they can have. `estimate`: the estimate
    /// of the same time.
    case sizeMeasured(bytes: UInt64, estimate: UInt64)
    /// Nothing more is pushed out of the suspended run (L37). `bytes`: what was.
    case reclaimed(attempt: Int, bytes: UInt64)
    /// The kernel's OOM killer killed the main process, or all processes. Comes before `exited`.
    case outOfMemory(OutOfMemory)
}

/// The memory of one run.
package enum RunMemoryEffect: Hashable, Sendable {
    /// L38: sets the rank of the run for the kernel's OOM killer. Until the first one it is `OOMClass.active`.
    case setOOMClass(OOMClass)
    /// Measures the exact size of a run (L39). → `sizeMeasured`, unless it ends before.
    case measureSize
    /// Pushes what the suspended run has out to swap, at most so many bytes (L37). → `reclaimed`.
    case reclaim(attempt: Int, bytes: UInt64)
    /// Nothing more is to be pushed out: it is about to run, or to end. `reclaimed` does not follow.
    case stopReclaim
    /// Reads the pages first that the run touched at its last wake, as far as they are known, if it was pushed out (L37): it is thawed.
    case bringBack
}

extension LifecycleCore {
    mutating func handle(_ event: RunMemoryEvent, _ index: AppIndex, _ now: Instant) {
        switch event {
        case .sizeMeasured(let bytes, let estimate): sizeMeasured(index, bytes, estimate, now)
        case .reclaimed(let attempt, let bytes): reclaimed(index, attempt, bytes, now)
        case .outOfMemory(let cause): self[run: index].outOfMemory = cause
        }
    }
}

extension RunMemoryEvent: SavedUnion {
    package func save(to writer: inout ByteWriter) {
        switch self {
        case .outOfMemory(let cause): writer.put(case: 26, cause)
        case .sizeMeasured(let bytes, let estimate): writer.put(case: 61, SavedSize(bytes), SavedSize(estimate))
        case .reclaimed(let attempt, let bytes): writer.put(case: 110, attempt, SavedSize(bytes))
        }
    }

    package init?(case number: UInt64, _ values: inout RecordReader) throws(SavedError) {
        switch number {
        case 26: self = .outOfMemory(try values.next())
        case 61: self = .sizeMeasured(bytes: try values.nextSize(), estimate: try values.nextSize())
        case 110: self = .reclaimed(attempt: try values.next(), bytes: try values.nextSize())
        default: return nil
        }
    }
}
