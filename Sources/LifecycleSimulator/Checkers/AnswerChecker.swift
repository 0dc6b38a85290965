import LifecycleCore

/// Checks that an answer which an app gave before its deadline counts, however late the daemon reads it (L48). The world
/// knows when the app gave it.
struct AnswerChecker {
    func record(
        _ effect: Effect, of app: Int?, in event: Event, _ world: World, _ deadlines: DeadlineChecker,
        _ findings: inout Findings
    ) {
        // An app may ask to be killed (WATCHDOG=trigger).
        if case .run(_, .heartbeatGivenUp) = event { return }
        guard let app, case .report(.deadlineMissed(let id, let kind, _)) = effect, let run = world.apps[app].run,
            let (start, due) = deadlines.span(kind, of: app), let answer = world.runs[run].answers[kind.index]
        else { return }
        findings.check(
            answer <= start || answer >= due, .answersInTimeCount,
            "\(id): \(kind) is missed, but was answered \(due - answer) µs before its end")
    }
}
