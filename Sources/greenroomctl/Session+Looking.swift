import JSON
import Systemd

/// Verbs that only look.
extension Session {
    func list() throws(Failure) -> Int32 {
        let apps = try connect().call("List")
        guard !wantsJSON else {
            try show(apps)
            return 0
        }
        try show(appList(apps))
        return 0
    }

    private func appList(_ apps: JSONValue) -> String {
        let records = (apps.arrayValue ?? []).map { Record($0) }
        guard !records.isEmpty || !screen.isTerminal else {
            return
                "No apps: put manifests into the folder apps of the daemon's configuration, then greenroomctl reload.\n"
        }
        var table = Table(["ID", "STATE", "PID", "MEMORY", "SINCE", "TASKS/DEADLINE"], right: [2, 3])
        table.rows = records.map { app in
            let error = app.text("error")
            return [
                Cell(app.id, error == nil ? .bold : .bad), Cell(app.state, Style(state: app.state)),
                Cell(app.integer("pid").map(String.init)), Cell(memory(of: app)), Cell(when(app, "since")),
                Cell(error ?? whatCounts(app), error == nil ? nil : .bad),
            ]
        }
        return table.text(screen) + (screen.isTerminal ? summary(records) : "")
    }

    /// “5 apps: 1 active, 3 suspended, 1 not running”.
    private func summary(_ apps: [Record]) -> String {
        let order = ["active", "inactive", "launching", "background", "suspended", "terminating", "notRunning"]
        let parts = order.compactMap { state -> String? in
            let count = apps.count { $0.state == state }
            return count == 0 ? nil : "\(count) \(state == "notRunning" ? "not running" : state)"
        }
        let text = "\(apps.count) \(apps.count == 1 ? "app" : "apps"): \(parts.joined(separator: ", "))."
        return "\n" + screen.paint(text, .faint) + "\n"
    }

    private func memory(of app: Record) -> String? {
        app.isNotRunning ? nil : app.integer("memoryBytes").map(size)
    }

    /// What is about to happen to an app, in a few words.
    private func whatCounts(_ app: Record) -> String {
        var parts: [String] = []
        if let deadline = app.record("deadline"), let left = deadline.seconds("remainingSeconds") {
            parts.append("\(timeSpan(left)) left \(purpose(deadline.text("what") ?? "?"))")
        }
        let tasks = app.records("tasks")
        for task in tasks.prefix(2) {
            let left = task.seconds("remainingSeconds").map { " (\(timeSpan($0)) left)" } ?? ""
            parts.append("task “\(task.text("name") ?? "?")”\(left)")
        }
        if tasks.count > 2 { parts.append("\(tasks.count - 2) more tasks") }
        if let time = app.seconds("launchPostponedSeconds") { parts.append("not launched again for \(timeSpan(time))") }
        return parts.joined(separator: ", ")
    }

    // MARK: status

    func status() throws(Failure) -> Int32 {
        guard !operands.isEmpty else { return try houseStatus() }
        let client = try connect()
        var found: [JSONValue] = []
        var problems: [Failure] = []
        for name in operands {
            do throws(Failure) {
                found.append(try client.call("Status", [.string(name)]))
            } catch {
                problems.append(error)
            }
        }
        if wantsJSON {
            if operands.count > 1 { try show(.array(found)) } else if let app = found.first { try show(app) }
        } else {
            try show(found.map { sheet(Record($0)) }.joined(separator: "\n"))
        }
        for problem in problems { complain(problem) }
        if let problem = problems.first { return problem.status }
        return found.contains { Record($0).isNotRunning } ? 3 : 0
    }

    /// Without a name: the daemon, the memory, and all apps.
    private func houseStatus() throws(Failure) -> Int32 {
        let client = try connect()
        let apps = try client.call("List")
        guard !wantsJSON else {
            try show(apps)
            return 0
        }
        let version = try client.call("Version").stringValue.map(escaped) ?? "?"
        var sheet = Sheet()
        sheet.add("greenroomd", "\(version), at \(escaped(client.endpoint.socket))")
        addMemory(Record(try client.call("Pressure")), to: &sheet)
        try show(sheet.text(screen) + "\n" + appList(apps))
        return 0
    }

    private func sheet(_ app: Record) -> String {
        let name = app.text("name").flatMap { $0 == app.id ? nil : " – \($0)" } ?? ""
        let style = app.text("error") == nil ? Style(state: app.state) : .bad
        var sheet = Sheet()
        let since = whenInFull(app, "since").map { ", since \($0)" } ?? ""
        sheet.add("State", app.state + since, style)
        sheet.add("Error", app.text("error"), .bad)
        sheet.add("PID", app.integer("pid").map(String.init))
        sheet.add("Memory", memory(of: app))
        sheet.add("Launches", app.integer("launches").map(String.init))
        if let count = app.integer("interruptions"), count > 0 {
            sheet.add("Interrupted", count == 1 ? "once" : "\(count) times")
        }
        sheet.add("Status", app.text("statusText"))
        sheet.add("Tasks", app.records("tasks").map(taskLine))
        if let deadline = app.record("deadline"), let left = deadline.seconds("remainingSeconds") {
            sheet.add("Deadline", "\(timeSpan(left)) left \(purpose(deadline.text("what") ?? "?"))", .moving)
        }
        if let left = app.seconds("backgroundTimeRemainingSeconds"), left < 1e9 {
            sheet.add("Background", "\(timeSpan(left)) of background time left")
        }
        if let time = app.seconds("launchPostponedSeconds") {
            sheet.add("Postponed", "not launched again for \(timeSpan(time)), unless a user launches it")
        }
        if let receipt = app.record("lastReceipt") { addLastEnd(receipt, to: &sheet) }
        return screen.paint("●", style) + " " + screen.paint(app.id, .bold) + name + "\n" + sheet.text(screen)
    }

    private func taskLine(_ task: Record) -> String {
        let left = task.seconds("remainingSeconds").map { ", \(timeSpan($0)) left" } ?? ""
        let age = task.seconds("ageSeconds").map { ", begun \(ago($0))" } ?? ""
        let owner = task.integer("owner").map { ", by process \($0)" } ?? ""
        return "“\(task.text("name") ?? "?")”\(left)\(age)\(owner)"
    }

    private func addLastEnd(_ receipt: Record, to sheet: inout Sheet) {
        sheet.add("Last end", whenInFull(receipt, "time"))
        sheet.add("", [ending(receipt) + " (receipt \(receipt.integer("id") ?? 0))"])
    }
}
