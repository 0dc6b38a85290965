import Control
import JSON
import Systemd
import Testing

@Suite("Looking, into a pipe")
struct LookingTests {
    @Test("list has a line an app, its places filled and without colour")
    func list() throws {
        let daemon = try FakeDaemon()
        daemon.answer("List", .dictionaries([Records.broken, Records.mail, Records.photos]))
        let outcome = try daemon.run("list", environment: ["TERM=xterm"])
        #expect(outcome.status == 0)
        #expect(
            outcome.output == """
                broken            notRunning     -      -  -                         broken.app:2:1: error: no such key
                org.example.Mail  notRunning     -      -  2025-11-21T07:00:00.000Z  -
                photos            background  4711  13.7M  2025-11-21T07:12:03.250Z  3.2s left to enter the background, \
                task “up\\x1b[2Jload” (28s left)

                """)
        #expect(outcome.errors.isEmpty)
    }

    @Test("list --json is the daemon's array, on one line")
    func listJSON() throws {
        let daemon = try FakeDaemon()
        daemon.answer("List", .dictionaries([Records.mail, Records.photos]))
        let outcome = try daemon.run("list", "--json")
        let apps = try #require(try JSONValue.parse(outcome.output).arrayValue)
        #expect(outcome.output.split(separator: "\n").count == 1)
        try #require(apps.map { $0["id"]?.stringValue } == ["org.example.Mail", "photos"])
        #expect(
            apps[1].objectValue?.map(\.0) == [
                "id", "name", "state", "pid", "since", "memoryBytes", "tasks", "deadline", "foreground", "launches",
                "interruptions", "statusText", "lastReceipt",
            ])
        #expect(apps[1]["tasks"]?.arrayValue?.first?["remainingSeconds"]?.numberValue == 28.2)
        #expect(apps[1]["lastReceipt"]?["code"]?.stringValue == "0x8badf00d")
        #expect(apps[0]["tasks"] == .array([]))
    }

    @Test("no apps are an empty array, and nothing for a pipe")
    func noApps() throws {
        let daemon = try FakeDaemon()
        daemon.answer("List", .dictionaries([]))
        #expect(try daemon.run("list", "--json").output == "[]\n")
        #expect(try daemon.run("list").output == "")
    }

    @Test("status shows all of an app, explains its last end, and escapes what it has written")
    func status() throws {
        let daemon = try FakeDaemon()
        daemon.answer("Status", .dictionary(Records.photos))
        let outcome = try daemon.run("status", "photos")
        #expect(outcome.status == 0)
        #expect(
            outcome.output == """
                ● photos – Photos
                      State: background, since 2025-11-21T07:12:03.250Z
                        PID: 4711
                     Memory: 13.7M
                   Launches: 3
                     Status: busy\\nwith \\u202ethings
                      Tasks: “up\\x1b[2Jload”, 28s left, begun 2s ago, by process 4712
                   Deadline: 3.2s left to enter the background
                   Last end: 2025-11-21T07:12:03.250Z
                             while launching: did not finish launching within 5 s (receipt 12)

                """)
    }

    @Test("status of an app that is not running exits with 3, of several if one is not")
    func statusExit() throws {
        let daemon = try FakeDaemon()
        daemon.on("Status") { call in
            let isPhotos = call.arguments.first?.stringValue == "photos"
            call.reply([.dictionary(isPhotos ? Records.photos : Records.mail)])
        }
        #expect(try daemon.run("status", "photos").status == 0)
        #expect(try daemon.run("status", "mail").status == 3)
        let both = try daemon.run("status", "photos", "mail", "--json")
        #expect(both.status == 3)
        #expect(try JSONValue.parse(both.output).arrayValue?.count == 2)
        #expect(
            try JSONValue.parse(try daemon.run("status", "mail", "--json").output)["state"]?.stringValue == "notRunning"
        )
    }

    @Test("status of an unknown app fails with the daemon's sentence, and shows the others all the same")
    func unknownApp() throws {
        let daemon = try FakeDaemon()
        daemon.on("Status") { call in
            if call.arguments.first?.stringValue == "photos" { return call.reply([.dictionary(Records.photos)]) }
            call.fail(ControlNames.Failure.unknownApp.error("there is no app phots; did you mean photos?"))
        }
        let outcome = try daemon.run("status", "phots", "photos")
        #expect(outcome.status == 1)
        #expect(outcome.errors == "greenroomctl: there is no app phots; did you mean photos?\n")
        #expect(outcome.output.hasPrefix("● photos"))
    }

    @Test("status without an app is about the daemon, the memory and all apps")
    func houseStatus() throws {
        let daemon = try FakeDaemon()
        daemon.answer("List", .dictionaries([Records.mail]))
        daemon.answer("Version", .string("0.1.0"))
        daemon.answer("Pressure", memory)
        let outcome = try daemon.run("status")
        #expect(outcome.status == 0)
        #expect(outcome.output.contains(" greenroomd: 0.1.0, at \(daemon.runtime)/bus\n"))
        #expect(outcome.output.contains("     Memory: warning (pressure)\n"))
        #expect(outcome.output.hasSuffix("\norg.example.Mail  notRunning  -  -  2025-11-21T07:00:00.000Z  -\n"))
    }

    private let memory = Variant.dictionary([
        ("level", .string("warning")), ("cause", .string("pressure")), ("totalBytes", .uint64(8 << 30)),
        ("availableBytes", .uint64(2 << 30)), ("appsBytes", .uint64(1 << 30)), ("budgetBytes", .uint64(3 << 30)),
        ("containment", .string("cgroup v2")),
    ])

    @Test("pressure shows the level, its cause, and how much is left")
    func pressure() throws {
        let daemon = try FakeDaemon()
        daemon.answer("Pressure", memory)
        #expect(
            try daemon.run("pressure").output == """
                     Memory: warning (pressure)
                  Available: 2.0G of 8.0G (25%)
                       Apps: 1.0G of a budget of 3.0G
                Containment: cgroup v2

                """)
        #expect(
            try JSONValue.parse(try daemon.run("pressure", "--json").output)["availableBytes"]?.integerValue == 2 << 30)
    }

    @Test("a simulated level says whom it took")
    func simulated() throws {
        let daemon = try FakeDaemon()
        daemon.answer("SimulatePressure", .dictionary([("level", .string("critical")), ("victim", .string("mail"))]))
        #expect(try daemon.run("pressure", "critical").output == "memory: critical (simulated); took mail\n")
        #expect(daemon.calls.last?.arguments == [.string("critical")])
    }
}
