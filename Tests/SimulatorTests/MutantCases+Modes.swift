import LifecycleSimulator

@testable import LifecycleCore

extension MutantCase {
    /// Faults in what keeps an app awake for as long as it lasts (L28).
    static let modes: [MutantCase] = reasons + reports

    private static let reasons: [MutantCase] = [
        MutantCase(name: "discards the modes of an app once it is in the background", rule: .workKeepsAwake) {
            core, _ in
            Mutant(core: core) { mutant, event, now in
                if case .run(let run, .transition(.backgroundEntered)) = event, let index = mutant.index(of: run) {
                    mutant.core[run: index].modes = []
                }
                return mutant.core.handle(event, at: now)
            }
        },
        MutantCase(name: "reports that a mode has ended, and keeps the app awake", rule: .suspendedInTime) { core, _ in
            Mutant(core: core) { mutant, event, now in
                guard case .run(let run, .mode(.ended(let mode))) = event, let index = mutant.index(of: run) else {
                    return mutant.core.handle(event, at: now)
                }
                let modes = mutant.core[run: index].modes
                let effects = mutant.core.handle(event, at: now)
                let hasEnded = modes != mutant.core[run: index].modes
                guard hasEnded, mutant.core.apps[index].phase == .background else { return effects }
                _ = mutant.core.handle(.run(run, .mode(.inhibitorChanged("sleep, by a mode that has ended"))), at: now)
                return effects.filter { if case .report(.modeEnded) = $0 { true } else { false } }
            }
        },
        .events("ignores inhibitors", .workKeepsAwake) { event in
            if case .run(_, .mode(.inhibitorChanged)) = event { nil } else { event }
        },
        .events("keeps an app awake for an inhibitor that is released", .suspendedInTime) { event in
            if case .run(_, .mode(.inhibitorChanged(nil))) = event { nil } else { event }
        },
    ]

    private static let reports: [MutantCase] = [
        .without("does not report the end of a mode", .modesAreReported) {
            if case .report(.modeEnded) = $0 { true } else { false }
        },
        .events("begins a mode only if the app asserts it", .modesAreReported) { event in
            if case .run(_, .mode(.shown)) = event { nil } else { event }
        },
        .events("keeps what sources have shown once they vanish", .modesAreReported) { event in
            if case .run(_, .mode(.shown([]))) = event { nil } else { event }
        },
        .events("believes that apps use the modes that they assert", .modesAreReported) { event in
            if case .run(_, .mode(.unused)) = event { nil } else { event }
        },
        .policies("lets apps begin undeclared modes", .modesAreReported) { $0.backgroundModes = .assertable },
    ]
}

extension Mutant {
    /// The app of a run that is not over.
    fileprivate func index(of run: RunID) -> AppIndex? {
        core.runs[run.number].flatMap { core.apps[$0].run?.id == run ? $0 : nil }
    }
}
