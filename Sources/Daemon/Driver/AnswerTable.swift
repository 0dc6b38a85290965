import LifecycleCore

/// Requests that are not answered yet, with a reply for each, given by the requester when it asks.
final class AnswerTable {
    private var last: UInt64 = 0
    private var replies: [RequestID: (Answer) -> Void] = [:]

    /// Registers a requester.
    /// - Parameter reply: called once with the core's answer, unless the request is withdrawn before.
    func expect(_ reply: @escaping (Answer) -> Void) -> RequestID {
        last += 1
        let request = RequestID(last)
        replies[request] = reply
        return request
    }

    /// Answers the requester. Requests of a previous daemon have none and are ignored.
    func answer(_ request: RequestID, _ answer: Answer) { replies.removeValue(forKey: request)?(answer) }

    /// The requester has disconnected.
    /// - Returns: whether it was still waiting.
    func withdraw(_ request: RequestID) -> Bool { replies.removeValue(forKey: request) != nil }
}
