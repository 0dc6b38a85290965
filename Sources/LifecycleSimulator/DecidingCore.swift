package import LifecycleCore

/// What the simulation asks of a core: the real one, or one that is broken on purpose to see that a checker notices.
package protocol DecidingCore {
    mutating func handle(_ event: Event, at now: Instant) -> [Effect]
    var nextDeadline: Instant? { get }
    func view(of app: AppID, at now: Instant) -> AppView?
    var appIDs: [AppID] { get }
    var memory: MemoryView { get }
}

extension LifecycleCore: DecidingCore {}
