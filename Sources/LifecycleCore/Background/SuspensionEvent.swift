/// What becomes of a freeze and a thaw. `attempt`: that of the effect; the outcome of an earlier one comes too late to matter.
package enum SuspensionEvent: Hashable, Sendable {
    /// Before `frozen`: processes of the run hold file locks (L43).
    case locksFound(attempt: Int, FileLocks)
    /// The whole cgroup is frozen. `memory`: what killing it would give back, in bytes. It cannot change until the thaw.
    /// `uncertainty`: by how many bytes that may be too large.
    case frozen(attempt: Int, memory: UInt64, uncertainty: UInt64 = 0)
    /// Of an app whose processes share memory, the size in `frozen` is an estimate. This is the exact one, in bytes.
    case footprintMeasured(attempt: Int, memory: UInt64)
    /// After `frozen`: a process outside the daemon has continued a process of the run (SIGCONT, process-group mode).
    case freezeLost(attempt: Int)
    case thawed(attempt: Int)
}

/// The suspension of a run and its end.
package enum SuspensionEffect: Hashable, Sendable {
    /// Freezes the cgroup. → `frozen`, as soon as the kernel reports it.
    case freeze(attempt: Int)
    /// Thaws the cgroup. → `thawed`.
    case thaw(attempt: Int)
}

extension LifecycleCore {
    mutating func handle(_ event: SuspensionEvent, _ index: AppIndex, _ now: Instant) {
        switch event {
        case .locksFound(let attempt, let locks): locksFound(index, attempt, locks, now)
        case .frozen(let attempt, let memory, let uncertainty): frozen(index, attempt, memory, uncertainty, now)
        case .footprintMeasured(let attempt, let memory): footprintMeasured(index, attempt, memory, now)
        case .freezeLost(let attempt): freezeLost(index, attempt, now)
        case .thawed(let attempt): thawed(index, attempt, now)
        }
    }
}

extension SuspensionEvent: SavedUnion {
    package func save(to writer: inout ByteWriter) {
        switch self {
        case .frozen(let attempt, let memory, 0): writer.put(case: 5, attempt, SavedSize(memory))
        case .thawed(let attempt): writer.put(case: 6, attempt)
        case .freezeLost(let attempt): writer.put(case: 23, attempt)
        case .footprintMeasured(let attempt, let memory): writer.put(case: 24, attempt, SavedSize(memory))
        case .locksFound(let attempt, let locks): writer.put(case: 30, attempt, locks)
        case .frozen(let attempt, let memory, let uncertainty):
            writer.put(case: 60, attempt, SavedSize(memory), SavedSize(uncertainty))
        }
    }

    package init?(case number: UInt64, _ values: inout RecordReader) throws(SavedError) {
        switch number {
        case 5: self = .frozen(attempt: try values.next(), memory: try values.nextSize())
        case 6: self = .thawed(attempt: try values.next())
        case 23: self = .freezeLost(attempt: try values.next())
        case 24: self = .footprintMeasured(attempt: try values.next(), memory: try values.nextSize())
        case 30: self = .locksFound(attempt: try values.next(), try values.next())
        case 60:
            self = .frozen(
                attempt: try values.next(), memory: try values.nextSize(), uncertainty: try values.nextSize())
        default: return nil
        }
    }
}
