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
            [
                Cell(app.id, .bold), Cell(app.state, Style(state: app.state)), Cell(app.wakefulSince.map(when)),
                Cell(app.whyAwake),
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
        return .object([("app", .string(app.id)), ("why", .string(app.whyAwake))] + members)
    }

    // MARK: status

    /// The lines of `status`. Its state says enough of an app in the foreground, and of one whose process begins or ends.
    func addWakefulness(_ app: AppStatus, to sheet: inout Sheet) {
        if app.state == "background" {
            // Open tasks and wakes have lines of their own.
            let reasons = app.awake.filter { $0.reason != "task" && $0.reason != "wake" }
            let left = app.timeToSuspension.map { [$0] } ?? []
            sheet.add("Awake", reasons.map(awakeLine) + left)
            sheet.add("Watch", app.watchProblems)
        }
        if app.state == "suspended", let watch = app.watch,
            watch.onlyPeers != true || !watch.unwatched.isEmpty || app.wakeProblem != nil
        {
            sheet.add("Watch", app.wakeConditions)
        }
        sheet.add("Deferred", app.deferredWake.map(\.phrase), .yellow)
        sheet.add("Locks", app.heldLocks.map(\.phrase), .yellow)
        sheet.add("Traffic", trafficLine(app))
    }

    private func awakeLine(_ reason: AwakeStatus) -> String {
        reason.explanation + (reason.since.map { ", since \(whenInFull($0))" } ?? "")
    }

    /// `since …: it used 58s of CPU time within 1min in the background; …`.
    func throttleLine(_ throttle: ThrottleStatus) -> String {
        (throttle.since.map { "since \(whenInFull($0)): " } ?? "") + throttle.explanation
    }

    /// `woken 17 times, last 3s ago by a connection from 192.0.2.7:50123 (descriptor 5 of process 4711)`.
    private func trafficLine(_ app: AppStatus) -> String? {
        guard let count = app.trafficWakes, count > 0 else { return nil }
        let times = "woken \(count) \(count == 1 ? "time" : "times")"
        guard let input = app.lastInput else { return times }
        let time = input.at.map { screen.isTerminal ? " \(when($0))" : " at \(when($0))" } ?? ""
        return "\(times), last\(time) by \(input.phrase)"
    }
}

extension AppStatus {
    /// Since when the app is awake for its first reason, or in its state.
    fileprivate var wakefulSince: Timestamp? { awake.first?.since ?? since }

    /// Why the app is awake, or what would wake or launch it, in one line; empty for an app that only a request launches.
    fileprivate var whyAwake: String {
        switch state {
        case "notRunning": launchConditions.joined(separator: "; ")
        case "suspended": (wakeConditions + suspendedWith).joined(separator: "; ")
        default:
            (awake.map(\.explanation) + (timeToSuspension.map { [$0] } ?? []) + watchProblems).joined(separator: "; ")
        }
    }

    /// Why an app is left awake whose descriptors cannot be watched.
    fileprivate var watchProblems: [String] { watch?.unwatched.map(\.phrase) ?? [] }

    fileprivate var timeToSuspension: String? {
        let isHeld = awake.contains { $0.reason == "fileLock" }
        return suspendsIn.map {
            isHeld
                ? "its suspension is tried again in \(countdown($0))"
                : "it is suspended in \(countdown($0)) unless it works"
        }
    }

    /// What waits until a suspended app is awake again, and how long it stays in memory.
    fileprivate var suspendedWith: [String] {
        [
            deferredWake.map(\.phrase), heldLocks.map(\.phrase),
            unloadsIn.map { "it is unloaded in \(countdown($0)) unless it is woken" },
        ].compactMap { $0 }
    }

    /// What launches an app that is not running.
    private var launchConditions: [String] {
        guard !sockets.isEmpty else { return [] }
        let isComplete = sockets.allSatisfy { $0.problem == nil }
        var lines = heldInput.map { ["not running; \($0) launches it"] } ?? []
        if !isComplete { lines = ["not running; it is not launched before all its sockets are bound"] }
        if let time = launchPostponed { lines.append("its launch is postponed for \(countdown(time))") }
        if let time = connectionsWaiting { lines.append("connections have waited for \(countdown(time))") }
        return lines + sockets.filter { $0.problem != nil }.map(\.phrase)
    }

    /// `a connection to 127.0.0.1:8080 or /run/app.sock, or a datagram at @app`; `nil`: no socket is held.
    private var heldInput: String? {
        let held = sockets.filter { $0.problem == nil }
        let kinds = [
            ("a connection to ", held.filter { $0.type != "datagram" }),
            ("a datagram at ", held.filter { $0.type == "datagram" }),
        ]
        let parts = kinds.compactMap { words, sockets -> String? in
            guard !sockets.isEmpty else { return nil }
            let shown = sockets.prefix(3).map(\.address).joined(separator: " or ")
            return words + shown + (sockets.count > 3 ? " or \(sockets.count - 3) more" : "")
        }
        return parts.isEmpty ? nil : parts.joined(separator: ", or ")
    }

    /// What wakes a suspended app, and what does not.
    fileprivate var wakeConditions: [String] {
        // Held sockets wake whatever Traffic= says.
        var lines = heldInput.map { ["\($0) wakes it"] } ?? []
        let other = lines.isEmpty ? "a request" : "that or a request"
        if let wakeProblem { return [wakeProblem] + (watch?.unwatched.map(\.phrase) ?? []) }
        guard let watch else { return lines.isEmpty ? ["only a request wakes it"] : lines }
        if watch.onlyPeers == true {
            lines.append("only \(other) wakes it, or a local peer whose buffer is more than half full")
        } else if watch.watched == 0, !lines.isEmpty {
        } else if watch.watched == 0 {
            lines.append("it has no descriptor at which input can wake it")
        } else {
            let descriptors = watch.watched == 1 ? "1 descriptor" : "\(watch.watched) descriptors"
            lines.append("input at \(descriptors) wakes it\(watch.threshold)")
        }
        lines += watch.unwatched.map(\.phrase)
        if let time = timerIn { lines.append("its next timer wakes it in \(countdown(time))") }
        if let wait = shortestWait {
            let pulse = pulseIn.map { "; it runs for a moment in \(countdown($0))" } ?? ""
            lines.append("its ticks of \(wait.timeSpan) pass unnoticed\(pulse)")
        }
        return lines
    }
}

extension SocketStatus {
    /// `127.0.0.1:8080 (stream)`, `80 (stream): bind: Address already in use`.
    var phrase: String {
        let kind = type == "sequentialPacket" ? "sequential packets" : type
        return "\(address) (\(kind))" + (problem.map { ": \($0)" } ?? "")
    }
}

extension WatchStatus {
    /// `, from 64B or after 30s`.
    fileprivate var threshold: String {
        guard let bytes = thresholdBytes else { return "" }
        return ", from \(formattedSize(bytes))" + (thresholdTime.map { " or after \($0.timeSpan)" } ?? "")
    }
}

extension DeferredWakeStatus {
    /// `a timer descriptor (descriptor 9 of process 4711) wakes it in 12min: its background time is used up`.
    fileprivate var phrase: String {
        "\(input?.phrase ?? "a request that it has sent to itself") wakes it in \(countdown(remaining)): \(explanation)"
    }
}
