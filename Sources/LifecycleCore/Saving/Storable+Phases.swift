extension Phase: Storable {
    func store(in writer: inout ByteWriter) {
        switch self {
        case .notRunning(let notRunning):
            writer.put(byte: 0)
            writer.put(notRunning.relaunch)
        case .launching(let launching):
            writer.put(byte: 1)
            writer.put(launching.launch)
            writer.put(launching.deadline)
            writer.put(launching.wish)
            writer.put(launching.wake)
        case .foreground(let foreground):
            writer.put(byte: 2)
            writer.put(foreground.isActive)
            writer.put(foreground.watchdog)
        case .entering(let entering):
            writer.put(byte: 3)
            writer.put(entering.deadline)
            writer.put(entering.wish)
        case .running(let running):
            writer.put(byte: 4)
            writer.put(running.quietSince)
            writer.put(running.retryDelay)
        case .suspending(let suspending):
            writer.put(byte: 5)
            writer.put(suspending.giveUpAt)
            writer.put(suspending.retryDelay)
        case .suspended(let suspended):
            writer.put(byte: 6)
            writer.put(suspended.since)
        case .waking(let waking):
            writer.put(byte: 7)
            writer.put(waking.deadline)
            writer.put(waking.wish)
            writer.put(waking.wake)
            writer.put(waking.retryDelay)
        case .terminating(let terminating):
            writer.put(byte: 8)
            writer.put(terminating.cause)
            writer.put(terminating.from)
            writer.put(terminating.deadline)
            writer.put(terminating.next)
        case .ending(let ending):
            writer.put(byte: 9)
            writer.put(ending)
        }
    }

    init(from reader: inout ByteReader) throws(SavedError) {
        switch try reader.byte() {
        case 0: self = .notRunning(NotRunning(relaunch: try reader.optional()))
        case 1:
            self = .launching(
                Launching(
                    launch: try reader.take(), deadline: try reader.optional(.launch), wish: try reader.optional(),
                    wake: try reader.optional()))
        case 2:
            self = .foreground(Foreground(isActive: try reader.flag(), watchdog: try reader.optional(.watchdog)))
        case 3: self = .entering(Entering(deadline: try reader.optional(.background), wish: try reader.optional()))
        case 4: self = .running(Running(quietSince: try reader.optional(), retryDelay: try reader.optional()))
        case 5: self = .suspending(Suspending(giveUpAt: try reader.take(), retryDelay: try reader.optional()))
        case 6: self = .suspended(Suspended(since: try reader.take()))
        case 7:
            self = .waking(
                Waking(
                    deadline: try reader.optional(.resume), wish: try reader.optional(), wake: try reader.optional(),
                    retryDelay: try reader.optional()))
        case 8:
            self = .terminating(
                Terminating(
                    cause: try reader.take(), from: try reader.take(), deadline: try reader.optional(.terminate),
                    next: try reader.optional()))
        case 9: self = .ending(try reader.take())
        case let other: throw reader.unknown(other, "phase")
        }
    }
}

extension ByteReader {
    /// A phase's deadline is of its kind.
    fileprivate mutating func optional(_ kind: DeadlineKind) throws(SavedError) -> Deadline? {
        let deadline: Deadline? = try optional()
        guard deadline.map({ $0.kind == kind }) ?? true else {
            throw error("a deadline of another kind than \(kind.rawValue)")
        }
        return deadline
    }
}

extension NotRunning.Relaunch: Storable {
    func store(in writer: inout ByteWriter) {
        writer.put(at)
        writer.put(state)
    }

    init(from reader: inout ByteReader) throws(SavedError) {
        self.init(at: try reader.take(), state: try reader.take())
    }
}

extension Ending: Storable {
    func store(in writer: inout ByteWriter) {
        writer.put(cause)
        writer.put(from)
        writer.put(start)
        writer.put(isEmptied)
        writer.put(wasKilled)
        writer.put(complainAt)
        writer.put(termination)
        writer.put(receipt)
        writer.put(isOverdue)
        writer.put(relaunch)
        writer.put(next)
    }

    init(from reader: inout ByteReader) throws(SavedError) {
        self.init(
            cause: try reader.optional(), from: try reader.take(), start: try reader.take(),
            isEmptied: try reader.flag(), wasKilled: try reader.flag(), complainAt: try reader.take(),
            termination: try reader.optional(), receipt: try reader.optional(), isOverdue: try reader.flag(),
            relaunch: try reader.optional(), next: try reader.optional())
    }
}

extension TerminationCause: Storable {
    func store(in writer: inout ByteWriter) {
        switch self {
        case .requested: writer.put(byte: 0)
        case .exitsOnSuspend: writer.put(byte: 1)
        case .shutdown: writer.put(byte: 2)
        case .selfInitiated: writer.put(byte: 3)
        case .jetsam(let cause, let candidates):
            writer.put(byte: 4)
            writer.put(cause)
            writer.put(candidates)
        }
    }

    init(from reader: inout ByteReader) throws(SavedError) {
        switch try reader.byte() {
        case 0: self = .requested
        case 1: self = .exitsOnSuspend
        case 2: self = .shutdown
        case 3: self = .selfInitiated
        case 4: self = .jetsam(try reader.take(), try reader.candidates())
        case let other: throw reader.unknown(other, "cause of a termination")
        }
    }
}

extension KillCause: Storable {
    func store(in writer: inout ByteWriter) {
        switch self {
        case .missedDeadline(let use):
            writer.put(byte: 0)
            writer.put(use)
        case .leakedTasks(let names, let use):
            writer.put(byte: 1)
            writer.put(names.map(StoredText.init))
            writer.put(use)
        case .wakeNotCompleted(let reason, let use):
            writer.put(byte: 2)
            writer.put(reason)
            writer.put(use)
        case .tooManyTasks(let count):
            writer.put(byte: 3)
            writer.put(counter: count)
        case .removed: writer.put(byte: 4)
        case .terminatedWithoutNotice: writer.put(byte: 5)
        case .shutdown: writer.put(byte: 6)
        case .jetsam(let cause, let candidates):
            writer.put(byte: 7)
            writer.put(cause)
            writer.put(candidates)
        case .terminationIgnored(let cause, let use):
            writer.put(byte: 8)
            writer.put(cause)
            writer.put(use)
        }
    }

    init(from reader: inout ByteReader) throws(SavedError) {
        switch try reader.byte() {
        case 0: self = .missedDeadline(try reader.take())
        case 1:
            let names: [StoredText] = try reader.take(upTo: LifecycleCore.maximumTasks + 1, "tasks")
            self = .leakedTasks(names.map(\.text), try reader.take())
        case 2: self = .wakeNotCompleted(try reader.take(), try reader.take())
        case 3: self = .tooManyTasks(try reader.counter("tasks"))
        case 4: self = .removed
        case 5: self = .terminatedWithoutNotice
        case 6: self = .shutdown
        case 7: self = .jetsam(try reader.take(), try reader.candidates())
        case 8: self = .terminationIgnored(try reader.take(), try reader.take())
        case let other: throw reader.unknown(other, "cause of a kill")
        }
    }
}
