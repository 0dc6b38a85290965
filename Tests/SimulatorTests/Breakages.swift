import LifecycleCore
import LifecycleSimulator

extension Breakage {
    static let all: [Breakage] = states + deadlines + ends + memory + requests + absences + time + recovery

    private static let states: [Breakage] = [
        .effects("kills twice", .effectsMakeSense) { effects, _, _ in
            effects.flatMap { effect in
                if case .kill = effect { [effect, effect] } else { [effect] }
            }
        },
        .without("does not say that an app is suspended", .statesAreContinuous) {
            if case .report(.stateChanged(_, _, .suspended, _)) = $0 { true } else { false }
        },
        .answering("takes an app for frozen that was not", .suspendedIsFrozen) {
            if case .freeze(let run, let attempt) = $0 { .run(run, .frozen(attempt: attempt, memory: 1)) } else { nil }
        },
        .without("leaves apps in the foreground throttled", .foregroundRuns) {
            if case .unthrottle = $0 { true } else { false }
        },
        .without("does not continue who has stopped itself", .foregroundRuns) {
            if case .continueStopped = $0 { true } else { false }
        },
        .without("does not throttle", .backgroundIsThrottled) {
            if case .throttle = $0 { true } else { false }
        },
        Breakage(name: "forgets tasks", rule: .suspendedHasNoAssertion) { core, _ in
            Mutant(core: core) { mutant, event, now in
                if case .run(let run, .taskBegan(let name, _)) = event, let id = mutant.core.app(of: run),
                    mutant.core.state(of: id) == .background
                {
                    return [.report(.taskBegan(id, name: name))]
                }
                return mutant.core.handle(event, at: now)
            }
        },
        .policies("suspends late", .suspendedInTime) { $0.suspendDelay += .seconds(3) },
        .policies("suspends early", .suspendedInTime) { $0.suspendDelay /= 2 },
        .without("skips willResignActive", .noticesAreInOrder) {
            if case .notify(_, .willResignActive) = $0 { true } else { false }
        },
        .effects("becomes active twice", .noticesAreInOrder) { effects, _, _ in
            effects.flatMap { effect in
                if case .notify(_, .didBecomeActive) = effect { [effect, effect] } else { [effect] }
            }
        },
        Breakage(name: "ignores the end of an interruption", rule: .interruptionsNest) { core, _ in
            Mutant(core: core) { mutant, event, now in
                if case .requested(let request, let id, .endInterruption) = event,
                    let view = mutant.core.view(of: id, at: now), view.state == .inactive
                {
                    return [.answer(request, .done(.inactive))]
                }
                return mutant.core.handle(event, at: now)
            }
        },
        .events("lets one more into the foreground", .foregroundIsLimited) { event in
            guard case .configured(var policy) = event else { return event }
            policy.foregroundLimit += 1
            return .configured(policy)
        },
        Breakage(name: "does not note that an app is activated again", rule: .longestAgoIsDisplaced) { core, _ in
            Mutant(core: core) { mutant, event, now in
                if case .requested(let request, let id, .activate) = event, mutant.core.state(of: id) == .active {
                    return [.answer(request, .done(.active))]
                }
                return mutant.core.handle(event, at: now)
            }
        },
    ]

    private static let deadlines: [Breakage] = [
        .without("does not say that a deadline was met", .deadlinesArePaired) {
            if case .report(.deadlineMet) = $0 { true } else { false }
        },
        .without("does not look into a missed deadline", .deadlinesAreKept) {
            if case .inspect = $0 { true } else { false }
        },
        .answering("kills without a look", .deadlinesAreFair) {
            guard case .inspect(let run) = $0 else { return nil }
            return .run(run, .inspected(Inspection(traced: false, cpu: .zero, memory: 0)))
        },
        .events("kills what is being debugged", .deadlinesAreFair) { event in
            guard case .run(let run, .inspected(var inspection)) = event else { return event }
            inspection.traced = false
            return .run(run, .inspected(inspection))
        },
        .policies("knows no budget", .budgetIsKept) { $0.backgroundTime = nil },
        .policies("gives a smaller budget", .budgetIsKept) { $0.backgroundTime = $0.backgroundTime.map { $0 / 2 } },
        .without("does not announce the budget's end", .expirationIsAnnounced) {
            if case .notify(_, .tasksExpiring) = $0 { true } else { false }
        },
    ]

    private static let ends: [Breakage] = [
        .without("writes no receipt", .everyEndHasAReceipt) {
            if case .writeReceipt = $0 { true } else { false }
        },
        .effects("lies about the exit", .receiptsAreTrue) { effects, _, _ in
            effects.map { effect in
                guard case .writeReceipt(var receipt) = effect else { return effect }
                receipt.exit = .exited(77)
                return .writeReceipt(receipt)
            }
        },
        .effects("blames the watchdog", .receiptsAreTrue) { effects, _, _ in
            effects.map { effect in
                guard case .writeReceipt(var receipt) = effect, receipt.namespace == .exit else { return effect }
                receipt.namespace = .watchdog
                receipt.code = Receipt.Code.missedDeadline
                return .writeReceipt(receipt)
            }
        },
        .events("does not hear that an app is gone", .endsComplete) { event in
            if case .run(_, .emptied) = event { nil } else { event }
        },
        .events("does not hear that a wake is completed", .wakesAreCompleted) { event in
            if case .run(_, .wakeCompleted) = event { nil } else { event }
        },
        .effects("launches again at once", .relaunchesWait) { effects, _, _ in
            effects.map { effect in
                guard case .report(.relaunchScheduled(let id, after: _, let deaths)) = effect else { return effect }
                return .report(.relaunchScheduled(id, after: .zero, deaths: deaths))
            }
        },
        Breakage(name: "forgets that an app was asked to end", rule: .endedStaysEnded) { core, _ in
            Mutant(core: core) { mutant, event, now in
                if case .requested(let request, let id, .terminate) = event, mutant.core.run(of: id) != nil {
                    return [.answer(request, .superseded(by: .background))]
                }
                return mutant.core.handle(event, at: now)
            }
        },
        .effects("kills who is to be told", .endsAreGentle) { effects, event, _ in
            guard case .requested(_, _, .terminate) = event else { return effects }
            return effects.map { effect in
                if case .notify(let run, .willTerminate) = effect { .kill(run) } else { effect }
            }
        },
    ]

    private static let memory: [Breakage] = [
        .policies("turns priorities round", .jetsamKeepsOrder) { $0.jetsamPriority = -$0.jetsamPriority },
        .events("goes by age where it should go by size", .jetsamKeepsOrder) { event in
            guard case .configured(var policy) = event else { return event }
            policy.jetsamOrder = policy.jetsamOrder == .largest ? .lru : .largest
            return .configured(policy)
        },
        .events("takes a wrong size for an app's", .statesAreContinuous) { event in
            guard case .run(let run, .frozen(let attempt, let memory)) = event else { return event }
            return .run(run, .frozen(attempt: attempt, memory: memory / 2))
        },
        .effects("takes two", .jetsamTakesOne) { effects, event, mutant in
            guard case .memoryMeasured = event,
                let place = effects.firstIndex(where: { if case .kill = $0 { true } else { false } }),
                case .kill(let victim) = effects[place],
                let other = mutant.running.first(where: { $0 != victim && mutant.core.app(of: $0) != nil })
            else { return effects }
            return effects[...place] + [.kill(other)] + effects[(place + 1)...]
        },
        .events("sees plenty of memory", .jetsamActs) { event in
            guard case .memoryMeasured(var reading) = event else { return event }
            reading.available = reading.total
            return .memoryMeasured(reading)
        },
        .effects("warns twice", .warningsAreRare) { effects, _, _ in
            effects.flatMap { effect in
                if case .notify(_, .memoryWarning) = effect { [effect, effect] } else { [effect] }
            }
        },
        .effects("warns the suspended", .suspendedIsNotWarned) { effects, _, mutant in
            guard let suspended = mutant.suspended.first else { return effects }
            return effects.flatMap { effect in
                guard case .notify(_, .memoryWarning(let level)) = effect else { return [effect] }
                return [effect, .notify(suspended, .memoryWarning(level))]
            }
        },
    ]

    private static let requests: [Breakage] = [
        .effects("answers twice", .requestsAreAnsweredOnce) { effects, _, _ in
            effects.flatMap { effect in
                if case .answer = effect { [effect, effect] } else { [effect] }
            }
        },
        .without("does not answer", .answersAreTrue) {
            if case .answer(_, .done) = $0 { true } else { false }
        },
        .effects("says what is not so", .answersAreTrue) { effects, _, _ in
            effects.map { effect in
                if case .answer(let request, .done(.active)) = effect {
                    .answer(request, .done(.suspended))
                } else {
                    effect
                }
            }
        },
        .without("loses notifications", .notificationsAreNews) {
            if case .deliver = $0 { true } else { false }
        },
        .effects("delivers twice", .notificationsAreNews) { effects, _, _ in
            effects.flatMap { effect in
                if case .deliver = effect { [effect, effect] } else { [effect] }
            }
        },
        .events("keeps apps whose manifests are gone", .bookkeepingIsBounded) { event in
            if case .unregistered = event { nil } else { event }
        },
    ]

    private static let absences: [Breakage] = [
        .events("stays in the foreground of a locked screen", .absenceEmptiesForeground) { event in
            if case .locked = event { nil } else { event }
        },
        .events("does not hear that the machine wants to sleep", .absenceEmptiesForeground) { event in
            if case .sleepRequested = event { nil } else { event }
        },
        .events("does not hear that the screen is unlocked", .absenceEndsInForeground) { event in
            if case .unlocked = event { nil } else { event }
        },
        .without("does not allow sleep", .sleepIsAllowedInTime) {
            if case .allowSleep = $0 { true } else { false }
        },
        .effects("allows sleep at once", .sleepIsAllowedInTime) { effects, event, _ in
            guard case .sleepRequested = event else { return effects.filter { $0 != .allowSleep } }
            return effects.filter { $0 != .allowSleep } + [.allowSleep]
        },
        .policies("says nothing of protected data", .protectedDataIsTold) { $0.usesProtectedData = false },
    ]

    private static let time: [Breakage] = [
        Breakage(name: "asks for a time that has passed", rule: .timeGoesOn) { core, _ in
            Mutant(
                core: core, handling: { mutant, event, now in mutant.core.handle(event, at: now) },
                changesDeadline: { next, now in next.map { _ in now } })
        },
        Breakage(name: "does something else the second time", rule: .sameEventsSameEffects) { core, number in
            Mutant(core: core) { mutant, event, now in
                mutant.count += 1
                let effects = mutant.core.handle(event, at: now)
                return number == 1 && mutant.count > 100 ? effects.reversed() : effects
            }
        },
        .events("never hears that a freeze is done", .everythingComesToRest) { event in
            if case .run(_, .frozen) = event { nil } else { event }
        },
    ]

    private static let recovery: [Breakage] = [
        Breakage(name: "makes up a task when it is recovered", rule: .recoveryIsExact) { core, _ in
            Mutant(
                core: core, handling: { mutant, event, now in mutant.core.handle(event, at: now) },
                recovering: { mutant in
                    guard let run = mutant.core.runIDs.first else { return }
                    _ = mutant.core.handle(.run(run, .taskBegan(name: "never begun", owner: 1)), at: mutant.now)
                })
        },
        .events("takes all for heard", .unheardAreSpared) { event in
            guard case .run(let run, .reattached(_, let late)) = event else { return event }
            return .run(run, .reattached(messagesKept: true, noticesDelayed: late))
        },
        .events("does not ask again for what was under way", .deadlinesAreFair) { event in
            if case .run(_, .reattached) = event { nil } else { event }
        },
        .events("lets a deadline count before the app was told", .deadlinesAreFair) { event in
            guard case .run(let run, .reattached(let heard, _)) = event else { return event }
            return .run(run, .reattached(messagesKept: heard, noticesDelayed: false))
        },
        .events("waits for those who went with the daemon", .requestsAreAnsweredOnce) { event in
            if case .recovered = event { nil } else { event }
        },
    ]
}
