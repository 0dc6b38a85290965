/// Conditions that hold unless the core has a fault, checked where the state changes.
///
/// Tests and debug builds stop at one that does not hold, and check each app after each event that concerns it (`verify`). A released daemon continues, and logs the first one of each location: to end
/// would not repair the state, because the next daemon recovers the same one. A fault that leaves no state to continue with is a
/// `precondition`.
extension LifecycleCore {
    /// The invariants that did not hold, the first of each location.
    package var brokenInvariants: [BrokenInvariant] { invariantLog.broken }

    /// Lets tests and debug builds continue after a broken invariant, too, and has the simulator's released build check each app.
    package mutating func continueAfterBrokenInvariants() {
        (invariantLog.continues, invariantLog.checksApps) = (true, true)
    }

    /// Checks an invariant. `index`: of the app that it is about.
    @inline(__always)
    mutating func invariant(
        _ holds: Bool, _ sentence: StaticString, _ index: AppIndex? = nil, file: StaticString = #fileID,
        line: UInt = #line
    ) {
        if _fastPath(holds) { return }
        broke(sentence, index, file, line)
    }

    @inline(never)
    private mutating func broke(_ sentence: StaticString, _ index: AppIndex?, _ file: StaticString, _ line: UInt) {
        let app = index.map { apps[$0].id }
        let broken = BrokenInvariant(app: app, sentence: "\(sentence)", location: "\(file):\(line)")
        invariantLog.add(broken, file, line)
    }

    // MARK: Notices

    /// Sends a notice to an app. Each one belongs to the state in which it is sent, so that they come in the order of L3.
    mutating func notify(_ index: AppIndex, _ notice: Notice) {
        invariant(mayNotify(index, notice), "a notice is sent in a state to which it does not belong", index)
        effects.append(.run(self[run: index].id, .notify(notice)))
    }

    private func mayNotify(_ index: AppIndex, _ notice: Notice) -> Bool {
        guard let execution = apps[index].execution else { return false }
        switch notice {
        case .willResignActive, .didBecomeActive:
            guard case .foreground(let foreground) = execution else { return false }
            return foreground.isActive == notice.isResignation
        case .didEnterBackground:
            guard case .foreground(let foreground) = execution else { return execution.phase == .launching }
            return !foreground.isActive
        // Also at once when the app enters the background, if it has no background time left, and whenever a user cancels a task.
        case .tasksExpiring: return !execution.isAsleep
        case .willEnterForeground, .takeSnapshot, .withdraw, .willSuspend:
            switch execution.phase {
            case .enteringBackground, .background, .waking: return true
            case .notRunning, .launching, .foreground, .suspending, .suspended, .terminating, .ending: return false
            }
        case .openURL: return execution.phase == .foreground
        case .didResume: return execution.phase == .waking || execution.phase == .background
        // A suspended app could read none of them before its thaw.
        case .memoryWarning, .willTerminate, .scene, .sceneClosed, .didDiscardScenes, .takeSceneSnapshot:
            return execution.phase != .terminating && (!execution.isAsleep || notice.isOfScene)
        }
    }

    // MARK: After each event

    /// Checks an app that an event concerned, once all that follows is up to date. A few comparisons, whatever the app has.
    @inline(__always)
    mutating func verify(_ index: AppIndex) {
        guard let problem = problem(index) else { return }
        invariant(false, problem, index)
    }

    private func problem(_ index: AppIndex) -> StaticString? {
        if apps[index].waiters.count > Self.maximumWaiters { return "more requests wait than may" }
        guard case .running(let running) = apps[index].life else { return nil }
        let stored = running.sharedStorage
        if let problem = boundProblem(stored) { return problem }
        if stored.run.hasScenes,
            let problem = sceneProblem(running.execution, stored, kept: apps[index].keptScenes)
        {
            return problem
        }
        switch running.execution {
        case .foreground(let foreground): return foregroundProblem(index, foreground, stored)
        case .background(let background):
            let isIdle = background.idleSince != nil
            return isIdle == isHeldAwake(index) ? "idle with an assertion, or awake without one" : nil
        case .suspending: return isHeldAwake(index) ? "an app with an assertion is being frozen" : nil
        case .suspended(let suspended):
            if isHeldAwake(index) { return "an app with an assertion is suspended" }
            if stored.run.budget.deadline != nil { return "the background time of a suspended app counts" }
            return suspended.isWatching ? nil : "the descriptors of a suspended app are not watched"
        case .launching, .enteringBackground, .waking, .terminating: return nil
        }
    }

    /// All that an app, its clients or a user can make grow has a limit.
    @inline(__always)
    private func boundProblem(_ stored: RunStorage) -> StaticString? {
        // Not the whole run, which would be copied.
        if stored.run.assertions.all.count > Self.maximumTasks + 1 { return "more tasks are open than may" }
        if stored.run.assertions.laterWakes.count >= Self.maximumWakes { return "more wakes are open than may" }
        if stored.run.interruptions > Self.maximumInterruptions { return "more interruptions are open than may" }
        let hasTied = stored.run.tiedInterruptions.count > stored.run.interruptions
        return hasTied ? "an interruption is tied that is not open" : nil
    }

    private func foregroundProblem(
        _ index: AppIndex, _ foreground: Foreground, _ stored: RunStorage
    ) -> StaticString? {
        if foreground.isActive != (stored.run.interruptions == 0) { return "active and interrupted, or neither" }
        if stored.run.isThrottled { return "an app in the foreground is throttled" }
        if stored.run.budget.deadline != nil { return "the background time of an app in the foreground counts" }
        if stored.run.assertions.hasWakes { return "a wake is open in the foreground" }
        if apps[index].policy.role == .worker { return "a worker is in the foreground" }
        return hasForegroundSlot(index) ? nil : "an app is in the foreground without a slot"
    }

    /// An app is in the foreground if and only if one of its scenes is (L34).
    private func sceneProblem(_ execution: Execution, _ stored: RunStorage, kept: [Scene]?) -> StaticString? {
        guard let scenes = stored.run.scenes else { return nil }
        if scenes.count > Self.maximumScenes { return "more scenes are open than may" }
        if scenes.allSatisfy(\.isClosed) { return "an app has no scene that is open" }
        if let kept, kept.contains(where: { one in scenes.contains { $0.id == one.id } }) {
            return "a scene is connected and kept"
        }
        let most = scenes.map(\.shown).max() ?? .unattached
        let fits =
            switch execution.state {
            case .active: most == .foregroundActive
            case .inactive: most == .foregroundInactive
            case .notRunning, .launching, .background, .suspended, .terminating: most <= .background
            }
        return fits ? nil : "the scenes of an app are not what the app is"
    }

    /// Checks what concerns all apps. A few comparisons.
    @inline(__always)
    mutating func verifyCounts() {
        invariant(
            0 <= visibleCount && visibleCount <= awakeCount && awakeCount <= runningCount,
            "the counts of apps are wrong")
        invariant(isLastSlotWithinLimit, "more apps are in the foreground of a seat than may")
    }

    // MARK: All apps

    /// Checks all apps, and that everything which is derived from their state is up to date. The simulator calls it now and then:
    /// its cost grows with the number of apps.
    package mutating func verifyAll() {
        var counted = (running: 0, awake: 0, visible: 0)
        for index in apps.indices where !apps[index].isRemoved {
            verify(index)
            verifyRanks(index)
            count(apps[index].phase, &counted)
            invariant(indices[apps[index].id] == index, "an app is not found by its ID", index)
            guard let run = apps[index].sharedRunStorage?.run.id else { continue }
            invariant(runs[run.number] == index, "an app is not found by its run", index)
        }
        invariant(counted == (runningCount, awakeCount, visibleCount), "the counts of apps are not up to date")
        for slot in foregroundSlots {
            invariant(
                slotCount(apps[slot.app].seat, slot.role) <= limit(slot.role),
                "too many scenes of a role are in the foreground of a seat")
            invariant(!apps[slot.app].isRemoved, "an app that was removed has a foreground slot")
            let isOfScene = listedScenes(slot.app).contains { $0.id == slot.scene && !$0.isClosed }
            invariant(isOfScene, "a foreground slot has no scene", slot.app)
        }
    }

    private mutating func verifyRanks(_ index: AppIndex) {
        let ranks = ranks(index)
        // A shutdown withdraws what was due for apps that it has not reached yet: their timers come for nothing, and never too late.
        let timer = timers.key(of: index)
        let isEarly = timer.map { key in ranks.timer.map { key < $0 } ?? true } ?? false
        invariant(
            timer == ranks.timer || isShuttingDown && isEarly, "the timer of an app is not up to date", index)
        invariant(
            jetsam.key(of: index) == ranks.jetsam, "the location of an app in the kill order is not up to date", index)
        invariant(launchQueue.key(of: index) == ranks.launch, "the queue of launches is not up to date", index)
        invariant(returnQueue.key(of: index) == ranks.comeback, "the queue of returns is not up to date", index)
        invariant(continuedTasks.key(of: index) == ranks.continued, "the continued tasks are not up to date", index)
    }

    private func count(_ phase: Phase, _ counted: inout (running: Int, awake: Int, visible: Int)) {
        switch phase {
        case .notRunning: return
        case .suspended, .ending: break
        case .foreground, .enteringBackground:
            counted.visible += 1
            counted.awake += 1
        case .launching, .background, .suspending, .waking, .terminating: counted.awake += 1
        }
        counted.running += 1
    }
}

extension Notice {
    fileprivate var isResignation: Bool { if case .willResignActive = self { true } else { false } }
    fileprivate var isOfScene: Bool {
        if case .scene = self { return true }
        if case .sceneClosed = self { return true }
        return false
    }
}

extension Execution {
    fileprivate var isAsleep: Bool { phase == .suspending || phase == .suspended }
}

extension AppState {
    /// Whether an app may change from this state to another in one step (L4).
    func mayBecome(_ next: AppState) -> Bool {
        switch self {
        case .notRunning: next == .launching
        case .launching: next == .inactive || next == .background || next == .terminating
        case .inactive: next == .active || next == .background || next == .terminating
        case .active: next == .inactive || next == .terminating
        case .background: next == .inactive || next == .suspended || next == .terminating
        case .suspended: next == .background || next == .terminating
        case .terminating: next == .notRunning
        }
    }
}
