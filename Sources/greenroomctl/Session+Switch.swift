import Control
import Glibc
import JSON
import Posix
import Systemd

/// `switch`: a switcher in the terminal (L55). A launcher with windows does the same over D-Bus, with `List`, `ReadSnapshot`, `Activate`
/// and `ActivateScene`, and `CloseScene` and `Terminate` for what the user throws away (L34, L42).
extension Session {
    /// An app, or one of several windows of it.
    private struct Entry {
        let app: AppStatus
        /// `nil`: the app has one window.
        let scene: SceneStatus?

        var title: String { escaped(app.id) + (scene.map { " (\(escaped($0.id)))" } ?? "") }
        var state: String { scene?.state ?? app.state }
        var isInFront: Bool { scene.map { $0.state.hasPrefix("foreground") } ?? app.foreground }
    }

    func switchApps() throws(Failure) -> Int32 {
        let client = try connect()
        let isInteractive = isatty(STDIN_FILENO) == 1 && screen.isTerminal && !wantsJSON
        while true {
            let entries = try entries(client)
            if wantsJSON { return try showJSON(entries) }
            guard !entries.isEmpty else {
                try show("No app runs that could be shown.\n")
                return 0
            }
            try show(table(entries))
            guard isInteractive else { return 0 }
            try write("Number, -NUMBER to close the window or remove the app, or Enter to leave: ", to: STDERR_FILENO)
            guard let answer = readLine(), !answer.allSatisfy({ $0 == " " }) else { return 0 }
            guard let number = Int(answer.filter { $0 != " " }), entries.indices.contains(abs(number) - 1) else {
                try write("Expected a number from 1 to \(entries.count).\n", to: STDERR_FILENO)
                continue
            }
            let entry = entries[abs(number) - 1]
            guard number < 0 else { return try activate(entry, client) }
            guard let scene = entry.scene else {
                try request(client, entry, "Terminate", [.bool(true)])
                continue
            }
            do throws(Failure) {
                try request(client, entry, "CloseScene", [.string(scene.id)])
            } catch  where !error.isLost {
                // An app has a scene, and one that outlived its process is none of the process.
                try write(error.sentence + "\n", to: STDERR_FILENO)
            }
        }
    }

    /// What can be shown: those in the foreground first, then those that entered their state last. Workers show nothing.
    private func entries(_ client: Client) throws(Failure) -> [Entry] {
        let apps = try client.call("List", as: [AppStatus].self).filter {
            $0.role != "worker" && !["notRunning", "terminating"].contains($0.state)
        }
        return apps.flatMap { app -> [Entry] in
            let windows = app.scenes.filter { $0.role == "window" }
            return windows.count < 2
                ? [Entry(app: app, scene: nil)] : windows.reversed().map { Entry(app: app, scene: $0) }
        }.sorted { first, second in
            if first.isInFront != second.isInFront { return first.isInFront }
            return (first.app.since?.microseconds ?? 0, second.app.id) > (
                second.app.since?.microseconds ?? 0, first.app.id
            )
        }
    }

    private func table(_ entries: [Entry]) -> String {
        var table = Table(["", "APP", "STATE", "NAME"], right: [0], kept: 3)
        for (index, entry) in entries.enumerated() {
            table.rows.append([
                Cell("\(index + 1)"), Cell(entry.title, entry.isInFront ? .bold : nil), Cell(entry.state),
                Cell(entry.app.name == entry.app.id ? nil : escaped(entry.app.name)),
            ])
        }
        return table.text(screen)
    }

    private func showJSON(_ entries: [Entry]) throws(Failure) -> Int32 {
        try show(
            .array(
                entries.map { entry in
                    .object(
                        [("app", .string(entry.app.id))] + (entry.scene.map { [("scene", .string($0.id))] } ?? [])
                            + [("state", .string(entry.state))])
                }))
        return 0
    }

    private func activate(_ entry: Entry, _ client: Client) throws(Failure) -> Int32 {
        if let scene = entry.scene {
            try request(client, entry, "ActivateScene", [.string(scene.id)])
        } else {
            try request(client, entry, "Activate")
        }
        return 0
    }

    /// Waits until the request is carried out, as the verbs for requests do.
    private func request(
        _ client: Client, _ entry: Entry, _ member: String, _ more: [Variant] = []
    ) throws(Failure) {
        let call = RequestBatch.Call(
            member: member, arguments: [.string(entry.app.id)] + more, isIdempotent: member != "CloseScene")
        var outcome: Result<RequestResult, Failure>?
        let batch = RequestBatch(client, screen, [(entry.app.id, [call])]) { outcome = $1 }
        try client.withAuthorization { () throws(Failure) in try batch.run() }
        guard let result = try outcome?.get(), member != "Terminate", !isSuccess(result) else { return }
        throw Failure("\(entry.title): \(outcomeSentence(result))")
    }
}
