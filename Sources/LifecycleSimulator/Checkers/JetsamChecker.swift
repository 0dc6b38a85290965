import LifecycleCore

/// Checks that no app is killed for memory that is there, nor before one that the user would miss less (L35, L38, L41).
///
/// `MemoryRule` has what must be killed, and how much, on machines with a simulated memory.
struct JetsamChecker {
    /// What users see of the kill order: suspended before background before inactive before active, then the priority.
    private struct Rank: Comparable {
        let group: Int
        let priority: Int

        static func < (a: Rank, b: Rank) -> Bool {
            a.group != b.group ? a.group < b.group : a.priority < b.priority
        }
    }

    private var reading: MemoryReading?
    /// By app: whether it held a foreground slot before the event.
    private var hadSlot: [Bool]
    /// Apps that this event launches or wakes: they were not candidates when the victims were chosen.
    private var launched: [Int] = []
    private var overdue: Int?
    /// Since when each reading has shown that apps in the foreground may be killed, and no app ends.
    private var shortSince: Microseconds?
    /// The event that makes jetsam choose may itself remove slots.
    private var areSlotsKnown = true

    /// A second for the apps that were warned, and time for what a measurement and a kill take.
    private static let longestShortage = 5 * Microseconds.second

    init(apps: Int) { hadSlot = Array(repeating: false, count: apps) }

    /// Whether an event can make the core choose a victim. Then the foreground slots are recorded before it.
    static func mayChoose(_ event: Event, at level: MemoryLevel) -> Bool {
        switch event {
        case .memory(.measured), .memory(.pressureSimulated), .configuration(.configured),
            .run(_, .suspension(.frozen)),
            .run(_, .suspension(.footprintMeasured)),
            .run(_, .memory(.sizeMeasured)):
            true
        case .deadlineReached: level > .normal
        default: false
        }
    }

    mutating func recordSlot(_ app: Int, _ has: Bool) { hadSlot[app] = has }

    mutating func record(_ event: Event, _ model: CoreModel, at now: Microseconds) {
        (launched, overdue, areSlotsKnown) = ([], nil, true)
        switch event {
        case .configuration(.configured(let policy)):
            areSlotsKnown = policy.foregroundLimit >= model.manager.foregroundLimit
        case .memory(.measured(let measured)):
            reading = measured
            let isShort = measured.available < model.manager.thresholds(of: measured.total).foreground
            shortSince = isShort ? shortSince ?? now : nil
        default: break
        }
    }

    mutating func record(
        _ effect: Effect, of app: Int?, in event: Event, _ model: CoreModel, at now: Microseconds,
        _ findings: inout Findings
    ) {
        guard let app else { return }
        switch effect {
        case .run(_, .suspension(.thaw)), .spawn: launched.append(app)
        case .report(.killTakesLong): overdue = app
        case .report(.stateChanged(_, _, .terminating, _)), .report(.stateChanged(_, _, .notRunning, _)):
            shortSince = nil
        case .run(_, .kill): if isForMemory(app, event, model, now) { checkVictim(app, event, model, &findings) }
        default: break
        }
    }

    /// Whether this kill is for memory: the event gives no other reason. The state change, which names the reason, comes later.
    private func isForMemory(_ app: Int, _ event: Event, _ model: CoreModel, _ now: Microseconds) -> Bool {
        switch event {
        case .memory(.measured), .memory(.pressureSimulated), .memory(.pressureStalled), .run(_, .suspension(.frozen)),
            .run(_, .suspension(.footprintMeasured)),
            .run(_, .memory(.sizeMeasured)), .configuration(.configured):
            true
        // At the end of a shutdown's time all apps are killed, and a suspended one after `UnloadAfterSec=`.
        case .deadlineReached:
            overdue != app && !model.isShuttingDown && !EndChecker.isDue(model.apps[app], at: now)
        default: false
        }
    }

    /// An app over a limit of its own, or over the budget of all alone, is killed whatever is available; where there are such
    /// limits, `MemoryRule` checks what is killed.
    private func checkVictim(_ app: Int, _ event: Event, _ model: CoreModel, _ findings: inout Findings) {
        let known = model.apps[app]
        if model.manager.budget != nil || known.policy.memoryMax != nil || known.policy.suspendedMemoryMax != nil {
            return
        }
        let isSimulated = if case .memory(.pressureSimulated) = event { true } else { false }
        if !isSimulated {
            let isLook = if case .memory(.measured) = event { true } else { false }
            findings.check(isLook, .plentyKillsNothing, "\(known.id) is killed for memory that was not measured")
            findings.check(
                !isPlenty(model.manager), .plentyKillsNothing,
                "\(known.id) is killed with \(reading?.available ?? 0) bytes available")
        }
        findings.check(!known.policy.isEssential, .jetsamKeepsOrder, "\(known.id) is killed, and others depend on it")
        guard areSlotsKnown, let own = rank(app, model) else { return }
        for other in model.apps.indices where other != app && !launched.contains(other) {
            guard let rank = rank(other, model) else { continue }
            findings.check(
                !(rank < own), .jetsamKeepsOrder,
                "\(known.id) \(own) is killed before \(model.apps[other].id) \(rank)")
        }
    }

    /// More than a quarter is available, on the machine and below a limit.
    private func isPlenty(_ manager: ManagerPolicy) -> Bool {
        guard let reading else { return true }
        func isPlenty(_ available: UInt64, of total: UInt64) -> Bool {
            available > max(total / 4, manager.thresholds(of: total).warning)
        }
        return isPlenty(reading.available, of: reading.total)
            && reading.limit.map { isPlenty($0.available, of: $0.total) } ?? true
    }

    private func rank(_ app: Int, _ model: CoreModel) -> Rank? {
        let known = model.apps[app]
        let group: Int
        switch known.phase {
        case .unknown, .notRunning, .ending, .past: return nil
        // Others depend on it: it is no candidate.
        case _ where known.policy.isEssential: return nil
        case .suspended: group = 0
        case .terminating: group = 1
        case .foreground: group = known.state == .active ? 3 : 2
        case .launching, .entering, .running, .suspending, .waking: group = hadSlot[app] ? 2 : 1
        }
        return Rank(group: group, priority: known.policy.jetsamPriority)
    }

    /// Checks after a measurement that no app is left which was surely over its `MemoryMax=`. One that the event wakes was
    /// suspended when it was measured.
    func verify(_ event: Event, _ model: CoreModel, at now: Microseconds, _ findings: inout Findings) {
        guard case .memory(.measured(let reading)) = event else { return }
        checkShortage(reading, model, now, &findings)
        for size in reading.sizes {
            guard let app = model.currentApp(of: size.run), !launched.contains(app) else { continue }
            let known = model.apps[app]
            switch known.phase {
            case .launching, .foreground, .entering, .running, .waking: break
            case .unknown, .notRunning, .suspending, .suspended, .terminating, .ending, .past: continue
            }
            findings.check(
                known.policy.memoryMax.map { size.bytes - min(size.bytes, size.uncertainty) <= $0 } ?? true,
                .limitsAreKept, "\(known.id) has \(size.bytes) bytes, more than MemoryMax=, and is not killed")
        }
    }

    /// Checks that suspended apps are killed for apps in the foreground that need memory.
    private func checkShortage(
        _ reading: MemoryReading, _ model: CoreModel, _ now: Microseconds, _ findings: inout Findings
    ) {
        guard let shortSince, now - shortSince > Self.longestShortage, !model.isShuttingDown else { return }
        let isEnding = model.apps.contains { $0.phase == .ending || $0.phase == .terminating }
        let left = model.apps.first { $0.phase == .suspended && now - $0.since > Self.longestShortage }
        findings.check(
            isEnding || left == nil, .jetsamActs,
            "\(reading.available) bytes are available for \(now - shortSince) µs, and \(left?.id.name ?? "") is suspended"
        )
    }
}
