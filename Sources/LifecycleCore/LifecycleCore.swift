/// The whole of what is decided, as a value: no clock, no I/O. The same events give the same effects.
package struct LifecycleCore: Sendable {
    /// - Parameters:
    ///   - firstRun: the number of the first run; larger than any used before.
    ///   - firstReceipt: the number of the first receipt; larger than any used before.
    package init(firstRun: UInt64 = 1, firstReceipt: UInt64 = 1) {
    }

    /// Takes in what happened and says what is to be done, in that order.
    package mutating func handle(_ event: Event, at now: Instant) -> [Effect] {
        []
    }

    /// When `deadlineReached` is to come at the latest; `nil`: nothing is due, ever.
    package var nextDeadline: Instant? { nil }

    package func view(of app: AppID, at now: Instant) -> AppView? { nil }
    /// All apps, by name.
    package var apps: [AppID] { [] }
    package func app(of run: RunID) -> AppID? { nil }
    package func run(of app: AppID) -> RunID? { nil }
    package var memory: MemoryView {
        MemoryView(level: .normal, cause: nil, total: 0, available: 0, apps: 0, budget: nil)
    }
}
