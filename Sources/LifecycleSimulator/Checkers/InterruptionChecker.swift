import LifecycleCore

/// Checks that interruptions nest and that an app in the foreground is active unless one is open (L13).
struct InterruptionChecker {
    private var open: [Int]
    private var current: (request: RequestID, app: Int, change: Int)?

    init(apps: Int) {
        open = Array(repeating: 0, count: apps)
    }

    mutating func record(_ event: Event, of app: Int?) {
        current = nil
        guard let app, case .requested(let request, _, let what, by: _) = event else { return }
        switch what {
        case .interrupt: current = (request, app, 1)
        case .endInterruption: current = (request, app, -1)
        case .launch, .activate, .background, .terminate, .remove, .push, .send: break
        }
    }

    mutating func record(_ effects: [Effect]) {
        guard let (request, app, change) = current else { return }
        for effect in effects {
            if case .answer(request, .done) = effect { open[app] += change }
        }
    }

    mutating func record(_ effect: Effect, of app: Int?) {
        guard let app else { return }
        switch effect {
        // An interruption may end in the background: then the count restarts.
        case .spawn, .notify(_, .didEnterBackground): open[app] = 0
        default: break
        }
    }

    mutating func verify(of app: Int, _ model: CoreModel, _ findings: inout Findings) {
        let known = model.apps[app]
        // An app that was sent back on its way to the foreground starts with no interruption.
        if known.phase == .running { open[app] = 0 }
        guard known.phase == .foreground else { return }
        findings.check(
            (known.state == .active) == (open[app] == 0), .interruptionsNest,
            "\(known.id) is \(known.state) with \(open[app]) interruptions")
    }
}
