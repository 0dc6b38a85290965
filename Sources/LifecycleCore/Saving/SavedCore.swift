/// All that the core knows between two events, and nothing that follows from it: what a daemon leaves to the next.
///
/// Its bytes are the same for the same core, begin with a version, and end with a checksum. They are read with bounds:
/// what is not as `bytes` could have written it is an error, never a trap now or later.
package struct SavedCore: Hashable, Sendable {
    var apps: [App]
    var freeSlots: [Int]
    var manager: ManagerPolicy
    var foregroundPlaces: [Int]
    var memoryState: MemoryState
    var absence: Absence
    var shutdown: LifecycleCore.Shutdown?
    var nextRun: UInt64
    var nextReceipt: UInt64

    /// Goes up with each change of what is stored. A daemon reads its own only: one that is replaced by another version
    /// says so in its release notes, and keeps a reader for the one before.
    package static let version: UInt64 = 1
    private static let magic: [UInt8] = Array("greenroom core\n".utf8)

    package var bytes: [UInt8] {
        var writer = ByteWriter()
        writer.put(bytes: Self.magic)
        writer.put(number: Self.version)
        writer.put(apps)
        writer.put(freeSlots.map { StoredSetting(UInt64($0)) })
        writer.put(manager)
        writer.put(foregroundPlaces.map { StoredSetting(UInt64($0)) })
        writer.put(memoryState)
        for flag in [absence.isLocked, absence.isSleeping, absence.isSleepAllowed] { writer.put(flag) }
        writer.put(byte: shutdown.map { $0.isFinished ? 2 : 1 } ?? 0)
        writer.put(number: nextRun)
        writer.put(number: nextReceipt)
        let checksum = Checksum.crc32(writer.bytes)
        writer.put(bytes: (0..<4).map { UInt8(truncatingIfNeeded: checksum >> (8 * $0)) })
        return writer.bytes
    }

    /// - Throws: what is wrong with the bytes, and where.
    package init(reading bytes: ArraySlice<UInt8>) throws(SavedError) {
        guard bytes.count > 4 else { throw SavedError(offset: 0, "\(bytes.count) bytes are no saved core") }
        let sum = bytes.suffix(4).reversed().reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
        guard Checksum.crc32(bytes.dropLast(4)) == sum else {
            throw SavedError(offset: bytes.count - 4, "the checksum is another: half written, or overwritten")
        }
        var reader = ByteReader(bytes.dropLast(4))
        guard try reader.bytes(min(reader.left, Self.magic.count)).elementsEqual(Self.magic) else {
            throw SavedError(offset: 0, "no saved core")
        }
        let version = try reader.number()
        guard version == Self.version else { throw reader.error("version \(version), expected \(Self.version)") }
        apps = try reader.take(upTo: SavedLimits.apps, "apps")
        let count = apps.count
        freeSlots = try reader.slots(below: count)
        manager = try reader.take()
        foregroundPlaces = try reader.slots(below: count)
        memoryState = try reader.take()
        absence = Absence(
            isLocked: try reader.flag(), isSleeping: try reader.flag(), isSleepAllowed: try reader.flag())
        switch try reader.byte() {
        case 0: shutdown = nil
        case 1: shutdown = .init()
        case 2: shutdown = .init(isFinished: true)
        case let other: throw reader.unknown(other, "shutdown")
        }
        nextRun = try reader.number(upTo: SavedLimits.counter, "run")
        nextReceipt = try reader.number(upTo: SavedLimits.counter, "receipt")
        try reader.end()
        try checkWhole(reader)
    }

    package init(reading bytes: [UInt8]) throws(SavedError) { try self.init(reading: bytes[...]) }

    init(
        apps: [App], freeSlots: [Int], manager: ManagerPolicy, foregroundPlaces: [Int], memoryState: MemoryState,
        absence: Absence, shutdown: LifecycleCore.Shutdown?, nextRun: UInt64, nextReceipt: UInt64
    ) {
        self.apps = apps
        self.freeSlots = freeSlots
        self.manager = manager
        self.foregroundPlaces = foregroundPlaces
        self.memoryState = memoryState
        self.absence = absence
        self.shutdown = shutdown
        self.nextRun = nextRun
        self.nextReceipt = nextReceipt
    }

    /// What the core takes for granted between its parts.
    private func checkWhole(_ reader: ByteReader) throws(SavedError) {
        let forgotten = apps.indices.filter { apps[$0].isForgotten }
        guard Set(freeSlots) == Set(forgotten), freeSlots.count == forgotten.count else {
            throw reader.error("the free places are not those of forgotten apps")
        }
        var names: Set<AppID> = []
        var runs: Set<RunID> = []
        var requests: Set<RequestID> = []
        for app in apps where !app.isForgotten {
            guard names.insert(app.id).inserted else { throw reader.error("\(app.id) is there twice") }
            if let run = app.run, run.id.number >= nextRun || !runs.insert(run.id).inserted {
                throw reader.error("run \(run.id) is there twice, or still to come")
            }
            for waiter in app.waiters where !requests.insert(waiter.request).inserted {
                throw reader.error("request \(waiter.request) waits twice")
            }
        }
        guard Set(foregroundPlaces).count == foregroundPlaces.count else {
            throw reader.error("an app has two places in the foreground")
        }
        for slot in foregroundPlaces {
            let isThere =
                switch apps[slot].phase {
                case .launching, .foreground, .entering, .waking, .terminating, .ending: true
                case .running, .suspending, .suspended: apps[slot].isHeldBack
                case .notRunning: false
                }
            guard isThere else {
                throw reader.error("\(apps[slot].id) has a place in the foreground and is \(apps[slot].phase.state)")
            }
        }
    }
}

extension ByteReader {
    /// Places in a list of `count`.
    fileprivate mutating func slots(below count: Int) throws(SavedError) -> [Int] {
        let slots: [StoredSetting] = try take(upTo: count, "places")
        var found: [Int] = []
        for slot in slots {
            guard slot.value < UInt64(count) else { throw error("place \(slot.value) of \(count)") }
            found.append(Int(slot.value))
        }
        return found
    }
}

extension LifecycleCore {
    /// All that the core knows. Between two events only.
    package var saved: SavedCore {
        var memoryState = memoryState
        memoryState.apps = 0
        memoryState.returning = 0
        return SavedCore(
            apps: apps, freeSlots: freeSlots, manager: manager, foregroundPlaces: foregroundPlaces,
            memoryState: memoryState, absence: absence, shutdown: shutdown, nextRun: nextRun, nextReceipt: nextReceipt)
    }

    /// A core that is what the saved one was, and goes on as that would have.
    package init(recovering saved: SavedCore) {
        self.init(firstRun: saved.nextRun, firstReceipt: saved.nextReceipt)
        apps = saved.apps
        freeSlots = saved.freeSlots
        manager = saved.manager
        foregroundPlaces = saved.foregroundPlaces
        memoryState = saved.memoryState
        absence = saved.absence
        shutdown = saved.shutdown
        for slot in apps.indices where !apps[slot].isForgotten { index(slot) }
    }

    /// What follows from an app that was read.
    private mutating func index(_ slot: Int) {
        slots[apps[slot].id] = slot
        if let run = apps[slot].run {
            runs[run.id] = slot
            memoryState.apps += run.memory
        }
        for waiter in apps[slot].waiters { requests[waiter.request] = slot }
        count(apps[slot].phase, +1)
        timers.set(slot, to: nextTimer(slot)?.at)
        jetsam.set(slot, to: jetsamRank(slot))
    }
}

extension LifecycleCore {
    /// The first thing in which two cores differ, in words; `nil`: they are the same.
    package func difference(from other: LifecycleCore) -> String? {
        if self == other { return nil }
        for slot in apps.indices where slot >= other.apps.count || apps[slot] != other.apps[slot] {
            return "\(apps[slot].id): \(apps[slot]) and \(slot < other.apps.count ? "\(other.apps[slot])" : "nothing")"
        }
        if memoryState != other.memoryState { return "\(memoryState) and \(other.memoryState)" }
        if timers != other.timers { return "timers: \(timers) and \(other.timers)" }
        if jetsam != other.jetsam { return "jetsam: \(jetsam) and \(other.jetsam)" }
        if foregroundPlaces != other.foregroundPlaces { return "\(foregroundPlaces) and \(other.foregroundPlaces)" }
        if runs != other.runs || requests != other.requests || slots != other.slots { return "the indexes" }
        if awakeCount != other.awakeCount || runningCount != other.runningCount { return "the counts" }
        return "the numbers of runs and receipts, or the free places"
    }
}
