/// A wake that begins when the app runs: it launches, is thawed, or is launched after its end.
struct PendingWake: Hashable, Sendable {
    var reason: LaunchReason
    /// The number that names it, and the push that it is for.
    var id: UInt64
    /// No user asked for it (L53).
    var isUnrequested: Bool
    /// The app may have completed it while there was no daemon.
    var isDoubtful = false
    /// The app cannot read what it is woken for, so it need not complete it (L30).
    var isExcused = false
}

/// Of several wakes a completion without a number is for the one with the lowest order, and of these for the oldest: an app does not
/// complete what needs no completion, and may have completed one that is in doubt.
func completionOrder(mustComplete: Bool, isDoubtful: Bool) -> Int { (mustComplete ? 0 : 2) + (isDoubtful ? 1 : 0) }

/// The wakes of an app that have not begun, each with the time and the completion of its own that it will have (L26), and the
/// numbers of its wakes.
struct PendingWakes: Hashable, Sendable {
    /// They begin when the launch or the thaw that is under way, or waits, is complete. Oldest first.
    private(set) var pending: [PendingWake] = []
    /// They begin in the process that is launched after the end which is under way. Oldest first.
    private(set) var afterEnd: [PendingWake] = []
    /// The last number that a wake, a push or another event of the app got. Numbers are not used again while the app is known.
    private(set) var lastNumber: UInt64 = 0

    init() {}

    /// As it was saved.
    init(pending: [PendingWake], afterEnd: [PendingWake], lastNumber: UInt64) {
        self.pending = pending
        self.afterEnd = afterEnd
        self.lastNumber = lastNumber
    }

    mutating func nextNumber() -> UInt64 {
        lastNumber += 1
        return lastNumber
    }

    mutating func add(_ wake: PendingWake) { pending.append(wake) }

    /// Removes the wake that is completed before it began: the one with this number. Without a number it is the oldest of those for
    /// whose reason `mustComplete` is true, or else the oldest, and one that is not in doubt before one that is.
    /// - Returns: the wake; `nil`: there was none.
    mutating func remove(_ id: UInt64?, mustComplete: (LaunchReason) -> Bool) -> PendingWake? {
        func order(_ index: Int) -> Int {
            let wake = pending[index]
            let isDuty = mustComplete(wake.reason) && !wake.isExcused
            return completionOrder(mustComplete: isDuty, isDoubtful: wake.isDoubtful)
        }
        let named = pending.indices.filter { id == nil || pending[$0].id == id }
        return named.min { order($0) < order($1) }.map { pending.remove(at: $0) }
    }

    mutating func excuse(_ id: UInt64) {
        for index in pending.indices where pending[index].id == id { pending[index].isExcused = true }
    }

    mutating func doubt() { for index in pending.indices { pending[index].isDoubtful = true } }

    /// Removes and returns the wakes that begin now.
    mutating func take() -> [PendingWake] {
        defer { pending = [] }
        return pending
    }

    // MARK: With the process

    /// No process is left that they could begin in.
    mutating func reset() { pending = [] }

    mutating func addForNext(_ wake: PendingWake) { afterEnd.append(wake) }

    /// The next process is launched.
    mutating func beginNext() {
        pending += afterEnd
        afterEnd = []
    }

    /// No process follows.
    mutating func dropNext() { afterEnd = [] }
}
