import LifecycleCore

/// L38, L39: who is taken, one at a time, and that somebody is.
struct JetsamChecker {
    /// What L38 looks at, in its order; the smallest goes first.
    private struct Rank: Comparable {
        var group: Int
        var priority: Int
        var isWithinLimit: Bool
        /// `lru`: since when it has been in its state; `largest`: its size, negated.
        var tie: Int64

        static func < (a: Rank, b: Rank) -> Bool {
            if a.group != b.group { return a.group < b.group }
            if a.priority != b.priority { return a.priority < b.priority }
            if a.isWithinLimit != b.isWithinLimit { return !a.isWithinLimit }
            return a.tie < b.tie
        }
    }

    /// By app: whether it held a place in the foreground before the event.
    private var hadPlace: [Bool]
    /// By app: when SIGKILL was last sent, or its end was heard of, in its current run.
    private var endingSince: [Microseconds?]
    /// The run that jetsam took last: until what it gave back was measured.
    private var victim: Int?
    private var isVictimGone = false
    /// The measurement under way was asked for after the victim was gone.
    private var isMeasureFresh = false
    private var reading: MemoryReading?
    private var tookOne = false
    private var takesLong: Int?
    /// Places may be lost in the very event that makes jetsam choose: then nobody outside knows who had one.
    private var arePlacesKnown = true

    init(apps: Int) {
        hadPlace = Array(repeating: false, count: apps)
        endingSince = Array(repeating: nil, count: apps)
    }

    /// Whether an event can make the core choose a victim: then the places in the foreground are looked up before it.
    static func mayChoose(_ event: Event, at level: MemoryLevel) -> Bool {
        switch event {
        case .memoryMeasured, .pressureSimulated, .configured, .run(_, .frozen): true
        case .deadlineReached: level > .normal
        default: false
        }
    }

    mutating func notePlace(_ app: Int, _ has: Bool) { hadPlace[app] = has }

    mutating func note(_ event: Event, of app: Int?, _ shadow: Shadow, at now: Microseconds) {
        reading = nil
        tookOne = false
        takesLong = nil
        arePlacesKnown = true
        switch event {
        case .configured(let policy): arePlacesKnown = policy.foregroundLimit >= shadow.manager.foregroundLimit
        case .memoryMeasured(let measured):
            reading = measured
            if isVictimGone, isMeasureFresh {
                victim = nil
                isVictimGone = false
            }
        case .run(let run, .exited), .run(let run, .emptied), .run(let run, .spawnFailed):
            if let app, shadow.apps[app].run == run, endingSince[app] == nil { endingSince[app] = now }
        default: break
        }
    }

    mutating func note(
        _ effect: Effect, of app: Int?, in event: Event, _ shadow: Shadow,
        at now: Microseconds, _ findings: inout Findings
    ) {
        switch effect {
        case .spawn(_, _, let launch): if let app { hadPlace[app] = launch.state == .foreground }
        case .measureMemory: isMeasureFresh = isVictimGone
        case .report(.stateChanged(_, _, .notRunning, _)):
            guard let app else { return }
            endingSince[app] = nil
            if victim == app { isVictimGone = true }
        case .report(.killTakesLong):
            takesLong = app
            // Jetsam waits for it no longer; what there is then is measured all the same.
            if victim == app {
                isVictimGone = true
                isMeasureFresh = true
            }
        case .report(.stateChanged(_, _, .terminating, .jetsam)):
            // One that was killed has been looked at then.
            guard let app, shadow.apps[app].phase != .ending else { return }
            checkOrder(app, shadow, &findings)
        case .kill:
            guard let app else { return }
            if isJetsam(app, event, shadow) { take(app, shadow, now, &findings) }
            // Sent again, it does not start to count anew.
            if takesLong != app { endingSince[app] = now }
        default: break
        }
    }

    /// Whether this kill is for memory: nothing else that happened is a reason for it. (It comes before the change of
    /// state that names its reason.)
    private func isJetsam(_ app: Int, _ event: Event, _ shadow: Shadow) -> Bool {
        switch event {
        case .memoryMeasured, .pressureSimulated, .configured, .run(_, .frozen): true
        case .deadlineReached: takesLong != app
        default: false
        }
    }

    private mutating func take(
        _ app: Int, _ shadow: Shadow, _ now: Microseconds, _ findings: inout Findings
    ) {
        findings.check(!tookOne, .jetsamTakesOne, "\(shadow.apps[app].id) is the second victim at once")
        findings.check(
            victim == nil, .jetsamTakesOne,
            "\(shadow.apps[app].id) is killed before what the last victim gave back was measured")
        for other in endingSince.indices where other != app {
            guard let since = endingSince[other] else { continue }
            findings.check(
                now - since >= 5 * .second, .jetsamTakesOne,
                "\(shadow.apps[app].id) is killed while \(shadow.apps[other].id) is still going")
        }
        checkOrder(app, shadow, &findings)
        tookOne = true
        victim = app
        isVictimGone = false
        isMeasureFresh = false
    }

    // MARK: The order

    private func checkOrder(
        _ app: Int, _ shadow: Shadow, _ findings: inout Findings
    ) {
        guard arePlacesKnown else { return }
        guard let mine = rank(app, shadow) else {
            return findings.check(false, .jetsamKeepsOrder, "\(shadow.apps[app].id) is taken, but is no candidate")
        }
        for other in shadow.apps.indices where other != app {
            guard let theirs = rank(other, shadow) else { continue }
            findings.check(
                !(theirs < mine), .jetsamKeepsOrder,
                "\(shadow.apps[app].id) \(mine) is taken before \(shadow.apps[other].id) \(theirs)")
        }
    }

    private func rank(_ app: Int, _ shadow: Shadow) -> Rank? {
        let known = shadow.apps[app]
        guard let group = group(app, known) else { return nil }
        let limit = group == 0 ? known.policy.suspendedMemoryHigh : known.policy.memoryHigh
        let size = Int64(known.memory)
        return Rank(
            group: group, priority: known.policy.jetsamPriority,
            isWithinLimit: limit.map { known.memory <= $0 } ?? true,
            tie: shadow.manager.jetsamOrder == .largest ? -size : known.since)
    }

    /// Suspended before background before inactive before active.
    private func group(_ app: Int, _ known: ShadowApp) -> Int? {
        switch known.phase {
        case .unknown, .notRunning, .ending, .past: nil
        case .suspended: 0
        case .terminating: 1
        case .foreground: known.state == .active ? 3 : 2
        case .launching, .entering, .running, .suspending, .waking: hadPlace[app] ? 2 : 1
        }
    }

    // MARK: That somebody is taken

    /// After all effects: with all apps over their budget, or too little available, somebody is on the way out, or it is
    /// being measured whether that is so still.
    func settle(_ shadow: Shadow, isMeasuring: Bool, _ findings: inout Findings) {
        let isStuck = takesLong != nil && takesLong == victim
        guard !tookOne, !isMeasuring, reading != nil || isStuck else { return }
        let apps = shadow.apps.reduce(UInt64(0)) { $0 + $1.memory }
        let isOver = shadow.manager.budget.map { apps > $0 } ?? false
        let isShort = reading.map { $0.available < shadow.manager.criticalAvailable.bytes(of: $0.total) } ?? false
        let isAnyLeft = shadow.apps.indices.contains { group($0, shadow.apps[$0]) != nil }
        guard isOver || isShort, isAnyLeft else { return }
        findings.check(
            !isStuck, .jetsamActs, "the victim can't be killed, apps have \(apps) bytes, and nobody measures")
        guard victim == nil, endingSince.allSatisfy({ $0 == nil }) else { return }
        findings.check(
            reading == nil, .jetsamActs,
            "\(reading?.available ?? 0) bytes are available, apps have \(apps), and nobody is taken")
    }
}
