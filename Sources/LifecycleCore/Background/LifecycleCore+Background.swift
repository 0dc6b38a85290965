/// Into the background, and what keeps an app running there (L16 … L18, L21).
extension LifecycleCore {
    /// From launching (L3: a background launch is notified too) or the foreground.
    mutating func enterBackground(_ index: AppIndex, _ reason: StateReason, _ now: Instant) {
        if !isDeferred(index) { leaveForegroundSlot(index) }
        let hasScenes = self[run: index].hasScenes
        notifyScenes(index)
        if case .foreground(let foreground)? = apps[index].execution {
            cancel(index, foreground.watchdog)
            resignActive(index, reason, now)
        }
        dropInterruptions(index)
        startBudget(index, apps[index].policy.backgroundBudget, now)
        continueTasks(index, now)
        endIdleHint(index)
        if !hasScenes { askForSnapshot(index, of: .main) }
        notify(index, .didEnterBackground)
        if self[run: index].assertions.hasWakes { makeTimeForWake(index, now) }
        if isUnrequestedTimeUsedUp(index, now) { endTasksWithoutTime(index) }
        let deadline = begin(index, .background, apps[index].policy.backgroundDeadline, now)
        change(index, to: .enteringBackground(EnteringBackground(deadline: deadline)), reason, now)
        addHook(index, Hook(.enterBackground, entering: .background, reason), now)
        // A process that has stopped itself has given its answer (L17).
        if self[run: index].isStopped { answeredBackground(index, now) }
    }

    /// L21: the clock of the budget starts when the app enters the background, and runs until it is suspended. `time`: `nil`
    /// is unlimited. It does not run while a mode keeps the app awake (L28).
    mutating func startBudget(_ index: AppIndex, _ time: Duration?, isNoticeGiven: Bool = false, _ now: Instant) {
        let deadline = begin(index, .backgroundTime, self[run: index].modes.isEmpty ? time : nil, now)
        self[run: index].budget =
            deadline.map { .counting(.init(deadline: $0, isNoticeGiven: isNoticeGiven)) } ?? .idle
        if deadline == nil { endDoubtfulTasks(index, now) }
    }

    /// How late the daemon may be before the deadlines of an app are moved by it. A notice waits for up to 1 s until the app
    /// takes the signal of the one before.
    static let toleratedDelay = Duration.seconds(1)

    /// The outcome of a notice with a deadline. An app that could not be notified has nothing to finish (L17). If the daemon
    /// did not run when the notice was to be sent, the deadline counts from now.
    mutating func notified(_ index: AppIndex, _ notice: Notice, _ delivered: Bool, _ cpu: Duration, _ now: Instant) {
        self[run: index].cpuAtLastNotice = cpu
        if delivered, let deadline = apps[index].transitionDeadline, deadline.kind == notice.deadlineKind,
            now - deadline.start > Self.toleratedDelay
        {
            deferDeadline(index, deadline, to: now, .noticeDelayed)
        }
        if notice == .didEnterBackground, delivered { setTakesPart(index, now) }
        switch notice {
        case .didEnterBackground where !delivered: answeredBackground(index, now)
        case .willTerminate where !delivered: terminationUndelivered(index, now)
        case .didEnterBackground, .willTerminate, .willResignActive, .willEnterForeground, .didBecomeActive,
            .memoryWarning, .tasksExpiring, .openURL, .withdraw, .willSuspend, .didResume, .scene,
            .sceneClosed, .didDiscardScenes, .takeSnapshot, .takeSceneSnapshot:
            break
        }
    }

    /// It says itself how long it needs to run. A program of `Type=listening` must listen nevertheless.
    mutating func setTakesPart(_ index: AppIndex, _ now: Instant) {
        self[run: index].takesPart = true
        if apps[index].phase != .launching { endStartUp(index, now) }
    }

    /// The app has answered, or a hook has ended. The transition is over when both have.
    mutating func answeredBackground(_ index: AppIndex, _ now: Instant) {
        guard apps[index].phase == .enteringBackground else { return }
        metTransitionDeadline(index, now)
        guard case .enteringBackground(var entering)? = apps[index].execution else { return }
        let mustRun = self[run: index].assertions.hasWakes || !self[run: index].modes.isEmpty
        if hookRuns(index) {
            entering.isAnswered = true
            update(index, .enteringBackground(entering))
            if mustRun { continueIfStopped(index) }
            return
        }
        switch entering.pending {
        case .foreground: if mayEnterForeground(index, now) { return enterForeground(index, .requested, now) }
        case .terminate: return terminate(index, .requested, now)
        case .background, nil: break
        }
        if mustRun { continueIfStopped(index) }
        runInBackground(index, .idle, now)
        askForSnapshot(index, now)
    }

    mutating func runInBackground(_ index: AppIndex, _ reason: StateReason, _ now: Instant) {
        // Interruptions of a way to the foreground that was given up.
        dropInterruptions(index)
        let idleSince = isHeldAwake(index) ? nil : now
        change(index, to: .background(Background(idleSince: idleSince)), reason, now)
    }

    /// The main process stopped itself: the answer to `didEnterBackground` (L17), and worth a report anywhere else.
    mutating func stopped(_ index: AppIndex, _ now: Instant) {
        self[run: index].isStopped = true
        switch apps[index].phase {
        case .enteringBackground: answeredBackground(index, now)
        case .launching, .foreground, .background:
            report(.stoppedItself(apps[index].id, in: apps[index].state))
        case .notRunning, .suspending, .suspended, .waking, .terminating, .ending: break
        }
    }

    // MARK: Assertions begin and end

    /// An assertion began: a suspension that was about to happen, or is under way, is called off.
    mutating func assertionBegan(_ index: AppIndex, _ now: Instant) {
        if apps[index].execution != nil { endIdleHint(index) }
        switch apps[index].execution {
        case .background(var background)?:
            endDrySleep(index, self[run: index].assertions.hasTasks ? .taskBegan : .woken, now)
            background.idleSince = nil
            update(index, .background(background))
            self[run: index].lockHold = nil
            endSleepOfHooks(index, .woken, now)
            endWithdrawal(index)
        case .suspending?, .suspended?: wake(index, pending: nil, for: nil, isUnrequested: true, now)
        case .waking?: cancelUnloading(index)
        case nil, .launching?, .foreground?, .enteringBackground?, .terminating?: break
        }
    }

    /// An assertion ended: after the last one the suspend delay begins (L18).
    mutating func assertionEnded(_ index: AppIndex, _ now: Instant) {
        guard case .background(var background)? = apps[index].execution, background.idleSince == nil,
            !isHeldAwake(index)
        else { return }
        background.idleSince = now
        update(index, .background(background))
    }
}
