import Control
import LifecycleCore
import Manifest
import Systemd

/// The steps about wakes, notices, memory and the daemon.
enum CertifySteps {
    static func push(_ app: Rehearsal) throws(Failure) -> CertifyOutcome {
        guard app.manifest.policy.backgroundModes.contains(.push) else {
            return .notApplicable("BackgroundModes= does not name push")
        }
        _ = try app.request("Push", .string("certify"))
        return try completion(app)
    }

    /// What the app says of a wake that it was woken for.
    static func completion(_ app: Rehearsal) throws(Failure) -> CertifyOutcome {
        _ = try app.wait { () throws(Failure) in
            // That it was suspended before may be reported late.
            let isSuspendedAgain = (app.entered("suspended") ?? 0) > (app.entered("background") ?? .max)
            return app.last(.wakeCompleted) != nil || app.last(.ended) != nil || isSuspendedAgain
        }
        let start = app.last(.stateChanged) { $0.reason == StateReason.woken.rawValue }?.monotonic
        if let end = try app.unexpectedEnd() { return end }
        guard let completed = app.last(.wakeCompleted) else {
            return .ignored("woken; it did not say that it was done (X_GREENROOM_WAKE_DONE=)")
        }
        var took: Duration?
        if let start, let end = completed.monotonic, end >= start { took = .microseconds(Int64(end - start)) }
        let result = "completed with \(completed.result ?? "no result")"
        return completed.result == "failed" ? .broken("woken; \(result)") : .handled("woken; \(result)", took)
    }

    static func notification(_ app: Rehearsal) throws(Failure) -> CertifyOutcome {
        if app.isWorker { return .notApplicable("nothing brings a worker to the foreground") }
        _ = try app.request("Send", .string("x-certify"), .string("kept"))
        guard try app.status().state == "suspended" else {
            // The notification wakes no app: it was woken for another reason meanwhile.
            let reason = app.last(.stateChanged) { $0.state == "background" }?.reason
            return .notApplicable("it did not stay suspended" + (reason.map { " (\($0))" } ?? ""))
        }
        _ = try app.request("Activate")
        if let end = try app.unexpectedEnd() { return end }
        let signal = app.manifest.signals.notification
        guard let notice = try app.notice(signal) else { return .ignored(app.silence("Notification", signal)) }
        return .handled("kept while it was suspended, then \(notice)")
    }

    static func memoryWarning(_ app: Rehearsal) throws(Failure) -> CertifyOutcome {
        let signal = app.manifest.signals.memoryWarning
        let notice = try app.notice(signal)
        let before = try app.status().memoryBytes
        _ = try app.simulate("warning")
        // A program that a warning ends does not do so later.
        _ = try app.wait(atMost: .milliseconds(500)) { () throws(Failure) in app.last(.ended) != nil }
        _ = try app.simulate("normal")
        if let end = try app.unexpectedEnd() { return end }
        guard let notice else { return .ignored(app.silence("MemoryWarning", signal)) }
        let after = try app.status().memoryBytes
        return .handled("\(notice); memory \(formattedSize(before)) before, \(formattedSize(after)) after")
    }

    static func kill(_ app: Rehearsal) throws(Failure) -> CertifyOutcome {
        let stored = try app.status().storedBytes ?? 0
        let result = try app.simulate("critical")
        let isEnded = try app.wait { () throws(Failure) in app.last(.ended) != nil }
        _ = try app.simulate("normal")
        guard isEnded, result.victim == app.id else { return .notApplicable("greenroomd chose no victim") }
        try app.beginStep()
        guard try app.launch() else { return try app.unexpectedEnd() ?? .broken("killed; it cannot be launched again") }
        let took = app.last(.deadlineMet) { $0.deadline?.what == "launch" }?.deadline?.wall
        guard stored > 0 else {
            return .ignored("killed and launched again; it had stored no restoration state, and began anew", took)
        }
        return .handled("killed and launched again with the \(formattedSize(stored)) that it had stored", took)
    }

    static func scenes(_ app: Rehearsal) throws(Failure) -> CertifyOutcome {
        guard let scene = try app.status().scenes.first else { return .notApplicable("it has the scene main alone") }
        _ = try app.request("BackgroundScene", .string(scene.id))
        _ = try app.request("ActivateScene", .string(scene.id))
        if let end = try app.unexpectedEnd() { return end }
        let state = try app.status().scenes.first { $0.id == scene.id }?.state ?? "unattached"
        guard state == "foregroundActive" else { return .broken("the scene \(scene.id) is \(state)") }
        return .handled("the scene \(scene.id) went to the background and came back")
    }

    // MARK: The daemon

    static func reexec(_ app: Rehearsal) throws(Failure) -> CertifyOutcome {
        try survive(app) { () throws(Failure) in
            _ = try app.client.call("Reexec", as: RequestResult.self)
            // The connection ends with the old program.
            let limit = EventLoop.now() + .seconds(10)
            while EventLoop.now() < limit, (try? app.client.bus.nextSignal(until: limit)) ?? nil != nil {}
        }
    }

    static func daemonKill(_ app: Rehearsal) throws(Failure) -> CertifyOutcome {
        try survive(app) { () throws(Failure) in
            app.daemon.kill()
            try app.daemon.start()
        }
    }

    /// The app is the same process, and connected again if it was, after another daemon has taken over.
    private static func survive(
        _ app: Rehearsal, _ replace: () throws(Failure) -> Void
    ) throws(Failure) -> CertifyOutcome {
        let before = try app.status()
        let wasConnected = try app.staysConnected()
        let start = EventLoop.now()
        try replace()
        try app.reconnect()
        let after = try app.status()
        guard let pid = after.pid, pid == before.pid else {
            return .broken(
                Rehearsal.withoutStop(after.lastReceipt?.explanation ?? "another process runs after the restart"))
        }
        let same = "the same process, \(after.state)"
        guard wasConnected else { return .handled(same, EventLoop.now() - start) }
        // A suspended app connects again when it is thawed. A request thaws no worker.
        if after.state == "suspended" {
            guard !app.isWorker else {
                return .handled("\(same): it connects again when it is woken", EventLoop.now() - start)
            }
            _ = try app.request("Activate")
        }
        guard try app.wait(atMost: .seconds(10), { () throws(Failure) in try app.staysConnected() }) else {
            return .broken("\(same), but it has not connected to its private bus again")
        }
        return .handled("\(same), connected again", EventLoop.now() - start)
    }
}
