/// What the core wants done: a value in the imperative. An outcome comes back as an `Event`.
///
/// What is done with a run is in the folder of its topic, beside the events.
package enum Effect: Hashable, Sendable {
    /// Something is done with one run of one app.
    case run(RunID, RunEffect)

    // MARK: Launches and ends

    /// → `spawned`, then `executed` or `spawnFailed`; and, unless it failed, in the end `exited` and `emptied`.
    case spawn(AppID, RunID, Launch)
    /// Records how often the app was launched (L9).
    case recordLaunch(AppID, count: Int)
    indirect case writeReceipt(Receipt)
    /// L11, L34, L42.
    case dropRestorationState(AppID, DroppedState = .restoration)
    /// The app was a transient instance, and the core knows it no longer. Comes after everything else about it.
    case removeInstance(AppID)

    // MARK: Clients

    /// The request is a push, or asks for another wake, and got this number. Comes once, before its answer.
    case identify(RequestID, event: UInt64)
    case answer(RequestID, Answer)
    case report(Report)

    // MARK: What wakes an app

    case sockets(AppID, SocketEffect)
    /// The timers of an app elapse at other times now (`LifecycleCore.timerState`). → `timer`, when they do.
    case scheduleTimers(AppID)
    /// What the app wants to be notified of while it has a process (L33); empty: nothing any more. → `observed`, after the first
    /// reading and each change.
    case subscribe(AppID, NotificationKinds)

    // MARK: The machine

    /// → `memoryMeasured`, with the sizes of all apps that are not suspended, and of the suspended ones that are the next
    /// candidates (`LifecycleCore.memoryView`): the size of those changes when their pages are swapped.
    case measureMemory
    /// After `sleepRequested`: no app is in the foreground, and every app has answered that it left it (L15).
    case allowSleep
    /// After `shutdownRequested`: all apps have ended.
    case finish
}

/// What can be done with one run, by topic.
package enum RunEffect: Hashable, Sendable {
    /// Sends a notice. → `notified` for the notices with a deadline (`Notice.isAnswered`).
    case notify(Notice)
    /// Delivers notifications (L32).
    case deliver([Notification])
    /// Logs a warning about what the app said or does.
    case warn(AppWarning)
    /// Sends SIGKILL to all processes of the run. → `exited`, `emptied`.
    case kill
    /// Sends SIGCONT to a main process that stopped itself.
    case continueStopped
    case deadline(DeadlineEffect)
    case suspension(SuspensionEffect)
    case traffic(TrafficEffect)
    case processor(ProcessorEffect)
    case hook(HookEffect)
    case memory(RunMemoryEffect)
}

/// How and why an app is launched (L6, L9).
package struct Launch: Hashable, Sendable {
    package var state: LaunchState
    package var reason: LaunchReason
    package var url: String?
    package var isFirst = false
    /// No user asked for it: the daemon relaunches the app, or an app asked (L53).
    package var isUnrequested = false
    /// Variables for this launch alone, as `NAME=value`. They override those of the manifest.
    package var environment: [String] = []

    /// The longest URL, in bytes.
    package static let maximumURLBytes = 8 << 10
    /// The most variables of a launch, and the most bytes of all together.
    package static let maximumVariables = 64
    package static let maximumVariableBytes = 16 << 10

    package init(
        state: LaunchState, reason: LaunchReason, url: String? = nil, isUnrequested: Bool = false,
        environment: [String] = []
    ) {
        self.state = state
        self.reason = reason
        self.url = url
        self.isUnrequested = isUnrequested
        self.environment = environment
    }
}

/// The states as users see them.
package enum AppState: String, CaseIterable, Hashable, Sendable {
    case notRunning, launching, inactive, active, background, suspended, terminating
}

/// What the core answers to a request.
package enum Answer: Hashable, Sendable {
    /// The request is carried out. The app's state.
    case done(AppState)
    case refused(Refusal)
    /// A later request asked for something else: the state that it asked for, which the app may not have yet.
    case superseded(by: AppState)
    /// The app ended instead.
    indirect case ended(Receipt)
    /// A simulated memory level was carried out. The app that it killed, if any.
    case simulated(victim: AppID?)
}

/// What an app said that has no effect, or what it does that its user hardly wants.
package enum AppWarning: Hashable, Sendable {
    /// It ended a task, and none of this name is open.
    case taskNotOpen(name: String)
    /// It reported the progress of a task, and none of this name is open.
    case progressNotOpen(name: String)
    /// It began a mode that its manifest does not declare, or that no app asserts, or it ends.
    case modeRefused(BackgroundModes)
    /// It asserts a mode that it does not use, as a service says that would have to know.
    case modeUnused(BackgroundModes)
    /// It began one scene more than an app may have, or is a worker (L34).
    case sceneRefused(SceneID)
    /// It ended a scene that it does not have, or its only one.
    case sceneNotOpen(SceneID)
    /// It completed a wake with a number that no wake has had.
    case unknownWake(id: UInt64)
    /// A worker was suspended, and nothing but a request wakes it (L51). Once in a run.
    case onlyRequestsWake
}

/// Why a request is refused.
package enum Refusal: Hashable, Sendable {
    case unknownApp
    case notRunning
    /// The request needs a process that is still to be launched, and the app has one.
    case running
    /// The app runs and has no connection that handles `openURL` (L8).
    case opensNoURLs
    /// The app is ending.
    case ending
    /// Only an app in the foreground can be interrupted.
    case notInForeground
    case notInterrupted
    /// The manifest does not name the mode.
    case modeNotDeclared(String)
    /// No task of this name is open.
    case noTask(String)
    /// The app has no such scene, or does not create one on request (L34).
    case noScene(SceneID)
    /// The app has no such scene that could be closed.
    case noSuchScene(SceneID)
    /// It is the only one, with which each process begins.
    case lastScene
    /// L11.
    case launchPostponed(by: Duration)
    /// L53: the background time of the app that no user asked for is used up. How long it takes until there is some again.
    case backgroundTimeUsedUp(for: Duration)
    /// L53: an app that is not in the foreground asked to bring an app to the foreground.
    case requesterNotInForeground
    case shuttingDown
    /// A limit was reached. The text names it.
    case tooMany(String)
}

/// What has a deadline.
package enum DeadlineKind: String, CaseIterable, Hashable, Sendable {
    /// L7.
    case launch
    /// L16.
    case background
    /// L46.
    case terminate
    /// L23.
    case backgroundTime
    /// L26, L30.
    case wake
    /// `WatchdogSec=`.
    case watchdog
    /// To run again after the thaw.
    case thaw
}

/// What happened, for observers: the journal, D-Bus, metrics. `wake`: the number of the wake whose deadline it is, which the app may
/// name (L26); 0: the deadline is no wake's, or the wake began in a release in which wakes had no numbers.
package enum Report: Hashable, Sendable {
    case stateChanged(AppID, from: AppState, to: AppState, reason: StateReason)
    case deadlineStarted(AppID, DeadlineKind, Duration, wake: UInt64 = 0)
    case deadlineExtended(AppID, DeadlineKind, by: Duration)
    /// The app got no processor for this time: it is added to the deadline (L48).
    case deadlineCredited(AppID, DeadlineKind, by: Duration)
    case deadlineMet(AppID, DeadlineKind, used: Duration, wake: UInt64 = 0)
    /// The app ended, or a request changed what it does, before the deadline.
    case deadlineCancelled(AppID, DeadlineKind, wake: UInt64 = 0)
    case deadlineMissed(AppID, DeadlineKind, wake: UInt64 = 0)
    /// The deadline starts again.
    case deadlineDeferred(AppID, DeadlineKind, DeferralCause, wake: UInt64 = 0)
    case taskBegan(AppID, name: String)
    /// `isCancelled`: a user had cancelled it.
    case taskEnded(AppID, name: String, isCancelled: Bool = false)
    case taskRefused(AppID, name: String)
    /// L28: the app begins or ends a mode.
    case modeBegan(AppID, BackgroundModes)
    case modeEnded(AppID, BackgroundModes)
    /// Of an app that has more than the scene `main` (L34).
    case sceneChanged(AppID, SceneID, from: SceneState, to: SceneState)
    /// L22.
    case tasksExpiring(AppID, names: [String])
    /// The app has reported how far a task is (L21). At most once in 100 ms for each task.
    indirect case taskProgressed(AppID, name: String, TaskProgress)
    /// A continued task is limited from now on, or a user cancelled a task (L21).
    case taskExpires(AppID, name: String, TaskExpiry)
    case freezeTakesLong(AppID)
    /// Processes of the app survive SIGKILL.
    case killTakesLong(AppID)
    case stoppedItself(AppID, in: AppState)
    case wakeCompleted(AppID, WakeResult, wake: UInt64 = 0)
    case relaunchScheduled(AppID, after: Duration, deaths: Int)
    /// Jetsam ended the app, and there is no space for its last footprint yet, in bytes: it comes back when there is.
    case memoryAwaited(AppID, UInt64)
    /// L53: no more than `limit` of background time in an hour is allowed that no user asked for.
    case unrequestedTimeUsedUp(AppID, limit: Duration)
    case memoryLevelChanged(MemoryLevel, MemoryCause)
    /// So many bytes of a suspended app were pushed out to swap (L37).
    case memoryReclaimed(AppID, UInt64)
    /// Input woke a suspended app (L50).
    indirect case inputArrived(AppID, Input)
    /// Input at some descriptors of the suspended app does not wake it (L50). Once for each different watch of a run.
    indirect case inputNotWatched(AppID, InputWatch)
    /// The app was woken soon after each of its last suspensions: it stays awake for this time.
    case wokenTooOften(AppID, staysAwake: Duration)
    /// The app holds file locks and is not suspended yet (L43). `isSuspended`: it was, after a bound.
    indirect case locksHeld(AppID, FileLocks, isSuspended: Bool)
    /// The app has used more than half of the processor time that it may use in the background (L44).
    indirect case processorUseHigh(AppID, BackgroundUse)
    /// The app has used more than that, and gets less of the processor until it uses less (L44).
    indirect case processorThrottled(AppID, BackgroundUse)
    case processorThrottleEnded(AppID)
    /// Connections that waited for a launch of the app were reset, after this time (L11).
    case connectionsRejected(AppID, after: Duration)
    /// L58: with `Suspend=dry-run`, the app would be suspended now, and would not be any more.
    case wouldSuspend(AppID)
    indirect case wouldResume(AppID, DryRunResult)
    /// A command of a hook failed (L57).
    indirect case hookFailed(AppID, HookKind, HookOutcome)
    /// A hook was killed after this time (L57).
    case hookKilled(AppID, HookKind, after: Duration)
    /// `ExecBeforeSuspend=` has refused the suspension: it is run once more before the next one (L57).
    case suspensionRefused(AppID)
    indirect case ended(Receipt)
}

/// Why an app changed its state. The raw values are the words of the control interface and of the journal. The positions of the
/// cases are saved: new ones go to the end.
package enum StateReason: String, CaseIterable, Hashable, Sendable {
    case launched, ready, requested, displaced, interrupted, interruptionEnded, idle, woken, ended, jetsam
    case taskBegan, missedDeadline, tooManyTasks, exitsOnSuspend, shutdown
    /// A process outside the daemon sent SIGCONT to a suspended app (process-group mode).
    case continued
    /// L15.
    case sleep = "beforeSleep"
    case locked, awoke, unlocked
    /// L44.
    case cpuLimit
    /// It used a GPU in the background (L43).
    case gpuUsed
    /// `UnloadAfterSec=`: it was suspended for so long that it is ended.
    case unloaded
    /// A timer of it was due (L51).
    case timer
}

/// Why a deadline starts again.
package enum DeferralCause: String, CaseIterable, Hashable, Sendable {
    /// A debugger is attached (L48).
    case debuggerAttached
    /// There was no daemon for a time.
    case daemonRestarted
    /// The daemon did not run in time to send the notice from which the deadline counts.
    case noticeDelayed
}

/// What caused the machine's memory level.
package enum MemoryCause: String, CaseIterable, Hashable, Sendable {
    case budget, available, pressure, simulated
    /// What programs can allocate below the tightest limit: of a container, or of the service (`MemoryMax=`).
    case limit
}

/// What is dropped of what an app stored for its next launch.
package enum DroppedState: Hashable, Sendable {
    /// The restoration state and the snapshot, and those of its scenes.
    case restoration
    /// All descriptors.
    case everything
    /// The restoration state and the snapshot of one scene.
    case scene(SceneID)
}
