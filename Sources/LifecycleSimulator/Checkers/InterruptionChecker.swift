import LifecycleCore

/// L13: interruptions nest, and an app in the foreground is active unless one is left.
struct InterruptionChecker {
    private var open: [Int]
    private var asked: (request: RequestID, app: Int, change: Int)?

    init(apps: Int) {
        open = Array(repeating: 0, count: apps)
    }

    mutating func note(_ event: Event, of app: Int?) {
        asked = nil
        guard let app, case .requested(let request, _, let what) = event else { return }
        switch what {
        case .interrupt: asked = (request, app, 1)
        case .endInterruption: asked = (request, app, -1)
        case .launch, .activate, .background, .terminate, .remove, .push, .send: break
        }
    }

    mutating func note(_ effects: [Effect]) {
        guard let (request, app, change) = asked else { return }
        for effect in effects {
            if case .answer(request, .done) = effect { open[app] += change }
        }
    }

    mutating func note(_ effect: Effect, of app: Int?) {
        guard let app else { return }
        switch effect {
        // Ending in the background instead is legal: it begins anew there.
        case .spawn, .notify(_, .didEnterBackground): open[app] = 0
        default: break
        }
    }

    mutating func settle(of app: Int, _ shadow: Shadow, _ findings: inout Findings) {
        let known = shadow.apps[app]
        // One that was on its way to the foreground and was sent back begins anew.
        if known.phase == .running { open[app] = 0 }
        guard known.phase == .foreground else { return }
        findings.check(
            (known.state == .active) == (open[app] == 0), .interruptionsNest,
            "\(known.id) is \(known.state) with \(open[app]) interruptions")
    }
}
