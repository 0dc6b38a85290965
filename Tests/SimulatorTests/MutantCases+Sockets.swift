import LifecycleCore
import LifecycleSimulator

extension MutantCase {
    /// Faults in held sockets, unloading and instances of templates (L29, L42, L46).
    static let sockets: [MutantCase] = watches + clients + unloading + instances

    private static let watches: [MutantCase] = [
        .effects("does not watch held sockets after the end of an app", .connectionsAreServed) { effects, event, _ in
            guard case .run(_, .process(.emptied)) = event else { return effects }
            return effects.filter { if case .sockets(_, .watch) = $0 { false } else { true } }
        },
        .effects("a new daemon does not watch held sockets", .connectionsAreServed) { effects, event, _ in
            event == .recovered ? effects.filter { if case .sockets(_, .watch) = $0 { false } else { true } } : effects
        },
    ]

    private static let clients: [MutantCase] = [
        .events("ignores connections at held sockets", .connectionsAreServed) { event in
            if case .socketsReady = event { nil } else { event }
        },
        .effects("resets connections when a launch fails", .rejectionsAreFair) { effects, event, _ in
            effects.flatMap { effect -> [Effect] in
                guard case .sockets(let id, .watch) = effect, case .run(_, .process(.emptied)) = event else {
                    return [effect]
                }
                return [effect, .sockets(id, .reject)]
            }
        },
        .policies("never resets connections", .rejectionsAreFair) { $0.connectionWait = nil },
    ]

    private static let unloading: [MutantCase] = [
        .effects("unloads apps too early", .unloadsAreDue) { effects, _, _ in
            effects.map { effect in
                guard case .report(.stateChanged(let id, .suspended, let state, .requested)) = effect,
                    state == .terminating
                else { return effect }
                return .report(.stateChanged(id, from: .suspended, to: state, reason: .unloaded))
            }
        },
        .policies("unloads no app", .unloadsAreDue) { $0.unloadAfter = nil },
    ]

    private static let instances: [MutantCase] = [
        .without("does not say that an instance is removed", .instancesGo) {
            if case .removeInstance = $0 { true } else { false }
        },
        .policies("keeps instances for ever", .instancesGo) { $0.isTransient = false },
        .effects("removes an instance although the daemon holds sockets for it", .instancesGo) { effects, event, _ in
            guard case .run(_, .process(.emptied)) = event else { return effects }
            return effects.flatMap { effect -> [Effect] in
                guard case .sockets(let id, .watch) = effect else { return [effect] }
                return [effect, .removeInstance(id)]
            }
        },
    ]
}
