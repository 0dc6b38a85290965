import Control
import JSON
import Systemd
import Testing

@Suite("watch")
struct WatchTests {
    private func event(_ kind: LifecycleEvent.Kind, _ app: String, priority: Int32 = 6) -> LifecycleEvent {
        Records.make(LifecycleEvent(kind, app: app)) {
            $0.time = Records.time
            $0.message = "\(app): \(kind.rawValue)\u{7}"
            $0.priority = priority
        }
    }

    private func daemon() throws -> FakeDaemon {
        let daemon = try FakeDaemon()
        daemon.onceConnected { daemon in
            daemon.emit(event(.stateChanged, "photos"))
            daemon.emit(event(.deadlineStarted, "photos", priority: 7))
            daemon.emit(event(.ended, "mail", priority: 4))
        }
        return daemon
    }

    /// Closes the connection when the last line was printed.
    private func watch(_ arguments: String..., until last: String) throws -> Outcome {
        let daemon = try daemon()
        let program = try RunningProgram(
            ["--runtime", daemon.runtime, "watch"] + arguments, environment: [], terminal: false)
        return try program.finish(in: daemon.loop) { program in
            if program.output.contains(last) { daemon.hangUp() }
        }
    }

    @Test("each event is a line that is written at once, without events for debugging")
    func lines() throws {
        let outcome = try watch(until: "mail")
        #expect(
            outcome.output == """
                2025-11-21T07:12:03.250000Z  photos: stateChanged\\x07
                2025-11-21T07:12:03.250000Z  mail: ended\\x07

                """)
        #expect(outcome.status == 1)
        #expect(outcome.errors.contains("ended the connection"))
    }

    @Test("--verbose prints events for debugging, and apps restrict the output to their events")
    func chosen() throws {
        #expect(try watch("--verbose", until: "mail").output.contains("deadlineStarted"))
        #expect(try watch("mail", until: "mail").output == "2025-11-21T07:12:03.250000Z  mail: ended\\x07\n")
    }

    @Test("an app that does not exist is named on standard error, and its events are awaited")
    func unknown() throws {
        let daemon = try FakeDaemon()
        daemon.on("Status") { [unowned daemon] call in
            if call.arguments.first?.stringValue == "mail" { return call.reply(Records.mail) }
            call.fail(ControlNames.Failure.unknownApp.error("There is no app 'nope'."))
            daemon.emit(event(.ended, "nope"))
        }
        let outcome = try daemon.run("watch", "mail", "nope", "x*") { program in
            if program.output.contains("nope") { daemon.hangUp() }
        }
        #expect(outcome.output == "2025-11-21T07:12:03.250000Z  nope: ended\\x07\n")
        #expect(outcome.errors.hasPrefix("There is no app 'nope' yet; waiting for its events.\ngreenroomctl: "))
    }

    @Test("--json prints one object a line, with the time in RFC 3339")
    func json() throws {
        let lines = try watch("--json", until: "mail").output.split(separator: "\n")
        try #require(lines.count == 2)
        #expect(try JSONValue.parse(String(lines[0]))["kind"]?.stringValue == "stateChanged")
        #expect(try JSONValue.parse(String(lines[0]))["time"]?.stringValue == "2025-11-21T07:12:03.250000Z")
        #expect(try JSONValue.parse(String(lines[1]))["app"]?.stringValue == "mail")
    }
}
