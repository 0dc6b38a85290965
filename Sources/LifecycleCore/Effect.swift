/// What the core wants done. Plain values in the imperative; the outcome of each that has one comes back as an `Event`.
package enum Effect: Hashable, Sendable {
    /// → `spawned`, then `executed` or `spawnFailed`; and, unless it failed, in the end `exited` and `emptied`.
    case spawn(AppID, RunID, Launch)
    /// → `notified` for the notices with a deadline (`Notice.isAnswered`).
    case notify(RunID, Notice)
    /// → `frozen`, whenever it reads so.
    case freeze(RunID, attempt: Int)
    /// → `thawed`.
    case thaw(RunID, attempt: Int)
    /// SIGCONT for a main process that had stopped itself.
    case continueStopped(RunID)
    /// → `inspected`.
    case inspect(RunID)
    /// SIGKILL to everything of the run. → `exited`, `emptied`.
    case kill(RunID)
    /// L19: less for apps in the background.
    case throttle(RunID)
    case unthrottle(RunID)
    /// L32.
    case deliver(RunID, [Notification])
    /// Keeps how often the app was launched (L9).
    case recordLaunch(AppID, count: Int)
    indirect case writeReceipt(Receipt)
    /// L11, L42: what the app kept for its next launch goes.
    case dropRestorationState(AppID)
    case answer(RequestID, Answer)
    case report(Report)
    /// → `memoryMeasured`.
    case measureMemory
    /// After `sleepRequested`: no app is in the foreground, or still to answer that it has left it (L15).
    case allowSleep
    /// After `shutdownRequested`: nothing is left.
    case finish
}

/// How and why an app is launched (L6, L9).
package struct Launch: Hashable, Sendable {
    package var state: LaunchState
    package var reason: LaunchReason
    package var url: String?
    package var isFirst = false

    package init(state: LaunchState, reason: LaunchReason, url: String? = nil) {
        self.state = state
        self.reason = reason
        self.url = url
    }
}

/// What an app is told (L3), in UIKit's words. Launching is told by `execve`.
package enum Notice: Hashable, Sendable {
    case willResignActive
    case didEnterBackground
    case willEnterForeground
    case didBecomeActive
    case willTerminate
    case memoryWarning(MemoryLevel)
    case tasksExpiring

    /// The app has until a deadline to answer.
    package var isAnswered: Bool {
        switch self {
        case .didEnterBackground, .willTerminate: true
        case .willResignActive, .willEnterForeground, .didBecomeActive, .memoryWarning, .tasksExpiring: false
        }
    }
}

/// The states as users see them.
package enum AppState: String, CaseIterable, Hashable, Sendable {
    case notRunning, launching, inactive, active, background, suspended, terminating
}

/// What the core answers to a request.
package enum Answer: Hashable, Sendable {
    /// It came about: the app's state.
    case done(AppState)
    case refused(Refusal)
    /// A later request wanted something else.
    case superseded(by: AppState)
    /// The app ended instead.
    indirect case ended(Receipt)
    /// A simulated memory level was carried out; the app it took, if any.
    case simulated(victim: AppID?)
}

/// Why a request is not carried out.
package enum Refusal: Hashable, Sendable {
    case unknownApp
    case notRunning
    /// What is asked for is for a process to come, and it has one.
    case running
    /// It is on its way out.
    case ending
    /// Only an app in the foreground can be interrupted.
    case notInForeground
    case notInterrupted
    /// The manifest does not name the mode.
    case modeNotDeclared(String)
    /// L11.
    case launchPostponed(by: Duration)
    case shuttingDown
    /// A bound was reached; the sentence says which.
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
    case resume
}

/// News for the journal and for whoever watches.
package enum Report: Hashable, Sendable {
    case stateChanged(AppID, from: AppState, to: AppState, reason: StateReason)
    case deadlineStarted(AppID, DeadlineKind, Duration)
    case deadlineExtended(AppID, DeadlineKind, by: Duration)
    case deadlineMet(AppID, DeadlineKind, used: Duration)
    /// The app ended, or was to do something else, before the deadline.
    case deadlineCancelled(AppID, DeadlineKind)
    case deadlineMissed(AppID, DeadlineKind)
    /// A debugger is attached (L48): the deadline starts anew.
    case deadlineDeferred(AppID, DeadlineKind)
    case taskBegan(AppID, name: String)
    case taskEnded(AppID, name: String)
    case taskRefused(AppID, name: String)
    /// L22.
    case tasksExpiring(AppID, names: [String])
    case freezeTimedOut(AppID)
    /// SIGKILL was sent, and something of the app is still there.
    case killTakesLong(AppID)
    case stoppedItself(AppID, in: AppState)
    case wakeCompleted(AppID, WakeResult)
    case relaunchScheduled(AppID, after: Duration, deaths: Int)
    case memoryLevelChanged(MemoryLevel, MemoryCause)
    indirect case ended(Receipt)
}

/// Why an app changed its state. The raw values are the words of the control interface and of the journal.
package enum StateReason: String, CaseIterable, Hashable, Sendable {
    case launched, ready, requested, displaced, interrupted, interruptionEnded, idle, woken, expired, ended, jetsam
    case taskBegan, missedDeadline, tooManyTasks, exitsOnSuspend, shutdown, freezeTimedOut
    case sleep = "beforeSleep"
    case locked, awoke, unlocked
}

/// What brought the machine to its memory level.
package enum MemoryCause: String, CaseIterable, Hashable, Sendable {
    case budget, available, pressure, simulated
}
