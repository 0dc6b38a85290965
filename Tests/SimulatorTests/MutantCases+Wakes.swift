import LifecycleCore
import LifecycleSimulator

extension MutantCase {
    static let wakes: [MutantCase] = [
        .events("expects the completion of a wake that the app cannot read", .wakesAreCompleted) { event in
            if case .run(_, .notificationDelayed) = event { nil } else { event }
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
