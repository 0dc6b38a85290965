import LifecycleCore

/// Checks that each request is answered once and that the answer is true.
struct RequestChecker {
    private enum Goal { case foreground, background, wake, end, pressure, other, worker, closedScene }

    private struct Waiting {
        var app: Int?
        var goal: Goal
    }

    /// The requests without an answer.
    private var waiting: [RequestID: Waiting] = [:]
    private var abandoned: Set<RequestID> = []
    private var greatest: UInt64 = 0

    var unanswered: [RequestID] { waiting.keys.sorted { $0.number < $1.number } }

    mutating func record(_ event: Event, _ model: CoreModel) {
        switch event {
        case .requested(let request, let id, let what, by: _):
            let app = model.indexes[id]
            let policy = app.map { model.apps[$0].policy } ?? AppPolicy()
            waiting[request] = Waiting(app: app, goal: Self.goal(what.reached(by: policy), policy))
            greatest = max(greatest, request.number)
        case .memory(.pressureSimulated(let request, _)):
            waiting[request] = Waiting(app: nil, goal: .pressure)
            greatest = max(greatest, request.number)
        case .requestAbandoned(let request):
            if waiting.removeValue(forKey: request) != nil { abandoned.insert(request) }
        case .recovered:
            // The clients were disconnected when the daemon died.
            abandoned.formUnion(waiting.keys)
            waiting = [:]
        default: break
        }
    }

    private static func goal(_ request: Request, _ policy: AppPolicy) -> Goal {
        switch request {
        // It comes into the background (L49).
        case .activate where policy.role == .worker, .open where policy.role == .worker: .worker
        case .activate, .open, .launch(.foreground, _, _, _), .scene(_, .activate): .foreground
        case .background: .background
        case .terminate, .remove: .end
        case .push: .wake
        case .launch(.background, let reason, _, _): reason.grantsTime ? .wake : .other
        case .interrupt, .interruptWhileConnected, .endInterruption, .send, .cancelTask, .scene(_, .background): .other
        case .scene(_, .close): .closedScene
        }
    }

    mutating func record(_ effect: Effect, _ model: CoreModel, _ findings: inout Findings) {
        guard case .answer(let request, let answer) = effect else { return }
        guard let waiter = waiting.removeValue(forKey: request) else {
            let what =
                abandoned.contains(request)
                ? "was abandoned" : request.number > greatest ? "was not made" : "has an answer already"
            return findings.check(
                false, .requestsAreAnsweredOnce, "request \(request) is answered, but \(what): \(answer)")
        }
        check(request, waiter, answer, model, &findings)
    }

    /// Checks that no request waits for a goal that is reached.
    func verifyAll(_ model: CoreModel, _ views: [AppView], _ findings: inout Findings) {
        let queued = Set(views.filter { $0.launchWaiting != nil }.map(\.id))
        for (request, waiter) in waiting {
            guard let app = waiter.app.map({ model.apps[$0] }) else { continue }
            // Its launch waits for others (L52).
            if queued.contains(app.id), waiter.goal != .end { continue }
            let hasCome: Bool
            switch (waiter.goal, app.phase) {
            case (.foreground, .foreground), (.background, .running), (.background, .suspending),
                (.background, .suspended), (_, .notRunning), (_, .unknown):
                hasCome = true
            default: hasCome = false
            }
            findings.check(
                !hasCome, .answersAreTrue,
                "request \(request) for \(waiter.goal) has no answer, but \(app.id) is \(app.phase)")
        }
    }

    private func check(
        _ request: RequestID, _ waiter: Waiting, _ answer: Answer, _ model: CoreModel, _ findings: inout Findings
    ) {
        let app = waiter.app.map { model.apps[$0] }
        let isTrue: Bool
        switch answer {
        case .done(let state):
            switch waiter.goal {
            case .foreground: isTrue = state == .active || state == .inactive
            case .background: isTrue = state == .background || state == .suspended
            case .worker:
                // Its manifest may make it another app meanwhile, which comes to the foreground.
                let isInForeground = state == .active || state == .inactive
                isTrue =
                    state == .background || state == .suspended || state == .launching
                    || isInForeground && app?.policy.role != .worker
            // Beyond the limit of requests that wait, the answer does not wait for the end.
            case .end: isTrue = state == .notRunning || waitingEnds(of: waiter.app) >= Self.maximumWaiters
            case .pressure: isTrue = false
            // It may be of a process that has ended.
            case .closedScene: isTrue = true
            case .wake, .other: isTrue = state != .notRunning && state != .terminating
            }
            findings.check(
                app?.state == state, .answersAreTrue,
                "request \(request) is answered with \(state), but the app is \(app?.state.rawValue ?? "unknown")")
        case .refused(.unknownApp): isTrue = app == nil || app?.isRegistered == false
        case .refused(.shuttingDown): isTrue = model.isShuttingDown
        case .refused(.notRunning): isTrue = app?.run == nil || waiter.goal == .other
        case .refused(.modeNotDeclared): isTrue = app?.policy.backgroundModes.contains(.push) == false
        case .refused: isTrue = true
        case .superseded: isTrue = waiter.goal != .pressure
        case .ended(let receipt): isTrue = receipt.app == app?.id
        case .simulated: isTrue = waiter.goal == .pressure
        }
        findings.check(
            isTrue, .answersAreTrue, "request \(request) for \(waiter.goal) is answered with \(answer)")
        if case .wake = waiter.goal {
            findings.check(
                answer != .refused(.ending), .answersAreTrue,
                "request \(request) to wake \(app?.id.name ?? "an unknown app") is refused because the app is ending")
        }
        if case .end = waiter.goal, case .refused(let refusal) = answer {
            findings.check(
                Self.mayRefuseEnd(refusal), .answersAreTrue,
                "request \(request) to end \(app?.id.name ?? "an unknown app") is refused: \(refusal)")
        }
    }

    /// How many requests may wait for an app.
    private static let maximumWaiters = 64

    private func waitingEnds(of app: Int?) -> Int { waiting.values.count { $0.app == app && $0.goal == .end } }

    /// There is nothing to end, or all apps are ending.
    private static func mayRefuseEnd(_ refusal: Refusal) -> Bool {
        switch refusal {
        case .unknownApp, .notRunning, .shuttingDown: true
        case .running, .opensNoURLs, .ending, .notInForeground, .notInterrupted, .modeNotDeclared, .launchPostponed,
            .tooMany, .noTask, .noScene, .noSuchScene, .lastScene,
            .backgroundTimeUsedUp, .requesterNotInForeground:
            false
        }
    }
}

extension LaunchReason {
    /// Whether the core wakes the app for it, with time of its own (L26).
    fileprivate var grantsTime: Bool {
        switch self {
        case .push, .fetch, .socket, .timer, .accessory, .location: true
        case .user, .url, .relaunch: false
        }
    }
}

extension Request {
    /// What it asks of an app with this manifest: a worker is never in the foreground (L49).
    fileprivate func reached(by policy: AppPolicy) -> Request {
        guard policy.role == .worker, case .launch(.foreground, let reason, let url, let environment) = self else {
            return self
        }
        return .launch(.background, reason: reason, url: url, environment: environment)
    }
}
