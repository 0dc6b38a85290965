import LifecycleCore
import LifecycleSimulator

extension MutantCase {
    /// Faults in held sockets, unloading and instances of templates (L29, L42, L46).
    static let sockets: [MutantCase] = watches + clients + unloading + instances

    private static let watches: [MutantCase] = [
        .without("watches held sockets while the app runs", .socketsAreWatched) {
            if case .stopWatchingSockets = $0 { true } else { false }
        },
        .effects("does not watch held sockets after the end of an app", .socketsAreWatched) { effects, event, _ in
            guard case .run(_, .emptied) = event else { return effects }
            return effects.filter { if case .watchSockets = $0 { false } else { true } }
        },
        .effects("a new daemon does not watch held sockets", .socketsAreWatched) { effects, event, _ in
            event == .recovered ? effects.filter { if case .watchSockets = $0 { false } else { true } } : effects
        },
    ]

    private static let clients: [MutantCase] = [
        .events("ignores connections at held sockets", .connectionsAreServed) { event in
            if case .socketsReady = event { nil } else { event }
        },
        MutantCase(name: "launches for each connection, whatever L11 says", rule: .connectionsAreServed) { core, _ in
            Mutant(core: core) { mutant, event, now in
                guard case .socketsReady(let id, _) = event, mutant.core.view(of: id, at: now)?.launchPostponed != nil
                else { return mutant.core.handle(event, at: now) }
                // A user's launch ends what L11 holds back.
                let launch = Request.launch(.background, reason: .user, url: nil)
                let effects =
                    mutant.core.handle(event, at: now)
                    + mutant.core.handle(.requested(RequestID(1 << 50), id, launch), at: now)
                return effects.map { effect in
                    guard case .spawn(let id, let run, var launch) = effect else { return effect }
                    launch.reason = .socket
                    return .spawn(id, run, launch)
                }
            }
        },
        .policies("resets connections after half of ConnectionWaitSec=", .rejectionsAreFair) {
            $0.connectionWait = $0.connectionWait.map { $0 / 2 }
        },
        .effects("resets connections when a launch fails", .rejectionsAreFair) { effects, event, _ in
            effects.flatMap { effect -> [Effect] in
                guard case .watchSockets(let id) = effect, case .run(_, .emptied) = event else { return [effect] }
                return [effect, .rejectConnections(id)]
            }
        },
        .policies("never resets connections", .rejectionsComeInTime) { $0.connectionWait = nil },
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
        .effects("launches apps that it has unloaded", .unloadedStayEnded) { effects, _, _ in
            effects.flatMap { effect -> [Effect] in
                guard case .report(.stateChanged(let id, _, .terminating, .unloaded)) = effect else { return [effect] }
                return [effect, .report(.relaunchScheduled(id, after: .seconds(10), deaths: 0))]
            }
        },
    ]

    private static let instances: [MutantCase] = [
        .without("does not say that an instance is removed", .instancesGo) {
            if case .removeInstance = $0 { true } else { false }
        },
        .policies("keeps instances for ever", .instancesGo) { $0.isTransient = false },
        .effects("removes an instance although the daemon holds sockets for it", .instancesGo) { effects, event, _ in
            guard case .run(_, .emptied) = event else { return effects }
            return effects.flatMap { effect -> [Effect] in
                guard case .watchSockets(let id) = effect else { return [effect] }
                return [effect, .removeInstance(id)]
            }
        },
    ]
}
