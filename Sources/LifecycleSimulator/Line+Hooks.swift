import LifecycleCore

extension Line {
    mutating func add(_ effect: HookEffect, _ app: String) {
        switch effect {
        case .run(let hook, let number):
            add(
                "run hook \(number) of \(app): \(hook.kind.rawValue)=, \(hook.state.rawValue) (\(hook.reason.rawValue))"
            )
            if let slept = hook.slept {
                add(", slept ")
                add(slept)
            }
        case .kill(let number): add("kill hook \(number) of \(app)")
        }
    }

    mutating func addHook(_ report: Report) {
        switch report {
        case .hookFailed(let id, let kind, let outcome): add("\(id): \(kind.rawValue)= failed: \(outcome)")
        case .hookKilled(let id, let kind, let time):
            add("\(id): \(kind.rawValue)= killed after ")
            add(time)
        case .suspensionRefused(let id): add("\(id): suspension refused")
        default: break
        }
    }
}
