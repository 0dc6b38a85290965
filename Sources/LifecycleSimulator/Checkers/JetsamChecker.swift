import LifecycleCore

/// Checks which apps jetsam kills (L38), when and how many (L35, L39), and that it acts at all.
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

    private var judge = MemoryJudge()
    /// By app: whether it held a foreground slot before the event.
    private var hadSlot: [Bool]
    /// By app: its current run is ending.
    private var isEnding: [Bool]
    /// The event is a reading.
    private var isLook = false
    /// Runs whose exact size is awaited. A stall waits with them.
    private var awaitedSizes: Set<RunID> = []
    private var victims = 0
    /// Apps that this event launches: they were not there when the victims were chosen.
    private var launched: [Int] = []
    /// Apps that this event wakes.
    private var thawed: [Int] = []
    /// The level before the event.
    private var level = MemoryLevel.normal
    /// When the level was raised from `normal`; `nil`: it is `normal`.
    private var raisedAt: Microseconds?
    /// When the shortage before ended.
    private var lastShortage: Microseconds?
    private var isMeasuring = false
    /// A trigger has fired since the measurement in progress, or the one that is handled, was requested.
    private var pressed: MemoryLevel?
    /// Since when each reading has shown that apps in the foreground may be killed, and what it said of stalls.
    private var foregroundShort: (since: Microseconds, stalls: MemoryReading.Stalls?, hasStalled: Bool)?
    private var overdue: Int?
    /// Whether the machine sleeps or is locked: then an app that is relaunched is not on its way to the foreground (L15).
    private var absence = (isLocked: false, isSleeping: false)
    /// Whether `hadSlot` is up to date. The event that makes jetsam choose may itself remove slots.
    private var areSlotsKnown = true

    init(apps: Int) {
        hadSlot = Array(repeating: false, count: apps)
        isEnding = Array(repeating: false, count: apps)
    }

    /// Whether an event can make the core choose a victim. Then the foreground slots are recorded before it.
    static func mayChoose(_ event: Event, at level: MemoryLevel) -> Bool {
        switch event {
        case .memoryMeasured, .pressureSimulated, .configured, .run(_, .frozen), .run(_, .footprintMeasured),
            .run(_, .sizeMeasured):
            true
        case .deadlineReached: level > .normal
        default: false
        }
    }

    mutating func recordSlot(_ app: Int, _ has: Bool) { hadSlot[app] = has }

    // MARK: Events

    mutating func record(_ event: Event, of app: Int?, _ model: CoreModel, at now: Microseconds) {
        isLook = false
        victims = 0
        (launched, thawed) = ([], [])
        overdue = nil
        areSlotsKnown = true
        switch event {
        case .locked: absence.isLocked = true
        case .unlocked: absence.isLocked = false
        case .sleepRequested: absence.isSleeping = true
        // A new daemon assumes that the machine is awake.
        case .awoke, .recovered: absence.isSleeping = false
        case .configured(let policy):
            areSlotsKnown = policy.foregroundLimit >= model.manager.foregroundLimit
            judge.record(policy)
        case .memoryMeasured(let measured): look(measured, now)
        case .pressureStalled(let level):
            if level > .normal {
                pressed = max(level, pressed ?? .normal)
                foregroundShort?.hasStalled = true
            }
        case .run(_, .exited(_, _, _, let remaining)) where app.map { model.apps[$0].mayAwait(remaining) } ?? false:
            break
        case .run(let run, .sizeMeasured): awaitedSizes.remove(run)
        case .run(let run, .exited), .run(let run, .emptied), .run(let run, .spawnFailed):
            awaitedSizes.remove(run)
            guard let app, model.apps[app].run == run else { return }
            beginEnd(of: app, model, now)
        default: break
        }
    }

    private mutating func look(_ measured: MemoryReading, _ now: Microseconds) {
        isLook = true
        isMeasuring = false
        judge.record(measured, now)
        if judge.hasKernelKilled { pressed = .critical }
        let hasStalled = pressed != nil
        if foregroundShort == nil {
            foregroundShort = (now, measured.stalls, false)
        } else if hasStalled {
            foregroundShort?.hasStalled = true
        }
    }

    private mutating func beginEnd(of app: Int, _ model: CoreModel, _ now: Microseconds) {
        if isEnding[app] { return }
        isEnding[app] = true
        judge.end(of: app, model.apps[app].memory, now)
    }

    // MARK: Effects

    mutating func record(
        _ effect: Effect, of app: Int?, in event: Event, _ model: CoreModel,
        at now: Microseconds, _ findings: inout Findings
    ) {
        switch effect {
        case .thaw: if let app { thawed.append(app) }
        case .spawn(_, _, let launch):
            guard let app else { return }
            launched.append(app)
            hadSlot[app] = launch.state == .foreground && !absence.isLocked && !absence.isSleeping
        case .measureSize(let run): awaitedSizes.insert(run)
        case .measureMemory:
            isMeasuring = true
            judge.measurementBegins()
        case .report(.memoryLevelChanged(let level, _)): levelChanged(to: level, now)
        case .report(.stateChanged(_, _, .notRunning, _)):
            guard let app else { return }
            isEnding[app] = false
            judge.runIsGone(app, model.apps[app].memory, isAwaited: level > .normal || isMeasuring)
        case .report(.killTakesLong): overdue = app
        case .report(.stateChanged(_, _, .terminating, .jetsam)):
            // An app that was killed was checked at the kill.
            guard let app, model.apps[app].phase != .ending else { return }
            checkOrder(app, model, &findings)
        case .kill:
            guard let app else { return }
            if isForMemory(app, event, model, now) { checkVictim(app, event, model, now, &findings) }
            if case .pressureStalled = event {
                findings.check(
                    false, .triggersOnlyMeasure, "\(model.apps[app].id) is killed before memory was measured")
            }
            // A repeated SIGKILL does not begin another end.
            if overdue != app { beginEnd(of: app, model, now) }
        default: break
        }
    }

    private mutating func levelChanged(to level: MemoryLevel, _ now: Microseconds) {
        if level == .normal {
            lastShortage = now
            raisedAt = nil
        } else if raisedAt == nil {
            raisedAt = now
        }
        self.level = level
    }

    /// Whether this kill is for memory: the event gives no other reason. The state change, which names the reason,
    /// comes later.
    private func isForMemory(_ app: Int, _ event: Event, _ model: CoreModel, _ now: Microseconds) -> Bool {
        switch event {
        case .memoryMeasured, .pressureSimulated, .configured, .run(_, .frozen), .run(_, .footprintMeasured),
            .run(_, .sizeMeasured):
            true
        // At the end of a shutdown's time all apps are killed, and a suspended one after `UnloadAfterSec=`.
        case .deadlineReached:
            overdue != app && !model.isShuttingDown && !UnloadChecker.isDue(model.apps[app], at: now)
        default: false
        }
    }

    private mutating func checkVictim(
        _ app: Int, _ event: Event, _ model: CoreModel, _ now: Microseconds, _ findings: inout Findings
    ) {
        defer { victims += 1 }
        if Self.isOverLimit(model.apps[app]) || isInExcess(app, model) { return }
        checkNeed(app, event, model, now, &findings)
        checkWarning(app, event, model, now, &findings)
        if model.apps[app].state == .active { checkActive(app, model, now, &findings) }
        checkOrder(app, model, &findings)
    }

    private func checkNeed(
        _ app: Int, _ event: Event, _ model: CoreModel, _ now: Microseconds, _ findings: inout Findings
    ) {
        let id = model.apps[app].id
        let isOver = isOverBudget(model)
        if case .pressureSimulated = event {
            return findings.check(
                victims == 0 || isOver, .victimsAreNecessary, "\(id) is the second victim of a simulation")
        }
        findings.check(
            isOver || !judge.isPlenty, .plentyKillsNothing,
            "\(id) is killed with \(judge.reading?.available ?? 0) bytes available")
        let hasStalled = pressed != nil && judge.isScarce && victims == 0 && !judge.expectsMemory(now)
        findings.check(
            isOver || (isLook && (judge.isShort(now) || hasStalled)), .victimsAreNecessary,
            "\(id) is killed with \(judge.reading?.available ?? 0) bytes available and \(judge.credited(now)) on their way"
        )
    }

    /// Apps that were warned in an earlier shortage, up to 25 s ago, are not warned again.
    private func checkWarning(
        _ app: Int, _ event: Event, _ model: CoreModel, _ now: Microseconds, _ findings: inout Findings
    ) {
        if case .pressureSimulated = event { return }
        let isAnyAwake = model.apps.indices.contains { Self.isAwake(model.apps[$0]) }
        let isRecent = lastShortage.map { now - $0 <= 26 * .second } ?? false
        let isWarned = raisedAt.map { now - $0 >= 1 * .second } ?? false
        findings.check(
            !isAnyAwake || isRecent || isWarned || judge.isPressing, .warningComesFirst,
            "\(model.apps[app].id) is killed in the second in which apps were warned")
    }

    private func checkActive(_ app: Int, _ model: CoreModel, _ now: Microseconds, _ findings: inout Findings) {
        let id = model.apps[app].id
        let isOver = isOverBudget(model)
        findings.check(
            isLook && foregroundShort.map { now - $0.since >= 1 * .second } ?? false, .activeIsLast,
            "the active app \(id) is killed at the first look")
        findings.check(
            !judge.expectsMemory(now), .activeIsLast, "the active app \(id) is killed while memory is on its way")
        let after = judge.reading?.stalls
        let hasStalled = foregroundShort.map { $0.hasStalled || $0.stalls == nil || $0.stalls != after } ?? false
        findings.check(
            isOver || hasStalled, .activeIsLast, "the active app \(id) is killed although no task has stalled")
    }

    private static func isAwake(_ app: AppModel) -> Bool {
        switch app.phase {
        case .launching, .foreground, .entering, .running, .suspending, .waking, .terminating: true
        case .unknown, .notRunning, .suspended, .ending, .past: false
        }
    }

    private static func isOverLimit(_ app: AppModel) -> Bool {
        switch app.phase {
        case .launching, .foreground, .entering, .running, .waking:
            app.policy.memoryMax.map { app.size.certain > $0 } ?? false
        case .suspended: app.policy.suspendedMemoryMax.map { app.size.certain > $0 } ?? false
        case .unknown, .notRunning, .suspending, .terminating, .ending, .past: false
        }
    }

    // MARK: The budget

    /// What the apps that are not ending have at least, as the core knows them.
    private func memory(_ model: CoreModel) -> UInt64 {
        model.apps.indices.reduce(UInt64(0)) { isEnding[$1] ? $0 : $0 + model.apps[$1].size.certain }
    }

    /// Whether the app exceeds the budget alone, or may exceed it. It is killed for that, and no other app is.
    private func isInExcess(_ app: Int, _ model: CoreModel) -> Bool {
        guard let budget = judge.budget, !judge.isCritical, !isEnding[app] else { return false }
        return model.apps[app].memory > budget && group(app, model.apps[app]) != nil
    }

    /// Whether the apps exceed the budget, beside those that exceed it alone.
    private func isOverBudget(_ model: CoreModel) -> Bool {
        guard let budget = judge.budget else { return false }
        let alone = model.apps.indices.reduce(UInt64(0)) { sum, app in
            isInExcess(app, model) ? sum + model.apps[app].size.certain : sum
        }
        return memory(model) - alone > budget
    }

    // MARK: The order

    private func checkOrder(
        _ app: Int, _ model: CoreModel, _ findings: inout Findings
    ) {
        guard areSlotsKnown else { return }
        guard let ownRank = rank(app, model) else {
            return findings.check(false, .jetsamKeepsOrder, "\(model.apps[app].id) is killed, but is no candidate")
        }
        for other in model.apps.indices where other != app && !isInExcess(other, model) {
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

    /// Suspended before background before inactive before active. One that others depend on is no candidate.
    private func group(_ app: Int, _ known: AppModel) -> Int? {
        switch known.phase {
        case _ where known.policy.isEssential: nil
        case .unknown, .notRunning, .ending, .past: nil
        case .suspended: 0
        case .terminating: 1
        case .foreground: known.state == .active ? 3 : 2
        case .launching, .entering, .running, .suspending, .waking: hadSlot[app] ? 2 : 1
        }
    }

    // MARK: That jetsam acts

    /// After all effects: no app is over its limit, and if memory is missing, no app is left that could be killed for it.
    mutating func verify(_ event: Event, _ model: CoreModel, at now: Microseconds, _ findings: inout Findings) {
        verifyLimits(event, model, now, &findings)
        if isLook {
            if awaitedSizes.isEmpty { pressed = nil }
            if !judge.isShortInForeground, !isOverBudget(model) { foregroundShort = nil }
        }
        guard isLook, victims < LifecycleCore.victimsAtOnce else { return }
        // While the sizes are in doubt, the exact ones are measured.
        let isCertain = judge.isCritical || !model.apps.contains { $0.size.isInDoubt }
        let isOver = isOverBudget(model) && isCertain
        guard isOver || judge.isShort(now) else { return }
        // For the first second the apps that were warned may free memory.
        let mayWait = model.apps.contains(where: Self.isAwake) && raisedAt.map { now - $0 < 1 * .second } ?? true
        if mayWait, !judge.isPressing { return }
        let left = model.apps.indices.first { app in
            !launched.contains(app) && !isInExcess(app, model) && group(app, model.apps[app]).map { $0 < 2 } ?? false
        }
        // Only for a pool that is pressing, as long as the warning is new.
        guard !mayWait || judge.isShortWhilePressing(now) else { return }
        findings.check(
            left == nil, .jetsamActs,
            "\(judge.reading?.available ?? 0) bytes are available, apps have \(memory(model)), and "
                + "\(left.map { model.apps[$0].id.name } ?? "") is not killed")
    }

    private func verifyLimits(_ event: Event, _ model: CoreModel, _ now: Microseconds, _ findings: inout Findings) {
        switch event {
        case .memoryMeasured(let reading):
            for size in reading.sizes {
                guard let app = model.currentApp(of: size.run) else { continue }
                let known = model.apps[app]
                // One that this event wakes was measured while it was suspended.
                findings.check(
                    known.phase == .suspended || thawed.contains(app) || !Self.isOverLimit(known), .limitsAreKept,
                    "\(known.id) has \(known.memory) bytes, more than MemoryMax=, and is not killed")
            }
        case .deadlineReached:
            for known in model.apps where known.phase == .suspended && known.since + 1 * .second <= now {
                findings.check(
                    !Self.isOverLimit(known), .limitsAreKept,
                    "\(known.id) has \(known.memory) bytes, more than SuspendedMemoryMax=, and is not killed")
            }
        default: break
        }
    }
}
