import LifecycleCore

/// Checks that the daemon may thaw an app ahead of its input: the first effects do the same (L50).
enum ThawAheadChecker {
    /// - Parameter ahead: what the core said before it handled the event.
    static func verify(
        _ ahead: (run: RunID, attempt: Int)?, _ effects: [Effect], of event: Event, _ app: Int?, _ model: CoreModel,
        _ findings: inout Findings
    ) {
        guard let app, let (run, input) = client(event, model.apps[app]) else {
            return findings.check(ahead == nil, .thawsAheadAreDecided, "an app is thawed ahead of \(event)")
        }
        let attempt = model.apps[app].freezeAttempt
        let begins = Array(effects.prefix(2)) == [.stopWatchingInput(run), .thaw(run, attempt: attempt)]
        if let ahead {
            findings.check(
                begins && ahead == (run, attempt), .thawsAheadAreDecided,
                "run \(ahead.run.number) is thawed ahead of input that has the effects \(effects.prefix(2))")
        } else if begins, input.isFromOutside, model.apps[app].policy.wakesOnTraffic {
            findings.check(
                false, .clientsAreFirst, "\(model.apps[app].id) is thawed for a client, but not ahead of all effects")
        }
    }

    /// The run at which an event reports input; `nil`: it reports none.
    private static func client(_ event: Event, _ app: AppModel) -> (run: RunID, input: Input)? {
        switch event {
        case .run(let run, .inputArrived(_, let input)): (run, input)
        case .socketsReady(_, let input): app.run.map { ($0, input) }
        default: nil
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

/// The core as it was before the last events: in the daemon they may wait to be handled when input arrives for a run.
struct LaggingCore<Core: DecidingCore> {
    private var core: Core?
    private var waiting: [Event] = []
    private static var most: Int { 64 }

    /// What the daemon would thaw at once for this event, if the last ones waited. Called before the core handles it.
    mutating func thawAhead(of event: Event, _ current: Core) -> (run: RunID, attempt: Int)? {
        if core == nil || waiting.count == Self.most { (core, waiting) = (current, []) }
        guard let core else { return nil }
        waiting.append(event)
        guard let thaw = core.thawAhead(of: event) else { return nil }
        guard waiting.dropLast().allSatisfy({ core.mayBeOvertaken($0, by: thaw.run) }) else {
            self.core = nil
            return nil
        }
        return thaw
    }
}
