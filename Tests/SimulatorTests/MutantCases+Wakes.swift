import LifecycleCore
import LifecycleSimulator

extension MutantCase {
    static let wakes: [MutantCase] = [
        .events("expects the completion of a wake that the app cannot read", .wakesAreCompleted) { event in
            if case .run(_, .wake(.notificationDelayed)) = event { nil } else { event }
        },
        .effects("coalesces pushes", .notificationsAreLatest) { effects, _, _ in
            effects.map { effect in
                guard case .run(let run, .deliver(let all)) = effect else { return effect }
                let last = all.last { $0.kind == Notification.push }
                return .run(run, .deliver(all.filter { $0.kind != Notification.push || $0 == last }))
            }
        },
        MutantCase(name: "notifies of a change that was undone while the app slept", rule: .notificationsAreLatest) {
            core, _ in
            Mutant(core: core) { mutant, event, now in
                if case .observed(let reading, of: _) = event, !mutant.suspended.isEmpty,
                    mutant.delivered[reading.kind] == reading.payload
                {
                    return []
                }
                let effects = mutant.core.handle(event, at: now)
                for case .run(_, .deliver(let all)) in effects {
                    for notification in all { mutant.delivered[notification.kind] = notification.payload }
                }
                return effects
            }
        },
    ]
}
