import LifecycleCore

/// The events of one seed. Replaying them measures the core alone.
package struct Recording {
    /// Not an array of tuples: those are copied and destroyed by generic functions, which take as long as a small event.
    private var events: [Event] = []
    private var instants: [Instant] = []
    private var firstRun: UInt64 = 1
    private var firstReceipt: UInt64 = 1

    package var count: Int { events.count }

    package init(_ options: SimulationOptions) {
        let tape = Tape()
        var simulation = Simulation(options, hasTwin: false) { firstRun, firstReceipt in
            tape.firstRun = firstRun
            tape.firstReceipt = firstReceipt
            return RecordingCore(core: LifecycleCore(firstRun: firstRun, firstReceipt: firstReceipt), tape: tape)
        }
        _ = simulation.run()
        events = tape.events
        instants = tape.instants
        firstRun = tape.firstRun
        firstReceipt = tape.firstReceipt
    }

    /// Plays the events to a new core. They stay in the recording: to make and to destroy them is not the core's work.
    /// - Returns: the number of effects. The caller prints it, so that the compiler cannot remove the work.
    package func replay() -> Int {
        var core = LifecycleCore(firstRun: firstRun, firstReceipt: firstReceipt)
        var effects = 0
        for position in events.indices { effects += core.handle(events[position], at: instants[position]).count }
        return effects
    }

    /// Encodes all events as the daemon logs them.
    /// - Returns: the number of bytes, and the checksums, so that the compiler cannot remove the work.
    package func log() -> (bytes: Int, checksum: UInt32) {
        var writer = ByteWriter()
        var bytes = 0
        var checksum: UInt32 = 0
        for (event, at) in zip(events, instants) {
            writer.clear()
            LoggedEvent(event, at: at).save(to: &writer)
            bytes += writer.bytes.count
            checksum ^= Checksum.crc32(writer.bytes)
        }
        return (bytes, checksum)
    }

    /// Saves the core as it is after half of the events.
    package func snapshot() -> (apps: Int, bytes: () -> Int) {
        var core = LifecycleCore(firstRun: firstRun, firstReceipt: firstReceipt)
        for (event, at) in zip(events, instants).prefix(events.count / 2) { _ = core.handle(event, at: at) }
        return (core.appIDs.count, { [core] in core.saved.bytes.count })
    }
}

private final class Tape {
    var events: [Event] = []
    var instants: [Instant] = []
    var firstRun: UInt64 = 1
    var firstReceipt: UInt64 = 1
}

/// A core that records its events.
private struct RecordingCore: DecidingCore {
    var core: LifecycleCore
    let tape: Tape

    mutating func handle(_ event: Event, at now: Instant) -> [Effect] {
        tape.events.append(event)
        tape.instants.append(now)
        return core.handle(event, at: now)
    }
    var nextDeadline: Instant? { core.nextDeadline }
    func view(of app: AppID, at now: Instant) -> AppView? { core.view(of: app, at: now) }
    var appIDs: [AppID] { core.appIDs }
    var memory: MemoryView { core.memory }
    var runIDs: [RunID] { core.runIDs }
    var saved: SavedCore { core.saved }
    mutating func recover(from saved: SavedCore) { core.recover(from: saved) }
    func difference(from other: Self) -> String? { core.difference(from: other.core) }
    var brokenInvariants: [BrokenInvariant] { core.brokenInvariants }
    mutating func continueAfterBrokenInvariants() { core.continueAfterBrokenInvariants() }
    mutating func verifyAll() { core.verifyAll() }
}
