/// The rules that must hold after every event, in any order of events. Each is something that a user, an app or the administrator
/// of the machine could observe; what only concerns the state of the core is an invariant of it.
package enum Rule: String, CaseIterable, Sendable {
    case invariantsHold = "all invariants of the core hold"
    case effectsAreValid = "each effect is valid for the events that the core has received"
    case suspendedIsFrozen = "a suspended app is frozen (L1)"
    case suspendedInTime =
        "an app is frozen `SuspendDelaySec=` after its last assertion or mode, and never with Suspend=no or dry-run (L18, L28, L58)"
    case idleIsSuspended =
        "a worker is suspended two looks after its last work, and at once if it says that it has nothing to do (L51)"
    case workKeepsAwake =
        "no app is suspended, and no wake by input ends, while there is something to do (L18, L28, L51, L57)"
    case startUpIsAwaited =
        "a program that takes no part is not suspended before it listens, is idle, or `StartupSec=` is over (L18)"
    case thawsHaveACause = "a frozen app is thawed only for a request, a wake or a task (L1)"
    case visibleOnceLaunched =
        "an app is visible only once it has finished launching, and not for a launch into the background (L55)"
    case foregroundRuns = "an app in the foreground is neither frozen, stopped nor throttled (L17, L19)"
    case backgroundIsThrottled =
        "an app in the background that works for itself is throttled, and none that plays audio or is in a call (L19)"
    case deadlinesAreKept = "the app is inspected when its deadline has passed (L7, L16)"
    case deadlinesAreFair =
        "a deadline ends once, and is missed only after its time, without a debugger and with a processor (L48)"
    case answersInTimeCount =
        "no app is killed for an answer that it gave, or may have given, before its deadline (L48)"
    case wakesAreCompleted = "no app is killed for a wake that it has completed, or cannot read (L30)"
    case launchesMeetDeadlines =
        "launches at once are complete in the time that their work takes and one deadline, and none is killed (L52)"
    case everyEndHasAReceipt = "each end has one receipt, each receipt has an end (L45)"
    case receiptsAreTrue = "a receipt describes the actual end (L45)"
    case endsComplete = "an app without processes is not running (L47)"
    case budgetIsKept =
        "no app runs in the background for longer than its budget, or is killed at its end without a notice (L21, L22)"
    case unrequestedTimeIsLimited =
        "an app runs in the background for no more than BackgroundTimePerHourSec= in an hour, unless a user asked for it (L53)"
    case wantedAppsRun =
        "an app that LaunchAtStart= or Relaunch=always keeps running is launched, also after it ended by itself (L11)"
    case homeIsInFront = "the home app is in the foreground, or on the way there, if no other app is (L49)"
    case endedStaysEnded = "an app that was asked to end, or was unloaded, is not relaunched by itself (L11, L46)"
    case appsAreNotifiedOfEnd =
        "apps are notified before they are killed, suspended ones if they take no part or their manifest says so (L40, L46)"
    case essentialEndsLast =
        "an app that others depend on is notified of its end in a shutdown when they have ended (L46)"
    case absenceEmptiesForeground = "no app is in the foreground while the machine sleeps or is locked (L15)"
    case absenceEndsInForeground = "an app that left the foreground for sleep or the lock screen returns to it (L15)"
    case sleepIsAllowedInTime = "sleep is allowed once, when every app has left the foreground and answered (L15)"
    case protectedDataIsNotified = "apps are notified before their protected data becomes unavailable (L15)"
    case jetsamKeepsOrder =
        "no app is killed for memory before one that is suspended, less visible or of a lower priority (L38)"
    case kernelAgrees = "the order of the kernel's OOM killer is that of L38: suspended, background, inactive, active"
    case plentyKillsNothing =
        "no app is killed for memory that was not measured, or of which more than a quarter is available (L35, L39)"
    case jetsamActs = "suspended apps are killed for memory while apps in the foreground need it (L39)"
    case limitsAreKept = "an app that was measured over MemoryMax= is killed (L41)"
    case requestsAreAnsweredOnce = "each request has one answer (L5)"
    case answersAreTrue =
        "an answer describes the actual state, and a request that can be carried out is not refused (L5)"
    case notificationsAreLatest =
        "each event is delivered once and in order, and of each other kind the latest notification (L31, L32)"
    case stateIsBounded = "the core lists an app as long as anything of it is left (L27)"
    case sameEventsSameEffects = "the same events have the same effects"
    case recoveryIsExact = "a recovered core equals the core that was lost"
    case inputWakes =
        "input that wakes a suspended app waits no longer than a moment, the end of a connection no longer than 10 s (L50, L53)"
    case inputCostsLittle =
        "input causes a limited number of effects, none if it wakes no app, and a suspended app is not measured (L50)"
    case frozenThreadsAreWatched =
        "a worker that is frozen with a thread in a call that cannot be watched is thawed at once (L51)"
    case workContinues =
        "a worker sends the pieces of a stream and continues after a blocked write within a second of their time (L51)"
    case ownTimersAreServed = "a timer of 5 s or more of a worker is at most 1 s late (L51)"
    case locksAreReleased =
        "an app is suspended with a file lock only if it takes no part, after 60 s; otherwise it is killed (L43)"
    case processorUseIsBounded =
        "an app is killed or throttled if it uses too much processor time in the background, and only then (L44)"
    case connectionsAreServed = "a client that waits launches or wakes its app, unless L11 holds the launch back (L29)"
    case rejectionsAreFair =
        "connections are reset after ConnectionWaitSec=, and only while L11 holds the launch of the app back (L11, L29)"
    case unloadsAreDue =
        "an app is ended for UnloadAfterSec= when it was suspended for that long, and neither before nor later (L46)"
    case instancesGo =
        "a transient instance is removed when nothing is left of it that could run it again, and not before (L42)"
    case urlsAreOpened =
        "a URL that is accepted is given once, in order and before the app becomes active, to an app that handles URLs (L8)"
    case modesAreReported =
        "each mode is reported when it begins and when its last reason has ended, and no declared one is refused (L28)"
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
