package import LifecycleCore

/// The interface of a core to the simulation. Tests replace the real core by a mutant to show that a checker finds it.
package protocol DecidingCore {
    mutating func handle(_ event: Event, at now: Instant) -> [Effect]
    var nextDeadline: Instant? { get }
    func view(of app: AppID, at now: Instant) -> AppView?
    var appIDs: [AppID] { get }
    var memory: MemoryView { get }
    var runIDs: [RunID] { get }
    var saved: SavedCore { get }
    /// Replaces the state by a saved one.
    mutating func recover(from saved: SavedCore)
    func difference(from other: Self) -> String?
    /// The invariants that did not hold.
    var brokenInvariants: [BrokenInvariant] { get }
    mutating func continueAfterBrokenInvariants()
    /// Checks the invariants of all apps.
    mutating func verifyAll()
}

extension LifecycleCore: DecidingCore {
    package mutating func recover(from saved: SavedCore) {
        self = LifecycleCore(recovering: saved)
        continueAfterBrokenInvariants()
    }
}
