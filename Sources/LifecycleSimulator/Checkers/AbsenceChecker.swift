import LifecycleCore

/// L15: who leaves the foreground before the machine sleeps or when the screen is locked, and who comes back.
struct AbsenceChecker {
    private var isLocked = false
    private var isSleeping = false
    private var isSleepAllowed = false
    /// By app: somebody has wanted to see it since the absence began.
    private var isWanted: [Bool]
    /// The runs that left the foreground for it, by app.
    private var left: [RunID?]
    /// Nothing happened since that could change who comes back.
    private var isUndisturbed = false
    /// In this event: nobody looks any more; the user is back.
    private var hasBegun = false
    private var isOver = false
    /// In this event: who was told that its data is gone.
    private var wasTold: [Bool]

    private var isAway: Bool { isLocked || isSleeping }

    init(apps: Int) {
        isWanted = Array(repeating: false, count: apps)
        left = Array(repeating: nil, count: apps)
        wasTold = isWanted
    }

    mutating func note(_ event: Event, of app: Int?, _ shadow: Shadow) {
        hasBegun = false
        isOver = false
        switch event {
        case .sleepRequested:
            isSleepAllowed = false
            if !isSleeping { begin(shadow) }
            isSleeping = true
        case .locked:
            if !isLocked { begin(shadow) }
            isLocked = true
        // A daemon that was not there takes the machine to be awake.
        case .awoke, .recovered:
            isOver = isSleeping && !isLocked
            isSleeping = false
        case .unlocked:
            isOver = isLocked && !isSleeping
            isLocked = false
        case .requested(_, _, let request):
            isUndisturbed = false
            switch request {
            case .activate, .launch(.foreground, _, _): if let app { isWanted[app] = true }
            case .launch, .background, .interrupt, .endInterruption, .terminate, .remove, .push, .send: break
            }
        case .configured, .started, .registered, .unregistered, .shutdownRequested: isUndisturbed = false
        default: break
        }
    }

    private mutating func begin(_ shadow: Shadow) {
        for app in isWanted.indices {
            isWanted[app] = false
            wasTold[app] = false
        }
        if isAway { return }
        hasBegun = true
        isUndisturbed = true
        for (index, app) in shadow.apps.enumerated() { left[index] = app.phase == .foreground ? app.run : nil }
    }

    mutating func note(_ effect: Effect, of app: Int?, _ shadow: Shadow, _ findings: inout Findings) {
        switch effect {
        case .notify(_, .willEnterForeground), .notify(_, .didBecomeActive):
            guard let app else { return }
            findings.check(
                !isSleeping && (!isLocked || isWanted[app]), .absenceEmptiesForeground,
                "\(shadow.apps[app].id) comes into the foreground while nobody is there")
        case .deliver(_, let given):
            guard let app else { return }
            if given.contains(where: { $0.kind == "protectedData" && $0.payload == "unavailable" }) {
                wasTold[app] = true
            }
        case .allowSleep:
            findings.check(isSleeping && !isSleepAllowed, .sleepIsAllowedInTime, "nobody waits for sleep to be allowed")
            findings.check(
                !Self.isAnybodyVisible(shadow), .sleepIsAllowedInTime,
                "sleep is allowed while an app is in the foreground, or has not answered that it left it")
            isSleepAllowed = true
        default: break
        }
    }

    private static func isAnybodyVisible(_ shadow: Shadow) -> Bool {
        shadow.apps.contains { $0.phase == .foreground || $0.phase == .entering }
    }

    mutating func settle<Core: DecidingCore>(
        _ shadow: Shadow, _ core: Core, at now: Microseconds, _ findings: inout Findings
    ) {
        if isAway { settleAway(shadow, &findings) }
        if hasBegun { settleProtectedData(shadow, &findings) }
        if isOver { settleReturn(shadow, core, at: now, &findings) }
    }

    private func settleAway(_ shadow: Shadow, _ findings: inout Findings) {
        for (index, app) in shadow.apps.enumerated() where app.phase == .foreground {
            findings.check(
                !isSleeping && isWanted[index], .absenceEmptiesForeground,
                "\(app.id) stays in the foreground while nobody is there")
        }
        guard isSleeping, !isSleepAllowed else { return }
        findings.check(
            Self.isAnybodyVisible(shadow), .sleepIsAllowedInTime, "nothing keeps the machine from sleeping any more")
    }

    /// Apps that run are told at once, those that are suspended when they run again.
    private func settleProtectedData(_ shadow: Shadow, _ findings: inout Findings) {
        for (index, app) in shadow.apps.enumerated() where app.policy.usesProtectedData && app.run != nil {
            guard app.phase == .foreground || app.phase == .entering || app.phase == .running else { continue }
            findings.check(
                wasTold[index], .protectedDataIsTold, "\(app.id) is not told that its data can't be got at")
        }
    }

    private mutating func settleReturn<Core: DecidingCore>(
        _ shadow: Shadow, _ core: Core, at now: Microseconds, _ findings: inout Findings
    ) {
        for (index, run) in left.enumerated() where run != nil && isUndisturbed {
            let app = shadow.apps[index]
            guard app.run == run, app.state != .terminating, app.phase != .ending,
                let view = core.view(of: app.id, at: Instant(now))
            else { continue }
            findings.check(
                view.isForeground, .absenceEndsInForeground, "\(app.id) left the foreground, and does not come back")
        }
        left = Array(repeating: nil, count: left.count)
    }
}
