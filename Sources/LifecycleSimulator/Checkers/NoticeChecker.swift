import LifecycleCore

/// Checks that each run gets its notices in the order of L3, and that they match the reported state.
struct NoticeChecker {
    private enum LastNotice {
        case nothing, active, inactive, background, terminate
    }

    private var lastNotice: [LastNotice]
    /// By app and level: when the last memory warning was sent.
    private var warnings: [[Microseconds?]]
    /// The last app that was warned in this event.
    private var lastWarned: (app: Int, level: MemoryLevel)?
    private static let warningInterval: Microseconds = 25 * .second

    init(apps: Int) {
        lastNotice = Array(repeating: .nothing, count: apps)
        warnings = Array(repeating: [nil, nil, nil], count: apps)
    }

    mutating func record(
        _ effect: Effect, of app: Int?, _ model: CoreModel, at now: Microseconds, _ findings: inout Findings
    ) {
        guard let app else { return }
        let id = model.apps[app].id
        if case .spawn = effect {
            lastNotice[app] = .nothing
            warnings[app] = [nil, nil, nil]
        }
        guard case .notify(_, let notice) = effect else { return }
        if case .memoryWarning(let level) = notice { return checkWarning(app, level, model, now, &findings) }
        let before = lastNotice[app]
        let isInOrder: Bool
        switch notice {
        case .willResignActive:
            isInOrder = before == .active
            lastNotice[app] = .inactive
        case .didEnterBackground:
            isInOrder = before == .inactive || before == .nothing
            lastNotice[app] = .background
        case .willEnterForeground:
            isInOrder = before == .background
            lastNotice[app] = .inactive
        case .didBecomeActive:
            isInOrder = before == .inactive || before == .nothing
            lastNotice[app] = .active
        case .willTerminate:
            isInOrder = before != .terminate
            lastNotice[app] = .terminate
        case .tasksExpiring: isInOrder = before == .background
        case .memoryWarning, .openURL, .willSuspend, .didResume, .scene: isInOrder = true
        case .takeSnapshot: isInOrder = before == .background
        }
        findings.check(isInOrder, .noticesAreInOrder, "\(id) gets \(notice) after \(before)")
    }

    /// Warnings are for running apps only, the lowest priority first, then the largest app (L36).
    private mutating func checkWarning(
        _ app: Int, _ level: MemoryLevel, _ model: CoreModel, _ now: Microseconds, _ findings: inout Findings
    ) {
        let known = model.apps[app]
        let isRunning = lastNotice[app] == .active || lastNotice[app] == .inactive || lastNotice[app] == .background
        let isThawed = known.phase != .suspended && known.phase != .suspending && known.phase != .waking
        findings.check(
            isThawed && (isRunning || lastNotice[app] == .nothing), .suspendedIsNotWarned,
            "\(known.id) gets a memory warning while it is \(known.phase)")
        let last = warnings[app][level.rawValue]
        findings.check(
            last.map { now - $0 >= Self.warningInterval } ?? true, .warningsAreLimited,
            "\(known.id) gets another warning of level \(level) after \(now - (last ?? 0)) µs")
        warnings[app][level.rawValue] = now
        if let lastWarned, lastWarned.level == level {
            let (a, b) = (model.apps[lastWarned.app].policy.jetsamPriority, known.policy.jetsamPriority)
            findings.check(
                a <= b, .warningsAreLimited, "\(known.id) is warned after an app of higher priority")
        }
        lastWarned = (app, level)
    }

    mutating func verify(of app: Int?, _ model: CoreModel, _ findings: inout Findings) {
        lastWarned = nil
        guard let app else { return }
        let known = model.apps[app]
        let fits: Bool
        switch known.state {
        case .active: fits = lastNotice[app] == .active
        // An app that was interrupted while it launched has no notice yet.
        case .inactive: fits = lastNotice[app] == .inactive || lastNotice[app] == .nothing
        case .background, .suspended: fits = lastNotice[app] == .background
        case .launching: fits = lastNotice[app] == .nothing
        case .notRunning, .terminating: fits = true
        }
        findings.check(
            fits, .noticesAreInOrder, "\(known.id) is \(known.state), but its last notice was \(lastNotice[app])")
    }
}
