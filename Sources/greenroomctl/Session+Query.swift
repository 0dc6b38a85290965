import Control
import Glibc
import JSON
import LifecycleCore
import Systemd

/// Verbs that show apps.
extension Session {
    func list() throws(Failure) -> Int32 {
        let client = try connect()
        let all = try client.call("List", as: [AppStatus].self)
        let named = apps.isEmpty ? all : all.filter { app in apps.contains { isMatch(app.id, $0) } }
        let found = ListSelection(invocation.options).selected(named)
        // Without a match a table of all apps would say how to add the first one.
        let isEmpty = found.isEmpty && !all.isEmpty
        let hasClients = invocation.has(.clients)
        let makeTable = hasClients ? clientTable : invocation.has(.scenes) ? sceneTable : table
        try wantsJSON
            ? show(hasClients ? clientsJSON(found) : found.json)
            : show(isEmpty ? "" : all.isEmpty ? noApps(client) : makeTable(found))
        for word in apps where !all.contains(where: { isMatch($0.id, word) }) { reportUnmatched(word) }
        if found.isEmpty, !named.isEmpty, screen.isTerminal, !wantsJSON {
            try write("No app is in this state: \(escaped(invocation.options[.state] ?? "")).\n", to: STDERR_FILENO)
        }
        warnAboutFiles(found)
        return 0
    }

    /// How to add the first app, on a terminal. The daemon is asked for its folders.
    private func noApps(_ client: Client) throws(Failure) -> String {
        guard screen.isTerminal else { return "" }
        let info = try client.info()
        let folder = info.config.map { escaped($0) + "/apps" } ?? "the folder 'apps' of the daemon's configuration"
        let others = info.vendor.map { " Packages put theirs into \(escaped($0))/apps." } ?? ""
        let text =
            "No apps. To add one, run '\(command("init NAME -- COMMAND…"))', or put a manifest into \(folder). Then run "
            + "'\(command("reload"))'.\(others)"
        return wrapped(text, to: screen.width ?? 80).joined(separator: "\n") + "\n"
    }

    private func table(_ apps: [AppStatus]) -> String {
        var table = Table(["ID", "STATE", "PID", "MEMORY", "SINCE", "TASKS/DEADLINE"], right: [2, 3])
        table.isFull = invocation.has(.full)
        table.rows = apps.map { app in
            let style: Style? = app.error == nil ? Style(app: app) : .red
            return [
                Cell(app.id, style), Cell(app.state, Style(state: app.state)),
                Cell(app.pid.map { String($0) }), Cell(memory(of: app)), Cell(app.since.map(when)),
                Cell(app.error ?? pendingEvents(app), app.error == nil ? nil : .red),
            ]
        }
        return table.text(screen) + (screen.isTerminal ? summary(apps) : "")
    }

    /// A line for each scene of each app that runs (L34).
    private func sceneTable(_ apps: [AppStatus]) -> String {
        var table = Table(["APP", "SCENE", "ROLE", "STATE", "SNAPSHOT"])
        table.isFull = invocation.has(.full)
        table.rows = apps.flatMap { app in
            app.allScenes.map { scene in
                [
                    Cell(app.id, Style(app: app)), Cell(scene.id), Cell(scene.role),
                    Cell(scene.state, scene.state == "foregroundActive" ? Style(state: "active") : nil),
                    Cell(scene.snapshotTime.map(when)),
                ]
            }
        }
        return table.text(screen)
    }

    /// `5 apps: 1 active, 3 suspended, 1 not running.`
    private func summary(_ apps: [AppStatus]) -> String {
        let parts = Overview.states.compactMap { state -> String? in
            let count = apps.count { $0.state == state }
            return count == 0 ? nil : "\(count) \(stateInWords(state))"
        }
        let text = "\(apps.count) \(apps.count == 1 ? "app" : "apps"): \(parts.joined(separator: ", "))."
        return "\n" + screen.paint(text, .faint) + "\n"
    }

    func memory(of app: AppStatus) -> String? {
        app.isNotRunning ? nil : formattedSize(app.memoryBytes)
    }

    /// The deadline, the first tasks and a postponed launch, on one line.
    private func pendingEvents(_ app: AppStatus) -> String {
        var parts: [String] = []
        if let deadline = app.deadline?.timeLeft { parts.append(deadline) }
        for task in app.tasks.prefix(2) {
            let left = task.remaining.map { " (\(countdown($0)) left)" } ?? ""
            let progress = task.progressText.isEmpty ? "" : " \(task.progressText)"
            parts.append("task '\(task.name)'\(progress)\(left)")
        }
        if app.tasks.count > 2 { parts.append("\(app.tasks.count - 2) more tasks") }
        parts += app.sockets.filter { $0.problem != nil }.map(\.phrase)
        if let time = app.connectionsWaiting { parts.append("connections have waited for \(countdown(time))") }
        if let time = app.relaunchIn { parts.append("launched again in \(countdown(time))") }
        if let time = app.launchPostponed { parts.append("launch postponed for \(countdown(time))") }
        if let time = app.launchWaiting { parts.append("launch has waited for \(countdown(time))") }
        if let size = app.memoryAwaitedBytes { parts.append("waits for \(formattedSize(size)) of memory") }
        return parts.joined(separator: ", ")
    }

    // MARK: status

    func status() throws(Failure) -> Int32 {
        guard !operands.isEmpty else { return try daemonStatus() }
        let client = try connect()
        let (found, problems) = try statuses(client)
        if wantsJSON {
            if invocation.namesSeveral { try show(found.json) } else if let app = found.first { try show(app.json) }
        } else {
            try show(found.map { statusSheet($0, client) }.joined(separator: "\n"))
        }
        problems.forEach(report)
        warnAboutFiles(found)
        if let problem = problems.first { return problem.status }
        return found.contains { $0.isNotRunning } ? Self.notRunning : 0
    }

    /// The exit status of `status` and `is-active` for apps that do not run, as in systemctl.
    static let notRunning: Int32 = 3

    /// The records of the apps that the command line names, and the errors of those that have none.
    func statuses(_ client: Client) throws(Failure) -> (found: [AppStatus], problems: [Failure]) {
        var found: [AppStatus] = []
        var problems: [Failure] = []
        for name in try expand(apps, client) {
            do throws(Failure) {
                found.append(try client.call("Status", [.string(name)]))
            } catch {
                problems.append(error)
            }
        }
        return (found, problems)
    }

    /// Prints a state for each app.
    func isActive() throws(Failure) -> Int32 {
        let (found, problems) = try statuses(try connect())
        if wantsJSON {
            try show(.array(found.map { .object([("app", .string($0.id)), ("state", .string($0.state))]) }))
        } else {
            try show(found.map { $0.state + "\n" }.joined())
        }
        problems.forEach(report)
        if let problem = problems.first { return problem.status }
        return found.contains { !$0.isNotRunning } ? 0 : Self.notRunning
    }

    /// Prints a warning on standard error about manifests that changed on disk, as systemctl does.
    func warnAboutFiles(_ apps: [AppStatus]) {
        let changed = apps.filter { $0.needsReload == true }
        if changed.count == 1, let app = changed.first, let manifest = app.files.first, isRemoved(manifest) {
            let name = escaped(app.id)
            warn("The manifest of '\(name)' was removed. Run '\(command("reload"))' to read all manifests again.")
        } else {
            warnAboutFiles(of: changed.map(\.id))
        }
    }

    private func isRemoved(_ path: String) -> Bool { access(path, F_OK) != 0 && errno == ENOENT }

    /// - Parameter changed: the apps whose manifests changed.
    func warnAboutFiles(of changed: [String]) {
        guard let first = changed.first else { return }
        let which = changed.count == 1 ? "The manifest of '\(escaped(first))'" : "\(changed.count) manifests"
        warn("\(which) changed on disk. Run '\(command("reload"))' to read it again.")
    }

    /// Not with --json, where standard error has only errors.
    func warn(_ text: String) {
        guard !wantsJSON else { return }
        let sentence = "Warning: " + text
        let lines = screen.errorWidth.map { wrapped(sentence, to: $0) } ?? [sentence]
        try? write(lines.joined(separator: "\n") + "\n", to: STDERR_FILENO)
    }

    /// The daemon as a whole.
    private func daemonStatus() throws(Failure) -> Int32 {
        let client = try connectForOverview()
        var overview = Overview()
        overview.version = try client.call("Version")
        overview.info = try client.info()
        overview.uptime = overview.info.uptime(at: EventLoop.now())
        overview.memory = try client.call("Pressure")
        overview.apps = try client.call("List")
        try wantsJSON ? show(overview.json) : show(overview.text(screen, self))
        warnAboutFiles(overview.apps)
        return 0
    }

    /// Without a verb, a user who tries the program for the first time learns where help is.
    private func connectForOverview() throws(Failure) -> Client {
        do throws(Failure) {
            return try connect()
        } catch {
            guard invocation.isBare else { throw error }
            var failure = error
            failure.hint = (error.hint.map { $0 + "\n" } ?? "") + "For help: greenroomctl help"
            throw failure
        }
    }
}

extension AppStatus {
    var isNotRunning: Bool { state == "notRunning" }

    /// Its scenes; if it has `main` alone, that is in the state of the app.
    var allScenes: [SceneStatus] {
        if isNotRunning || !scenes.isEmpty { return scenes }
        let state = AppState(rawValue: state)?.sceneState ?? .unattached
        return [SceneStatus(id: "main", role: "window", state: state.name)]
    }
}

extension DeadlineStatus {
    /// `3.2s left to finish launching`.
    var timeLeft: String? { remaining.map { "\(countdown($0)) left \(purpose)" } }

    /// What the time is for; follows "3.2s left" or "5s".
    var purpose: String {
        switch what {
        case "launch": "to finish launching"
        case "background": "to enter the background"
        case "terminate": "to terminate"
        case "backgroundTime": "of background time"
        case "wake": "to complete the wake"
        case "watchdog": "until the next heartbeat"
        case "thaw": "to resume execution"
        default: "for \(what)"
        }
    }
}

/// A remaining time: with tenths of a second below ten seconds.
func countdown(_ time: Duration) -> String { time.timeSpan(digits: time < .seconds(10) ? 1 : 0) }

/// A state in a sentence.
func stateInWords(_ state: String) -> String { state == "notRunning" ? "not running" : state }
