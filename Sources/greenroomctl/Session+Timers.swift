import Control
import JSON
import Systemd

/// When timers and fetches of apps elapse (L30).
extension Session {
    private struct Line {
        var app: AppStatus
        var timer: TimerStatus
    }

    /// `list-timers`: a line for each timer, the next one first.
    func listTimers() throws(Failure) -> Int32 {
        let all = try connect().call("List", as: [AppStatus].self)
        let named = apps.isEmpty ? all : all.filter { app in apps.contains { isMatch(app.id, $0) } }
        let lines = named.flatMap { app in app.timers.map { Line(app: app, timer: $0) } }.sorted {
            ($0.timer.next?.microseconds ?? .max, $0.app.id) < ($1.timer.next?.microseconds ?? .max, $1.app.id)
        }
        try wantsJSON ? show(.array(lines.map(document))) : show(table(lines))
        for word in apps where !all.contains(where: { isMatch($0.id, word) }) { reportUnmatched(word) }
        return 0
    }

    private func document(_ line: Line) -> JSONValue {
        .object([("app", .string(line.app.id))] + (line.timer.json.objectValue ?? []))
    }

    /// The columns of systemctl(1).
    private func table(_ lines: [Line]) -> String {
        guard !lines.isEmpty || !screen.isTerminal else { return "No app has a timer.\n" }
        var table = Table(["NEXT", "LEFT", "LAST", "PASSED", "APP", "KIND"], right: [1], kept: 5)
        table.rows = lines.map { line in
            [
                Cell(line.timer.next.map(moment)), Cell(line.timer.next.map(timeLeft)),
                Cell(line.timer.last.map(moment)), Cell(line.timer.last.map { formattedAge(Timestamp.now() - $0) }),
                Cell(line.app.id, Style(app: line.app)), Cell(line.timer.kind),
            ]
        }
        return table.text(screen)
    }

    private func moment(_ time: Timestamp) -> String { screen.isTerminal ? time.local("%a %F %T") : time.rfc3339 }

    private func timeLeft(_ time: Timestamp) -> String { countdown(max(.zero, time - Timestamp.now())) }

    /// For `status`: `timer in 3h 20min, at 2025-11-21 07:12:03; last 20h ago`.
    func timerLine(_ timer: TimerStatus) -> String {
        let next =
            timer.next.map { "\(timer.kind) in \(timeLeft($0)), at \(moment($0))" } ?? "\(timer.kind): no next time"
        return next + (timer.last.map { "; last \(formattedAge(Timestamp.now() - $0))" } ?? "")
    }
}
