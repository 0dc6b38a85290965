import LifecycleCore

/// Checks that time is counted as background time that no user asked for (L53) from the wake of an app by what it has sent to
/// itself to the next event.
struct OwnInputChecker {
    private struct Wake {
        let app: Int
        let at: Microseconds
        /// The time that was counted before.
        let used: Duration
    }

    /// The suspended app whose own input this event reports.
    private var suspended: Int?
    /// The wake of the last event.
    private var wake: Wake?

    private static let minute: Microseconds = 60 * .second

    mutating func record(_ event: Event, of app: Int?, _ model: CoreModel) {
        suspended = nil
        guard let app, case .run(let run, .inputArrived(_, let input)) = event, input.source == .own,
            model.apps[app].run == run, model.apps[app].phase == .suspended
        else { return }
        suspended = app
    }

    /// After all effects of an event.
    mutating func verify<Core: DecidingCore>(
        _ event: Event, _ model: CoreModel, _ core: Core, at now: Microseconds, _ findings: inout Findings
    ) {
        if let wake { verify(wake, event, model, core, at: now, &findings) }
        wake = nil
        guard let app = suspended, model.apps[app].phase == .waking,
            let view = core.view(of: model.apps[app].id, at: Instant(now))
        else { return }
        wake = Wake(app: app, at: now, used: view.unrequestedTime)
    }

    private func verify<Core: DecidingCore>(
        _ wake: Wake, _ event: Event, _ model: CoreModel, _ core: Core, at now: Microseconds, _ findings: inout Findings
    ) {
        // The account drops what is older than an hour by the minute.
        guard event != .recovered, now / Self.minute == wake.at / Self.minute,
            let view = core.view(of: model.apps[wake.app].id, at: Instant(now))
        else { return }
        let (time, counted) = ((now - wake.at).duration, view.unrequestedTime - wake.used)
        findings.check(
            counted >= time, .ownInputIsCounted,
            "\(view.id) was woken by what it has sent to itself, but of \(time) only \(counted) are counted")
    }
}
