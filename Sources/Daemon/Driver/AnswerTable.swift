import LifecycleCore

/// Requests that are not answered yet, with a reply for each, given by the requester when it asks.
final class AnswerTable {
    private var last: UInt64 = 0
    private var replies: [RequestID: (Answer) -> Void] = [:]
    /// The numbers of pushes that are not answered yet.
    private var events: [RequestID: UInt64] = [:]
    /// While a push is answered: its number.
    private(set) var answeredEvent: UInt64?

    /// Registers a requester.
    /// - Parameter reply: called once with the core's answer, unless the request is withdrawn before.
    func expect(_ reply: @escaping (Answer) -> Void) -> RequestID {
        last += 1
        let request = RequestID(last)
        replies[request] = reply
        return request
    }

    /// Answers the requester. Requests of a previous daemon have none and are ignored.
    func answer(_ request: RequestID, _ answer: Answer) {
        answeredEvent = events.removeValue(forKey: request)
        replies.removeValue(forKey: request)?(answer)
        answeredEvent = nil
    }

    /// Records the number of a push, for the reply to its requester.
    func identify(_ request: RequestID, event: UInt64) { if replies[request] != nil { events[request] = event } }

    /// The requester has disconnected.
    /// - Returns: whether it was still waiting.
    func withdraw(_ request: RequestID) -> Bool {
        events[request] = nil
        return replies.removeValue(forKey: request) != nil
    }
}
