import Control
import JSON
import Systemd
import Testing

@Suite("Watching")
struct WatchTests {
    private func news(_ app: String, _ kind: String, priority: Int32 = 6) -> [(String, Variant)] {
        [
            ("time", .string("2025-11-21T07:12:03.250Z")), ("kind", .string(kind)), ("app", .string(app)),
            ("message", .string("\(app): \(kind)\u{7}")), ("priority", .int32(priority)),
        ]
    }

    private func daemon() throws -> FakeDaemon {
        let daemon = try FakeDaemon()
        daemon.onceConnected { daemon in
            daemon.tell(news("photos", "stateChanged"))
            daemon.tell(news("photos", "deadlineStarted", priority: 7))
            daemon.tell(news("mail", "ended", priority: 4))
        }
        return daemon
    }

    /// Each line is waited for: the daemon ends only when the last one has come through.
    private func watch(_ arguments: String..., until last: String) throws -> Outcome {
        let daemon = try daemon()
        let program = try RunningProgram(
            ["--runtime", daemon.runtime, "watch"] + arguments, environment: [], terminal: false)
        return try program.finish(in: daemon.loop) { program in
            if program.output.contains(last) { daemon.hangUp() }
        }
    }

    @Test("news comes a line each and at once, without what is only for debugging")
    func lines() throws {
        let outcome = try watch(until: "mail")
        #expect(
            outcome.output == """
                2025-11-21T07:12:03.250Z  photos: stateChanged\\x07
                2025-11-21T07:12:03.250Z  mail: ended\\x07

                """)
        #expect(outcome.status == 1)
        #expect(outcome.errors.contains("ended the connection"))
    }

    @Test("--verbose shows deadlines too, names show only theirs")
    func chosen() throws {
        #expect(try watch("--verbose", until: "mail").output.contains("deadlineStarted"))
        #expect(try watch("mail", until: "mail").output == "2025-11-21T07:12:03.250Z  mail: ended\\x07\n")
    }

    @Test("--json is one object a line")
    func json() throws {
        let lines = try watch("--json", until: "mail").output.split(separator: "\n")
        try #require(lines.count == 2)
        #expect(try JSONValue.parse(String(lines[0]))["kind"]?.stringValue == "stateChanged")
        #expect(try JSONValue.parse(String(lines[1]))["app"]?.stringValue == "mail")
    }
}
