/// One app as `status` shows it. All remaining times are counted from the instant of asking.
package struct AppView: Hashable, Sendable {
    package struct Task: Hashable, Sendable {
        package var name: String
        package var age: Duration
        /// Until it is over: `nil` is infinite (L24).
        package var remaining: Duration?
        /// The pid that began it.
        package var owner: Int32
    }
    package struct Deadline: Hashable, Sendable {
        package var what: DeadlineKind
        package var remaining: Duration
    }

    package var id: AppID
    package var state: AppState
    package var run: RunID?
    package var pid: Int32?
    /// When it came into this state.
    package var since: Instant
    /// The last known size in bytes.
    package var memory: UInt64
    package var tasks: [Task]
    package var deadline: Deadline?
    /// L24: what is left of the background budget; `nil` is infinite.
    package var backgroundTimeRemaining: Duration?
    /// In the foreground, or on its way there.
    package var isForeground: Bool
    package var interruptions: Int
    package var launches: Int
    package var lastReceipt: UInt64?
    /// L11: until it may be launched again without the user.
    package var launchPostponed: Duration?
}

/// The memory state as `pressure` shows it, in bytes.
package struct MemoryView: Hashable, Sendable {
    package var level: MemoryLevel
    package var cause: MemoryCause?
    package var total: UInt64
    package var available: UInt64
    package var apps: UInt64
    package var budget: UInt64?
}
