import LifecycleCore
import LifecycleSimulator

extension MutantCase {
    /// Faults in what wakes and suspends apps that work for peers (L43, L49 to L51).
    static let traffic: [MutantCase] = watching + idling + bounding

    private static let bounding: [MutantCase] = [
        .policies("takes workers for apps", .homeIsInFront) { $0.role = .app },
        .events("suspends apps with file locks", .locksAreReleased) { event in
            if case .run(_, .suspension(.locksFound)) = event { nil } else { event }
        },
        MutantCase(name: "kills apps that take no part for their file locks", rule: .locksAreReleased) { core, _ in
            Mutant(core: core) { mutant, event, now in
                let effects = mutant.core.handle(event, at: now)
                guard case .run(let run, .suspension(.locksFound)) = event else { return effects }
                return effects.map { effect in
                    if case .run(_, .suspension(.thaw)) = effect { .run(run, .kill) } else { effect }
                }
            }
        },
        .effects("does too much for each input", .inputCostsLittle) { effects, event, mutant in
            guard case .run(let run, .traffic(.inputArrived)) = event, let app = mutant.core.app(of: run) else {
                return effects
            }
            return effects + Array(repeating: Effect.report(.freezeTakesLong(app)), count: 100)
        },
    ]

    private static let watching: [MutantCase] = [
        .events("ignores input", .inputWakes) { event in
            if case .run(_, .traffic(.inputArrived)) = event { nil } else { event }
        },
        .events("suspends an app although one of its processes cannot be watched", .inputWakes) { event in
            guard case .run(let run, .traffic(.inputWatched(let attempt, let watch))) = event, watch.watched > 0 else {
                return event
            }
            return .run(run, .traffic(.inputWatched(attempt: attempt, InputWatch(watched: watch.watched))))
        },
        .policies("waits for more input", .inputWakes) { $0.wakeThreshold.bytes *= 1000 },
        .policies("waits for longer until it looks at less input", .inputWakes) {
            $0.wakeThreshold.time = $0.wakeThreshold.time.map { $0 * 3 }
        },
        .without("does not watch suspended apps", .inputWakes) {
            if case .run(_, .traffic(.watchInput)) = $0 { true } else { false }
        },
        .effects("watches apps that wake on traffic for local peers only", .inputWakes) { effects, _, _ in
            effects.map { effect in
                guard case .run(let run, .traffic(.watchInput(let attempt, _))) = effect else { return effect }
                return .run(run, .traffic(.watchInput(attempt: attempt, onlyPeers: true)))
            }
        },
    ]

    private static let idling: [MutantCase] = [
        .events("sees no work", .workKeepsAwake) { event in
            guard case .run(let run, .traffic(.workMeasured(let work))) = event else { return event }
            return .run(run, .traffic(.workMeasured(RunWork(cpu: work.cpu))))
        },
        .events("ignores a call that cannot be watched", .workKeepsAwake) { event in
            guard case .run(let run, .traffic(.workMeasured(var work))) = event, work.wait == .unwatchedCall else {
                return event
            }
            work.wait = nil
            return .run(run, .traffic(.workMeasured(work)))
        },
        .policies("ignores what goes over connections beside ticks", .workKeepsAwake) { $0.keepAwake = .cpu },
        .policies("counts what goes over connections for too short a time", .workKeepsAwake) { $0.requestTime /= 20 },
        .events("does not keep the timers of workers", .ownTimersAreServed) { event in
            guard case .run(let run, .traffic(.workMeasured(var work))) = event else { return event }
            work.due = nil
            return .run(run, .traffic(.workMeasured(work)))
        },
        .events("always sees work", .idleIsSuspended) { event in
            guard case .run(let run, .traffic(.workMeasured(var work))) = event else { return event }
            work.unread += 1
            return .run(run, .traffic(.workMeasured(work)))
        },
        .events("takes the processor time alone for a whole measurement", .workKeepsAwake) { event in
            guard case .run(let run, .traffic(.workMeasured(var work))) = event, work.isBrief else { return event }
            work.isBrief = false
            return .run(run, .traffic(.workMeasured(work)))
        },
        .events("ignores what apps say of their idleness", .idleIsSuspended) { event in
            if case .run(_, .traffic(.idleHinted(true))) = event { nil } else { event }
        },
        .policies("looks too rarely", .idleIsSuspended) { $0.idleTime *= 6 },
        .effects("looks at suspended apps", .inputCostsLittle) { effects, event, mutant in
            guard case .run(let run, .traffic(.inputWatched)) = event, mutant.suspended.contains(run),
                effects.isEmpty
            else { return effects }
            return [.run(run, .traffic(.measureWork(.full)))]
        },
    ]
}
