import LifecycleCore

/// Checks that the daemon may thaw an app ahead of its input: the first effects do the same (L50).
enum ThawAheadChecker {
    /// - Parameter ahead: what the core said before it handled the event.
    static func verify(
        _ ahead: (run: RunID, attempt: Int)?, _ effects: [Effect], of event: Event, _ app: Int?, _ model: CoreModel,
        _ findings: inout Findings
    ) {
        guard case .run(let run, .inputArrived(let attempt, let input)) = event else {
            return findings.check(ahead == nil, .thawsAheadAreDecided, "an app is thawed ahead of \(event)")
        }
        let begins = Array(effects.prefix(2)) == [.stopWatchingInput(run), .thaw(run, attempt: attempt)]
        if let ahead {
            findings.check(
                begins && ahead == (run, attempt), .thawsAheadAreDecided,
                "run \(ahead.run.number) is thawed ahead of input that has the effects \(effects.prefix(2))")
        } else if let app, begins, input.isFromOutside, model.apps[app].policy.wakesOnTraffic {
            findings.check(
                false, .clientsAreFirst, "\(model.apps[app].id) is thawed for a client, but not ahead of all effects")
        }
    }

    /// Checks that no app is left suspended which the daemon has thawed while it had not handled the last events of other apps.
    static func verify(_ overtaking: (run: RunID, attempt: Int), isLeftBy model: CoreModel, _ findings: inout Findings)
    {
        let left = model.apps.first { $0.run == overtaking.run && $0.phase == .suspended }
        findings.check(
            left == nil, .thawsAheadAreDecided,
            "\(left?.id.description ?? "") is thawed ahead of its input and of events of other apps, and then left suspended"
        )
    }
}

/// The core as it was before the last events, which were all of runs: in the daemon they may wait to be handled when input arrives
/// for another run.
struct LaggingCore<Core: DecidingCore> {
    private var core: Core?
    private var runs: [RunID] = []
    private static var most: Int { 8 }

    /// What the daemon would thaw at once for this event, if the last ones waited. Called before the core handles it.
    mutating func thawAhead(of event: Event, _ current: Core) -> (run: RunID, attempt: Int)? {
        guard case .run(let run, _) = event else {
            core = nil
            return nil
        }
        if core == nil || runs.count == Self.most { (core, runs) = (current, []) }
        let thaw = runs.contains(run) ? nil : core?.thawAhead(of: event)
        runs.append(run)
        return thaw
    }
}
