import LifecycleCore
import LifecycleSimulator

extension MutantCase {
    static let wakes: [MutantCase] = [
        MutantCase(name: "ends all wakes with the completion of one", rule: .wakesEndAlone) { core, _ in
            Mutant(core: core) { mutant, event, now in
                guard case .run(let run, .wakeCompleted(let result, _)) = event else {
                    return mutant.core.handle(event, at: now)
                }
                let effects = mutant.core.handle(event, at: now)
                return effects + mutant.core.handle(.run(run, .wakeCompleted(result)), at: now)
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
