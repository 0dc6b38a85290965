import LifecycleCore

/// Every request is answered once, and truly.
struct RequestChecker {
    private enum PendingRequest { case foreground, background, end, pressure, other }

    private struct Waiting {
        var app: Int?
        var wish: PendingRequest
    }

    /// Those without an answer.
    private var waiting: [RequestID: Waiting] = [:]
    private var abandoned: Set<RequestID> = []
    private var greatest: UInt64 = 0

    var unanswered: [RequestID] { waiting.keys.sorted { $0.number < $1.number } }

    mutating func note(_ event: Event, _ shadow: Shadow) {
        switch event {
        case .requested(let request, let id, let what):
            waiting[request] = Waiting(app: shadow.indexes[id], wish: Self.wish(what))
            greatest = max(greatest, request.number)
        case .pressureSimulated(let request, _):
            waiting[request] = Waiting(app: nil, wish: .pressure)
            greatest = max(greatest, request.number)
        case .requestAbandoned(let request):
            if waiting.removeValue(forKey: request) != nil { abandoned.insert(request) }
        case .recovered:
            // Their clients went with the daemon.
            abandoned.formUnion(waiting.keys)
            waiting = [:]
        default: break
        }
    }

    private static func wish(_ request: Request) -> PendingRequest {
        switch request {
        case .activate, .launch(.foreground, _, _): .foreground
        case .background: .background
        case .terminate, .remove: .end
        case .interrupt, .endInterruption, .push, .send, .launch(.background, _, _): .other
        }
    }

    mutating func note(_ effect: Effect, _ shadow: Shadow, _ findings: inout Findings) {
        guard case .answer(let request, let answer) = effect else { return }
        guard let asked = waiting.removeValue(forKey: request) else {
            let what =
                abandoned.contains(request)
                ? "was abandoned" : request.number > greatest ? "was never made" : "has its answer"
            return findings.check(
                false, .requestsAreAnsweredOnce, "request \(request) is answered, but \(what): \(answer)")
        }
        check(request, asked, answer, shadow, &findings)
    }

    /// Nobody waits for what has come about.
    func settleAll(_ shadow: Shadow, _ findings: inout Findings) {
        for (request, asked) in waiting {
            guard let app = asked.app.map({ shadow.apps[$0] }) else { continue }
            let hasCome: Bool
            switch (asked.wish, app.phase) {
            case (.foreground, .foreground), (.background, .running), (.background, .suspending),
                (.background, .suspended), (_, .notRunning), (_, .unknown):
                hasCome = true
            default: hasCome = false
            }
            findings.check(
                !hasCome, .answersAreTrue,
                "request \(request) wanted \(asked.wish) and has no answer, though \(app.id) is \(app.phase)")
        }
    }

    private func check(
        _ request: RequestID, _ asked: Waiting, _ answer: Answer, _ shadow: Shadow, _ findings: inout Findings
    ) {
        let app = asked.app.map { shadow.apps[$0] }
        let isTrue: Bool
        switch answer {
        case .done(let state):
            switch asked.wish {
            case .foreground: isTrue = state == .active || state == .inactive
            case .background: isTrue = state == .background || state == .suspended
            case .end: isTrue = state == .notRunning
            case .pressure: isTrue = false
            case .other: isTrue = state != .notRunning && state != .terminating
            }
            findings.check(
                app?.state == state, .answersAreTrue,
                "request \(request) is answered with \(state), but the app is \(app?.state.rawValue ?? "unknown")")
        case .refused(.unknownApp): isTrue = app == nil || app?.isRegistered == false
        case .refused(.shuttingDown): isTrue = shadow.isShuttingDown
        case .refused(.notRunning): isTrue = app?.run == nil || asked.wish == .other
        case .refused(.modeNotDeclared): isTrue = app?.policy.backgroundModes.contains(.push) == false
        case .refused: isTrue = true
        case .superseded: isTrue = asked.wish != .pressure
        case .ended(let receipt): isTrue = receipt.app == app?.id
        case .simulated: isTrue = asked.wish == .pressure
        }
        findings.check(
            isTrue, .answersAreTrue, "request \(request) wanted \(asked.wish) and is answered with \(answer)")
    }
}
