import LifecycleCore
import Linux

/// What the previous daemon recorded.
struct RecoveredState {
    var core: LifecycleCore
    /// By name; for runs see `RunRecord`.
    var records: [String: [UInt8]] = [:]
    /// Effects of the last event that were not performed. The first may have been performed in part.
    var effects: [Effect] = []
    /// How many effects of the last event were performed.
    var effectsPerformed = 0
    /// The number of the last event that the core has handled.
    var eventNumber: UInt64 = 0
    /// Events that were recorded and that the core has not handled.
    var events: [(event: Event, at: Instant)] = []
    /// When the last recorded event happened.
    var last = Instant.origin
    /// The run whose notify socket was being read: a message of it may be lost.
    var reading: RunID?
    /// Events are missing: they are damaged, or another version of greenroomd wrote them. So apps may have answered,
    /// and may have been frozen, thawed, launched or ended since.
    var lacksEvents = false
    /// Recorded before the machine was started again: no app is running.
    var isOfAnotherBoot = false
    /// Warnings for the log.
    var warnings: [String] = []
    /// How many daemons have died of this recovery.
    var fatalities: UInt64 = 0
    /// The file from which the state was read. It counts the daemons that die of this recovery.
    var file: MappedFile?
    /// Where new entries are appended; `nil`: the file has to be replaced.
    var position: Logbook.Position?
}
