/// What must hold after every event, whatever happens in which order.
package enum Rule: String, CaseIterable, Sendable {
    case effectsMakeSense = "no effect is senseless, given what the core has been told"
    case statesAreContinuous = "each change of state begins where the last one ended, and views agree (L4)"
    case suspendedIsFrozen = "a suspended app is frozen (L1)"
    case foregroundRuns = "an app in the foreground is thawed, and not throttled (L19)"
    case backgroundIsThrottled = "an app in the background is throttled once it has answered (L19)"
    case suspendedHasNoAssertion = "no suspended app has a task or a wake open (L18)"
    case suspendedInTime = "an app is frozen when its last assertion ended long enough ago (L18)"
    case noticesAreInOrder = "notices come in L3's order"
    case deadlinesArePaired = "a deadline that starts is met, missed or cancelled, once"
    case deadlinesAreKept = "a deadline that has passed is looked into"
    case deadlinesAreFair = "no deadline is missed before its time, with a debugger attached, or without consequence"
    case everyEndHasAReceipt = "every end has one receipt, every receipt an end (L45)"
    case receiptsAreTrue = "a receipt says what happened (L45)"
    case endsComplete = "an app whose processes are all gone is not running (L47)"
    case budgetIsKept = "no app runs in the background beyond its budget (L21)"
    case expirationIsAnnounced = "nobody loses the budget's end without having been told of it (L22)"
    case interruptionsNest = "an app is active when its last interruption has ended (L13)"
    case relaunchesWait = "an app that ended early is not launched again at once (L11)"
    case endedStaysEnded = "who was asked to end is not launched again by itself (L11)"
    case endsAreGentle = "running apps are told to terminate, suspended ones are not (L40, L46)"
    case wakesAreCompleted = "who has completed what it was woken for is not killed for it (L30)"
    case foregroundIsLimited = "no more apps are in the foreground than may be (L12)"
    case longestAgoIsDisplaced = "who was activated longest ago is displaced (L12)"
    case absenceEmptiesForeground = "nobody is in the foreground of a machine that sleeps or is locked (L15)"
    case absenceEndsInForeground = "who left the foreground for sleep or a lock comes back to it (L15)"
    case sleepIsAllowedInTime = "sleep is allowed once, when every app has left the foreground and answered (L15)"
    case protectedDataIsTold = "apps learn that their protected data goes away (L15)"
    case jetsamKeepsOrder = "jetsam takes the first in L38's order"
    case jetsamTakesOne = "jetsam takes one at a time, and measures before the next (L39)"
    case jetsamActs = "jetsam takes somebody when it has to"
    case warningsAreRare = "at most one warning of each level in 25 s (L36)"
    case suspendedIsNotWarned = "suspended apps are not warned (L36)"
    case requestsAreAnsweredOnce = "every request has one answer"
    case answersAreTrue = "an answer says what came about"
    case notificationsAreNews = "notifications are the latest of their kind, and news (L31, L32)"
    case bookkeepingIsBounded = "what an app can make grow has a bound (L27)"
    case timeGoesOn = "what was due is done when its time has come"
    case sameEventsSameEffects = "the same events have the same effects"
    case recoveryIsExact = "a recovered core is what the one that died was"
    case unheardAreSpared = "nobody is ended for what it may have answered while no daemon was there"
    case everythingComesToRest = "once nothing happens any more, everything comes to rest"
}

/// A rule that was broken.
package struct Finding: Sendable {
    package let rule: Rule
    package let sentence: String
}

/// What the checkers have found so far: the first finding is the one that counts, as others follow from it.
struct Findings {
    private(set) var first: Finding?
    private(set) var checks = 0

    mutating func check(_ holds: Bool, _ rule: Rule, _ sentence: @autoclosure () -> String) {
        checks += 1
        if !holds, first == nil { first = Finding(rule: rule, sentence: sentence()) }
    }
}
