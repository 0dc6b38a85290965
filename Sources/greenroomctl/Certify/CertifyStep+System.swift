import Control
import LifecycleCore
import Manifest
import Systemd

/// The steps about the system: events of the machine, and the lock of the screen.
extension CertifySteps {
    /// Two states of each kind, as the sources of the machine report them (L33).
    private static let payloads: [String: (first: String, latest: String)] = [
        "time": ("midnight", "clock-set"), "locale": ("LANG=C.UTF-8", "LANG=de_DE.UTF-8"),
        "battery": ("42 discharging", "41 discharging"),
        "accessory": ("none", "usb Keyboard"), "display": ("none", "card0-HDMI-A-1 connected"),
        "orientation": ("left-up", "normal"), "proximity": ("near", "far"), "settings": ("absent", "1764264000.0 512"),
        "account": ("none", "certify"), "screenMode": ("dark", "light"),
    ]

    /// Each kind that the app is notified of changes twice while it is suspended: it gets the latest state, when it runs.
    static func systemEvents(_ app: Rehearsal) throws(Failure) -> CertifyOutcome {
        // The steps "lock" and "memory warning" try the other kinds.
        let kinds = app.manifest.policy.notifications.names.filter { payloads[$0] != nil }
        guard !kinds.isEmpty else { return .notApplicable("Notifications= names none") }
        if app.isWorker { return .notApplicable("nothing brings a worker to the foreground") }
        for kind in kinds {
            guard let states = payloads[kind] else { continue }
            for state in [states.first, states.latest] { _ = try app.request("Send", .string(kind), .string(state)) }
        }
        guard try app.status().state == "suspended" else { return .broken("it was woken by an event") }
        _ = try app.request("Activate")
        if let end = try app.unexpectedEnd() { return end }
        let names = kinds.joined(separator: ", ")
        // What an app has handled it may have removed; and the machine may have reported another state meanwhile.
        for kind in kinds where app.inbox(kind) == payloads[kind]?.first {
            return .broken("of \(kind) it has what was before the latest state")
        }
        let signal = app.manifest.signals.notification
        guard let notice = try app.notice(signal) else { return .ignored(app.silence("Notification", signal)) }
        return .handled("\(names) changed twice while it was suspended; \(notice) of the latest")
    }

    /// The app leaves the foreground while the screen is locked, and comes back. Protected data is not available meanwhile.
    static func lock(_ app: Rehearsal) throws(Failure) -> CertifyOutcome {
        let start = app.events.count
        try app.lock(true)
        let hasLeft = try isReached(app, ["background", "suspended"])
        try app.lock(false)
        let isBack = try isReached(app, ["active"])
        if let end = try app.unexpectedEnd() { return end }
        guard hasLeft, isBack else {
            return .broken(hasLeft ? "it did not come back to the foreground" : "it did not leave the foreground")
        }
        let took = app.events.count > start ? app.time(from: "inactive", to: "background") : nil
        let what = "left the foreground while the screen was locked, and came back"
        let (enter, protected) = (app.manifest.signals.enterBackground, app.manifest.policy.usesProtectedData)
        let signal = protected ? app.manifest.signals.notification : enter
        guard let notice = try app.notice(signal) else {
            return .ignored("\(what); \(app.silence(protected ? "Notification" : "EnterBackground", signal))", took)
        }
        return .handled("\(what); \(notice)" + (protected ? " of protectedData" : ""), took)
    }

    private static func isReached(_ app: Rehearsal, _ states: [String]) throws(Failure) -> Bool {
        // It may have ended before the step began.
        _ = try app.wait(atMost: .seconds(30)) { () throws(Failure) in
            try (states + ["notRunning"]).contains(app.status().state)
        }
        return try states.contains(app.status().state)
    }
}
