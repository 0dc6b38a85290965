import Control
import LifecycleCore
import Manifest
import Systemd

/// One step of `certify`.
struct CertifyStep {
    /// In which state the app is when the step begins.
    enum Need { case nothing, running, active, suspended }

    /// For scripts.
    var name: String
    var title: String
    /// The rules that it tries (docs/RULES.md).
    var rules: String
    var need: Need
    /// - Returns: what was found. An end of the app that the step does not expect is found by its caller.
    var take: (Rehearsal) throws(Failure) -> CertifyOutcome

    init(
        _ name: String, _ title: String, _ rules: String, _ need: Need,
        _ take: @escaping (Rehearsal) throws(Failure) -> CertifyOutcome
    ) {
        self.name = name
        self.title = title
        self.rules = rules
        self.need = need
        self.take = take
    }

    /// All steps, in their order.
    static var all: [CertifyStep] {
        [
            CertifyStep("launch", "launch", "L6 L7", .nothing, launch),
            CertifyStep("interruption", "interruption", "L13", .active, interruption),
            CertifyStep("background", "enter background", "L16 L17", .active, enterBackground),
            CertifyStep("suspend", "suspend", "L1 L18 L23 L51", .running, suspend),
            CertifyStep("push", "push", "L26 L30", .suspended, CertifySteps.push),
            CertifyStep("fetch", "fetch", "L26 L30", .suspended, CertifySteps.fetch),
            CertifyStep("timer", "timer", "L26 L30", .suspended, CertifySteps.timer),
            CertifyStep("url", "URL", "L8", .suspended, CertifySteps.url),
            CertifyStep("activate", "activate", "L3 L4", .suspended, activate),
            CertifyStep("notification", "notification", "L31 L32", .suspended, CertifySteps.notification),
            CertifyStep("system-events", "system events", "L31 L33", .suspended, CertifySteps.systemEvents),
            CertifyStep("lock", "lock, unlock", "L15", .active, CertifySteps.lock),
            CertifyStep("memory-warning", "memory warning", "L36", .running, CertifySteps.memoryWarning),
            CertifyStep("scenes", "scenes", "L34", .active, CertifySteps.scenes),
            CertifyStep("load", "requests", "L1 L50", .running, CertifySteps.load),
            CertifyStep("kill", "kill, restore", "L38 L40", .suspended, CertifySteps.kill),
            CertifyStep("reexec", "reexec of daemon", "", .running, CertifySteps.reexec),
            CertifyStep("daemon-kill", "kill of daemon", "", .running, CertifySteps.daemonKill),
            CertifyStep("terminate", "terminate", "L45 L46 L47", .running, terminate),
        ]
    }

    /// Takes the step, from the state that it needs.
    func perform(_ app: Rehearsal) throws(Failure) -> CertifyOutcome {
        do throws(Failure) {
            try app.beginStep()
            if let problem = try app.prepare(need) {
                return try app.unexpectedEnd() ?? .notApplicable(problem)
            }
            if need != .running { try app.beginStep() }
            return try take(app)
        } catch  where error.isAnswer {
            return try app.unexpectedEnd()
                ?? .notApplicable("greenroomd refused: \(Rehearsal.withoutStop(error.sentence))")
        }
    }
}

extension Failure {
    /// Whether the daemon has answered a request with this error.
    fileprivate var isAnswer: Bool {
        name.hasPrefix("org.greenroom.Error.") && name != ControlNames.Failure.failed.name && !isLost
    }
}

// MARK: The steps

private func launch(_ app: Rehearsal) throws(Failure) -> CertifyOutcome {
    guard try app.launch() else { return try app.unexpectedEnd() ?? .broken("it was not launched") }
    let took = app.last(.deadlineMet) { $0.deadline?.what == "launch" }?.deadline?.wall
    let state = try app.status().state
    return switch app.manifest.policy.readiness {
    case .executed: .ignored("executed; it does not say when it is ready (Type=simple); \(state)", took)
    case .notified: .handled("said that it is ready, \(of(app.manifest.policy.launchDeadline)); \(state)", took)
    case .forked: .handled("its first process exited, \(of(app.manifest.policy.launchDeadline)); \(state)", took)
    case .listening: .handled("listens, \(of(app.manifest.policy.launchDeadline)); \(state)", took)
    }
}

private func of(_ deadline: Duration?) -> String {
    deadline.map { "of \($0.timeSpan) that it has" } ?? "without a deadline"
}

private func interruption(_ app: Rehearsal) throws(Failure) -> CertifyOutcome {
    let signals = app.manifest.signals
    let notice = try app.notice(signals.resignActive)
    _ = try app.request("Interrupt")
    let during = try app.status().state
    _ = try app.request("Resume")
    if let end = try app.unexpectedEnd() { return end }
    let after = try app.status().state
    guard during == "inactive", after == "active" else { return .broken("\(during) during it, and \(after) after it") }
    guard let notice else { return .ignored(app.silence("ResignActive", signals.resignActive)) }
    return .handled("\(notice); inactive, then active again")
}

private func enterBackground(_ app: Rehearsal) throws(Failure) -> CertifyOutcome {
    let signal = app.manifest.signals.enterBackground
    let notice = try app.notice(signal)
    let result = try app.request("Background")
    if let end = try app.unexpectedEnd() { return end }
    guard result.outcome == RequestResult.Outcome.done.rawValue else { return .broken(result.explanation ?? "refused") }
    guard let notice else { return .ignored(app.silence("EnterBackground", signal) + ", and it has nothing to finish") }
    let took = app.last(.deadlineMet) { $0.deadline?.what == "background" }?.deadline?.wall
    let tasks = app.events.filter { $0.kind == LifecycleEvent.Kind.taskBegan.rawValue }.flatMap(\.tasks).map(\.name)
    let names =
        tasks.isEmpty
        ? "" : "; began the background \(tasks.count == 1 ? "task" : "tasks") \(tasks.joined(separator: ", "))"
    return .handled("\(notice); answered, \(of(app.manifest.policy.backgroundDeadline))\(names)", took)
}

private func suspend(_ app: Rehearsal) throws(Failure) -> CertifyOutcome {
    let state = try app.status().state
    if state == "active" || state == "inactive" { _ = try app.request("Background") }
    let start = EventLoop.now()
    let isSuspended = try app.suspend()
    if let end = try app.unexpectedEnd() { return end }
    guard isSuspended else { return .ignored("stays awake: \(app.awake ?? "no reason is known")") }
    let freeze = app.last(.stateChanged) { $0.state == "suspended" }?.took
    let took = app.time(from: "background", to: "suspended") ?? EventLoop.now() - start
    return .handled("idle" + (freeze.map { "; frozen in \($0.timeSpan)" } ?? ""), took)
}

private func activate(_ app: Rehearsal) throws(Failure) -> CertifyOutcome {
    let before = try app.status().pid
    if app.isWorker { return .notApplicable("a worker takes no foreground slot") }
    let start = EventLoop.now()
    let result = try app.request("Activate")
    let took = EventLoop.now() - start
    if let end = try app.unexpectedEnd() { return end }
    let status = try app.status()
    guard status.state == "active", status.pid == before else {
        return .broken(result.explanation ?? "it is \(status.state) instead of active")
    }
    let signals = app.manifest.signals
    var notice = try app.notice(signals.enterForeground)
    if notice == nil { notice = try app.notice(signals.becomeActive) }
    guard let notice else {
        return .ignored("thawed, the same process; \(app.silence("EnterForeground", signals.enterForeground))", took)
    }
    return .handled("thawed, the same process; \(notice)", took)
}

private func terminate(_ app: Rehearsal) throws(Failure) -> CertifyOutcome {
    _ = try app.request("Terminate", .bool(false))
    guard let end = app.last(.ended) else { return .broken("it runs on") }
    let took = app.time(from: "terminating", to: "notRunning")
    let name = signalName(app.manifest.signals.terminate)
    switch (end.exitStatus, end.signal) {
    case (0?, _): return .handled("exited with status 0, \(of(app.manifest.policy.terminateDeadline))", took)
    // The status of a program that says by it which signal ended it.
    case (let status?, _) where status == 128 + app.manifest.signals.terminate:
        return .handled("exited with status \(status), which stands for \(name)", took)
    case (_, let signal?) where signal == app.manifest.signals.terminate:
        return .ignored("\(name) ended it: it has no handler, and could save nothing", took)
    default:
        // An app that has answered may be killed before it exits, which is no fault (L46): the deadline of its receipt was kept.
        if let receipt = try app.receipt(of: end), let answered = receipt.deadline?.wall,
            receipt.deadline?.what == "terminate", receipt.namespace != "watchdog"
        {
            return .handled("answered after \(answered.timeSpan), and was ended", took)
        }
        return try app.unexpectedEnd() ?? .broken(Rehearsal.withoutStop(end.message))
    }
}
