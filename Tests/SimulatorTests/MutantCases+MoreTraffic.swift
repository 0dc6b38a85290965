import LifecycleCore
import LifecycleSimulator

extension MutantCase {
    /// Faults in what becomes of waiting peers, timers, apps that cannot be watched, many descriptors, and manifests that
    /// change (L49 to L51).
    static let moreTraffic: [MutantCase] = waking + blindness + bursts + stays + reloads

    private static func input(_ event: Event) -> Input? {
        if case .run(_, .traffic(.inputArrived(_, let input))) = event { input } else { nil }
    }

    private static let waking: [MutantCase] = [
        .events("ignores peers that wait", .inputWakes) { event in
            input(event)?.isHalfFull ?? false ? nil : event
        },
        .events("ignores timers and event descriptors", .inputWakes) { event in
            switch input(event)?.kind {
            case .timer, .event: nil
            case .listener, .stream, .datagram, .pipe, .terminal, .epoll, nil: event
            }
        },
        .events("ignores what an epoll descriptor waits for", .inputWakes) { event in
            input(event)?.kind == .epoll ? nil : event
        },
        .events("ignores the ends of connections", .inputWakes) { event in
            input(event)?.isEnd ?? false ? nil : event
        },
        MutantCase(name: "leaves frozen what waits for a short time", rule: .workContinues) { core, _ in
            Mutant(core: core) { mutant, event, now in
                guard case .run(let run, .traffic(.workMeasured(var work))) = event, work.wait == .short,
                    let app = mutant.core.app(of: run), mutant.core.view(of: app, at: now)?.state == .suspended
                else { return mutant.core.handle(event, at: now) }
                work.wait = nil
                return mutant.core.handle(.run(run, .traffic(.workMeasured(work))), at: now)
            }
        },
        .effects("does not look at frozen threads", .frozenThreadsAreWatched) { effects, event, _ in
            guard case .run(let run, .suspension(.frozen)) = event else { return effects }
            return effects.filter { $0 != .run(run, .traffic(.measureWork(.full))) }
        },
    ]

    private static let blindness: [MutantCase] = [
        .events("takes apps that cannot be watched for watched ones", .inputWakes) { event in
            guard case .run(let run, .traffic(.inputWatched(let attempt, let watch))) = event, watch.isBlind else {
                return event
            }
            return .run(run, .traffic(.inputWatched(attempt: attempt, InputWatch(watched: 1))))
        },
        MutantCase(name: "leaves apps suspended that a new daemon cannot watch", rule: .inputWakes) { core, _ in
            Mutant(core: core) { mutant, event, now in
                switch event {
                case .recovered: mutant.count = 1
                case .run(_, .suspension(.frozen)): mutant.count = 0
                case .run(_, .traffic(.inputWatched(_, let watch))): if watch.isBlind, mutant.count == 1 { return [] }
                default: break
                }
                return mutant.core.handle(event, at: now)
            }
        },
    ]

    private static let bursts: [MutantCase] = [
        .effects("reports input that wakes no app", .inputCostsLittle) { effects, event, mutant in
            guard effects.isEmpty, case .run(let run, .traffic(.inputArrived(_, let input))) = event,
                let app = mutant.core.app(of: run)
            else { return effects }
            return [.report(.inputArrived(app, input))]
        },
        .events("looks at the first 64 descriptors only", .inputWakes) { event in
            input(event).map { $0.descriptor >= 64 } ?? false ? nil : event
        },
        MutantCase(name: "serves no other app for 5 s once an app has many descriptors with input", rule: .inputWakes) {
            core, _ in
            Mutant(core: core) { mutant, event, now in
                guard let input = input(event) else { return mutant.core.handle(event, at: now) }
                let milliseconds = Int(now.sinceOrigin / .milliseconds(1))
                if input.descriptor >= 64 {
                    mutant.count = milliseconds + 5000
                } else if milliseconds < mutant.count {
                    return []
                }
                return mutant.core.handle(event, at: now)
            }
        },
    ]

    private static let stays: [MutantCase] = [
        MutantCase(name: "suspends an app that was woken too often a second late", rule: .suspendedInTime) {
            core, _ in
            Mutant(core: core) { mutant, event, now in
                let milliseconds = Int(now.sinceOrigin / .milliseconds(1))
                if event == .deadlineReached, mutant.count > 0,
                    mutant.count...mutant.count + 1000 ~= milliseconds
                {
                    return []
                }
                let effects = mutant.core.handle(event, at: now)
                for case .report(.wokenTooOften(_, let time)) in effects {
                    mutant.count = milliseconds + Int(time / .milliseconds(1))
                }
                return effects
            }
        }
    ]

    private static func isChange(_ event: Event) -> Bool {
        if case .configuration(.registered) = event { true } else { false }
    }

    private static let reloads: [MutantCase] = [
        .effects("keeps the watch when Traffic= changes", .inputWakes) { effects, event, _ in
            guard isChange(event) else { return effects }
            return effects.filter { effect in
                switch effect {
                case .run(_, .traffic(.watchInput)), .run(_, .traffic(.stopWatchingInput)): false
                default: true
                }
            }
        },
        MutantCase(name: "keeps IdleSec= as it was first read", rule: .idleIsSuspended) { core, _ in
            Mutant(core: core) { mutant, event, now in
                guard case .configuration(.registered(let id, var policy, let launches)) = event,
                    let before = mutant.idleTimes[id]
                else {
                    if case .configuration(.registered(let id, let policy, _)) = event {
                        mutant.idleTimes[id] = policy.idleTime
                    }
                    return mutant.core.handle(event, at: now)
                }
                policy.idleTime = before
                return mutant.core.handle(.configuration(.registered(id, policy, launches: launches)), at: now)
            }
        },
    ]
}
