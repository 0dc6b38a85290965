import LifecycleCore

/// What a core was given in one seed, to be given to a fresh one without anything around it: that measures the core alone.
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

    /// - Returns: how many effects came of it, so that nothing can be optimised away.
    package func replay() -> Int {
        var core = LifecycleCore(firstRun: firstRun, firstReceipt: firstReceipt)
        var effects = 0
        // In place: copying what goes in would cost as much as a good part of what is measured.
        events.withUnsafeBufferPointer { events in
            for index in events.indices { effects += core.handle(events[index].event, at: events[index].at).count }
        }
        return effects
    }

    /// All events as the daemon keeps them.
    /// - Returns: how many bytes they are; and their checksums, so that none can be optimised away.
    package func keep() -> (bytes: Int, checksum: UInt32) {
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

    /// The core once it was given half of them, as it is saved.
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

/// A core that keeps what it is given.
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
}
