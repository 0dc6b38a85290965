import LifecycleCore

/// What each run is told comes in L3's order, and fits the state that is shown.
struct NoticeChecker {
    private enum Told {
        case nothing, active, inactive, background, terminate
    }

    private var told: [Told]
    /// By app and level: when it was last warned.
    private var warnings: [[Microseconds?]]
    /// The last one warned of this level in this event.
    private var lastWarned: (app: Int, level: MemoryLevel)?
    private static let warningInterval: Microseconds = 25 * .second

    init(apps: Int) {
        told = Array(repeating: .nothing, count: apps)
        warnings = Array(repeating: [nil, nil, nil], count: apps)
    }

    mutating func note(
        _ effect: Effect, of app: Int?, _ shadow: Shadow, at now: Microseconds, _ findings: inout Findings
    ) {
        guard let app else { return }
        let id = shadow.apps[app].id
        if case .spawn = effect {
            told[app] = .nothing
            warnings[app] = [nil, nil, nil]
        }
        guard case .notify(_, let notice) = effect else { return }
        if case .memoryWarning(let level) = notice { return noteWarning(app, level, shadow, now, &findings) }
        let before = told[app]
        let isInOrder: Bool
        switch notice {
        case .willResignActive:
            isInOrder = before == .active
            told[app] = .inactive
        case .didEnterBackground:
            isInOrder = before == .inactive || before == .nothing
            told[app] = .background
        case .willEnterForeground:
            isInOrder = before == .background
            told[app] = .inactive
        case .didBecomeActive:
            isInOrder = before == .inactive || before == .nothing
            told[app] = .active
        case .willTerminate:
            isInOrder = before != .terminate
            told[app] = .terminate
        case .tasksExpiring: isInOrder = before == .background
        case .memoryWarning: isInOrder = true
        }
        findings.check(isInOrder, .noticesAreInOrder, "\(id) is told \(notice) after \(before)")
    }

    /// To running apps only, the lowest priority first, then the largest (L36).
    private mutating func noteWarning(
        _ app: Int, _ level: MemoryLevel, _ shadow: Shadow, _ now: Microseconds, _ findings: inout Findings
    ) {
        let known = shadow.apps[app]
        let isRunning = told[app] == .active || told[app] == .inactive || told[app] == .background
        let isUp = known.phase != .suspended && known.phase != .suspending && known.phase != .waking
        findings.check(
            isUp && (isRunning || told[app] == .nothing), .suspendedIsNotWarned,
            "\(known.id) is warned while it is \(known.phase)")
        let last = warnings[app][level.rawValue]
        findings.check(
            last.map { now - $0 >= Self.warningInterval } ?? true, .warningsAreRare,
            "\(known.id) is warned of level \(level) again after \(now - (last ?? 0)) µs")
        warnings[app][level.rawValue] = now
        if let lastWarned, lastWarned.level == level {
            let (a, b) = (shadow.apps[lastWarned.app].policy.jetsamPriority, known.policy.jetsamPriority)
            findings.check(
                a <= b, .warningsAreRare, "\(known.id) is warned after one of higher priority")
        }
        lastWarned = (app, level)
    }

    mutating func settle(of app: Int?, _ shadow: Shadow, _ findings: inout Findings) {
        lastWarned = nil
        guard let app else { return }
        let known = shadow.apps[app]
        let fits: Bool
        switch known.state {
        case .active: fits = told[app] == .active
        // One that was interrupted while it launched has not been told anything yet.
        case .inactive: fits = told[app] == .inactive || told[app] == .nothing
        case .background, .suspended: fits = told[app] == .background
        case .launching: fits = told[app] == .nothing
        case .notRunning, .terminating: fits = true
        }
        findings.check(fits, .noticesAreInOrder, "\(known.id) is \(known.state), but was last told \(told[app])")
    }
}
