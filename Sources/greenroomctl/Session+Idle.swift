import Control
import JSON
import LifecycleCore
import Systemd

/// Why apps are awake, and what would wake them (L50, L51).
extension Session {
    /// `idle`: a line for each app.
    func idle() throws(Failure) -> Int32 {
        let client = try connect()
        var found: [AppStatus] = []
        var problems: [Failure] = []
        if apps.isEmpty { found = try client.call("List") } else { (found, problems) = try statuses(client) }
        try wantsJSON ? show(.array(found.map(idleDocument))) : show(idleTable(found))
        problems.forEach(report)
        return problems.first?.status ?? 0
    }

    private func idleTable(_ apps: [AppStatus]) -> String {
        var table = Table(["APP", "STATE", "SINCE", "WHY"])
        table.rows = apps.map { app in
            // Elsewhere a line is an app.
            let why = app.why(verbose: isVerbose).joined(separator: screen.isTerminal ? "\n" : " ")
            return [
                Cell(app.id, Style(app: app)), Cell(app.state, Style(state: app.state)),
                Cell(app.wakefulSince.map(when)), Cell(why, app.state == "notRunning" ? .faint : nil),
            ]
        }
        return table.text(screen)
    }

    /// The keys of the status that are about waking, and the line for people.
    private func idleDocument(_ app: AppStatus) -> JSONValue {
        let keys = [
            "state", "since", "awake", "suspendsInSeconds", "trafficWakes", "lastInput", "watch", "deferredWake",
            "heldLocks", "shortestWaitSeconds", "timerInSeconds", "pulseInSeconds", "sockets",
            "connectionsWaitingSeconds", "unloadsInSeconds",
            "launchPostponedSeconds", "wakeProblem",
        ]
        let members = (app.json.objectValue ?? []).filter { keys.contains($0.0) }
        return .object(
            [("app", .string(app.id)), ("why", .string(app.why(verbose: isVerbose).joined(separator: " ")))] + members)
    }

    // MARK: status

    /// Why the app runs or not, or what would change that.
    func addReasons(_ app: AppStatus, to sheet: inout Sheet) {
        switch app.state {
        case "notRunning":
            // The error has a line of its own.
            if app.error == nil { sheet.add("Launch", app.reasons.lines(verbose: isVerbose)) }
        case "suspended":
            sheet.add("Suspended", app.reasons.lines(verbose: isVerbose))
            sheet.add("", app.suspendedWith.lines(verbose: isVerbose), .yellow)
        case "background": sheet.add("Awake", awakeLines(app))
        // Of an app in the foreground, and of one whose process begins or ends, the state says enough.
        default: if isVerbose { sheet.add("Awake", awakeLines(app)) }
        }
        sheet.add("Traffic", trafficLine(app))
    }

    private func awakeLines(_ app: AppStatus) -> [String] {
        var app = app
        // Open tasks and wakes have lines of their own.
        if !isVerbose { app.awake.removeAll { $0.reason == "task" || $0.reason == "wake" } }
        let lines = app.awakeReasons.lines(verbose: isVerbose)
        guard let since = app.awake.first?.since, let first = lines.first else { return lines }
        // When it began is said of the first reason, which has lasted longest.
        return ["\(first.dropLast()), since \(whenInFull(since))."] + lines.dropFirst()
    }

    /// `since …: it used 58s of CPU time within 1min in the background; …`.
    func throttleLine(_ throttle: ThrottleStatus) -> String {
        (throttle.since.map { "since \(whenInFull($0)): " } ?? "") + throttle.explanation
    }

    /// `woken 17 times, last 3s ago by a connection from 192.0.2.7:50123`; with -v also which process and descriptor.
    private func trafficLine(_ app: AppStatus) -> String? {
        guard let count = app.trafficWakes, count > 0 else { return nil }
        let times = "woken \(count) \(count == 1 ? "time" : "times")"
        guard let input = app.lastInput else { return times }
        let time = input.at.map { screen.isTerminal ? " \(when($0))" : " at \(when($0))" } ?? ""
        return "\(times), last\(time) by \(isVerbose ? input.phrase : input.plain)"
    }
}

extension AppStatus {
    /// Since when the app is awake for its first reason, or in its state.
    fileprivate var wakefulSince: Timestamp? { awake.first?.since ?? since }

    /// Why the app is awake, or what would wake or launch it; nothing for an app that only a request launches.
    fileprivate func why(verbose: Bool) -> [String] {
        var found = state == "suspended" ? reasons + suspendedWith : reasons
        if isNotRunning { for socket in sockets where socket.problem != nil { found.add(socket.phrase) } }
        return found.lines(verbose: verbose)
    }
}
