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
}
