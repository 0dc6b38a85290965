import LifecycleCore
import LifecycleSimulator

extension MutantCase {
    /// Faults in what becomes of waiting peers, timers, apps that cannot be watched, many descriptors, and manifests that
    /// change (L49 to L51).
    static let moreTraffic: [MutantCase] = waking + blindness + bursts + stays + reloads

    private static func input(_ event: Event) -> Input? {
        if case .run(_, .inputArrived(_, let input)) = event { input } else { nil }
    }

    /// A fault in what is shown of an app.
    private static func views(
        _ name: String, _ rule: Rule, _ change: @escaping @Sendable (inout AppView) -> Void
    ) -> MutantCase {
        MutantCase(name: name, rule: rule) { core, _ in
            var mutant = Mutant(core: core) { mutant, event, now in mutant.core.handle(event, at: now) }
            mutant.changesView = { view in
                var view = view
                change(&view)
                return view
            }
            return mutant
        }
    }

    private static let waking: [MutantCase] = [
        .events("ignores peers that wait", .peersAreDrained) { event in
            input(event)?.isHalfFull ?? false ? nil : event
        },
        .events("ignores timers and event descriptors", .timersWake) { event in
            switch input(event)?.kind {
            case .timer, .event: nil
            case .listener, .stream, .datagram, .pipe, .terminal, .epoll, nil: event
            }
        },
        .views("counts no time of apps that are woken for themselves", .drainsAreCounted) {
            $0.unrequestedTime = .zero
        },
    ]

    private static let blindness: [MutantCase] = [
        .events("takes apps that cannot be watched for watched ones", .blindAppsAreAwake) { event in
            guard case .run(let run, .inputWatched(let attempt, let watch)) = event, watch.isBlind else { return event }
            return .run(run, .inputWatched(attempt: attempt, InputWatch(watched: 1)))
        },
        MutantCase(name: "leaves apps suspended that a new daemon cannot watch", rule: .blindAppsAreAwake) { core, _ in
            Mutant(core: core) { mutant, event, now in
                switch event {
                case .recovered: mutant.count = 1
                case .run(_, .frozen): mutant.count = 0
                case .run(_, .inputWatched(_, let watch)): if watch.isBlind, mutant.count == 1 { return [] }
                default: break
                }
                return mutant.core.handle(event, at: now)
            }
        },
        .without("does not report what cannot be watched", .blindAppsAreShown) {
            if case .report(.inputNotWatched) = $0 { true } else { false }
        },
        .views("does not show that an app cannot be watched", .blindAppsAreShown) {
            $0.awake.removeAll { $0.reason == .notWatchable }
        },
    ]

    private static let bursts: [MutantCase] = [
        .effects("reports input that wakes no app", .burstsAreBounded) { effects, event, mutant in
            guard effects.isEmpty, case .run(let run, .inputArrived(_, let input)) = event,
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
        .effects("lets an app that is woken too often stay awake twice as long", .quickTurnsAreBounded) {
            effects, _, _ in
            effects.map { effect in
                guard case .report(.wokenTooOften(let id, let time)) = effect else { return effect }
                return .report(.wokenTooOften(id, staysAwake: time * 2))
            }
        },
        MutantCase(name: "suspends an app that was woken too often a second late", rule: .quickTurnsAreBounded) {
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
        },
        .policies("lets wakes by input last for too long", .trafficWakesEnd) {
            if $0.role != .worker { $0.idleTime *= 6 }
        },
        MutantCase(name: "ends a wake by input at the first look", rule: .trafficWakesEnd) { core, _ in
            Mutant(core: core) { mutant, event, now in
                let effects = mutant.core.handle(event, at: now)
                guard case .run(let run, .workMeasured) = event else { return effects }
                return effects + mutant.core.handle(.run(run, .wakeCompleted(.noData)), at: now)
            }
        },
    ]

    private static func isChange(_ event: Event) -> Bool {
        if case .registered = event { true } else { false }
    }

    private static let reloads: [MutantCase] = [
        .effects("keeps the watch when Traffic= changes", .watchesEndFirst) { effects, event, _ in
            guard isChange(event) else { return effects }
            return effects.filter { effect in
                switch effect {
                case .watchInput, .stopWatchingInput: false
                default: true
                }
            }
        },
        .effects("has no budget for an app that is no worker any more", .reloadsTakeEffect) { effects, event, _ in
            guard isChange(event) else { return effects }
            return effects.filter { effect in
                if case .report(.deadlineStarted(_, .backgroundTime, _, _)) = effect { false } else { true }
            }
        },
        MutantCase(name: "keeps IdleSec= as it was first read", rule: .reloadsTakeEffect) { core, _ in
            Mutant(core: core) { mutant, event, now in
                guard case .registered(let id, var policy, let launches) = event,
                    let before = mutant.idleTimes[id]
                else {
                    if case .registered(let id, let policy, _) = event { mutant.idleTimes[id] = policy.idleTime }
                    return mutant.core.handle(event, at: now)
                }
                policy.idleTime = before
                return mutant.core.handle(.registered(id, policy, launches: launches), at: now)
            }
        },
    ]
}
