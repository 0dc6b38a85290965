import LifecycleCore
import LifecycleSimulator

extension MutantCase {
    static let all: [MutantCase] =
        states + deadlines + backgroundTime + ends + memory + requests + absences + time + recovery + wakes + severities
        + traffic + moreTraffic + processor + sockets + connections + hooks

    private static func isChange(_ effect: Effect, of app: AppID, to state: AppState) -> Bool {
        if case .report(.stateChanged(app, _, state, _)) = effect { true } else { false }
    }

    private static let states: [MutantCase] = [
        .effects("sends each SIGKILL twice", .effectsAreValid) { effects, _, _ in
            effects.flatMap { effect in
                if case .kill = effect { [effect, effect] } else { [effect] }
            }
        },
        .without("does not report that an app is suspended", .statesAreContinuous) {
            switch $0 {
            case .report(.stateChanged(_, _, .suspended, _)), .setOOMClass(_, .suspended): true
            default: false
            }
        },
        .effects("omits the states between two changes of one event", .transitionsAreLegal) { effects, _, _ in
            var merged: [Effect] = []
            for effect in effects {
                if case .report(.stateChanged(let app, let from, let to, let reason)) = effect,
                    let index = merged.firstIndex(where: { isChange($0, of: app, to: from) }),
                    case .report(.stateChanged(_, let start, _, _)) = merged[index], start != to
                {
                    merged[index] = .report(.stateChanged(app, from: start, to: to, reason: reason))
                } else {
                    merged.append(effect)
                }
            }
            return merged
        },
        .answering("assumes that a freeze has succeeded", .suspendedIsFrozen) {
            if case .freeze(let run, let attempt) = $0 { .run(run, .frozen(attempt: attempt, memory: 1)) } else { nil }
        },
        .events("ignores that others continue a suspended app", .continuedIsFrozenAgain) { event in
            if case .run(_, .freezeLost) = event { nil } else { event }
        },
        .without("leaves apps in the foreground throttled", .foregroundRuns) {
            if case .unthrottle = $0 { true } else { false }
        },
        .without("does not continue an app that stopped itself", .foregroundRuns) {
            if case .continueStopped = $0 { true } else { false }
        },
        .without("does not throttle", .backgroundIsThrottled) {
            if case .throttle = $0 { true } else { false }
        },
        .effects("throttles apps that users wake", .wakesRunFreely) { effects, event, _ in
            guard case .requested(_, _, .push, by: .user) = event else { return effects }
            return effects.filter { if case .unthrottle = $0 { false } else { true } }
        },
        .without("leaves suspended apps in the kernel's order as they are", .kernelAgrees) {
            if case .setOOMClass(_, .suspended) = $0 { true } else { false }
        },
        .without("leaves apps that enter the foreground in the kernel's order as they are", .kernelAgrees) {
            if case .setOOMClass(_, .active) = $0 { true } else { false }
        },
        .events("ignores that the kernel killed for memory", .receiptsAreTrue) { event in
            if case .run(_, .outOfMemory) = event { nil } else { event }
        },
        MutantCase(name: "ignores tasks in the background", rule: .suspendedHasNoAssertion) { core, _ in
            Mutant(core: core) { mutant, event, now in
                if case .run(let run, .taskBegan(let name, _)) = event, let id = mutant.core.app(of: run),
                    mutant.core.state(of: id) == .background
                {
                    return [.report(.taskBegan(id, name: name))]
                }
                return mutant.core.handle(event, at: now)
            }
        },
        MutantCase(name: "thaws an app whose freeze takes long", rule: .thawsHaveACause) { core, _ in
            Mutant(core: core) { mutant, event, now in
                mutant.core.handle(event, at: now).flatMap { effect -> [Effect] in
                    guard case .report(.freezeTakesLong(let id)) = effect, let run = mutant.core.run(of: id) else {
                        return [effect]
                    }
                    return [effect, .thaw(run, attempt: mutant.freezes[run] ?? 0)]
                }
            }
        },
        .policies("suspends programs that start up", .startUpIsAwaited) { $0.startUpTime = .zero },
        .policies("freezes apps in a dry run", .dryRunFreezesNothing) { $0.suspension = .yes },
        .policies("suspends too late", .suspendedInTime) { $0.suspendDelay += .seconds(3) },
        .policies("suspends too early", .suspendedInTime) { $0.suspendDelay /= 2 },
        .without("omits willResignActive", .noticesAreInOrder) {
            if case .notify(_, .willResignActive) = $0 { true } else { false }
        },
        .effects("sends didBecomeActive twice", .noticesAreInOrder) { effects, _, _ in
            effects.flatMap { effect in
                if case .notify(_, .didBecomeActive) = effect { [effect, effect] } else { [effect] }
            }
        },
        MutantCase(name: "ignores the end of an interruption", rule: .interruptionsNest) { core, _ in
            Mutant(core: core) { mutant, event, now in
                if case .requested(let request, let id, .endInterruption, by: _) = event,
                    let view = mutant.core.view(of: id, at: now), view.state == .inactive
                {
                    return [.answer(request, .done(.inactive))]
                }
                return mutant.core.handle(event, at: now)
            }
        },
        .events("does not tie an interruption to its client", .tiedInterruptionsEnd) { event in
            guard case .requested(let request, let id, .interruptWhileConnected, let requester) = event else {
                return event
            }
            return .requested(request, id, .interrupt, by: requester)
        },
        .events("allows one more app in the foreground", .foregroundIsLimited) { event in
            guard case .configured(var policy) = event else { return event }
            policy.foregroundLimit += 1
            return .configured(policy)
        },
        MutantCase(name: "ignores a repeated activation", rule: .leastRecentIsDisplaced) { core, _ in
            Mutant(core: core) { mutant, event, now in
                if case .requested(let request, let id, .activate, by: _) = event, mutant.core.state(of: id) == .active
                {
                    return [.answer(request, .done(.active))]
                }
                return mutant.core.handle(event, at: now)
            }
        },
    ]

    private static let deadlines: [MutantCase] = [
        .without("does not report that a deadline was met", .deadlinesArePaired) {
            if case .report(.deadlineMet) = $0 { true } else { false }
        },
        .without("does not inspect an app at its deadline", .deadlinesAreKept) {
            if case .inspect = $0 { true } else { false }
        },
        MutantCase(name: "ignores answers that come while the app is inspected", rule: .answersInTimeCount) { core, _ in
            Mutant(core: core) { mutant, event, now in
                if case .run(let run, let what) = event, mutant.inspecting.contains(run) {
                    switch what {
                    case .ready, .backgroundEntered, .heartbeat: return []
                    default: break
                    }
                }
                return mutant.core.handle(event, at: now)
            }
        },
        .answering("kills without an inspection", .deadlinesAreFair) {
            guard case .inspect(let run) = $0 else { return nil }
            return .run(run, .inspected(Inspection(traced: false, cpu: .zero, memory: 0)))
        },
        .events("kills an app with a debugger attached", .deadlinesAreFair) { event in
            guard case .run(let run, .inspected(var inspection)) = event else { return event }
            inspection.traced = false
            return .run(run, .inspected(inspection))
        },
        .events("counts time without a processor", .starvationIsCredited) { event in
            guard case .run(let run, .inspected(var inspection)) = event else { return event }
            inspection.waited = .zero
            return .run(run, .inspected(inspection))
        },
        .events("launches all apps at once", .launchesMeetDeadlines) { event in
            guard case .configured(var policy) = event else { return event }
            policy.launchesAtOnce = nil
            return .configured(policy)
        },
        .policies("has no background budget", .budgetIsKept) { $0.backgroundTime = nil },
        .policies("halves the background budget", .budgetIsKept) {
            $0.backgroundTime = $0.backgroundTime.map { $0 / 2 }
        },
        .without("does not send tasksExpiring", .expirationIsNotified) {
            if case .notify(_, .tasksExpiring) = $0 { true } else { false }
        },
    ]

    private static let backgroundTime: [MutantCase] = [
        .policies("has no limit of background time in an hour", .unrequestedTimeIsLimited) {
            $0.backgroundTimePerHour = nil
        },
        .events("takes wakes that apps ask for as those of users", .unrequestedTimeIsLimited) { event in
            guard case .requested(let request, let id, let what, by: .app) = event else { return event }
            switch what {
            case .activate, .launch(.foreground, _, _, _): return event
            default: return .requested(request, id, what, by: .user)
            }
        },
        .events("lets apps in the background activate apps", .foregroundNeedsUser) { event in
            guard case .requested(let request, let id, .activate, by: .app) = event else { return event }
            return .requested(request, id, .activate, by: .user)
        },
        .policies("halves the background time of an hour", .unrequestedTimeIsLimited) {
            $0.backgroundTimePerHour = $0.backgroundTimePerHour.map { $0 / 2 }
        },
    ]

    private static let ends: [MutantCase] = [
        MutantCase(name: "ends all apps of a shutdown in one event", rule: .shutdownIsInSteps) { core, _ in
            Mutant(core: core) { mutant, event, now in
                var effects = mutant.core.handle(event, at: now)
                guard case .shutdownRequested = event else { return effects }
                while let next = mutant.core.nextDeadline, next <= now + .milliseconds(5) {
                    effects += mutant.core.handle(.deadlineReached, at: next)
                }
                return effects
            }
        },
        .without("writes no receipt", .everyEndHasAReceipt) {
            if case .writeReceipt = $0 { true } else { false }
        },
        .effects("writes a wrong exit status", .receiptsAreTrue) { effects, _, _ in
            effects.map { effect in
                guard case .writeReceipt(var receipt) = effect else { return effect }
                receipt.exit = .exited(77)
                return .writeReceipt(receipt)
            }
        },
        .effects("writes the size in the middle of the end", .receiptsAreTrue) { effects, _, _ in
            effects.map { effect in
                guard case .writeReceipt(var receipt) = effect else { return effect }
                receipt.memory /= 2
                return .writeReceipt(receipt)
            }
        },
        .effects("attributes an exit to the watchdog", .receiptsAreTrue) { effects, _, _ in
            effects.map { effect in
                guard case .writeReceipt(var receipt) = effect, receipt.namespace == .exit else { return effect }
                receipt.namespace = .watchdog
                receipt.code = Receipt.Code.missedDeadline
                return .writeReceipt(receipt)
            }
        },
        .events("ignores that a cgroup is empty", .endsComplete) { event in
            if case .run(_, .emptied) = event { nil } else { event }
        },
        .events("ignores that a wake is completed", .wakesAreCompleted) { event in
            if case .run(_, .wakeCompleted) = event { nil } else { event }
        },
        .effects("relaunches immediately", .relaunchesWait) { effects, _, _ in
            effects.map { effect in
                guard case .report(.relaunchScheduled(let id, after: _, let deaths)) = effect else { return effect }
                return .report(.relaunchScheduled(id, after: .zero, deaths: deaths))
            }
        },
        .policies("never relaunches", .wantedAppsRun) { $0.relaunch = .no },
        .policies("ignores LaunchAtStart=", .wantedAppsRun) { $0.launchAtStart = nil },
        MutantCase(name: "discards what jetsam ended", rule: .takenAppsReturn) { core, _ in
            Mutant(core: core) { mutant, event, now in
                let effects = mutant.core.handle(event, at: now)
                for case .report(.stateChanged(let id, _, .notRunning, _)) in effects
                where mutant.core.view(of: id, at: now)?.memoryAwaited != nil {
                    _ = mutant.core.handle(.requested(RequestID(.max), id, .terminate), at: now)
                }
                return effects
            }
        },
        .events("lets apps come back without space for them", .returnsHaveSpace) { event in
            guard case .configured(var policy) = event else { return event }
            policy.warningAvailable = .bytes(0)
            return .configured(policy)
        },
        .policies("has no home app", .homeIsInFront) { $0.role = .app },
        .effects("counts failures of execve as deaths while launching", .restorationStateIsKept) { effects, event, _ in
            guard case .run(_, .spawnFailed) = event else { return effects }
            return effects.flatMap { effect in
                if case .writeReceipt(let receipt) = effect {
                    [.dropRestorationState(receipt.app), effect]
                } else {
                    [effect]
                }
            }
        },
        MutantCase(name: "ignores a terminate request", rule: .endedStaysEnded) { core, _ in
            Mutant(core: core) { mutant, event, now in
                if case .requested(let request, let id, .terminate, by: _) = event, mutant.core.run(of: id) != nil {
                    return [.answer(request, .superseded(by: .background))]
                }
                return mutant.core.handle(event, at: now)
            }
        },
        .effects("kills instead of sending willTerminate", .runningAppsAreNotifiedOfEnd) { effects, event, _ in
            guard case .requested(_, _, .terminate, by: _) = event else { return effects }
            return effects.map { effect in
                if case .notify(let run, .willTerminate) = effect { .kill(run) } else { effect }
            }
        },
        .policies("kills all processes when the main process has exited", .remainingAreAwaited) {
            $0.killMode = .mixed
        },
        .policies("kills suspended apps without notice", .suspendedAreNotifiedOfEnd) { $0.terminateSuspended = .kill },
    ]

    private static let memory: [MutantCase] = [
        .policies("inverts priorities", .jetsamKeepsOrder) { $0.jetsamPriority = -$0.jetsamPriority },
        .events("exchanges the jetsam orders", .jetsamKeepsOrder) { event in
            guard case .configured(var policy) = event else { return event }
            policy.jetsamOrder = policy.jetsamOrder == .largest ? .lru : .largest
            return .configured(policy)
        },
        .events("ranks by time where the order is balanced", .jetsamKeepsOrder) { event in
            guard case .configured(var policy) = event, policy.jetsamOrder == .balanced else { return event }
            policy.jetsamOrder = .lru
            return .configured(policy)
        },
        .events("records a wrong size", .statesAreContinuous) { event in
            guard case .run(let run, .frozen(let attempt, let memory, _)) = event else { return event }
            return .run(run, .frozen(attempt: attempt, memory: memory / 2))
        },
        .effects("kills two apps", .victimsAreNecessary) { effects, event, mutant in
            guard case .memoryMeasured = event,
                let index = effects.firstIndex(where: { if case .kill = $0 { true } else { false } }),
                case .kill(let victim) = effects[index],
                let other = mutant.running.first(where: { $0 != victim && mutant.core.app(of: $0) != nil })
            else { return effects }
            return effects[...index] + [.kill(other)] + effects[(index + 1)...]
        },
        .events("assumes that less is available", .victimsAreNecessary) { event in
            guard case .memoryMeasured(var reading) = event else { return event }
            reading.available = reading.available / 4 * 3
            return .memoryMeasured(reading)
        },
        .events("takes a small part of the available memory for all", .plentyKillsNothing) { event in
            guard case .memoryMeasured(var reading) = event else { return event }
            reading.available /= 50
            return .memoryMeasured(reading)
        },
        .effects("kills at a trigger", .triggersOnlyMeasure) { effects, event, mutant in
            guard case .pressureStalled(.critical) = event, let run = mutant.suspended.first,
                mutant.core.app(of: run) != nil
            else { return effects }
            return effects + [.kill(run)]
        },
        looking("takes one look for two", .activeIsLast, times: 3),
        looking("does not wait for apps that were warned", .warningComesFirst, times: 2),
        .policies("ignores MemoryMax=", .limitsAreKept) { $0.memoryMax = nil },
        .policies("ignores SuspendedMemoryMax=", .limitsAreKept) { $0.suspendedMemoryMax = nil },
        .events("assumes that memory is free", .jetsamActs) { event in
            guard case .memoryMeasured(var reading) = event else { return event }
            reading.available = reading.total
            return .memoryMeasured(reading)
        },
        .effects("sends each warning twice", .warningsAreLimited) { effects, _, _ in
            effects.flatMap { effect in
                if case .notify(_, .memoryWarning) = effect { [effect, effect] } else { [effect] }
            }
        },
        .effects("warns suspended apps", .suspendedIsNotWarned) { effects, _, mutant in
            guard let suspended = mutant.suspended.first else { return effects }
            return effects.flatMap { effect in
                guard case .notify(_, .memoryWarning(let level)) = effect else { return [effect] }
                return [effect, .notify(suspended, .memoryWarning(level))]
            }
        },
    ]

    /// Evaluates each reading several times, a second later each time, without waiting for it.
    private static func looking(_ name: String, _ rule: Rule, times: Int) -> MutantCase {
        MutantCase(name: name, rule: rule) { core, _ in
            Mutant(core: core) { mutant, event, now in
                var effects = mutant.core.handle(event, at: now)
                guard case .memoryMeasured = event, mutant.core.memory.level == .critical else { return effects }
                for second in 1..<times {
                    effects += mutant.core.handle(event, at: now + .seconds(second))
                }
                return effects
            }
        }
    }

    private static let requests: [MutantCase] = [
        .effects("sends each answer twice", .requestsAreAnsweredOnce) { effects, _, _ in
            effects.flatMap { effect in
                if case .answer = effect { [effect, effect] } else { [effect] }
            }
        },
        .without("omits answers", .answersAreTrue) {
            if case .answer(_, .done) = $0 { true } else { false }
        },
        MutantCase(name: "refuses to end an app while 64 requests wait", rule: .endsAreNotRefused) { core, _ in
            Mutant(core: core) { mutant, event, now in
                if case .requested(let request, _, let what, by: _) = event, what == .terminate || what == .remove {
                    var refusing = mutant.core
                    let effects = refusing.handle(event, at: now)
                    // The core answers at once, although the app is still to end.
                    if effects.contains(where: {
                        if case .answer(request, .done(let state)) = $0 { state != .notRunning } else { false }
                    }) {
                        return [.answer(request, .refused(.tooMany("64 requests are pending")))]
                    }
                }
                return mutant.core.handle(event, at: now)
            }
        },
        MutantCase(name: "refuses a push to an app that is ending", rule: .endingAppsAreWoken) { core, _ in
            Mutant(core: core) { mutant, event, now in
                if case .requested(let request, let id, .push, by: _) = event, mutant.core.state(of: id) == .terminating
                {
                    return [.answer(request, .refused(.ending))]
                }
                return mutant.core.handle(event, at: now)
            }
        },
        MutantCase(name: "loses a push to an app that is ending", rule: .notificationsAreLatest) { core, _ in
            Mutant(core: core) { mutant, event, now in
                if case .requested(let request, let id, .push, by: _) = event, mutant.core.state(of: id) == .terminating
                {
                    return mutant.core.handle(
                        .requested(request, id, .launch(.background, reason: .push, url: nil)), at: now)
                }
                return mutant.core.handle(event, at: now)
            }
        },
        .effects("answers with a wrong state", .answersAreTrue) { effects, _, _ in
            effects.map { effect in
                if case .answer(let request, .done(.active)) = effect {
                    .answer(request, .done(.suspended))
                } else {
                    effect
                }
            }
        },
        .without("loses notifications", .notificationsAreLatest) {
            if case .deliver = $0 { true } else { false }
        },
        .effects("delivers each notification twice", .notificationsAreLatest) { effects, _, _ in
            effects.flatMap { effect in
                if case .deliver = effect { [effect, effect] } else { [effect] }
            }
        },
        .events("keeps apps whose manifests were removed", .stateIsBounded) { event in
            if case .unregistered = event { nil } else { event }
        },
    ]

    private static let absences: [MutantCase] = [
        .events("ignores that the screen is locked", .absenceEmptiesForeground) { event in
            if case .locked = event { nil } else { event }
        },
        .events("ignores that the machine is about to sleep", .absenceEmptiesForeground) { event in
            if case .sleepRequested = event { nil } else { event }
        },
        .events("ignores that the screen is unlocked", .absenceEndsInForeground) { event in
            if case .unlocked = event { nil } else { event }
        },
        .without("does not allow sleep", .sleepIsAllowedInTime) {
            if case .allowSleep = $0 { true } else { false }
        },
        .effects("allows sleep immediately", .sleepIsAllowedInTime) { effects, event, _ in
            guard case .sleepRequested = event else { return effects.filter { $0 != .allowSleep } }
            return effects.filter { $0 != .allowSleep } + [.allowSleep]
        },
        .policies("does not notify apps of protected data", .protectedDataIsNotified) { $0.usesProtectedData = false },
    ]

    private static let time: [MutantCase] = [
        MutantCase(name: "returns a deadline that has passed", rule: .dueWorkIsDone) { core, _ in
            Mutant(
                core: core, handling: { mutant, event, now in mutant.core.handle(event, at: now) },
                changesDeadline: { next, now in next.map { _ in now } })
        },
        MutantCase(name: "returns other effects in the second core", rule: .sameEventsSameEffects) { core, number in
            Mutant(core: core) { mutant, event, now in
                mutant.count += 1
                let effects = mutant.core.handle(event, at: now)
                return number == 1 && mutant.count > 100 ? effects.reversed() : effects
            }
        },
        .events("ignores that a freeze has succeeded", .everythingBecomesIdle) { event in
            if case .run(_, .frozen) = event { nil } else { event }
        },
    ]

    private static let recovery: [MutantCase] = [
        MutantCase(name: "adds a task when it is recovered", rule: .recoveryIsExact) { core, _ in
            Mutant(
                core: core, handling: { mutant, event, now in mutant.core.handle(event, at: now) },
                recovering: { mutant in
                    guard let run = mutant.core.runIDs.first else { return }
                    _ = mutant.core.handle(.run(run, .taskBegan(name: "never begun", owner: 1)), at: mutant.now)
                })
        },
        .events("assumes that no message was lost", .possibleAnswersAreExcused) { event in
            guard case .run(let run, .reattached(_, let late)) = event else { return event }
            return .run(run, .reattached(messagesKept: true, noticesDelayed: late))
        },
        .events("does not repeat operations in progress", .deadlinesAreFair) { event in
            if case .run(_, .reattached) = event { nil } else { event }
        },
        .events("starts a deadline before the delayed notice", .deadlinesAreFair) { event in
            guard case .run(let run, .reattached(let messagesKept, _)) = event else { return event }
            return .run(run, .reattached(messagesKept: messagesKept, noticesDelayed: false))
        },
        .events("keeps requests of disconnected clients", .requestsAreAnsweredOnce) { event in
            if case .recovered = event { nil } else { event }
        },
    ]
}
