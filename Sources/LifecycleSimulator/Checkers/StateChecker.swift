import LifecycleCore

/// What the core presents is consistent in itself, and with what really is: frozen, running, throttled, gone.
struct StateChecker {
    func note(_ effect: Effect, of app: Int?, _ shadow: Shadow, _ findings: inout Findings) {
        guard let app else { return }
        let known = shadow.apps[app]
        guard case .report(.stateChanged(let id, let from, let to, _)) = effect else { return }
        findings.check(
            from == known.state, .statesAreContinuous, "\(id) goes from \(from) to \(to), but was \(known.state)")
        findings.check(from != to, .statesAreContinuous, "\(id) goes from \(from) to \(to)")
        findings.check(
            Self.mayFollow(to, after: from), .statesAreContinuous, "\(id) goes from \(from) to \(to) in one step")
    }

    /// The arrows of the state diagram. A run is spawned once and launching follows only on not running: so it finishes
    /// launching once (L4).
    private static func mayFollow(_ to: AppState, after from: AppState) -> Bool {
        switch from {
        case .notRunning: to == .launching
        case .launching: to == .inactive || to == .background || to == .terminating || to == .notRunning
        case .inactive: to == .active || to == .background || to == .terminating
        case .active: to == .inactive || to == .terminating
        case .background: to == .inactive || to == .suspended || to == .terminating
        case .suspended: to == .background || to == .terminating
        case .terminating: to == .notRunning
        }
    }

    /// After all effects of one event.
    func settle(
        of app: Int, _ shadow: Shadow, _ world: World, _ deadlines: DeadlineChecker,
        _ findings: inout Findings
    ) {
        let known = shadow.apps[app]
        guard let id = known.run, let index = world.index(of: id) else { return }
        let run = world.runs[index]
        switch known.state {
        case .suspended:
            let isFrozen = run.freezer == .frozen || run.isEmpty
            findings.check(isFrozen, .suspendedIsFrozen, "\(known.id) is suspended, but its group is not frozen")
            findings.check(
                !deadlines.isOpen(.wake, of: app), .suspendedHasNoAssertion,
                "\(known.id) is suspended in the middle of a wake")
        case .active, .inactive:
            findings.check(
                !run.isAskedToFreeze, .foregroundRuns, "\(known.id) is \(known.state), but its group is frozen")
            findings.check(!run.isThrottled, .foregroundRuns, "\(known.id) is \(known.state), but throttled")
        case .background:
            let isSettled = known.phase == .running || known.phase == .suspending
            findings.check(
                run.isThrottled || !isSettled, .backgroundIsThrottled, "\(known.id) is in the background unthrottled")
        case .notRunning, .launching, .terminating: break
        }
        checkEnd(known, run, &findings)
    }

    private func checkEnd(_ known: ShadowApp, _ run: FakeRun, _ findings: inout Findings) {
        findings.check(
            !run.reported.isOver, .endsComplete,
            "all of run \(run.id) is gone, but \(known.id) is still \(known.state) in it")
    }

    /// Views cost something: not for every event.
    func settle(_ app: Int, _ view: AppView?, _ shadow: Shadow, _ findings: inout Findings) {
        let known = shadow.apps[app]
        findings.check(
            view == nil || known.isRegistered || known.run != nil, .bookkeepingIsBounded,
            "\(known.id) has neither a manifest nor a process, and is still known")
        guard let view else {
            let isForgotten = known.state == .notRunning && !known.isRegistered
            findings.check(isForgotten, .statesAreContinuous, "\(known.id) is forgotten while it is \(known.state)")
            return
        }
        findings.check(
            view.state == known.state && view.run == known.run, .statesAreContinuous,
            "\(known.id) was reported \(known.state) in run \(known.run?.description ?? "none"), "
                + "its view says \(view.state) in run \(view.run?.description ?? "none")")
        findings.check(
            view.memory == known.memory, .statesAreContinuous,
            "\(known.id) has \(known.memory) bytes, its view says \(view.memory)")
        findings.check(
            view.state != .suspended || view.tasks.isEmpty, .suspendedHasNoAssertion,
            "\(known.id) is suspended with \(view.tasks.count) tasks open")
        findings.check(
            view.backgroundTimeRemaining == nil || (view.state != .active && view.state != .inactive), .budgetIsKept,
            "\(known.id) is in the foreground with \(view.backgroundTimeRemaining ?? .zero) left (L24)")
        findings.check(
            view.tasks.count <= 1000, .bookkeepingIsBounded, "\(known.id) has \(view.tasks.count) tasks open")
        findings.check(
            view.interruptions <= 1000, .bookkeepingIsBounded,
            "\(known.id) has \(view.interruptions) interruptions that have not ended")
    }
}
