import LifecycleCore

/// The events of one seed. Replaying them measures the core alone.
package struct Recording {
    private var events: [(event: Event, at: Instant)] = []
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
        firstRun = tape.firstRun
        firstReceipt = tape.firstReceipt
    }

    /// The events, to be played once.
    package var replay: Replay {
        Replay(events: events.reversed(), core: LifecycleCore(firstRun: firstRun, firstReceipt: firstReceipt))
    }

    package struct Replay {
        /// The last one first, so that each is taken out: a copy would cost a good part of what is measured.
        fileprivate var events: [(event: Event, at: Instant)]
        fileprivate var core: LifecycleCore

        /// - Returns: the number of effects. The caller prints it, so that the compiler cannot remove the work.
        package mutating func play() -> Int {
            var effects = 0
            while let (event, now) = events.popLast() { effects += core.handle(event, at: now).count }
            return effects
        }
    }

    /// Encodes all events as the daemon logs them.
    /// - Returns: the number of bytes, and the checksums, so that the compiler cannot remove the work.
    package func log() -> (bytes: Int, checksum: UInt32) {
        var writer = ByteWriter()
        var bytes = 0
        var checksum: UInt32 = 0
        for (event, at) in events {
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
        for (event, at) in events.prefix(events.count / 2) { _ = core.handle(event, at: at) }
        return (core.appIDs.count, { [core] in core.saved.bytes.count })
    }
}

private final class Tape {
    var events: [(event: Event, at: Instant)] = []
    var firstRun: UInt64 = 1
    var firstReceipt: UInt64 = 1
}

/// A core that records its events.
private struct RecordingCore: DecidingCore {
    var core: LifecycleCore
    let tape: Tape

    mutating func handle(_ event: Event, at now: Instant) -> [Effect] {
        tape.events.append((event, now))
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
