import LifecycleCore

/// Checks that each end has one receipt and each receipt an end, and that the receipt describes the end.
struct ReceiptChecker {
    /// The end of a run, while its event is handled.
    private struct End {
        var run: RunID
        var status: ExitStatus
        /// Whether SIGKILL was sent before.
        var wasKilled: Bool
        /// Whether the kernel's OOM killer ended it.
        var wasKilledByKernel: Bool
        var receipts = 0
        var reports = 0
    }

    private var end: End?
    /// How the main processes exited of runs that other processes continue, and that have no receipt yet (L46). If these are
    /// killed later, that SIGKILL is not the end of the main process.
    private var awaiting: [RunID: ExitStatus] = [:]
    private var last: UInt64
    /// By app: the last pid that was reported to the core.
    private var pids: [Int32?]

    init(apps: Int, firstReceipt: UInt64) {
        last = firstReceipt - 1
        pids = Array(repeating: nil, count: apps)
    }

    mutating func record(_ event: Event, of app: Int?, _ model: CoreModel, _ world: World) {
        end = nil
        guard let app else { return }
        switch event {
        case .run(let run, .process(.spawned(let pid))), .run(let run, .process(.mainProcessChanged(let pid))):
            if model.apps[app].run == run { pids[app] = pid }
        case .run(let run, .process(.exited(let status, _, _, let remaining))):
            if awaiting[run] != nil { return }
            if model.apps[app].run == run, model.apps[app].mayAwait(remaining) {
                awaiting[run] = status
            } else {
                begin(app, run, status, model, world)
            }
        case .run(let run, .process(.emptied)):
            if let status = awaiting.removeValue(forKey: run) { begin(app, run, status, model, world) }
        case .run(let run, .process(.spawnFailed(let problem))):
            begin(app, run, .exited(problem.exitStatus), model, world)
        default: break
        }
    }

    private mutating func begin(
        _ app: Int, _ run: RunID, _ status: ExitStatus, _ model: CoreModel, _ world: World, wasKilled: Bool? = nil
    ) {
        guard model.apps[app].run == run, let index = world.index(of: run) else { return }
        end = End(
            run: run, status: status, wasKilled: wasKilled ?? (world.runs[index].killedAt != nil),
            wasKilledByKernel: world.runs[index].isKilledByKernel)
    }

    mutating func record(
        _ effect: Effect, of app: Int?, _ model: CoreModel, _ world: World, _ findings: inout Findings
    ) {
        switch effect {
        case .spawn: if let app { pids[app] = nil }
        case .writeReceipt(let receipt):
            // What was left of the run is killed.
            if let app, let status = awaiting.removeValue(forKey: receipt.run) {
                begin(app, receipt.run, status, model, world, wasKilled: status == .unknown ? nil : false)
            }
            findings.check(
                end?.run == receipt.run, .everyEndHasAReceipt, "receipt \(receipt.id) has no end of run \(receipt.run)")
            findings.check(
                receipt.id == last + 1, .everyEndHasAReceipt, "receipt \(receipt.id) follows receipt \(last)")
            last = receipt.id
            end?.receipts += 1
            check(receipt, app, model, &findings)
            findings.check(
                Self.failures(of: receipt).contains(receipt.failure), .receiptsAreTrue,
                "receipt \(receipt.id): \(receipt.namespace), \(receipt.exit), but the failure is "
                    + "\(receipt.failure.map { "\($0)" } ?? "none")")
        case .report(.ended(let receipt)):
            findings.check(
                end?.run == receipt.run && receipt.id == last, .everyEndHasAReceipt,
                "the end of run \(receipt.run) is reported, but the run did not end")
            end?.reports += 1
        default: break
        }
    }

    mutating func verify(_ findings: inout Findings) {
        guard let end else { return }
        findings.check(
            end.receipts == 1 && end.reports == 1, .everyEndHasAReceipt,
            "the end of run \(end.run) has \(end.receipts) receipts and \(end.reports) reports")
    }

    private func check(_ receipt: Receipt, _ app: Int?, _ model: CoreModel, _ findings: inout Findings) {
        guard let end, let app else { return }
        let wasKilled = end.wasKilled
        findings.check(
            receipt.app == model.apps[app].id && receipt.exit == end.status && receipt.pid == pids[app],
            .receiptsAreTrue,
            "receipt \(receipt.id) names \(receipt.app), pid \(receipt.pid ?? 0), \(receipt.exit); "
                + "the end was of \(model.apps[app].id), pid \(pids[app] ?? 0), \(end.status)")
        findings.check(
            Self.isCode(receipt.code, of: receipt.namespace), .receiptsAreTrue,
            "receipt \(receipt.id): code \(receipt.code) does not belong to \(receipt.namespace)")
        findings.check(
            receipt.state != .notRunning && receipt.state != .terminating, .receiptsAreTrue,
            "receipt \(receipt.id): the end began in the state \(receipt.state)")
        // If the exit status is unknown, the daemon's SIGKILL is the cause if it was sent.
        let isSIGKILL = end.status == .unknown ? wasKilled : end.status.isSIGKILL
        switch receipt.namespace {
        case .watchdog, .lifecycle, .user, .resource:
            findings.check(
                isSIGKILL && wasKilled, .receiptsAreTrue,
                "receipt \(receipt.id): \(receipt.namespace), but it was not killed: \(end.status)")
        case .signal:
            findings.check(
                !(isSIGKILL && wasKilled), .receiptsAreTrue,
                "receipt \(receipt.id): the signal is not the daemon's, but SIGKILL was sent")
        case .jetsam where receipt.code == 7:
            findings.check(
                isSIGKILL && (wasKilled || end.wasKilledByKernel) && receipt.candidates.isEmpty, .receiptsAreTrue,
                "receipt \(receipt.id): over its limit, but it was not killed: \(end.status)")
        case .jetsam where receipt.candidates.isEmpty:
            findings.check(
                end.wasKilledByKernel, .receiptsAreTrue,
                "receipt \(receipt.id): jetsam without candidates, but the kernel did not kill it")
        case .jetsam:
            findings.check(
                receipt.candidates.first?.app == receipt.app, .receiptsAreTrue,
                "receipt \(receipt.id): the victim is not the first candidate: \(receipt.candidates.map(\.app))")
        case .exit: break
        }
        findings.check(
            receipt.namespace != .signal || !end.wasKilledByKernel || !end.status.isSIGKILL, .receiptsAreTrue,
            "receipt \(receipt.id): the signal was the kernel's, because memory was short")
        if let deadline = receipt.deadline, receipt.namespace == .watchdog, deadline.what != .watchdog {
            findings.check(
                deadline.wall >= deadline.allowed, .receiptsAreTrue,
                "receipt \(receipt.id): a deadline was missed after \(deadline.wall) of \(deadline.allowed)")
        }
    }

    /// Which failures the cause of an end can be. Its log entry is a warning or an error because of them.
    private static func failures(of receipt: Receipt) -> [Receipt.Failure?] {
        switch (receipt.namespace, receipt.exit) {
        case (.watchdog, _), (.lifecycle, _), (.resource, _): return [.failed]
        case (.jetsam, _): return receipt.code == 7 ? [.failed] : [nil, .notLaunched]
        // A signal whose default action is to dump core (signal(7)).
        case (.signal, .signaled(let signal, let coreDumped)):
            return coreDumped || [4, 5, 6, 7, 8, 11, 31].contains(signal) ? [.crashed] : [.failed]
        // A status other than 0 may have been asked for.
        case (.exit, .exited(let status)): return status == 0 ? [nil] : [nil, .failed, .notLaunched]
        case (.exit, _), (.user, _), (.signal, _): return [nil]
        }
    }

    private static func isCode(_ code: UInt32, of namespace: Receipt.Namespace) -> Bool {
        switch namespace {
        case .watchdog: [0x8bad_f00d, 0x2182_bad2, 0x2182_bad4].contains(code)
        case .lifecycle: code == 0xbada_5e47 || code == 0xdead_10cc
        case .user: code == 0xdead_fa11
        case .resource: code == 0xc51b_ad01
        case .jetsam: code == 1 || code == 7
        case .signal: code == 2
        case .exit: code == 0
        }
    }
}

extension ExitStatus {
    var isSIGKILL: Bool {
        switch self {
        // An unknown status does not contradict SIGKILL.
        case .signaled(9, _), .unknown: true
        case .signaled, .exited, .lost: false
        }
    }
}
