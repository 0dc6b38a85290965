import LifecycleCore

/// Checks that the state which the core reports agrees with the actual cgroup: frozen, running, throttled, ended.
struct StateChecker {
    /// Checks the state of an app after all effects of one event. `isIdle`: nothing keeps it awake.
    func verify(
        of app: Int, _ model: CoreModel, _ world: World, _ deadlines: DeadlineChecker, isIdle: Bool,
        _ findings: inout Findings
    ) {
        let known = model.apps[app]
        guard let id = known.run, let index = world.index(of: id) else { return }
        let run = world.runs[index]
        switch known.state {
        case .suspended:
            // The core cannot know yet that a process outside the daemon has continued it.
            findings.check(
                run.freezer == .frozen || run.isEmpty || run.freezeLoss == .undelivered, .suspendedIsFrozen,
                "\(known.id) is suspended, but its cgroup is not frozen")
        case .active, .inactive:
            findings.check(
                known.isReady, .visibleOnceLaunched, "\(known.id) is \(known.state), but has not finished launching")
            findings.check(
                !run.isAskedToFreeze, .foregroundRuns, "\(known.id) is \(known.state), but its cgroup is frozen")
            findings.check(
                !run.isThrottled && run.processor.limit == nil, .foregroundRuns,
                "\(known.id) is \(known.state), but throttled")
        case .background:
            let mayBeSuspended = known.policy.effectiveSuspension == .yes && known.policy.suspendDelay <= .seconds(5)
            // Its suspension waits for a hook, or the core does not know yet that its descriptors cannot be watched.
            let isWaiting = isIdle || known.hooks.isRunning || world.isLeftAwake(app)
            let worksForItself = known.phase == .running && !(mayBeSuspended && isWaiting)
            // A user listens.
            let isAudible = !known.heldModes.isDisjoint(with: [.audio, .call])
            findings.check(
                !isAudible || known.phase != .running || !run.isThrottled || run.processor.limit != nil,
                .backgroundIsThrottled,
                "\(known.id) plays audio or is in a call, but is throttled")
            findings.check(
                run.isThrottled || !worksForItself || deadlines.isOpen(.wake, of: app) || known.policy.role == .worker
                    || isAudible || deadlines.tasksExpire(of: app),
                .backgroundIsThrottled, "\(known.id) works for itself in the background, but is not throttled")
        case .notRunning, .launching, .terminating: break
        }
        checkOOMClass(known, run, &findings)
        findings.check(
            !run.delivered.isOver, .endsComplete, "run \(run.id) is over, but \(known.id) is still \(known.state)")
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

    /// Checks that the core lists an app as long as anything of it is left, and no longer.
    func verify(_ app: Int, _ view: AppView?, _ model: CoreModel, _ findings: inout Findings) {
        let known = model.apps[app]
        let isLeft = known.isRegistered || known.run != nil
        findings.check(
            (view != nil) == isLeft, .stateIsBounded,
            isLeft
                ? "\(known.id) is removed while it is \(known.state)"
                : "\(known.id) has neither a manifest nor a process, but is still listed")
    }
}
