/// The rules that must hold after every event, in any order of events.
package enum Rule: String, CaseIterable, Sendable {
    case effectsAreValid = "each effect is valid for the events that the core has received"
    case statesAreContinuous = "each state change starts from the last state, and views agree (L4)"
    case transitionsAreLegal = "each state change is an arrow of the state diagram (L4)"
    case suspendedIsFrozen = "a suspended app is frozen (L1)"
    case continuedIsFrozenAgain = "a suspended app that a process outside the daemon has continued is frozen again (L1)"
    case foregroundRuns = "an app in the foreground is neither frozen nor throttled (L19)"
    case backgroundIsThrottled =
        "an app in the background that works for itself is throttled once it has answered (L19)"
    case wakesRunFreely = "an app that is awake for a request from outside every app is not throttled (L19)"
    case suspendedHasNoAssertion = "a suspended app has no open task or wake (L18)"
    case dryRunFreezesNothing = "an app with Suspend=no or Suspend=dry-run is not frozen (L58)"
    case suspendedInTime = "an app is frozen `SuspendDelaySec=` after its last assertion ended (L18)"
    case snapshotsAreAskedFor =
        "an app that handles it is asked for a snapshot before it is suspended, and no other app is (L18)"
    case startUpIsAwaited =
        "a program that takes no part is not suspended before it listens, is idle, or `StartupSec=` is over (L18)"
    case thawsHaveACause = "a frozen app is thawed only for a request, a wake or a task (L1)"
    case noticesAreInOrder = "notices are sent in order (L3)"
    case deadlinesArePaired = "a deadline that starts is met, missed or cancelled once"
    case deadlinesAreKept = "the app is inspected when its deadline has passed (L7, L16)"
    case deadlinesAreFair =
        "a deadline is missed only after its time and without a debugger, and then the app is killed"
    case answersInTimeCount = "no app is killed for an answer that it gave before its deadline (L48)"
    case starvationIsCredited =
        "time without a processor is added to the deadlines to launch, enter the background and end, up to 20s (L48)"
    case launchesMeetDeadlines =
        "launches at once are complete in the time that their work takes and one deadline, and none is killed (L52)"
    case everyEndHasAReceipt = "each end has one receipt, each receipt has an end (L45)"
    case receiptsAreTrue = "a receipt describes the actual end (L45)"
    case endsComplete = "an app without processes is not running (L47)"
    case budgetIsKept = "no app runs in the background for longer than its budget (L21)"
    case expirationIsNotified = "no app is killed at the end of its budget without a notice (L22)"
    case unrequestedTimeIsLimited =
        "an app runs in the background for no more than BackgroundTimePerHourSec= in an hour, unless a user asked for it (L53)"
    case foregroundNeedsUser = "an app that is not in the foreground brings no app to the foreground (L53)"
    case interruptionsNest = "an app is active when its last interruption has ended (L13)"
    case tiedInterruptionsEnd = "an interruption that is tied to its requester ends when that disconnects (L13)"
    case relaunchesWait = "an app that ended early is not relaunched immediately (L11)"
    case wantedAppsRun =
        "an app that LaunchAtStart= or Relaunch=always keeps running is launched, also after it ended by itself (L11)"
    case takenAppsReturn =
        "an app that LaunchAtStart= or Relaunch=always keeps running is launched after jetsam, once there is space (L11)"
    case returnsHaveSpace =
        "an app comes back after jetsam only if there is space for it above the thresholds of warnings (L38, L49)"
    case homeIsInFront = "the home app is in the foreground, or on the way there, if no other app is (L49)"
    case restorationStateIsKept =
        "the restoration state is dropped only if the app is removed or two executed programs died while launching (L11)"
    case endedStaysEnded = "an app that was asked to end is not relaunched by itself (L11)"
    case runningAppsAreNotifiedOfEnd =
        "running apps are notified before they are killed, suspended apps are not (L40, L46)"
    case remainingAreAwaited =
        "processes that were notified of their end have the rest of the deadline after the main process (L46)"
    case suspendedAreNotifiedOfEnd =
        "a suspended app is notified of its end if it takes no part, and not otherwise, unless its manifest decides (L46)"
    case shutdownIsInSteps = "one event of a shutdown ends a limited number of apps; the others follow (L46)"
    case wakesAreCompleted = "an app that has completed its wake is not killed for it (L30)"
    case unreadWakesAreExcused = "an app is not killed for a push that could not be written to its inbox (L30)"
    case wakesEndAlone = "the completion of a wake ends no other wake (L26)"
    case foregroundIsLimited = "the number of apps in the foreground is at most `ForegroundLimit=` (L12)"
    case scenesFollowApps = "an app is in the foreground if and only if one of its scenes is (L34)"
    case leastRecentIsDisplaced = "the app that was activated longest ago is displaced (L12)"
    case absenceEmptiesForeground = "no app is in the foreground while the machine sleeps or is locked (L15)"
    case absenceEndsInForeground = "an app that left the foreground for sleep or the lock screen returns to it (L15)"
    case sleepIsAllowedInTime = "sleep is allowed once, when every app has left the foreground and answered (L15)"
    case protectedDataIsNotified = "apps are notified before their protected data becomes unavailable (L15)"
    case jetsamKeepsOrder = "jetsam kills the first app in the kill order (L38)"
    case kernelAgrees = "the order of the kernel's OOM killer is that of L38: suspended, background, inactive, active"
    case victimsAreNecessary =
        "an app is killed for memory only if those killed before it do not give back what is missing (L39)"
    case plentyKillsNothing = "no app is killed for memory while more than a quarter of it is available (L35)"
    case triggersOnlyMeasure = "a stall makes the daemon measure; it kills no app by itself (L39)"
    case activeIsLast =
        "an active app is killed for memory only at the second look, a second after the first, when no other app is left (L38)"
    case warningComesFirst =
        "running apps have a second to answer a warning before an app is killed, unless memory is filled too fast (L35)"
    case limitsAreKept = "an app that was measured over MemoryMax= or SuspendedMemoryMax= is killed, and no other (L41)"
    case jetsamActs = "jetsam kills as many apps as give back what is missing (L39)"
    case warningsAreLimited = "an app gets at most one warning of each level in 25s (L36)"
    case suspendedIsNotWarned = "suspended apps get no memory warning (L36)"
    case requestsAreAnsweredOnce = "each request has one answer (L5)"
    case endsAreNotRefused =
        "a request to end an app that has a process is carried out, however many requests wait (L42, L46)"
    case endingAppsAreWoken =
        "a push or a wake is not refused because the app is ending: it is launched after its end (L5)"
    case answersAreTrue = "an answer describes the actual state"
    case notificationsAreLatest =
        "each delivered notification is the latest of its kind and not a repetition (L31, L32)"
    case stateIsBounded = "all state that an app can make grow is bounded (L27)"
    case dueWorkIsDone = "no timer is due any more after it was handled"
    case sameEventsSameEffects = "the same events have the same effects"
    case recoveryIsExact = "a recovered core equals the core that was lost"
    case possibleAnswersAreExcused = "no app is killed for an answer that it may have given while there was no daemon"
    case inputWakes =
        "no suspended app that wakes on traffic has input at or above its threshold for longer than a moment (L50)"
    case watchesEndFirst =
        "each suspended app is watched, and no watch outlives a thaw, a kill, or the turn of an end (L50)"
    case turnsAreBounded = "input at one descriptor causes a limited number of effects (L50)"
    case burstsAreBounded =
        "input that wakes no app causes nothing, however many descriptors of an app have some (L50)"
    case peersAreDrained =
        "a suspended app with `Traffic=no` is woken for a local peer that waits, while it has background time left (L50)"
    case timersWake =
        "a timer or event descriptor that becomes readable wakes its app, while that has background time left (L50)"
    case drainsAreCounted =
        "an app is woken for itself, or for a local peer only, within its background time, and that is counted (L53)"
    case blindAppsAreAwake =
        "an app whose descriptors cannot be watched is thawed and not suspended again, also by a new daemon (L50)"
    case blindAppsAreShown = "what cannot be watched is reported and shown (L50)"
    case trafficWakesEnd =
        "a wake by input ends two looks after the last work, after 30 s at most, and without a kill (L50)"
    case reloadsTakeEffect = "another `Role=` or `IdleSec=` applies to an app that runs (L49, L51)"
    case workKeepsAwake = "no worker is suspended, and no wake by input ends, while there is something to do (L51)"
    case frozenWaitsAreWatched =
        "a worker that is in a call which cannot be watched when it is frozen is thawed at once (L51)"
    case ownTimersAreServed = "a timer of 5 s or more of a worker is at most 1 s late (L51)"
    case idleIsSuspended = "a worker is suspended two looks after its last work (L51)"
    case hintsSuspend = "a worker that has nothing to do and says so is suspended without waiting for IdleSec= (L51)"
    case looksAreRare = "an app is looked at once in `IdleSec=`, and not while it is suspended (L51)"
    case quickTurnsAreBounded =
        "an app that is woken within a second of its last 3 suspensions stays awake for 2 s, 4 s … 5 min, and no longer (L50)"
    case workersRunInBackground =
        "a worker is never in the foreground, has no background budget and runs at normal weight (L49)"
    case locksAreReleased =
        "an app is suspended with a file lock only if it takes no part, after 60 s; otherwise it is killed (L43)"
    case processorUseIsFair =
        "an app is reported, killed or throttled only for processor time that it has used in the background (L44)"
    case processorUseIsBounded =
        "an app that uses too much processor time in the background is reported, then killed or throttled (L44)"
    case processorLooksAreRare =
        "processor time is measured six times in BackgroundCPUSec=, and only while the app is awake in the background (L44)"
    case throttlesEnd = "an app is throttled until it needs less of the processor, or leaves the background (L44)"
    case socketsAreWatched =
        "held sockets are watched while the app is suspended, or does not run and no client is known to wait, and at no other time (L29)"
    case connectionsAreServed =
        "a connection that is reported launches or wakes its app, unless L11 holds the launch back, and then at the end of that (L11, L29)"
    case rejectionsAreFair =
        "connections are reset only while the app does not run, L11 holds its launch back, and ConnectionWaitSec= is over (L11, L29)"
    case rejectionsComeInTime =
        "no connection waits for longer than ConnectionWaitSec= while L11 holds the launch back (L11, L29)"
    case unloadsAreDue =
        "an app is ended for UnloadAfterSec= when it was suspended for that long, and neither before nor later (L46)"
    case unloadedStayEnded = "an app that was unloaded is not launched again by itself"
    case instancesGo =
        "a transient instance is removed when nothing is left of it that could run it again, and not before (L42)"
    case urlsAreOpened =
        "a URL that is accepted is given once, in order and before the app becomes active, to an app that handles URLs (L8)"
    case suspensionsAreNotified =
        "an app that handles them gets willSuspend before it is frozen, and didResume once when it is thawed (L32)"
    case causesAreTrue = "the causes of becoming active, and of resigning that, are those that they say (L3, L13)"
    case answeredEndsAreImmediate = "an app that has answered willTerminate is killed at once (L46)"
    case hooksRunAwake = "hooks run one at a time, for no timer, and no app is frozen while one runs (L57)"
    case hooksAreBounded = "a hook that is not over in its time is killed, and keeps no app awake for longer (L57)"
    case everythingBecomesIdle = "all apps become idle when no more requests and faults come"
}

/// A violated rule.
package struct Finding: Sendable {
    package let rule: Rule
    package let sentence: String
}

/// The result of all checks. Only the first finding counts, because later ones follow from it.
struct Findings {
    private(set) var first: Finding?
    private(set) var checks = 0

    mutating func check(_ holds: Bool, _ rule: Rule, _ sentence: @autoclosure () -> String) {
        checks += 1
        if !holds, first == nil { first = Finding(rule: rule, sentence: sentence()) }
    }
}
