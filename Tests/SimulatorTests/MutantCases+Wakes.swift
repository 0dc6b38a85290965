import LifecycleCore
import LifecycleSimulator

extension MutantCase {
    static let wakes: [MutantCase] = [
        .events("expects the completion of a wake that the app cannot read", .unreadWakesAreExcused) { event in
            if case .run(_, .notificationDelayed) = event { nil } else { event }
        },
        MutantCase(name: "ends all wakes with the completion of one", rule: .wakesEndAlone) { core, _ in
            Mutant(core: core) { mutant, event, now in
                guard case .run(let run, .wakeCompleted(let result, _)) = event else {
                    return mutant.core.handle(event, at: now)
                }
                let effects = mutant.core.handle(event, at: now)
                return effects + mutant.core.handle(.run(run, .wakeCompleted(result)), at: now)
            }
        },
        MutantCase(name: "ends the newest wake with a completion", rule: .wakesAreCompleted) { core, _ in
            Mutant(core: core) { mutant, event, now in
                guard case .run(let run, .wakeCompleted(let result, nil)) = event, let app = mutant.core.app(of: run),
                    let newest = mutant.core.view(of: app, at: now)?.wakes.last
                else { return mutant.core.handle(event, at: now) }
                return mutant.core.handle(.run(run, .wakeCompleted(result, id: newest.id)), at: now)
            }
        },
        .effects("ends the oldest wake when the next one begins", .wakesEndAlone) { effects, event, mutant in
            effects.flatMap { effect in
                guard case .report(.deadlineStarted(let id, .wake, _, let wake)) = effect,
                    let oldest = mutant.core.view(of: id, at: mutant.now)?.wakes.first, oldest.id != wake
                else { return [effect] }
                return [effect, .report(.deadlineCancelled(id, .wake, wake: oldest.id))]
            }
        },
        .effects("coalesces pushes", .notificationsAreLatest) { effects, _, _ in
            effects.map { effect in
                guard case .deliver(let run, let all) = effect else { return effect }
                let last = all.last { $0.kind == Notification.push }
                return .deliver(run, all.filter { $0.kind != Notification.push || $0 == last })
            }
        },
    ]
}
