/// Everything that the core knows between two events, and nothing that follows from it: what a daemon leaves to the next.
///
///     "greenroom core\n"  LEB128(form)  record  CRC-32 (little endian) of all bytes before
///
/// The same core has the same bytes. A daemon reads what an older or a newer release saved: see `SavedRecord`. Whatever the
/// bytes are, reading them ends with a core that can run, or with an error.
package struct SavedCore: Hashable, Sendable {
    var apps: [App] = []
    var freeIndices: [AppIndex] = []
    var manager = ManagerPolicy()
    var foregroundSlots: [ForegroundSlot] = []
    var memoryState = MemoryState()
    var absence = Absence()
    var shutdown: LifecycleCore.Shutdown?
    var slots: [Admission.Slot] = []
    var returns = Returns()
    var nextRun: UInt64 = 0
    var nextReceipt: UInt64 = 0
    var lastEndWake: Instant?

    /// The form of the saved bytes. It changes only if a record is no longer a sequence of tagged fields.
    static let form: UInt64 = 2
    static let magic: [UInt8] = Array("greenroom core\n".utf8)

    package var bytes: [UInt8] {
        var saving = CoreSaving(self)
        while saving.advance() {}
        return saving.bytes
    }

    /// - Throws: what is wrong with the bytes, and where.
    package init(reading bytes: ArraySlice<UInt8>) throws(SavedError) {
        guard bytes.count > 4 else { throw SavedError(offset: 0, "\(bytes.count) bytes are not a saved core") }
        let sum = bytes.suffix(4).reversed().reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
        guard Checksum.crc32(bytes.dropLast(4)) == sum else {
            throw SavedError(offset: bytes.count - 4, "the checksum does not match: half written, or overwritten")
        }
        var reader = ByteReader(bytes.dropLast(4))
        guard try reader.bytes(min(reader.left, Self.magic.count)).elementsEqual(Self.magic) else {
            throw SavedError(offset: 0, "not a saved core")
        }
        let form = try reader.number()
        guard form == Self.form else { throw reader.error("saved form \(form), expected \(Self.form)") }
        try self.init(from: &reader)
        try reader.end()
    }

    package init(reading bytes: [UInt8]) throws(SavedError) { try self.init(reading: bytes[...]) }

    init() {}
}

extension SavedCore: SavedRecord {
    package static var blank: SavedCore { SavedCore() }

    /// The number of the first field: `CoreSaving` writes it by itself.
    static let appsField = 1

    package mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.list(Self.appsField, &apps, upTo: SavedLimits.apps)
        try coder.list(2, &freeIndices, upTo: SavedLimits.apps)
        try coder.field(3, &manager)
        // Releases before scenes know one slot of each app.
        var single = singleSlots
        try coder.list(4, &single, upTo: SavedLimits.apps)
        try coder.field(5, &memoryState)
        try coder.field(6, &absence)
        try coder.optional(7, &shutdown)
        try coder.required(8, &nextRun)
        try coder.required(9, &nextReceipt)
        try coder.list(10, &slots, upTo: LifecycleCore.maximumSlots)
        var returns = returns == Returns() ? nil : returns
        try coder.optional(11, &returns)
        self.returns = returns ?? Returns()
        try coder.optional(12, &lastEndWake)
        var all = foregroundSlots == single ? [] : foregroundSlots
        try coder.list(110, &all, upTo: SavedLimits.apps)
        foregroundSlots = all.isEmpty ? single : all
    }

    /// One slot of each app, as if it had one scene. Of several the last.
    private var singleSlots: [ForegroundSlot] {
        var apps: Set<AppIndex> = []
        let last = foregroundSlots.reversed().filter { apps.insert($0.app).inserted }
        return last.reversed().map { ForegroundSlot(app: $0.app, isDeferred: $0.isDeferred) }
    }

    /// What the core takes for granted between its parts.
    package var fault: String? {
        let table = AppTable(apps)
        guard Set(slots.map(\.run)).count == slots.count else { return "a launch has two slots" }
        guard nextRun <= SavedLimits.counter, nextReceipt <= SavedLimits.counter else {
            return "run \(nextRun) or receipt \(nextReceipt) is out of bounds"
        }
        let removed = table.indices.filter { table[$0].isRemoved }
        guard Set(freeIndices) == Set(removed), freeIndices.count == removed.count else {
            return "the free indices are not those of removed apps"
        }
        if let shutdown, !(shutdown.waiting + shutdown.thawed).allSatisfy(table.indices.contains) {
            return "a shutdown waits for no app"
        }
        if let shutdown, shutdown.position < table.startIndex || shutdown.position > table.endIndex {
            return "the position of a shutdown is out of bounds"
        }
        return appFault ?? slotFault(table)
    }

    private var appFault: String? {
        var names: Set<AppID> = []
        var runs: Set<RunID> = []
        var requests: Set<RequestID> = []
        for app in apps where !app.isRemoved {
            guard names.insert(app.id).inserted else { return "\(app.id) is there twice" }
            if let run = app.run, run.id.number >= nextRun || !runs.insert(run.id).inserted {
                return "run \(run.id) is there twice, or still to come"
            }
            for waiter in app.waiters where !requests.insert(waiter.request).inserted {
                return "request \(waiter.request) waits twice"
            }
            for request in app.run?.tiedInterruptions ?? [] where !requests.insert(request).inserted {
                return "request \(request) is there twice"
            }
        }
        return nil
    }

    private func slotFault(_ apps: AppTable) -> String? {
        guard Set(foregroundSlots).count == foregroundSlots.count else { return "a scene has two foreground slots" }
        var deferred: [AppIndex: Bool] = [:]
        for slot in foregroundSlots {
            guard apps.indices.contains(slot.app) else { return "a foreground slot of no app" }
            let app = apps[slot.app]
            guard deferred.updateValue(slot.isDeferred, forKey: slot.app) ?? slot.isDeferred == slot.isDeferred else {
                return "only some of the foreground slots of \(app.id) are deferred"
            }
            guard app.hasScene(slot.scene, slot.role) else { return "a foreground slot of no scene of \(app.id)" }
            let isLegal =
                switch app.phase {
                case .launching, .foreground, .enteringBackground, .waking, .terminating, .ending: true
                case .background, .suspending, .suspended: slot.isDeferred
                case .notRunning: false
                }
            guard isLegal else { return "\(app.id) has a foreground slot and is \(app.state)" }
        }
        return nil
    }
}

extension App {
    fileprivate func hasScene(_ id: SceneID, _ role: SceneRole) -> Bool {
        guard let scenes = sharedRunStorage?.run.scenes else { return id == .main && role == .window }
        return scenes.contains { $0.id == id && $0.role == role }
    }
}

extension LifecycleCore {
    /// Everything that the core knows. Between two events only.
    package var saved: SavedCore {
        var saved = SavedCore()
        saved.apps = apps.all
        saved.freeIndices = freeIndices
        saved.manager = manager
        saved.foregroundSlots = foregroundSlots
        saved.memoryState = memoryState
        saved.memoryState.apps = 0
        saved.memoryState.uncertain = 0
        saved.absence = absence
        saved.shutdown = shutdown
        saved.slots = admission.slots
        saved.returns = returns
        saved.nextRun = nextRun
        saved.nextReceipt = nextReceipt
        saved.lastEndWake = lastEndWake
        return saved
    }

    /// A core that is what the saved one was, and continues as that would have.
    package init(recovering saved: SavedCore) {
        self.init(firstRun: saved.nextRun, firstReceipt: saved.nextReceipt)
        apps = AppTable(saved.apps)
        freeIndices = saved.freeIndices
        manager = saved.manager
        foregroundSlots = saved.foregroundSlots
        memoryState = saved.memoryState
        absence = saved.absence
        lastEndWake = saved.lastEndWake
        shutdown = saved.shutdown
        jetsamLevel = apps.reduce(0) { max($0, $1.credit.level) }
        returns = saved.returns
        // An older release did not save it.
        if !foregroundSlots.isEmpty { returns.isHomeWanted = true }
        findHome()
        for index in apps.indices {
            apps.sharePolicy(index)
            restoreOOMClass(index)
            if !apps[index].isRemoved { restoreIndexes(index) }
        }
        admission.slots = saved.slots.filter { slot in
            runs[slot.run.number].map { apps[$0].phase == .launching } ?? false
        }
    }

    /// Derives what follows from an app that was read.
    private mutating func restoreIndexes(_ index: AppIndex) {
        indices[apps[index].id] = index
        if let run = apps[index].run {
            runs[run.id.number] = index
            memoryState.apps += run.memory
            memoryState.uncertain += run.size.uncertainty
            for request in run.tiedInterruptions { requests[request.number] = index }
        }
        for waiter in apps[index].waiters { requests[waiter.request.number] = index }
        apps[index].subscribed = subscription(index)
        count(Summary(apps[index].life), +1)
        enter(index, ranks(index))
    }
}

extension LifecycleCore {
    /// The first thing in which two cores differ, in words; `nil`: they are equal.
    package func difference(from other: LifecycleCore) -> String? {
        if self == other { return nil }
        for index in apps.indices where index >= other.apps.endIndex || apps[index] != other.apps[index] {
            guard index < other.apps.endIndex else { return "\(apps[index].id) is there no more" }
            let (app, found) = (apps[index], other.apps[index])
            // The description of an app does not show what its run has.
            if let run = app.sharedRunStorage?.run, let other = found.sharedRunStorage?.run, run != other {
                return "\(app.id): \(run) and \(other)"
            }
            return "\(app.id): \(app) and \(found)"
        }
        if memoryState != other.memoryState { return "\(memoryState) and \(other.memoryState)" }
        if timers != other.timers { return "timers: \(timers) and \(other.timers)" }
        if jetsam != other.jetsam { return "jetsam: \(jetsam) and \(other.jetsam)" }
        if oomClasses != other.oomClasses { return "OOM classes: \(oomClasses) and \(other.oomClasses)" }
        if launchQueue != other.launchQueue { return "waiting launches: \(launchQueue) and \(other.launchQueue)" }
        if returnQueue != other.returnQueue { return "returns: \(returnQueue) and \(other.returnQueue)" }
        if continuedTasks != other.continuedTasks { return "\(continuedTasks) and \(other.continuedTasks)" }
        if returns != other.returns || home != other.home { return "\(returns) and \(other.returns)" }
        if admission != other.admission { return "\(admission) and \(other.admission)" }
        if foregroundSlots != other.foregroundSlots { return "\(foregroundSlots) and \(other.foregroundSlots)" }
        if runs != other.runs || requests != other.requests || indices != other.indices { return "the indexes" }
        if awakeCount != other.awakeCount || runningCount != other.runningCount { return "the counts" }
        return "the numbers of runs and receipts, or the free indices"
    }
}
