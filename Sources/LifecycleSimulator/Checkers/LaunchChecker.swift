import LifecycleCore

/// Checks that launches which come at once share the processors so that each meets its deadline (L52). While the storm lasts
/// there is no other reason to miss it.
struct LaunchChecker {
    private let end: Microseconds?
    private var isReady: [Bool]
    private var isDone = false

    init(apps: Int, storm: LaunchStorm?) {
        end = storm?.end
        isReady = Array(repeating: false, count: apps)
    }

    mutating func record(_ event: Event, of app: Int?) {
        if case .run(_, .transition(.ready)) = event, let app { isReady[app] = true }
    }

    func record(_ effect: Effect, of app: Int?, at now: Microseconds, _ findings: inout Findings) {
        guard let end, now < end, let app, !isReady[app] else { return }
        if case .report(.deadlineMissed(let id, .launch, _)) = effect {
            findings.check(false, .launchesMeetDeadlines, "\(id) computes while others launch, and misses its deadline")
        }
    }

    mutating func verify(_ model: CoreModel, at now: Microseconds, _ findings: inout Findings) {
        guard let end, now >= end, !isDone else { return }
        isDone = true
        // A shutdown cancels launches that wait.
        if model.isShuttingDown { return }
        let late = isReady.indices.filter { !isReady[$0] }.map { model.apps[$0].id.name }
        findings.check(
            late.isEmpty, .launchesMeetDeadlines, "\(late.count) launches are not complete in time: \(late.prefix(3))")
    }
}
