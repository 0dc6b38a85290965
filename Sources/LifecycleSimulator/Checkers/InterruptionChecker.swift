import LifecycleCore

/// Checks that interruptions nest, that those of clients which asked for it end with them, and that an app in the foreground
/// is active unless one is open (L13).
struct InterruptionChecker {
    private struct Open {
        var count = 0
        /// Those that end with their clients, oldest first.
        var tied: [RequestID] = []
        /// Whether the last one that ended did so because its client disconnected.
        var endedWithClient = false
    }

    private var open: [Open]
    private var current: (request: RequestID, app: Int, what: Request)?

    init(apps: Int) {
        open = Array(repeating: Open(), count: apps)
    }

    mutating func record(_ event: Event, of app: Int?) {
        current = nil
        switch event {
        case .requested(let request, _, let what, by: _): if let app { current = (request, app, what) }
        case .requestAbandoned(let request): disconnect { $0 == request }
        case .recovered: disconnect { _ in true }
        default: break
        }
    }

    private mutating func disconnect(_ isMeant: (RequestID) -> Bool) {
        for app in open.indices {
            let before = open[app].tied.count
            open[app].tied.removeAll(where: isMeant)
            let ended = before - open[app].tied.count
            if ended > 0 { open[app].endedWithClient = true }
            open[app].count -= ended
        }
    }

    mutating func record(_ effects: [Effect]) {
        guard let (request, app, what) = current else { return }
        let isDone = effects.contains { if case .answer(request, .done) = $0 { true } else { false } }
        guard isDone else { return }
        switch what {
        case .interrupt: open[app].count += 1
        case .interruptWhileConnected:
            open[app].count += 1
            open[app].tied.append(request)
        case .endInterruption:
            open[app].count -= 1
            let isTiedLast = open[app].tied.count > max(0, open[app].count)
            if isTiedLast { open[app].tied.removeFirst() }
        case .launch, .activate, .open, .background, .terminate, .remove, .push, .send, .scene: return
        }
        open[app].endedWithClient = false
    }

    mutating func record(_ effect: Effect, of app: Int?) {
        guard let app else { return }
        switch effect {
        // An interruption may end in the background: then the count restarts.
        case .spawn, .notify(_, .didEnterBackground): open[app] = Open()
        default: break
        }
    }

    mutating func verify(of app: Int, _ model: CoreModel, _ findings: inout Findings) {
        let known = model.apps[app]
        // An app that was sent back on its way to the foreground starts with no interruption.
        if known.phase == .running || known.phase == .suspending { open[app] = Open() }
        guard known.phase == .foreground else { return }
        findings.check(
            (known.state == .active) == (open[app].count == 0),
            open[app].endedWithClient ? .tiedInterruptionsEnd : .interruptionsNest,
            "\(known.id) is \(known.state) with \(open[app].count) interruptions")
    }
}
