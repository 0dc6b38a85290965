import Glibc
import JSON

/// News as it comes, a line each, written at once.
extension Session {
    /// syslog(3)'s LOG_DEBUG: deadlines that begin and are kept.
    private static let debug: Int64 = 7

    func watch() throws(Failure) -> Int32 {
        let client = try connect()
        if screen.errorIsTerminal, screen.isTerminal {
            let text = "Watching greenroomd at \(escaped(client.endpoint.socket)); Ctrl-C ends it."
            try write(screen.paint(text, .faint) + "\n", to: STDERR_FILENO)
        }
        while true {
            let news = try client.news()
            guard concerns(news) else { continue }
            try show(wantsJSON ? news.serialized(pretty: false) + "\n" : line(Record(news)))
        }
    }

    private func concerns(_ news: JSONValue) -> Bool {
        let record = Record(news)
        if record.integer("priority") == Self.debug, !invocation.has(.verbose) { return false }
        guard !operands.isEmpty else { return true }
        return news["app"]?.stringValue.map { operands.contains($0) } ?? false
    }

    private func line(_ news: Record) -> String {
        let time = screen.isTerminal ? news.moment("time").map(clock) : nil
        let message = news.text("message") ?? news.text("kind") ?? "?"
        let stamp = screen.paint(time ?? news.text("time") ?? "-", .faint)
        return "\(stamp)  \(screen.paint(message, style(news)))\n"
    }

    /// The time of day to the millisecond: what happens in a launch is told apart by these.
    private func clock(_ moment: Moment) -> String {
        let milliseconds = Int(moment.seconds * 1000 + 0.5) % 1000
        let digits = String(1000 + milliseconds).dropFirst()
        return Moment(seconds: (moment.seconds * 1000 + 0.5).rounded(.down) / 1000).local("%T") + ".\(digits)"
    }

    private func style(_ news: Record) -> Style? {
        switch news.integer("priority") ?? 6 {
        case ...3: .worst
        case 4: .bad
        case 7...: .faint
        default: news.json["kind"]?.stringValue == "stateChanged" ? Style(state: news.state) : nil
        }
    }
}
