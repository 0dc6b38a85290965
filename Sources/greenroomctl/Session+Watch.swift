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
        // What follows this answer is not missed, and what came before is not wanted.
        var last = try lastSerial(client)
        try announceUnknownApps(client)
        while true {
            do throws(Failure) {
                let event = try client.nextEvent()
                // It was in the answer to `RecentEvents`.
                if let serial = event.serial, let known = last, serial <= known { continue }
                last = event.serial
                try show(event)
            } catch  where error.isLost {
                try client.reconnect()
                last = try showMissed(after: last, client)
            }
        }
    }

    private func show(_ event: LifecycleEvent) throws(Failure) {
        guard isShown(event) else { return }
        try show(wantsJSON ? event.json.serialized(pretty: false) + "\n" : line(event))
    }

    /// The number of the last event; `nil` from a daemon that does not number them.
    private func lastSerial(_ client: Client) throws(Failure) -> UInt64? {
        do throws(Failure) {
            return try client.call("RecentEvents", [.uint64(.max)], as: RecentEvents.self).serial
        } catch  where !error.isLost {
            return nil
        }
    }

    /// Shows the events between two connections: the daemon was replaced, or has started again.
    /// - Returns: the number of the last event.
    private func showMissed(after serial: UInt64?, _ client: Client) throws(Failure) -> UInt64? {
        guard let serial else { return try lastSerial(client) }
        let missed = try client.call("RecentEvents", [.uint64(serial)], as: RecentEvents.self)
        if !missed.isComplete {
            try write("greenroomctl: The connection was lost; some events are missing.\n", to: STDERR_FILENO)
        }
        for event in missed.events { try show(event) }
        return missed.serial
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
        // Ten in a second for each task.
        let isFrequent = event.priority == Self.debug || event.kind == LifecycleEvent.Kind.taskProgress.rawValue
        if isFrequent, !invocation.has(.verbose) { return false }
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
