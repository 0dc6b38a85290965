import LifecycleCore

/// Checks which apps leave the foreground for sleep or the lock screen and which return (L15).
struct AbsenceChecker {
    private var isLocked = false
    private var isSleeping = false
    private var isSleepAllowed = false
    /// By app: whether a user requested it in the foreground since the absence began.
    private var isRequested: [Bool]
    /// By app: the run that left the foreground for the absence.
    private var left: [RunID?]
    /// Whether no event since then changes which apps return.
    private var isUnchanged = false
    /// Whether the absence begins in this event.
    private var absenceBegan = false
    /// Whether the absence ends in this event.
    private var isOver = false
    /// By app: whether it was notified in this event that its data is unavailable.
    private var wasNotified: [Bool]

    private var isAway: Bool { isLocked || isSleeping }

    init(apps: Int) {
        isRequested = Array(repeating: false, count: apps)
        left = Array(repeating: nil, count: apps)
        wasNotified = isRequested
    }

    mutating func record(_ event: Event, of app: Int?, _ model: CoreModel) {
        absenceBegan = false
        isOver = false
        switch event {
        case .absence(.sleepRequested):
            isSleepAllowed = false
            if !isSleeping { begin(model) }
            isSleeping = true
        case .absence(.locked):
            if !isLocked { begin(model) }
            isLocked = true
        // A new daemon assumes that the machine is awake.
        case .absence(.awoke), .recovered:
            isOver = isSleeping && !isLocked
            isSleeping = false
        case .absence(.unlocked):
            isOver = isLocked && !isSleeping
            isLocked = false
        case .requested(_, _, let request, by: _):
            isUnchanged = false
            switch request {
            case .activate, .open, .launch(.foreground, _, _, _), .scene(_, .activate):
                if let app { isRequested[app] = true }
            case .launch, .background, .interrupt, .interruptWhileConnected, .endInterruption, .terminate, .remove,
                .push, .send, .cancelTask, .scene(_, .background), .scene(_, .close):
                break
            }
        case .configuration(.configured), .configuration(.started), .configuration(.registered),
            .configuration(.unregistered), .shutdownRequested, .run(_, .scene):
            isUnchanged = false
        default: break
        }
    }

    private mutating func begin(_ model: CoreModel) {
        for app in isRequested.indices {
            isRequested[app] = false
            wasNotified[app] = false
        }
        if isAway { return }
        absenceBegan = true
        isUnchanged = true
        for (index, app) in model.apps.enumerated() { left[index] = app.phase == .foreground ? app.run : nil }
    }

    mutating func record(_ effect: Effect, of app: Int?, _ model: CoreModel, _ findings: inout Findings) {
        switch effect {
        case .run(_, .notify(.willEnterForeground)), .run(_, .notify(.didBecomeActive)):
            guard let app else { return }
            findings.check(
                !isSleeping && (!isLocked || isRequested[app]), .absenceEmptiesForeground,
                "\(model.apps[app].id) enters the foreground during an absence")
        case .run(_, .deliver(let given)):
            guard let app else { return }
            if given.contains(where: { $0.kind == "protectedData" && $0.payload == "unavailable" }) {
                wasNotified[app] = true
            }
        case .allowSleep:
            findings.check(
                isSleeping && !isSleepAllowed, .sleepIsAllowedInTime, "sleep is allowed, but was not requested")
            findings.check(
                !Self.isAnyAppVisible(model), .sleepIsAllowedInTime,
                "sleep is allowed while an app is in the foreground, or has not answered `didEnterBackground`")
            isSleepAllowed = true
        default: break
        }
    }

    private static func isAnyAppVisible(_ model: CoreModel) -> Bool {
        model.apps.indices.contains {
            model.apps[$0].phase == .foreground || model.apps[$0].phase == .entering && !model.isEntered($0)
        }
    }

    mutating func verify<Core: DecidingCore>(
        _ model: CoreModel, _ core: Core, at now: Microseconds, _ findings: inout Findings
    ) {
        if isAway { verifyAbsence(model, &findings) }
        if absenceBegan { verifyProtectedData(model, &findings) }
        if isOver { verifyReturn(model, core, at: now, &findings) }
    }

    private func verifyAbsence(_ model: CoreModel, _ findings: inout Findings) {
        for index in model.apps.indices where model.apps[index].phase == .foreground {
            findings.check(
                !isSleeping && isRequested[index], .absenceEmptiesForeground,
                "\(model.apps[index].id) stays in the foreground during an absence")
        }
        guard isSleeping, !isSleepAllowed else { return }
        findings.check(
            Self.isAnyAppVisible(model), .sleepIsAllowedInTime, "no app is visible any more, but sleep is not allowed")
    }

    /// Checks that running apps are notified immediately. Suspended apps are notified when they run again.
    private func verifyProtectedData(_ model: CoreModel, _ findings: inout Findings) {
        for (index, app) in model.apps.enumerated() where app.policy.usesProtectedData && app.run != nil {
            guard app.phase == .foreground || app.phase == .entering || app.phase == .running else { continue }
            findings.check(
                wasNotified[index], .protectedDataIsNotified,
                "\(app.id) is not notified that its data becomes unavailable")
        }
    }

    private mutating func verifyReturn<Core: DecidingCore>(
        _ model: CoreModel, _ core: Core, at now: Microseconds, _ findings: inout Findings
    ) {
        // An app that is about to end does not return.
        for (index, run) in left.enumerated() where run != nil && isUnchanged && !model.isShuttingDown {
            let app = model.apps[index]
            guard app.run == run, app.state != .terminating, app.phase != .ending,
                let view = core.view(of: app.id, at: Instant(now))
            else { continue }
            findings.check(
                view.isForeground, .absenceEndsInForeground, "\(app.id) left the foreground and does not return")
        }
        left = Array(repeating: nil, count: left.count)
    }
}
