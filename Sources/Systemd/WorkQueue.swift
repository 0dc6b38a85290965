import LoopPolicy

/// Work that is too long for one turn of the loop, in small pieces. A turn does pieces until its time is used up
/// (`EventLoop.isTurnOver`), and the rest waits for a later turn: behind all sources of its level and of more urgent ones
/// (`LoopLevel`), which have used their budgets by then.
///
/// Several jobs take turns piece by piece. The pieces of one job are done in order.
package final class WorkQueue {
    private unowned let loop: EventLoop
    private let call: DeferredCall
    /// The jobs, the one whose turn it is first.
    private var jobs: [Job] = []

    /// A bare closure would be wrapped in another one each time that it is taken from the list and appended again.
    private struct Job {
        let label: StaticString
        let piece: () -> Bool
    }

    init(loop: EventLoop, kind: SourceKind) {
        self.loop = loop
        call = DeferredCall(loop: loop, kind: kind)
        call.handler = { [weak self] in self?.turn() }
    }

    package var isEmpty: Bool { jobs.isEmpty }
    /// How many pieces were done so far.
    package private(set) var pieces = 0
    /// Called at the end of a turn after which no job is left.
    package var onEmpty: () -> Void = {}

    /// Does a job in later turns.
    /// - Parameters:
    ///   - label: the file of the caller, for the measurement of turns.
    ///   - piece: does the next piece, and returns whether there is another. It should take no more than some 100 µs.
    package func add(label: StaticString = #fileID, _ piece: @escaping () -> Bool) {
        jobs.append(Job(label: label, piece: piece))
        call.schedule()
    }

    /// Calls `body` with each element in later turns, one piece each, then `completion`.
    package func add<Items: Sequence>(
        each items: Items, label: StaticString = #fileID, _ body: @escaping (Items.Element) -> Void,
        completion: @escaping () -> Void = {}
    ) {
        var rest = items.makeIterator()
        add(label: label) {
            if let item = rest.next() {
                body(item)
                return true
            }
            completion()
            return false
        }
    }

    /// One slice: at least one piece.
    private func turn() {
        // A job that a piece adds is done in the same turn, if there is time.
        while !jobs.isEmpty {
            // Removed while it runs: it may add another job.
            let job = jobs.removeFirst()
            pieces += 1
            if job.piece() { jobs.append(job) }
            if loop.isTurnOver {
                loop.attributeTurn(to: job.label)
                break
            }
        }
        guard jobs.isEmpty else { return call.schedule() }
        call.cancel()
        onEmpty()
    }
}
