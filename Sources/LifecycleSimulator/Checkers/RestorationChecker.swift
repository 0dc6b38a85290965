import LifecycleCore

/// Checks when the restoration state is dropped (L11, L42).
struct RestorationChecker {
    /// By app: deaths while launching in a row of programs that were executed.
    private var deaths: [Int]
    /// By app: whether the program of its run was executed.
    private var isExecuted: [Bool]

    init(apps: Int) {
        deaths = Array(repeating: 0, count: apps)
        isExecuted = Array(repeating: false, count: apps)
    }

    mutating func record(_ event: Event, of app: Int?, _ model: CoreModel) {
        guard let app, case .run(let run, .executed) = event, model.apps[app].run == run else { return }
        isExecuted[app] = true
    }

    /// Records the receipts of an event: the restoration state is dropped in the event of the death.
    mutating func record(_ effects: [Effect], _ model: CoreModel) {
        for case .writeReceipt(let receipt) in effects {
            guard let app = model.indexes[receipt.app] else { continue }
            if receipt.state != .launching {
                deaths[app] = 0
            } else if isExecuted[app] {
                deaths[app] += 1
            }
        }
    }

    mutating func record(_ effect: Effect, of app: Int?, in event: Event, _ findings: inout Findings) {
        guard let app else { return }
        switch effect {
        case .spawn: isExecuted[app] = false
        case .dropRestorationState(let id, _):
            if case .requested(_, id, .remove, by: _) = event { return }
            findings.check(
                deaths[app] >= 2, .restorationStateIsKept,
                "the restoration state of \(id) is dropped after \(deaths[app]) deaths of its program while launching")
        default: break
        }
    }
}
