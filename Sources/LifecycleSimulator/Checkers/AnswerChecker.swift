import LifecycleCore

/// Checks that what an app does before its deadline counts, however late the daemon reads it (L30, L48). The world knows when the
/// app did it.
struct AnswerChecker {
    func record(
        _ effect: Effect, of app: Int?, in event: Event, _ world: World, _ deadlines: DeadlineChecker,
        _ findings: inout Findings
    ) {
        // An app may ask to be killed (WATCHDOG=trigger).
        if case .run(_, .watchdog(.triggered)) = event { return }
        guard let app, case .report(.deadlineMissed(let id, let kind, let wake)) = effect,
            let run = world.apps[app].run,
            let (start, due) = deadlines.span(kind, wake, of: app)
        else { return }
        let state = world.runs[run]
        if kind == .wake {
            let isCompleted = state.completed[wake].map { $0 < due } ?? false
            findings.check(
                !isCompleted && !state.unread.contains(wake), .wakesAreCompleted,
                "\(id) is killed for wake \(wake), which it has completed or cannot read")
        }
        guard let answer = state.answers[kind.index] else { return }
        findings.check(
            answer <= start || answer >= due, .answersInTimeCount,
            "\(id): \(kind) is missed, but was answered \(due - answer) µs before its end")
    }
}
