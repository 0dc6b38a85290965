package import Control
import LifecycleCore

/// What top knows of an app: its record, when that was received, and what it uses of the processor.
package struct AppRow: Equatable, Sendable {
    package var status: AppStatus
    /// When the record was received, as `EventLoop.now`: its countdowns count from then.
    package var received: Duration
    /// The share of one processor since the last look: 1.5 are one and a half processors. `nil`: not known, or not running.
    package var processor: Double?

    package init(_ status: AppStatus, received: Duration, processor: Double? = nil) {
        self.status = status
        self.received = received
        self.processor = processor
    }

    package var isRunning: Bool { status.state != "notRunning" }

    /// The time left of a countdown of the record.
    func left(_ span: Duration, _ now: Duration) -> Duration { max(.zero, span - (now - received)) }

    /// What ends next: the deadline, a task or a wake. `nil`: nothing counts down.
    package var nearestEnd: Duration? {
        var spans = status.tasks.compactMap(\.remaining) + (status.wakes ?? []).map(\.remaining)
        if let deadline = status.deadline?.remaining { spans.append(deadline) }
        return spans.min().map { received + $0 }
    }

    /// The state from an event, until the next record of the app arrives: what belonged to the old state is gone.
    package mutating func enter(_ state: String, since: Timestamp, at now: Duration) {
        guard state != status.state else { return }
        var next = AppStatus()
        next.id = status.id
        next.name = status.name
        next.state = state
        next.since = since
        next.trafficWakes = status.trafficWakes
        next.sockets = status.sockets
        if state != "notRunning" {
            next.pid = status.pid
            next.scenes = status.scenes
            next.memoryBytes = status.memoryBytes
            next.residentBytes = status.residentBytes
            next.swappedBytes = status.swappedBytes
            next.tasks = status.tasks
        }
        status = next
        received = now
        if state == "notRunning" || state == "suspended" { processor = nil }
    }

    // MARK: Scenes

    /// The line below the row of an app with several scenes (L34): `doc-2 active, doc-1 background, tools (panel) active`, the one
    /// activated last first, because a narrow screen cuts the end. `nil`: the row says all.
    package var scenes: String? {
        guard status.scenes.count > 1 else { return nil }
        return status.scenes.reversed().map { scene in
            let role = scene.role == "window" ? "" : " (\(scene.role))"
            let state =
                switch scene.state {
                case "foregroundActive": "active"
                case "foregroundInactive": "inactive"
                default: scene.state
                }
            return "\(scene.id)\(role) \(state)"
        }.joined(separator: ", ")
    }

    /// The line below the row of an app whose tasks report their progress (L21): `export 40% of 'Exporting video'`.
    package var progress: String? {
        let tasks = status.tasks.filter { $0.done != nil }.map { "\($0.name) \($0.progressText)" }
        return tasks.isEmpty ? nil : tasks.joined(separator: ", ")
    }

    /// How many lines of the table the app takes.
    var lines: Int { 1 + (status.scenes.count > 1 ? 1 : 0) + (status.tasks.contains { $0.done != nil } ? 1 : 0) }

    // MARK: What it waits for

    /// What the app waits for, or why it is awake, in few words; the most urgent first.
    package func waits(at now: Duration) -> String {
        if let error = status.error { return Self.withoutFolder(error) }
        var parts: [String] = []
        if let deadline = status.deadline, !isNamedByOthers(deadline) {
            parts.append(Self.purpose(deadline.what) + span(deadline.remaining, now))
        }
        switch status.state {
        case "notRunning": parts += launchConditions(now)
        case "suspended": parts += wakeConditions(now)
        default: parts += awakeReasons(now)
        }
        return parts.joined(separator: ", ")
    }

    /// `web.app:2:6: …`: a diagnostic without the folder of the file.
    private static func withoutFolder(_ error: String) -> String {
        guard error.hasPrefix("/"), let end = error.firstIndex(of: ":"), let slash = error[..<end].lastIndex(of: "/")
        else { return error }
        return String(error[error.index(after: slash)...])
    }

    /// Whether tasks or wakes, whose time it is, say more than the deadline.
    private func isNamedByOthers(_ deadline: DeadlineStatus) -> Bool {
        switch deadline.what {
        case "backgroundTime": !status.tasks.isEmpty
        case "wake": status.wakes?.isEmpty == false
        default: false
        }
    }

    /// The time left, unless it is the one that has a column of its own (`nearestEnd`).
    private func span(_ span: Duration?, _ now: Duration) -> String {
        guard let span else { return "" }
        // Of one moment, the daemon may compute several times.
        if let nearest = nearestEnd, abs((received + span - nearest) / .seconds(1)) < 0.5 { return "" }
        return " " + countdown(left(span, now))
    }

    private static func purpose(_ what: String) -> String {
        switch what {
        case "launch": "to finish launching"
        case "background": "to enter the background"
        case "terminate": "to terminate"
        case "backgroundTime": "background time"
        case "wake": "to complete the wake"
        case "watchdog": "heartbeat"
        case "thaw", "resume": "to resume"
        default: what
        }
    }

    private func launchConditions(_ now: Duration) -> [String] {
        var parts: [String] = []
        if let time = status.relaunchIn { parts.append("launched again in" + span(time, now)) }
        if let time = status.launchPostponed { parts.append("launch postponed for" + span(time, now)) }
        if status.launchWaiting != nil { parts.append("other launches") }
        if let size = status.memoryAwaitedBytes { parts.append("\(formattedSize(size)) of memory") }
        if let problem = status.sockets.first(where: { $0.problem != nil })?.problem {
            parts.append("socket: \(problem)")
        }
        if parts.isEmpty, let receipt = status.lastReceipt, receipt.isFailure { return [receipt.explanation] }
        if parts.isEmpty, let socket = status.sockets.first { parts.append("a connection to \(socket.address)") }
        return parts
    }

    private func wakeConditions(_ now: Duration) -> [String] {
        var parts: [String] = []
        if let time = status.timerIn { parts.append("timer" + span(time, now)) }
        if let time = status.pulseIn { parts.append("its ticks" + span(time, now)) }
        if let wake = status.deferredWake { parts.append("background time" + span(wake.remaining, now)) }
        if !status.sockets.isEmpty { parts.append("a connection") }
        if let watch = status.watch, watch.onlyPeers != true, watch.watched > 0 { parts.append("input") }
        if parts.isEmpty { parts.append("a request") }
        if status.wakeProblem != nil { parts.append("nothing else wakes it") }
        if let time = status.unloadsIn { parts.append("unloaded in" + span(time, now)) }
        return parts
    }

    /// Tasks and wakes are named with their time; the others are the state of the app.
    private static let known: Set<String> = ["task", "wake", "foreground", "launching", "terminating"]

    private func awakeReasons(_ now: Duration) -> [String] {
        var parts: [String] = []
        for task in status.tasks.prefix(3) { parts.append("task \(task.name)" + span(task.remaining, now)) }
        if status.tasks.count > 3 { parts.append("\(status.tasks.count - 3) more tasks") }
        for wake in status.wakes ?? [] {
            parts.append("to complete the wake (\(wake.reason))" + span(wake.remaining, now))
        }
        if let throttle = status.throttle { parts.append("throttled: \(throttle.explanation)") }
        if let problem = status.suspendProblem { parts.append("cannot be suspended: \(problem)") }
        for reason in status.awake where !Self.known.contains(reason.reason) {
            parts.append(reason.explanation)
        }
        if let time = status.suspendsIn { parts.append("suspended in" + span(time, now)) }
        if parts.isEmpty, let text = status.statusText { parts.append(text) }
        return parts
    }
}

/// A time left, in at most eight columns: `4s`, `1min 30s`, `12min`, `2h 5min`. A second begins when it is shown, so that the
/// last one that is shown is `1s`.
package func countdown(_ time: Duration) -> String {
    let (whole, fraction) = max(.zero, time).components
    let seconds = whole + (fraction > 0 ? 1 : 0)
    // Beyond this, minutes and hours are enough, and seconds would not fit.
    if seconds >= 36_000 { return Duration.seconds(seconds / 3600 * 3600).timeSpan(digits: 0) }
    if seconds >= 600 { return Duration.seconds(seconds / 60 * 60).timeSpan(digits: 0) }
    return Duration.seconds(seconds).timeSpan(digits: 0)
}
