/// Whether the background time of a task ends, and what is called then.
final class Expiration: Sendable {
    private struct State {
        var hasBegun = false
        var handlers: [@Sendable () -> Void] = []
    }

    private let state = Monitor(State())

    /// Whether the background time ends.
    var hasBegun: Bool { state.update { $0.hasBegun } }

    /// Calls the handler when the background time ends, at once if it does so now.
    func onBegin(_ handler: @escaping @Sendable () -> Void) {
        let isLate = state.update { state in
            if !state.hasBegun { state.handlers.append(handler) }
            return state.hasBegun
        }
        if isLate { handler() }
    }

    /// The background time ends.
    func begin() {
        let handlers = state.update { state in
            state.hasBegun = true
            return exchange(&state.handlers, [])
        }
        for handler in handlers { handler() }
    }

    /// Removes the handlers, after the end of the task.
    func removeHandlers() { _ = state.update { exchange(&$0.handlers, []) } }

    /// Waits until the background time ends.
    ///
    /// - Returns: `hasBegun`; false if the time was over first.
    func wait(until end: ContinuousClock.Instant?) -> Bool {
        state.wait(until: end) { $0.hasBegun ? true : nil } ?? false
    }
}
