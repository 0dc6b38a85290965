package import LifecycleCore

/// What the simulation asks of a core: the real one, or one that is broken on purpose to see that a checker notices.
package protocol DecidingCore {
    mutating func handle(_ event: Event, at now: Instant) -> [Effect]
    var nextDeadline: Instant? { get }
    func view(of app: AppID, at now: Instant) -> AppView?
    var appIDs: [AppID] { get }
    var memory: MemoryView { get }
    var runIDs: [RunID] { get }
    var saved: SavedCore { get }
    /// Becomes what was saved.
    mutating func recover(from saved: SavedCore)
    func difference(from other: Self) -> String?
}

extension LifecycleCore: DecidingCore {
    package mutating func recover(from saved: SavedCore) { self = LifecycleCore(recovering: saved) }

}
