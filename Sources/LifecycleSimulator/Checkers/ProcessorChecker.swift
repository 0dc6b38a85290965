import LifecycleCore

/// Checks that apps which use too much processor time in the background are killed or throttled, and no others (L44). The world
/// knows what they have used.
struct ProcessorChecker {
    /// What a run had used at a look.
    private struct Point {
        let at: Microseconds
        let used: Microseconds
        let waited: Microseconds
    }

    /// What the look says whose outcome is being handled.
    private struct Verdict {
        let app: Int
        /// It used more than half of the limit.
        let isHigh: Bool
        let isOver: Bool
        /// It needs at most half of the limit.
        let isLow: Bool
    }

    private struct App {
        /// The looks since it was last in the foreground, the oldest first.
        var points: [Point] = []
        /// The look that has no outcome yet.
        var asked: Point?
        var lastLook: Microseconds?
        /// Since when it has been awake in the background.
        var awakeSince: Microseconds?
        /// The delays until its last look, or until then.
        var lateness: Microseconds = 0
        var isWarned = false
        var isThrottled = false
        var isKilled = false
        /// Its manifest said `Suspend=dry-run`: what it uses while it would be suspended is not counted (L58).
        var isExempt = false

        mutating func leaveBackground() {
            (points, asked, lastLook, awakeSince, isWarned) = ([], nil, nil, nil, false)
        }
    }

    private var apps: [App]
    private var verdict: Verdict?
    /// In most seeds nothing is measured.
    private var isAnyLimited = false

    private static let slack: Microseconds = 1 * .second

    init(apps count: Int) { apps = Array(repeating: App(), count: count) }

    private static func interval(_ policy: AppPolicy) -> Microseconds {
        max(100 * .millisecond, policy.backgroundCPUTime.microseconds / 6)
    }

    /// Records an event. Called before the core handles it.
    mutating func record(_ event: Event, of app: Int?, _ model: CoreModel, at now: Microseconds) {
        verdict = nil
        switch event {
        case .registered(_, let policy, _): if policy.backgroundCPUAction != .ignore { isAnyLimited = true }
        // What was asked for before has no outcome.
        case .recovered: for app in apps.indices { apps[app].asked = nil }
        case .run(let run, .processorMeasured):
            guard let app, model.apps[app].run == run, let point = apps[app].asked else { return }
            apps[app].asked = nil
            apps[app].points.append(point)
            let phase = model.apps[app].phase
            if phase == .entering || phase == .running { verdict = judge(app, model.apps[app].policy, now) }
        default: break
        }
    }

    private mutating func judge(_ app: Int, _ policy: AppPolicy, _ now: Microseconds) -> Verdict? {
        let period = policy.backgroundCPUTime.microseconds
        let limit = Microseconds(policy.backgroundCPULimit)
        let first = apps[app].points.lastIndex { now - $0.at >= period }
        if let first { apps[app].points.removeSubrange(..<first) }
        guard let start = apps[app].points.first, let end = apps[app].points.last else { return nil }
        let (used, waited, time) = (end.used - start.used, end.waited - start.waited, now - start.at)
        return Verdict(
            app: app, isHigh: used * 2000 > max(period, time) * limit,
            isOver: first != nil && used * 1000 > time * limit,
            isLow: first != nil && (used + waited) * 2000 <= time * limit)
    }

    mutating func record(
        _ effect: Effect, of app: Int?, _ model: CoreModel, _ world: World, at now: Microseconds,
        _ findings: inout Findings
    ) {
        guard let app else { return }
        let known = model.apps[app]
        let verdict = verdict?.app == app ? verdict : nil
        switch effect {
        case .spawn: apps[app] = App()
        case .measureProcessor(let run): checkLook(app, run, known, world, now, &findings)
        case .report(.stateChanged(_, _, .inactive, _)), .report(.stateChanged(_, _, .active, _)):
            apps[app].leaveBackground()
        case .report(.processorUseHigh):
            apps[app].isWarned = true
            findings.check(
                apps[app].isExempt || verdict?.isHigh ?? false, .processorUseIsFair,
                "\(known.id) is reported, but has not used half of its processor time in the background")
        case .report(.processorThrottled):
            apps[app].isThrottled = true
            let mayBe = known.policy.backgroundCPUAction == .throttle
            findings.check(
                apps[app].isExempt || mayBe && verdict?.isOver ?? false, .processorUseIsFair,
                "\(known.id) is throttled, but has not used too much processor time, or is to be killed")
        case .report(.processorThrottleEnded):
            apps[app].isThrottled = false
            findings.check(
                apps[app].isExempt || verdict?.isLow ?? true, .throttlesEnd,
                "\(known.id) is throttled no more, but needs as much as before")
        case .kill: if let verdict { checkKill(verdict, known, &findings) }
        case .writeReceipt(let receipt):
            guard receipt.code == Receipt.Code.backgroundCPU else { return }
            findings.check(
                apps[app].isKilled && receipt.state == .background, .processorUseIsFair,
                "receipt \(receipt.id) says that \(known.id) used too much processor time, but it was not killed for it"
            )
        default: break
        }
    }

    private mutating func checkKill(_ verdict: Verdict, _ known: AppModel, _ findings: inout Findings) {
        findings.check(
            apps[verdict.app].isExempt || verdict.isOver && known.policy.backgroundCPUAction == .kill,
            .processorUseIsFair,
            "\(known.id) is killed, but has not used too much processor time, or is to be throttled")
        apps[verdict.app].isKilled = true
    }

    private mutating func checkLook(
        _ app: Int, _ run: RunID, _ known: AppModel, _ world: World, _ now: Microseconds, _ findings: inout Findings
    ) {
        findings.check(
            known.phase == .entering || known.phase == .running, .processorLooksAreRare,
            "the processor time of \(known.id) is measured while it is \(known.phase)")
        let isEarly = apps[app].lastLook.map { now - $0 < Self.interval(known.policy) } ?? false
        findings.check(
            (apps[app].isExempt || !isEarly) && known.policy.backgroundCPUAction != .ignore, .processorLooksAreRare,
            "the processor time of \(known.id) is measured, and was measured \(now - (apps[app].lastLook ?? now)) µs ago"
        )
        guard let index = world.index(of: run) else { return }
        let processor = world.processor(of: index)
        // If the last look has no answer yet, that is the one that comes first.
        let asked = apps[app].asked
        apps[app].asked = Point(
            at: now, used: asked?.used ?? processor.used, waited: asked?.waited ?? processor.waited)
        apps[app].lastLook = now
        apps[app].lateness = world.pastLateness
    }

    // MARK: After all effects of an event

    mutating func verify(
        of app: Int, _ model: CoreModel, _ world: World, at now: Microseconds, _ findings: inout Findings
    ) {
        guard isAnyLimited else { return }
        let known = model.apps[app]
        let isAwake = known.phase == .entering || known.phase == .running
        if !isAwake || known.policy.backgroundCPUAction == .ignore {
            apps[app].awakeSince = nil
        } else if apps[app].awakeSince == nil {
            apps[app].awakeSince = now
            apps[app].lateness = world.pastLateness
        }
        if known.policy.effectiveSuspension == .dryRun { apps[app].isExempt = true }
        if let verdict, verdict.app == app, !apps[app].isExempt { verify(verdict, known, &findings) }
        guard let run = known.run.flatMap({ world.index(of: $0) }), known.phase != .ending else { return }
        findings.check(
            apps[app].isThrottled == (world.runs[run].processor.limit != nil), .throttlesEnd,
            "\(known.id) is throttled: \(apps[app].isThrottled), but its limit is "
                + "\(world.runs[run].processor.limit.map { "\($0)" } ?? "none")")
    }

    private func verify(_ verdict: Verdict, _ known: AppModel, _ findings: inout Findings) {
        let app = apps[verdict.app]
        findings.check(
            !verdict.isHigh || app.isWarned, .processorUseIsBounded,
            "\(known.id) has used half of its processor time in the background, and that is not reported")
        if verdict.isLow {
            findings.check(!app.isThrottled, .throttlesEnd, "\(known.id) is still throttled, but needs little")
        }
        guard verdict.isOver else { return }
        let isActedOn =
            switch known.policy.backgroundCPUAction {
            case .kill: app.isKilled
            case .throttle: app.isThrottled
            case .ignore: true
            }
        findings.check(
            isActedOn, .processorUseIsBounded,
            "\(known.id) has used more processor time than it may in the background, and nothing follows")
    }

    /// Checks after `deadlineReached` that each app was looked at in time.
    func verifyAll(_ model: CoreModel, _ world: World, at now: Microseconds, _ findings: inout Findings) {
        guard isAnyLimited else { return }
        for app in apps.indices {
            guard let since = apps[app].awakeSince, !apps[app].isExempt else { continue }
            let interval = Self.interval(model.apps[app].policy)
            let due = apps[app].lastLook.map { max(since, $0 + interval) } ?? since + interval
            let limit = due + Self.slack + world.lateness - apps[app].lateness
            findings.check(
                now <= limit, .processorUseIsBounded,
                "\(model.apps[app].id) is awake in the background, and its processor time is not measured")
        }
    }
}
