import CGreenroom

/// A push, or another reason for which the app was woken. It has to be completed, at the latest after 30s.
///
/// A wake that is discarded without having been completed has failed. The object may be used on any thread, for example by the
/// `Task` that does the work.
public final class Wake: Sendable {
    /// The number of the wake. That of a push is in the name of its file in the inbox.
    public let id: UInt64
    /// Why the app was woken: `push`, `fetch`, `socket`, `timer`, `accessory` or `location`.
    public let reason: String
    /// What the push brings; empty for another wake.
    public let payload: String

    private let serial: UInt64
    private let connection: Connection
    private let isCompleted = Monitor(false)

    init(_ serial: UInt64, id: UInt64, reason: String, payload: String, _ connection: Connection) {
        self.serial = serial
        self.id = id
        self.reason = reason
        self.payload = payload
        self.connection = connection
    }

    deinit { complete(.failed) }

    /// Reports what has come of the wake. Afterwards the app may be suspended. Only the first call counts; one with `later` does not.
    public func complete(_ result: WakeResult) {
        let answer: Int
        switch result {
        case .newData: answer = GREENROOM_NEW_DATA
        case .noData: answer = GREENROOM_NO_DATA
        case .failed: answer = GREENROOM_FAILED
        case .later: return
        }
        guard isCompleted.update({ completed in !exchange(&completed, true) }) else { return }
        connection.answer(serial, Int32(answer))
    }
}

/// Sets a variable and returns the value that it had.
func exchange<Value>(_ variable: inout Value, _ value: Value) -> Value {
    defer { variable = value }
    return variable
}
