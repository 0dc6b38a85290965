import LifecycleCore

/// The notices that a run has still to receive, as they are recorded for the next daemon.
///
/// ```
/// accept ──▶ waiting ──▶ beginSending ──▶ (the signal is sent) ──▶ removeFirst
///            recorded        recorded                                 recorded
/// ```
///
/// Each step is recorded before the next. So the next daemon knows that a waiting notice was not sent. A notice that
/// was being sent may have been sent, and its signal may still be pending.
struct NoticeQueue: Hashable {
    /// The most notices that wait until the app takes a signal. If there are more, requests arrive faster than the app
    /// handles them, and all notices are sent at once. The limit bounds the run's record.
    static let capacity = 64

    private(set) var waiting: [Notice] = []
    /// Whether the first notice is being sent.
    private(set) var isSending = false
    /// The last effect whose notice was accepted.
    private(set) var lastEffect = EffectID.none

    init() {}

    /// Restores a recorded queue.
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
        // Most of the time nothing waits, and an empty array keeps its memory.
        if waiting.isEmpty { waiting = [] }
    }

    mutating func removeAll() {
        isSending = false
        waiting = []
    }
}
