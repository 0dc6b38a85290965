import LifecycleCore

/// Checks that apps which use too much processor time in the background are killed or throttled, and no others (L44). The world
/// knows what they have used.
struct ProcessorChecker {
    /// What a run had used at some time.
    private struct Point {
        let at: Microseconds
        let used: Microseconds
        let lateness: Microseconds
    }

    private struct App {
        /// When the run was created, or last left the foreground.
        var entered: Point?
        /// Since when it is awake in the background and is not throttled.
        var awakeSince: Microseconds?
        /// What it had used once it was surely looked at, and two periods later.
        var start: Point?
        var end: Point?
        var isThrottled = false
        /// Its manifest said `Suspend=dry-run`: what it uses while it would be suspended is not counted (L58).
        var isExempt = false
        /// It was in the mode `processing` before the event.
        var isProcessing = false
    }

    private var apps: [App]
    /// In most seeds nothing is measured.
    private var isAnyLimited = false

    private static let slack: Microseconds = 1 * .second

    init(apps count: Int) { apps = Array(repeating: App(), count: count) }

    /// Records an event. Called before the core handles it.
    mutating func record(_ event: Event) {
        if case .configuration(.registered(_, let policy, _)) = event, policy.backgroundCPUAction != .ignore {
            isAnyLimited = true
        }
    }

    mutating func record(
        _ effect: Effect, of app: Int?, _ model: CoreModel, _ world: World, at now: Microseconds,
        _ findings: inout Findings
    ) {
        guard isAnyLimited, let app else { return }
        let known = model.apps[app]
        switch effect {
        case .spawn: apps[app] = App()
        case .report(.stateChanged(_, _, .background, _)): if apps[app].entered == nil { enter(app, known, world) }
        case .report(.stateChanged(_, _, .inactive, _)), .report(.stateChanged(_, _, .active, _)):
            apps[app].entered = nil
        case .report(.processorThrottled):
            apps[app].isThrottled = true
            checkUse(app, .throttle, known, world, &findings)
        case .report(.processorThrottleEnded): apps[app].isThrottled = false
        // A reload may change what follows before the processes have ended.
        case .report(.stateChanged(_, _, .terminating, .cpuLimit)): checkUse(app, .kill, known, world, &findings)
        case .writeReceipt(let receipt):
            guard receipt.code == Receipt.Code.backgroundCPU else { return }
            findings.check(
                receipt.state == .background, .processorUseIsBounded,
                "\(known.id) is killed for its processor time while it is \(receipt.state)")
        default: break
        }
    }

    private mutating func enter(_ app: Int, _ known: AppModel, _ world: World) {
        apps[app].entered = point(known, world)
    }

    private func point(_ known: AppModel, _ world: World) -> Point? {
        guard let run = known.run.flatMap({ world.index(of: $0) }) else { return nil }
        return Point(at: world.now, used: world.processor(of: run).used, lateness: world.pastLateness)
    }

    /// It must have used in the background at least what it may use in `BackgroundCPUSec=`.
    private func checkUse(
        _ app: Int, _ action: AppPolicy.BackgroundCPU, _ known: AppModel, _ world: World, _ findings: inout Findings
    ) {
        guard !apps[app].isExempt, let entered = apps[app].entered, let point = point(known, world) else { return }
        let used = point.used - entered.used
        let allowed = known.policy.backgroundCPUTime.microseconds * Microseconds(known.policy.backgroundCPULimit) / 1000
        findings.check(
            known.policy.backgroundCPUAction == action && used >= allowed && !apps[app].isProcessing,
            .processorUseIsBounded,
            "\(known.id) is subject to \(action), but has used \(used) µs in the background, of \(allowed) µs, "
                + "and is in the mode processing: \(apps[app].isProcessing)")
    }

    // MARK: After all effects of an event

    mutating func verify(of app: Int, _ model: CoreModel, _ world: World) {
        guard isAnyLimited else { return }
        let known = model.apps[app]
        if known.policy.effectiveSuspension == .dryRun { apps[app].isExempt = true }
        let isAwake = known.phase == .entering || known.phase == .running
        apps[app].isProcessing = known.heldModes.contains(.processing)
        if !isAwake || apps[app].isProcessing || known.policy.backgroundCPUAction == .ignore || apps[app].isThrottled {
            (apps[app].awakeSince, apps[app].start, apps[app].end) = (nil, nil, nil)
        } else if apps[app].awakeSince == nil {
            apps[app].awakeSince = world.now
        }
    }

    /// Checks after `deadlineReached` that no app has used half as much again as it may, over two periods, and is not acted on at
    /// the next look: there is one six times in a period.
    mutating func verifyAll(_ model: CoreModel, _ world: World, at now: Microseconds, _ findings: inout Findings) {
        guard isAnyLimited else { return }
        for app in apps.indices {
            guard let since = apps[app].awakeSince, !apps[app].isExempt else { continue }
            let known = model.apps[app]
            let period = known.policy.backgroundCPUTime.microseconds
            let look = period / 6 + Self.slack
            guard let start = apps[app].start else {
                if now - since >= look { apps[app].start = point(known, world) }
                continue
            }
            guard let end = apps[app].end else {
                if now - start.at >= 2 * period { apps[app].end = point(known, world) }
                continue
            }
            if now - end.at < look { continue }
            (apps[app].start, apps[app].end) = (end, nil)
            if world.pastLateness > start.lateness { continue }
            let (used, time) = (end.used - start.used, end.at - start.at)
            findings.check(
                used * 1000 <= time * Microseconds(known.policy.backgroundCPULimit) * 3 / 2, .processorUseIsBounded,
                "\(known.id) has used \(used) µs in \(time) µs in the background, and nothing follows")
        }
    }
}
