import Control
import Glibc
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

    /// Ends it when the last line was printed.
    private func watch(_ arguments: String..., until last: String) throws -> Outcome {
        let daemon = try daemon()
        let program = try RunningProgram(
            ["--runtime", daemon.runtime, "watch"] + arguments, environment: [], terminal: false)
        return try program.finish(in: daemon.loop) { program in
            if program.output.contains(last) { program.terminate() }
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
        #expect(outcome.status == -SIGTERM && outcome.errors.isEmpty)
    }

    @Test("it connects again, prints what it has missed, each event once, and says if events are missing")
    func reconnects() throws {
        func numbered(_ app: String, _ serial: UInt64) -> LifecycleEvent {
            Records.make(event(.ended, app)) { $0.serial = serial }
        }
        let daemon = try FakeDaemon()
        var asked: [UInt64] = []
        daemon.on("RecentEvents") { [unowned daemon] call in
            asked.append(call.arguments[0].uintValue ?? 0)
            var answer = RecentEvents()
            switch asked.count {
            case 1:
                answer.serial = 7
                answer.isComplete = true
            case 2:
                answer.events = [numbered("second", 9), numbered("third", 10)]
                answer.serial = 10
                answer.isComplete = true
            default: answer.serial = 20
            }
            // Also before the answer: a signal of what it contains.
            if asked.count == 2 { daemon.emit(numbered("third", 10)) }
            call.reply(answer)
            if asked.count == 1 { daemon.emit(numbered("first", 8)) }
            if asked.count == 3 { daemon.emit(numbered("fourth", 21)) }
        }
        var awaited = ["first", "third"]
        let outcome = try daemon.run("watch") { program in
            if program.output.contains("fourth") { return program.terminate() }
            guard let next = awaited.first, program.output.contains(next) else { return }
            awaited.removeFirst()
            daemon.hangUp()
        }
        #expect(asked == [.max, 8, 10])
        #expect(outcome.output.split(separator: "\n").count == 4, "\(outcome.output)")
        #expect(outcome.errors == "greenroomctl: The connection was lost; some events are missing.\n")
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
            if program.output.contains("nope") { program.terminate() }
        }
        #expect(outcome.output == "2025-11-21T07:12:03.250000Z  nope: ended\\x07\n")
        #expect(outcome.errors == "There is no app 'nope' yet; waiting for its events.\n")
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
