import LifecycleCore
import LifecycleSimulator

extension MutantCase {
    static let all: [MutantCase] =
        states + deadlines + backgroundTime + ends + memory + requests + absences + time + recovery + wakes + severities
        + traffic + moreTraffic + processor + sockets + connections + hooks + modes + invariants + presentation

    private static let states: [MutantCase] = [
        .effects("sends each SIGKILL twice", .effectsAreValid) { effects, _, _ in
            effects.flatMap { effect in
                if case .run(_, .kill) = effect { [effect, effect] } else { [effect] }
            }
        },
        .answering("assumes that a freeze has succeeded", .suspendedIsFrozen) {
            if case .run(let run, .suspension(.freeze(let attempt))) = $0 {
                .run(run, .suspension(.frozen(attempt: attempt, memory: 1)))
            } else {
                nil
            }
        },
        .events("ignores that others continue a suspended app", .suspendedIsFrozen) { event in
            if case .run(_, .suspension(.freezeLost)) = event { nil } else { event }
        },
        .without("leaves apps in the foreground throttled", .foregroundRuns) {
            if case .run(_, .processor(.unthrottle)) = $0 { true } else { false }
        },
        .without("does not continue an app that stopped itself", .foregroundRuns) {
            if case .run(_, .continueStopped) = $0 { true } else { false }
        },
        .without("does not throttle", .backgroundIsThrottled) {
            if case .run(_, .processor(.throttle)) = $0 { true } else { false }
        },
        .without("leaves suspended apps in the kernel's order as they are", .kernelAgrees) {
            if case .run(_, .memory(.setOOMClass(.suspended))) = $0 { true } else { false }
        },
        .without("leaves apps that enter the foreground in the kernel's order as they are", .kernelAgrees) {
            if case .run(_, .memory(.setOOMClass(.active))) = $0 { true } else { false }
        },
        .events("ignores that the kernel killed for memory", .receiptsAreTrue) { event in
            if case .run(_, .memory(.outOfMemory)) = event { nil } else { event }
        },
        MutantCase(name: "ignores tasks in the background", rule: .workKeepsAwake) { core, _ in
            Mutant(core: core) { mutant, event, now in
                if case .run(let run, .task(.began(let name, _))) = event, let id = mutant.core.app(of: run),
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
                    return [effect, .run(run, .suspension(.thaw(attempt: mutant.freezes[run] ?? 0)))]
                }
            }
        },
        .policies("suspends programs that start up", .startUpIsAwaited) { $0.startUpTime = .zero },
        .policies("freezes apps in a dry run", .suspendedInTime) { $0.suspension = .yes },
        .policies("suspends too late", .suspendedInTime) { $0.suspendDelay += .seconds(3) },
        .policies("suspends too early", .suspendedInTime) { $0.suspendDelay /= 2 },
    ]

    private static let deadlines: [MutantCase] = [
        .without("does not report that a deadline was met", .deadlinesAreFair) {
            if case .report(.deadlineMet) = $0 { true } else { false }
        },
        .without("does not inspect an app at its deadline", .deadlinesAreKept) {
            if case .run(_, .deadline(.inspect)) = $0 { true } else { false }
        },
        MutantCase(name: "ignores answers that come while the app is inspected", rule: .answersInTimeCount) { core, _ in
            Mutant(core: core) { mutant, event, now in
                if case .run(let run, let what) = event, mutant.inspecting.contains(run) {
                    switch what {
                    case .transition(.ready), .transition(.backgroundEntered), .watchdog(.heartbeat): return []
                    default: break
                    }
                }
                return mutant.core.handle(event, at: now)
            }
        },
        .answering("kills without an inspection", .deadlinesAreFair) {
            guard case .run(let run, .deadline(.inspect)) = $0 else { return nil }
            return .run(run, .deadline(.inspected(Inspection(traced: false, cpu: .zero, memory: 0))))
        },
        .events("kills an app with a debugger attached", .deadlinesAreFair) { event in
            guard case .run(let run, .deadline(.inspected(var inspection))) = event else { return event }
            inspection.traced = false
            return .run(run, .deadline(.inspected(inspection)))
        },
        .events("counts time without a processor", .deadlinesAreFair) { event in
            guard case .run(let run, .deadline(.inspected(var inspection))) = event else { return event }
            inspection.waited = .zero
            return .run(run, .deadline(.inspected(inspection)))
        },
        .events("launches all apps at once", .launchesMeetDeadlines) { event in
            guard case .configuration(.configured(var policy)) = event else { return event }
            policy.launchesAtOnce = nil
            return .configuration(.configured(policy))
        },
        .policies("has no background budget", .budgetIsKept) { $0.backgroundTime = nil },
        .policies("halves the background budget", .budgetIsKept) {
            $0.backgroundTime = $0.backgroundTime.map { $0 / 2 }
        },
        .policies("continues tasks that do not advance", .budgetIsKept) {
            if $0.taskProgressTime != .zero { $0.taskProgressTime = .seconds(1000) }
        },
        .without("does not send tasksExpiring", .budgetIsKept) {
            if case .run(_, .notify(.tasksExpiring)) = $0 { true } else { false }
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
        .policies("halves the background time of an hour", .unrequestedTimeIsLimited) {
            $0.backgroundTimePerHour = $0.backgroundTimePerHour.map { $0 / 2 }
        },
    ]

    private static let ends: [MutantCase] = [
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
        .effects("attributes an exit to the watchdog", .receiptsAreTrue) { effects, _, _ in
            effects.map { effect in
                guard case .writeReceipt(var receipt) = effect, receipt.namespace == .exit else { return effect }
                receipt.namespace = .watchdog
                receipt.code = Receipt.Code.missedDeadline
                return .writeReceipt(receipt)
            }
        },
        .events("ignores that a cgroup is empty", .endsComplete) { event in
            if case .run(_, .process(.emptied)) = event { nil } else { event }
        },
        .events("ignores that a wake is completed", .wakesAreCompleted) { event in
            if case .run(_, .wake(.completed)) = event { nil } else { event }
        },
        .policies("never relaunches", .wantedAppsRun) { $0.relaunch = .no },
        .policies("ignores LaunchAtStart=", .wantedAppsRun) { $0.launchAtStart = nil },
        .policies("has no home app", .homeIsInFront) { $0.role = .app },
        MutantCase(name: "ignores a terminate request", rule: .endedStaysEnded) { core, _ in
            Mutant(core: core) { mutant, event, now in
                if case .requested(let request, let id, .terminate, by: _) = event, mutant.core.run(of: id) != nil {
                    return [.answer(request, .superseded(by: .background))]
                }
                return mutant.core.handle(event, at: now)
            }
        },
        .effects("kills instead of sending willTerminate", .appsAreNotifiedOfEnd) { effects, event, _ in
            guard case .requested(_, _, .terminate, by: _) = event else { return effects }
            return effects.map { effect in
                if case .run(let run, .notify(.willTerminate)) = effect { .run(run, .kill) } else { effect }
            }
        },
        .policies("kills suspended apps without notice", .appsAreNotifiedOfEnd) { $0.terminateSuspended = .kill },
    ]

    private static let memory: [MutantCase] = [
        .policies("inverts priorities", .jetsamKeepsOrder) { $0.jetsamPriority = -$0.jetsamPriority },
        .effects("kills two apps", .jetsamKeepsOrder) { effects, event, mutant in
            guard case .memory(.measured) = event,
                let index = effects.firstIndex(where: { if case .run(_, .kill) = $0 { true } else { false } }),
                case .run(let victim, .kill) = effects[index],
                let other = mutant.running.first(where: { $0 != victim && mutant.core.app(of: $0) != nil })
            else { return effects }
            return effects[...index] + [.run(other, .kill)] + effects[(index + 1)...]
        },
        .events("takes a small part of the available memory for all", .plentyKillsNothing) { event in
            guard case .memory(.measured(var reading)) = event else { return event }
            reading.available /= 50
            return .memory(.measured(reading))
        },
        .effects("kills at a trigger", .plentyKillsNothing) { effects, event, mutant in
            guard case .memory(.pressureStalled(.critical)) = event, let run = mutant.suspended.first,
                mutant.core.app(of: run) != nil
            else { return effects }
            return effects + [.run(run, .kill)]
        },
        .policies("ignores MemoryMax=", .limitsAreKept) { $0.memoryMax = nil },
        .events("assumes that memory is free", .jetsamActs) { event in
            guard case .memory(.measured(var reading)) = event else { return event }
            reading.available = reading.total
            return .memory(.measured(reading))
        },
    ]

    private static let requests: [MutantCase] = [
        .effects("sends each answer twice", .requestsAreAnsweredOnce) { effects, _, _ in
            effects.flatMap { effect in
                if case .answer = effect { [effect, effect] } else { [effect] }
            }
        },
        .without("omits answers", .answersAreTrue) {
            if case .answer(_, .done) = $0 { true } else { false }
        },
        MutantCase(name: "refuses to end an app while 64 requests wait", rule: .answersAreTrue) { core, _ in
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
        MutantCase(name: "refuses a push to an app that is ending", rule: .answersAreTrue) { core, _ in
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
            if case .run(_, .deliver) = $0 { true } else { false }
        },
        .effects("delivers each notification twice", .notificationsAreLatest) { effects, _, _ in
            effects.flatMap { effect in
                if case .run(_, .deliver) = effect { [effect, effect] } else { [effect] }
            }
        },
        .events("keeps apps whose manifests were removed", .stateIsBounded) { event in
            if case .configuration(.unregistered) = event { nil } else { event }
        },
    ]

    private static let absences: [MutantCase] = [
        .events("ignores that the screen is locked", .absenceEmptiesForeground) { event in
            if case .absence(.locked) = event { nil } else { event }
        },
        .events("ignores that the machine is about to sleep", .absenceEmptiesForeground) { event in
            if case .absence(.sleepRequested) = event { nil } else { event }
        },
        .events("ignores that the screen is unlocked", .absenceEndsInForeground) { event in
            if case .absence(.unlocked) = event { nil } else { event }
        },
        .without("does not allow sleep", .sleepIsAllowedInTime) {
            if case .allowSleep = $0 { true } else { false }
        },
        .effects("allows sleep immediately", .sleepIsAllowedInTime) { effects, event, _ in
            guard case .absence(.sleepRequested) = event else { return effects.filter { $0 != .allowSleep } }
            return effects.filter { $0 != .allowSleep } + [.allowSleep]
        },
        .policies("does not notify apps of protected data", .protectedDataIsNotified) { $0.usesProtectedData = false },
    ]

    private static let time: [MutantCase] = [
        MutantCase(name: "returns other effects in the second core", rule: .sameEventsSameEffects) { core, number in
            Mutant(core: core) { mutant, event, now in
                mutant.count += 1
                let effects = mutant.core.handle(event, at: now)
                return number == 1 && mutant.count > 100 ? effects.reversed() : effects
            }
        },
        .events("ignores that a freeze has succeeded", .everythingBecomesIdle) { event in
            if case .run(_, .suspension(.frozen)) = event { nil } else { event }
        },
    ]

    private static let recovery: [MutantCase] = [
        MutantCase(name: "adds a task when it is recovered", rule: .recoveryIsExact) { core, _ in
            Mutant(
                core: core, handling: { mutant, event, now in mutant.core.handle(event, at: now) },
                recovering: { mutant in
                    guard let run = mutant.core.runIDs.first else { return }
                    _ = mutant.core.handle(.run(run, .task(.began(name: "never begun", owner: 1))), at: mutant.now)
                })
        },
        .events("assumes that no message was lost", .answersInTimeCount) { event in
            guard case .run(let run, .process(.reattached(_, let late))) = event else { return event }
            return .run(run, .process(.reattached(messagesKept: true, noticesDelayed: late)))
        },
        .events("does not repeat operations in progress", .deadlinesAreFair) { event in
            if case .run(_, .process(.reattached)) = event { nil } else { event }
        },
        .events("starts a deadline before the delayed notice", .deadlinesAreFair) { event in
            guard case .run(let run, .process(.reattached(let messagesKept, _))) = event else { return event }
            return .run(run, .process(.reattached(messagesKept: messagesKept, noticesDelayed: false)))
        },
        .events("keeps requests of disconnected clients", .requestsAreAnsweredOnce) { event in
            if case .recovered = event { nil } else { event }
        },
    ]
}
