import Control
import Glibc
import JSON
import Systemd

/// `watch`: events as they happen, a line each, written at once.
extension Session {
    /// LOG_DEBUG of syslog(3): deadlines that start and are met.
    private static let debug: Int32 = 7

    func watch() throws(Failure) -> Int32 {
        let client = try connect()
        if screen.errorIsTerminal, screen.isTerminal {
            let text = "Watching greenroomd at \(escaped(client.endpoint.socket)). Press Ctrl-C to quit."
            try write(screen.paint(text, .faint) + "\n", to: STDERR_FILENO)
        }
        try announceUnknownApps(client)
        while true {
            let event = try client.nextEvent()
            guard isShown(event) else { continue }
            try show(wantsJSON ? event.json.serialized(pretty: false) + "\n" : line(event))
        }
    }

    /// Says which of the named apps do not exist: a name may be wrong. Their events are printed once they exist.
    private func announceUnknownApps(_ client: Client) throws(Failure) {
        for name in apps where !wantsJSON && !isPattern(name) && !exists(name, client) {
            let sentence = "There is no app '\(escaped(name))' yet; waiting for its events."
            let lines = screen.errorWidth.map { wrapped(sentence, to: $0) } ?? [sentence]
            try write(lines.joined(separator: "\n") + "\n", to: STDERR_FILENO)
        }
    }

    /// - Returns: `true` also after another error, which the wait for events reports if it lasts.
    private func exists(_ name: String, _ client: Client) -> Bool {
        do throws(Failure) {
            _ = try client.answer(try client.begin("Status", [.string(name)]), until: nil, as: AppStatus.self)
            return true
        } catch {
            return error.name != ControlNames.Failure.unknownApp.name
        }
    }

    private func isShown(_ event: LifecycleEvent) -> Bool {
        if event.priority == Self.debug, !invocation.has(.verbose) { return false }
        return apps.isEmpty || event.app.map { id in apps.contains { isMatch(id, $0) } } ?? false
    }

    private func line(_ event: LifecycleEvent) -> String {
        let time = screen.isTerminal ? timeOfDay(event.time) : event.time.rfc3339
        return "\(screen.paint(time, .faint))  \(screen.paint(event.message, style(of: event)))\n"
    }

    /// With milliseconds, which the steps of a launch differ by.
    private func timeOfDay(_ time: Timestamp) -> String {
        time.local("%T") + ".\(String(1000 + time.microseconds / 1000 % 1000).dropFirst())"
    }

    private func style(of event: LifecycleEvent) -> Style? {
        switch event.priority {
        case ...3: .boldRed
        case 4: .red
        case 7...: .faint
        default:
            event.kind == LifecycleEvent.Kind.stateChanged.rawValue ? event.state.flatMap { Style(state: $0) } : nil
        }
    }
}
