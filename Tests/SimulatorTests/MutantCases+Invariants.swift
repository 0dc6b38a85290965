import LifecycleSimulator

@testable import LifecycleCore

extension MutantCase {
    /// Faults in the state of the core, after each event.
    static let invariants: [MutantCase] = [
        .states("counts an app in the foreground that is not there") { $0.visibleCount = $0.runningCount + 1 },
        .states("does not arm the timer of an app") { core in
            if let first = core.timers.first { core.timers.set(first.index, to: nil) }
        },
        .states("leaves an app out of the kill order") { core in
            if let first = core.jetsam.first { core.jetsam.set(first.index, to: nil) }
        },
        .states("takes the slots of apps in the foreground") { $0.foregroundSlots = [] },
        .states("counts an interruption twice") { core in
            for index in core.apps.indices where core.apps[index].phase == .foreground {
                if core[run: index].interruptions == 1 { core[run: index].interruptions = 0 }
            }
        },
    ]

    /// Faults in what others see of an app, and of those that others depend on.
    static let presentation: [MutantCase] = [
        .policies("shows apps before they are ready", .visibleOnceLaunched) { $0.readiness = .executed },
        MutantCase(name: "ends the apps that others depend on together with the others", rule: .essentialEndsLast) {
            core, _ in
            Mutant(core: core) { mutant, event, now in
                if case .shutdownRequested = event {
                    for index in mutant.core.apps.indices { mutant.core.apps[index].policy.isEssential = false }
                }
                return mutant.core.handle(event, at: now)
            }
        },
    ]

    private static func states(
        _ name: String, _ change: @escaping @Sendable (inout LifecycleCore) -> Void
    ) -> MutantCase {
        MutantCase(name: name, rule: .invariantsHold) { core, _ in
            Mutant(core: core) { mutant, event, now in
                let effects = mutant.core.handle(event, at: now)
                change(&mutant.core)
                return effects
            }
        }
    }
}
