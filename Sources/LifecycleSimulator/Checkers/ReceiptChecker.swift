import LifecycleCore

/// Every end has one receipt, every receipt an end, and it says what happened.
struct ReceiptChecker {
    /// Of the run whose end the core is hearing of.
    private struct End {
        var run: RunID
        var status: ExitStatus
        /// SIGKILL had been sent by then.
        var wasKilled: Bool
        var receipts = 0
        var reports = 0
    }

    private var end: End?
    private var last: UInt64
    /// By app: the pid that the core was told.
    private var pids: [Int32?]

    init(apps: Int, firstReceipt: UInt64) {
        last = firstReceipt - 1
        pids = Array(repeating: nil, count: apps)
    }

    mutating func note(_ event: Event, of app: Int?, _ shadow: Shadow, _ world: World) {
        end = nil
        guard let app else { return }
        switch event {
        case .run(let run, .spawned(let pid)), .run(let run, .mainProcessChanged(let pid)):
            if shadow.apps[app].run == run { pids[app] = pid }
        case .run(let run, .exited(let status, _, _)): begin(app, run, status, shadow, world)
        case .run(let run, .spawnFailed(let problem)): begin(app, run, .exited(problem.exitStatus), shadow, world)
        default: break
        }
    }

    private mutating func begin(
        _ app: Int, _ run: RunID, _ status: ExitStatus, _ shadow: Shadow, _ world: World
    ) {
        guard shadow.apps[app].run == run, let index = world.index(of: run) else { return }
        end = End(run: run, status: status, wasKilled: world.runs[index].killedAt != nil)
    }

    mutating func note(
        _ effect: Effect, of app: Int?, _ shadow: Shadow, _ findings: inout Findings
    ) {
        switch effect {
        case .spawn: if let app { pids[app] = nil }
        case .writeReceipt(let receipt):
            findings.check(
                end?.run == receipt.run, .everyEndHasAReceipt, "receipt \(receipt.id) has no end: run \(receipt.run)")
            findings.check(
                receipt.id == last + 1, .everyEndHasAReceipt, "receipt \(receipt.id) comes after \(last)")
            last = receipt.id
            end?.receipts += 1
            check(receipt, app, shadow, &findings)
        case .report(.ended(let receipt)):
            findings.check(
                end?.run == receipt.run && receipt.id == last, .everyEndHasAReceipt,
                "the end of run \(receipt.run) is reported, but is none")
            end?.reports += 1
        default: break
        }
    }

    mutating func settle(_ findings: inout Findings) {
        guard let end else { return }
        findings.check(
            end.receipts == 1 && end.reports == 1, .everyEndHasAReceipt,
            "the end of run \(end.run) has \(end.receipts) receipts and \(end.reports) reports")
    }

    private func check(_ receipt: Receipt, _ app: Int?, _ shadow: Shadow, _ findings: inout Findings) {
        guard let end, let app else { return }
        let wasKilled = end.wasKilled
        findings.check(
            receipt.app == shadow.apps[app].id && receipt.exit == end.status && receipt.pid == pids[app],
            .receiptsAreTrue,
            "receipt \(receipt.id) is of \(receipt.app), pid \(receipt.pid ?? 0), \(receipt.exit); "
                + "it was \(shadow.apps[app].id), pid \(pids[app] ?? 0), \(end.status)")
        findings.check(
            Self.isCode(receipt.code, of: receipt.namespace), .receiptsAreTrue,
            "receipt \(receipt.id): code \(receipt.code) is none of \(receipt.namespace)")
        findings.check(
            receipt.state != .notRunning && receipt.state != .terminating, .receiptsAreTrue,
            "receipt \(receipt.id): the end began when it was \(receipt.state)")
        // Of an end of which nobody knows how it came about, our SIGKILL is the cause if it was sent.
        let isSIGKILL = end.status == .unknown ? wasKilled : end.status.isSIGKILL
        switch receipt.namespace {
        case .watchdog, .lifecycle, .user:
            findings.check(
                isSIGKILL && wasKilled, .receiptsAreTrue,
                "receipt \(receipt.id): \(receipt.namespace), but it ended by itself: \(end.status)")
        case .signal:
            findings.check(
                !(isSIGKILL && wasKilled), .receiptsAreTrue,
                "receipt \(receipt.id): nobody here sent a signal, but SIGKILL was sent")
        case .jetsam:
            findings.check(
                receipt.candidates.first?.app == receipt.app, .receiptsAreTrue,
                "receipt \(receipt.id): the victim is not the first candidate: \(receipt.candidates.map(\.app))")
        case .exit, .resource: break
        }
        if let deadline = receipt.deadline, receipt.namespace == .watchdog, deadline.what != .watchdog {
            findings.check(
                deadline.wall >= deadline.allowed, .receiptsAreTrue,
                "receipt \(receipt.id): a deadline was missed after \(deadline.wall) of \(deadline.allowed)")
        }
    }

    private static func isCode(_ code: UInt32, of namespace: Receipt.Namespace) -> Bool {
        switch namespace {
        case .watchdog: [0x8bad_f00d, 0x2182_bad2, 0x2182_bad4].contains(code)
        case .lifecycle: code == 0xbada_5e47
        case .user: code == 0xdead_fa11
        case .resource: false
        case .jetsam: code == 1
        case .signal: code == 2
        case .exit: code == 0
        }
    }
}

extension ExitStatus {
    var isSIGKILL: Bool {
        switch self {
        // That nobody knows how it ended is no contradiction.
        case .signaled(9, _), .unknown: true
        case .signaled, .exited, .lost: false
        }
    }
}
