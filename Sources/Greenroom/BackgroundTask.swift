/// Work during which the app is not suspended.
///
/// `App.withBackgroundTask(named:_:)` begins and ends it. A program whose work has no such block calls
/// `App.beginBackgroundTask(named:expirationHandler:)`. The task ends with `end()`, or when the object is released. It may be used on
/// any thread.
public final class BackgroundTask: Sendable {
    /// The name that `greenroomctl status` shows, and the receipt if the app is killed because of the task.
    public let name: String

    private let connection: Connection
    private let expiration: Expiration
    private let number: Monitor<UInt64?>

    init(_ name: String, _ number: UInt64, _ expiration: Expiration, _ connection: Connection) {
        self.name = name
        self.number = Monitor(number)
        self.expiration = expiration
        self.connection = connection
    }

    deinit { end() }

    /// Whether the background time ends: finish now, or the app is killed (5s later by default, `ExpirationNoticeSec=`).
    public var isExpiring: Bool { expiration.hasBegun }

    /// Waits until the background time ends, for at most this time.
    ///
    /// - Returns: `isExpiring`.
    public func waitUntilExpiring(for time: Duration) -> Bool { expiration.wait(until: .now + time) }

    /// Reports how far the task is, for the user. It does not wait.
    ///
    /// A task with a title that began in the foreground may continue in the background for as long as `done` grows. Call it as often as
    /// the work advances: what comes within 100ms of the last report is left out, except for the end.
    ///
    /// - Parameters:
    ///   - done: at most 2^53.
    ///   - total: what `done` is at the end; 0: it is not known.
    ///   - title: what the user reads, at most 128 bytes; a longer one is truncated. Empty: the last one stays.
    public func progress(_ done: UInt64, of total: UInt64, title: String = "") {
        guard let number = number.update({ $0 }) else { return }
        let title = shortened(title)
        connection.post { [connection] _ in connection.report(done, of: total, title: title, number) }
    }

    /// Ends the task. After its last task has ended, an app in the background is suspended. Only the first call counts.
    public func end() {
        guard let number = number.update({ exchange(&$0, nil) }) else { return }
        expiration.removeHandlers()
        connection.post { [connection] _ in connection.endTask(number) }
    }

    /// Calls the handler when the background time ends, on a thread of the library.
    func onExpiration(_ handler: @escaping @Sendable () -> Void) { expiration.onBegin(handler) }
}
