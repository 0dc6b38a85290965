import LifecycleCore

/// The notices that a run has still to receive, as they are recorded for the next daemon.
///
/// ```
/// accept ──▶ waiting ──▶ beginSending ──▶ (the signal is sent) ──▶ removeFirst
///            recorded        recorded                                 recorded
/// ```
///
/// Each step is recorded before the next. So the next daemon can tell what became of a notice: one that waits was not
/// sent; of one that was being sent it is in doubt, and the kernel may still have the signal pending.
struct NoticeQueue: Hashable {
    /// The most notices that wait for one signal to be taken. At more than that the requests come faster than any app
    /// follows, and all are sent at once. It bounds the run's record.
    static let capacity = 64

    private(set) var waiting: [Notice] = []
    /// Whether the first notice is being sent.
    private(set) var isSending = false
    /// The last effect whose notice was accepted.
    private(set) var lastEffect = EffectID.none

    init() {}

    /// As it was recorded.
    init(waiting: [Notice], isSending: Bool, lastEffect: EffectID) {
        self.waiting = waiting
        self.isSending = isSending && !waiting.isEmpty
        self.lastEffect = lastEffect
    }

    var first: Notice? { waiting.first }
    var isEmpty: Bool { waiting.isEmpty }

    /// Appends the notice of an effect.
    /// - Returns: `false` if the previous daemon accepted the notice of this effect before it died.
    mutating func accept(_ notice: Notice, of effect: EffectID) -> Bool {
        guard effect > lastEffect else { return false }
        lastEffect = effect
        waiting.append(notice)
        return true
    }

    mutating func beginSending() { isSending = true }

    /// The first notice was sent, or will not be sent.
    mutating func removeFirst() {
        isSending = false
        waiting.removeFirst()
    }

    mutating func removeAll() {
        isSending = false
        waiting = []
    }
}
