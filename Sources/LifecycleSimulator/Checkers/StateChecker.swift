import LifecycleCore

/// Checks that the states which the core reports are consistent, and that they agree with the actual cgroups: frozen,
/// running, throttled, ended.
struct StateChecker {
    func record(_ effect: Effect, of app: Int?, _ model: CoreModel, _ findings: inout Findings) {
        guard let app else { return }
        let known = model.apps[app]
        guard case .report(.stateChanged(let id, let from, let to, _)) = effect else { return }
        findings.check(
            from == known.state, .statesAreContinuous, "\(id) changes from \(from) to \(to), but was \(known.state)")
        findings.check(from != to, .statesAreContinuous, "\(id) changes from \(from) to \(to)")
        findings.check(
            Self.mayFollow(to, after: from), .transitionsAreLegal, "\(id) changes from \(from) to \(to) in one step")
    }

    /// The transitions of the state diagram. A run is spawned once and `launching` follows only on `notRunning`, so
    /// each run finishes launching at most once (L4).
    private static func mayFollow(_ to: AppState, after from: AppState) -> Bool {
        switch from {
        case .notRunning: to == .launching
        case .launching: to == .inactive || to == .background || to == .terminating
        case .inactive: to == .active || to == .background || to == .terminating
        case .active: to == .inactive || to == .terminating
        case .background: to == .inactive || to == .suspended || to == .terminating
        case .suspended: to == .background || to == .terminating
        case .terminating: to == .notRunning
        }
    }

    /// Checks the state of an app after all effects of one event.
    func verify(
        of app: Int, _ model: CoreModel, _ world: World, _ deadlines: DeadlineChecker,
        _ findings: inout Findings
    ) {
        let known = model.apps[app]
        guard let id = known.run, let index = world.index(of: id) else { return }
        let run = world.runs[index]
        switch known.state {
        case .suspended:
            // The core cannot know yet that a process outside the daemon has continued it.
            let isFrozen = run.freezer == .frozen || run.isEmpty || run.freezeLoss == .undelivered
            findings.check(
                isFrozen, run.freezeLoss == .delivered ? .continuedIsFrozenAgain : .suspendedIsFrozen,
                "\(known.id) is suspended, but its cgroup is not frozen")
            findings.check(
                !deadlines.isOpen(.wake, of: app), .suspendedHasNoAssertion,
                "\(known.id) is suspended during a wake")
        case .active, .inactive:
            findings.check(
                !run.isAskedToFreeze, .foregroundRuns, "\(known.id) is \(known.state), but its cgroup is frozen")
            findings.check(
                !run.isThrottled && run.processor.limit == nil, .foregroundRuns,
                "\(known.id) is \(known.state), but throttled")
        case .background:
            let hasAnswered = known.phase == .running || known.phase == .suspending
            let isWoken = deadlines.isOpen(.wake, of: app)
            findings.check(
                run.isThrottled || !hasAnswered || isWoken || known.policy.role == .worker, .backgroundIsThrottled,
                "\(known.id) is in the background, but not throttled")
            findings.check(
                !(run.isThrottled && isWoken && known.wakes.isForOthers) || run.processor.limit != nil, .wakesRunFreely,
                "\(known.id) was woken for others, but is throttled")
        case .notRunning, .launching, .terminating: break
        }
        checkOOMClass(known, run, &findings)
        checkEnd(known, run, &findings)
    }

    /// What the kernel would kill first where it is faster than the daemon (L38). An app that returns to the foreground may be
    /// either.
    private func checkOOMClass(_ known: AppModel, _ run: FakeRun, _ findings: inout Findings) {
        // When its main process has exited, a change of its manifest has no effect on the others.
        if known.phase == .ending || run.delivered.isEnding { return }
        let expected: [OOMClass]
        switch known.state {
        case .notRunning: return
        // It has no rank beside the others (`Essential=`).
        case _ where known.policy.isEssential: expected = [.active]
        case .suspended: expected = [.suspended]
        case .background, .launching: expected = [.background, .inactive]
        case .terminating: expected = [.background]
        case .inactive: expected = [.inactive]
        case .active: expected = [.active]
        }
        findings.check(
            expected.contains(run.oomClass), .kernelAgrees,
            "\(known.id) is \(known.state), but the kernel ranks it as \(run.oomClass)")
    }

    private func checkEnd(_ known: AppModel, _ run: FakeRun, _ findings: inout Findings) {
        findings.check(
            !run.delivered.isOver, .endsComplete,
            "run \(run.id) is over, but \(known.id) is still \(known.state)")
    }

    /// Checks the view of an app. Not after every event, because views are slow.
    func verify(_ app: Int, _ view: AppView?, _ model: CoreModel, _ findings: inout Findings) {
        let known = model.apps[app]
        findings.check(
            view == nil || known.isRegistered || known.run != nil, .stateIsBounded,
            "\(known.id) has neither a manifest nor a process, but is still listed")
        guard let view else {
            let isRemoved = known.state == .notRunning && !known.isRegistered
            findings.check(isRemoved, .statesAreContinuous, "\(known.id) is removed while it is \(known.state)")
            return
        }
        findings.check(
            view.state == known.state && view.run == known.run, .statesAreContinuous,
            "\(known.id) was reported \(known.state) in run \(known.run?.description ?? "none"), "
                + "its view shows \(view.state) in run \(view.run?.description ?? "none")")
        findings.check(
            view.memory == known.memory, .statesAreContinuous,
            "\(known.id) has \(known.memory) bytes, its view shows \(view.memory)")
        findings.check(
            view.state != .suspended || view.tasks.isEmpty, .suspendedHasNoAssertion,
            "\(known.id) is suspended with \(view.tasks.count) open tasks")
        findings.check(
            view.backgroundTimeRemaining == nil || (view.state != .active && view.state != .inactive), .budgetIsKept,
            "\(known.id) is in the foreground with \(view.backgroundTimeRemaining ?? .zero) of background time left (L24)"
        )
        findings.check(
            view.tasks.count <= 1000, .stateIsBounded, "\(known.id) has \(view.tasks.count) open tasks")
        findings.check(
            view.interruptions <= 1000, .stateIsBounded,
            "\(known.id) has \(view.interruptions) open interruptions")
    }
}
