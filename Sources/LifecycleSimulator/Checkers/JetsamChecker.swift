import LifecycleCore

/// Checks which app jetsam kills (L38), that it kills one at a time (L39), and that it acts at all.
struct JetsamChecker {
    /// The criteria of L38 in their order. The app with the smallest rank is killed first.
    private struct Rank: Comparable {
        var group: Int
        var priority: Int
        var isWithinLimit: Bool
        /// `lru`: when it entered its state; `largest`: its negative size; `balanced`: its credit.
        var tie: Int64
        /// `balanced`: when it entered its state.
        var secondTie: Int64

        static func < (a: Rank, b: Rank) -> Bool {
            if a.group != b.group { return a.group < b.group }
            if a.priority != b.priority { return a.priority < b.priority }
            if a.isWithinLimit != b.isWithinLimit { return !a.isWithinLimit }
            return a.tie != b.tie ? a.tie < b.tie : a.secondTie < b.secondTie
        }
    }

    /// By app: whether it held a foreground slot before the event.
    private var hadSlot: [Bool]
    /// By app: when SIGKILL was last sent, or its end was reported, in its current run.
    private var endingSince: [Microseconds?]
    /// The last victim, until its freed memory was measured.
    private var victim: Int?
    private var isVictimGone = false
    /// Whether the measurement in progress was requested after the victim's end.
    private var isMeasureFresh = false
    private var reading: MemoryReading?
    private var hasVictim = false
    private var overdue: Int?
    /// Whether the machine sleeps or is locked: then an app that is relaunched is not on its way to the foreground (L15).
    private var absence = (isLocked: false, isSleeping: false)
    /// Whether `hadSlot` is up to date. The event that makes jetsam choose may itself remove slots.
    private var areSlotsKnown = true

    init(apps: Int) {
        hadSlot = Array(repeating: false, count: apps)
        endingSince = Array(repeating: nil, count: apps)
    }

    /// Whether an event can make the core choose a victim. Then the foreground slots are recorded before it.
    static func mayChoose(_ event: Event, at level: MemoryLevel) -> Bool {
        switch event {
        case .memoryMeasured, .pressureSimulated, .configured, .run(_, .frozen), .run(_, .footprintMeasured): true
        case .deadlineReached: level > .normal
        default: false
        }
    }

    mutating func recordSlot(_ app: Int, _ has: Bool) { hadSlot[app] = has }

    mutating func record(_ event: Event, of app: Int?, _ model: CoreModel, at now: Microseconds) {
        reading = nil
        hasVictim = false
        overdue = nil
        areSlotsKnown = true
        switch event {
        case .locked: absence.isLocked = true
        case .unlocked: absence.isLocked = false
        case .sleepRequested: absence.isSleeping = true
        // A new daemon assumes that the machine is awake.
        case .awoke, .recovered: absence.isSleeping = false
        case .configured(let policy): areSlotsKnown = policy.foregroundLimit >= model.manager.foregroundLimit
        case .memoryMeasured(let measured):
            reading = measured
            if isVictimGone, isMeasureFresh {
                victim = nil
                isVictimGone = false
            }
        case .run(_, .exited(_, _, _, let remaining)) where app.map { model.apps[$0].mayAwait(remaining) } ?? false:
            break
        case .run(let run, .exited), .run(let run, .emptied), .run(let run, .spawnFailed):
            guard let app, model.apps[app].run == run else { return }
            if endingSince[app] == nil { endingSince[app] = now }
            // Its memory is free, although its exit status may be missing.
            if case .run(_, .emptied) = event, victim == app { isVictimGone = true }
        default: break
        }
    }

    mutating func record(
        _ effect: Effect, of app: Int?, in event: Event, _ model: CoreModel,
        at now: Microseconds, _ findings: inout Findings
    ) {
        switch effect {
        case .spawn(_, _, let launch):
            guard let app else { return }
            hadSlot[app] = launch.state == .foreground && !absence.isLocked && !absence.isSleeping
        case .measureMemory: isMeasureFresh = isVictimGone
        case .report(.stateChanged(_, _, .notRunning, _)):
            guard let app else { return }
            endingSince[app] = nil
            if victim == app { isVictimGone = true }
        case .report(.killTakesLong):
            overdue = app
            // Jetsam no longer waits for the victim. The next measurement counts.
            if victim == app {
                isVictimGone = true
                isMeasureFresh = true
            }
        case .report(.stateChanged(_, _, .terminating, .jetsam)):
            // An app that was killed was checked at the kill.
            guard let app, model.apps[app].phase != .ending else { return }
            checkOrder(app, model, &findings)
        case .kill:
            guard let app else { return }
            if isJetsam(app, event, model) { recordVictim(app, model, now, &findings) }
            // A repeated SIGKILL does not restart the count.
            if overdue != app { endingSince[app] = now }
        default: break
        }
    }

    /// Whether this kill is for memory: the event gives no other reason. The state change, which names the reason,
    /// comes later.
    private func isJetsam(_ app: Int, _ event: Event, _ model: CoreModel) -> Bool {
        switch event {
        case .memoryMeasured, .pressureSimulated, .configured, .run(_, .frozen), .run(_, .footprintMeasured): true
        // At the end of a shutdown's time all apps are killed.
        case .deadlineReached: overdue != app && !model.isShuttingDown
        default: false
        }
    }

    private mutating func recordVictim(
        _ app: Int, _ model: CoreModel, _ now: Microseconds, _ findings: inout Findings
    ) {
        findings.check(!hasVictim, .jetsamKillsOne, "\(model.apps[app].id) is the second victim of one event")
        findings.check(
            victim == nil, .jetsamKillsOne,
            "\(model.apps[app].id) is killed before the memory was measured that the last victim freed")
        for other in endingSince.indices where other != app {
            guard let since = endingSince[other] else { continue }
            findings.check(
                now - since >= 5 * .second, .jetsamKillsOne,
                "\(model.apps[app].id) is killed while \(model.apps[other].id) is still ending")
        }
        checkOrder(app, model, &findings)
        hasVictim = true
        victim = app
        isVictimGone = false
        isMeasureFresh = false
    }

    // MARK: The order

    private func checkOrder(
        _ app: Int, _ model: CoreModel, _ findings: inout Findings
    ) {
        guard areSlotsKnown else { return }
        guard let ownRank = rank(app, model) else {
            return findings.check(false, .jetsamKeepsOrder, "\(model.apps[app].id) is killed, but is no candidate")
        }
        for other in model.apps.indices where other != app {
            guard let otherRank = rank(other, model) else { continue }
            findings.check(
                !(otherRank < ownRank), .jetsamKeepsOrder,
                "\(model.apps[app].id) \(ownRank) is killed before \(model.apps[other].id) \(otherRank)")
        }
    }

    private func rank(_ app: Int, _ model: CoreModel) -> Rank? {
        let known = model.apps[app]
        guard let group = group(app, known) else { return nil }
        let limit = group == 0 ? known.policy.suspendedMemoryHigh : known.policy.memoryHigh
        let size = Int64(known.memory)
        return Rank(
            group: group, priority: known.policy.jetsamPriority,
            isWithinLimit: limit.map { known.memory <= $0 } ?? true,
            tie: tie(known, size, model.manager.jetsamOrder),
            secondTie: model.manager.jetsamOrder == .balanced ? known.since : 0)
    }

    private func tie(_ known: AppModel, _ size: Int64, _ order: ManagerPolicy.JetsamOrder) -> Int64 {
        switch order {
        case .largest: -size
        case .lru: known.since
        case .balanced: Int64(clamping: known.credit)
        }
    }

    /// Suspended before background before inactive before active.
    private func group(_ app: Int, _ known: AppModel) -> Int? {
        switch known.phase {
        case .unknown, .notRunning, .ending, .past: nil
        case .suspended: 0
        case .terminating: 1
        case .foreground: known.state == .active ? 3 : 2
        case .launching, .entering, .running, .suspending, .waking: hadSlot[app] ? 2 : 1
        }
    }

    // MARK: That jetsam acts

    /// After all effects: if the apps exceed their budget or too little memory is available, an app is ending or a
    /// measurement is in progress.
    func verify(_ model: CoreModel, isMeasuring: Bool, _ findings: inout Findings) {
        let isStuck = overdue != nil && overdue == victim
        guard !hasVictim, !isMeasuring, reading != nil || isStuck else { return }
        let apps = model.apps.reduce(UInt64(0)) { $0 + $1.memory }
        let isOver = model.manager.budget.map { apps > $0 } ?? false
        let isShort = reading.map { $0.available < model.manager.criticalAvailable.bytes(of: $0.total) } ?? false
        let isAnyLeft = model.apps.indices.contains { group($0, model.apps[$0]) != nil }
        guard isOver || isShort, isAnyLeft else { return }
        findings.check(
            !isStuck, .jetsamActs,
            "the victim cannot be killed, apps have \(apps) bytes, and no measurement is in progress")
        guard victim == nil, endingSince.allSatisfy({ $0 == nil }) else { return }
        findings.check(
            reading == nil, .jetsamActs,
            "\(reading?.available ?? 0) bytes are available, apps have \(apps), and no app is killed")
    }
}
