import Control
import LifecycleCore

/// `status` and `explain` of one app.
extension Session {
    func statusSheet(_ app: AppStatus, _ client: Client) -> String {
        let name = app.name == app.id ? "" : " – \(app.name)"
        let style = app.error == nil ? Style(state: app.state) : .red
        var sheet = Sheet()
        sheet.add("State", app.state + (app.since.map { " since \(whenInFull($0))" } ?? ""), style)
        sheet.add("Error", app.error, .red)
        sheet.add("Manifest", app.files.map { escaped($0) })
        sheet.add("Template", app.template.map { escaped($0) + (app.isTransient == true ? Self.transient(app) : "") })
        sheet.add("Client", app.client.map { escaped($0.label) + ($0.pid.map { " (\($0))" } ?? "") })
        sheet.add("Program", app.programProtection)
        sheet.add("PID", app.pid.map { String($0) })
        sheet.add("Memory", memory(of: app).map { $0 + memoryParts(app) })
        sheet.add("Saved", saved(app))
        sheet.add("Stored", app.storedBytes.map { "\(formattedSize($0)) for its next launch" })
        sheet.add("Launches", app.error == nil ? String(app.launches) : nil)
        if app.interruptions > 0 { sheet.add("Interruptions", String(app.interruptions)) }
        sheet.add("Scenes", app.scenes.map { "\($0.id), \($0.role): \($0.state)" })
        sheet.add("Status", app.statusText)
        sheet.add("Warning", app.lastWarning, .yellow)
        sheet.add(
            "Floods", app.floods.map { "\($0): what the app sends waits while it takes a fifth of the daemon's time" },
            .yellow)
        sheet.add("Suspension", app.suspendProblem.map { sentence("it is impossible: \($0)") }, .yellow)
        sheet.add("Sockets", app.sockets.map(\.phrase))
        sheet.add("Timers", app.timers.map(timerLine))
        sheet.add("Pushes", app.pushEndpoint.map { "to \(escaped($0))" })
        addReasons(app, to: &sheet)
        addAllowance(app, to: &sheet)
        addLastEnd(app, client, to: &sheet)
        return screen.paint(app.mark, style) + " " + screen.paint(app.id, .bold) + name + "\n" + sheet.text(screen)
    }

    private static func transient(_ app: AppStatus) -> String {
        // The template of commands has no files.
        app.template == "run@" && app.files.isEmpty
            ? " (a command of 'greenroomctl run': it ends with its caller)"
            : " (the instance has no file: it is removed when nothing of it is left)"
    }

    private func memoryParts(_ app: AppStatus) -> String {
        guard let resident = app.residentBytes, let swapped = app.swappedBytes else { return "" }
        let inSwap = swapped > 0 ? ", \(formattedSize(swapped)) in swap" : ""
        return " (resident \(formattedSize(resident))\(inSwap))"
    }

    private func saved(_ app: AppStatus) -> String? {
        guard let bytes = app.savedBytes, bytes > 0 else { return nil }
        let how = app.isNotRunning ? "because it was ended for its memory" : "in swap while it is suspended"
        return "\(formattedSize(bytes)), \(how)"
    }

    /// What the app may still use: tasks, wakes, deadlines, background time, the processor.
    private func addAllowance(_ app: AppStatus, to sheet: inout Sheet) {
        sheet.add("Tasks", app.tasks.map(taskLine))
        sheet.add("Wakes", wakeLines(app))
        sheet.add("Throttled", app.throttle.map(throttleLine), .yellow)
        sheet.add("Deadline", app.deadline?.timeLeft, .yellow)
        // The same time may already be shown as the deadline. Of a suspended app it does not run out.
        if app.deadline?.what != "backgroundTime", app.state != "suspended" {
            sheet.add("Background", app.backgroundTimeRemaining.map { "\(countdown($0)) of background time left" })
        }
        if let used = app.backgroundTimeLastHour, used >= .seconds(1) {
            let limit = app.backgroundTimePerHour.map { "; \(countdown($0)) are allowed" } ?? ""
            sheet.add("Last hour", "\(countdown(used)) in the background on its own\(limit)")
            if isVerbose { sheet.add("", "Time that a user has asked for does not count (BackgroundTimePerHourSec=).") }
        }
    }

    /// How the app ended last.
    private func addLastEnd(_ app: AppStatus, _ client: Client, to sheet: inout Sheet) {
        guard let receipt = app.lastReceipt else { return }
        sheet.add("Last end", whenInFull(receipt.time))
        sheet.add("", ["\(receipt.explanation) (receipt \(receipt.id))"])
        if isVerbose { sheet.add("", receiptDetails(receipt)) }
        if app.isNotRunning { sheet.add("Output", lastLines(before: receipt, client)) }
    }

    private func wakeLines(_ app: AppStatus) -> [String] {
        var reasons: Set<String> = []
        return (app.wakes ?? []).map { wake in
            // Of several wakes for one reason, the time of the oldest is known.
            let isOldest = reasons.insert(wake.reason).inserted
            let awake = app.awake.first { isOldest && $0.reason == "wake" && $0.detail == wake.reason }
            let since = awake?.since.map { ", since \(whenInFull($0))" } ?? ""
            let number = wake.wakeID.map { " \($0)" } ?? ""
            return "\(wake.reason)\(number), \(countdown(wake.remaining)) left\(since)"
        }
    }

    private func taskLine(_ task: TaskStatus) -> String {
        let left = task.remaining.map { ", \(countdown($0)) left" } ?? ""
        let age = task.age.map { ", began \(formattedAge($0))" } ?? ""
        let owner = task.owner.map { ", process \($0)" } ?? ""
        let progress = task.progressText.isEmpty ? "" : ": " + task.progressText
        let state = task.isCancelled == true ? ", cancelled" : task.isContinued == true ? ", continued" : ""
        return "'\(task.name)'\(progress)\(state)\(left)\(age)\(owner)"
    }
}

extension AppStatus {
    /// How the program stays as it is (L10).
    fileprivate var programProtection: String? {
        let parts = [
            readOnlyProgram == true ? "the app cannot write in its folder" : nil,
            programDigest.map { "executed only with \($0)" },
        ].compactMap { $0 }
        return parts.isEmpty ? nil : parts.joined(separator: "; ")
    }

    /// What marks the app on a screen without colours: `●` for one that is awake, `◌` suspended, `○` not running.
    var mark: String {
        switch state {
        case "suspended": "◌"
        case "notRunning": "○"
        default: "●"
        }
    }
}

extension Style {
    /// The style of an app's name: it stands out while the app is awake.
    init?(app: AppStatus) {
        switch app.state {
        case "suspended": return nil
        case "notRunning": self = .faint
        default: self = .bold
        }
    }
}
