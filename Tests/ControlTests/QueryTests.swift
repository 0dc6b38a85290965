import Control
import JSON
import Systemd
import Testing

@Suite("Query verbs, into a pipe")
struct QueryTests {
    @Test("list has one line for each app, without empty columns and without colour")
    func list() throws {
        let daemon = try FakeDaemon()
        daemon.answer("List", [Records.broken, Records.mail, Records.photos])
        let outcome = try daemon.run("list", environment: ["TERM=xterm"])
        #expect(outcome.status == 0)
        #expect(
            outcome.output == """
                broken            notRunning     -      -  -                            broken.app:2:1: error: no such key
                org.example.Mail  notRunning     -      -  2025-11-21T07:00:00.000000Z  -
                photos            background  4711  13.7M  2025-11-21T07:12:03.250000Z  \
                3.2s left to enter the background, task 'up\\x1b[2Jload' (28s left)

                """)
        #expect(outcome.errors.isEmpty)
    }

    @Test("list --json is one array on one line, with text as the app wrote it")
    func listJSON() throws {
        let daemon = try FakeDaemon()
        daemon.answer("List", [Records.mail, Records.photos])
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
        #expect(apps[1]["statusText"]?.stringValue == Records.photos.statusText)
        #expect(apps[1]["lastReceipt"]?["code"]?.stringValue == "0x8badf00d")
        #expect(apps[0]["tasks"] == .array([]))
    }

    @Test("without apps, JSON is an empty array, a pipe receives nothing, and a terminal how to add one and where")
    func noApps() throws {
        let daemon = try FakeDaemon()
        daemon.answer("List", [AppStatus]())
        let shown = try daemon.run("list", environment: ["TERM=dumb", "COLUMNS=500"], terminal: true).output
        #expect(shown.contains("or put a manifest into \(daemon.runtime)/config/apps. Then run"), "\(shown)")
        #expect(shown.contains("/usr/lib/greenroom/apps"), "\(shown)")
        #expect(try daemon.run("list", "--json").output == "[]\n")
        #expect(try daemon.run("list").output == "")
    }

    @Test("status shows an app in detail with its last end, and escapes the app's text")
    func status() throws {
        let daemon = try FakeDaemon()
        daemon.answer("Status", Records.photos)
        let outcome = try daemon.run("status", "photos")
        #expect(outcome.status == 0)
        #expect(
            outcome.output == """
                ● photos – Photos
                      State: background since 2025-11-21T07:12:03.250000Z
                        PID: 4711
                     Memory: 13.7M
                   Launches: 3
                     Status: busy\\nwith \\u202ethings
                      Tasks: 'up\\x1b[2Jload', 28s left, began 2s ago, process 4712
                   Deadline: 3.2s left to enter the background
                   Last end: 2025-11-21T07:12:03.250000Z
                             Killed: exceeded its launch deadline (5s). (receipt 12)

                """)
    }

    @Test("status shows the progress of a task, and escapes its title (L21)")
    func progress() throws {
        let daemon = try FakeDaemon()
        var app = Records.photos
        app.tasks = [
            Records.make(TaskStatus()) {
                ($0.name, $0.done, $0.total, $0.title) = ("export", 2, 5, "Clip\u{1B}[2J")
                $0.isContinued = true
            },
            Records.make(TaskStatus()) {
                ($0.name, $0.done, $0.total) = ("sync", 7, 0)
                $0.isCancelled = true
            },
        ]
        daemon.answer("Status", app)
        #expect(
            try daemon.run("status", "photos").output.contains(
                "Tasks: 'export': 40% of 'Clip\\x1b[2J', continued\n             'sync': 7 done, cancelled\n"))
        daemon.answer("List", [app])
        #expect(try daemon.run("list").output.contains("task 'export' 40% of 'Clip\\x1b[2J'"))
    }

    @Test("status shows the background time that no user asked for, with its limit (L53)")
    func backgroundTime() throws {
        let daemon = try FakeDaemon()
        var app = Records.mail
        app.backgroundTimeLastHour = .seconds(252)
        app.backgroundTimePerHour = .seconds(600)
        daemon.answer("Status", app)
        #expect(
            try daemon.run("status", "mail").output.contains(
                "Last hour: 4min 12s in the background on its own; 10min are allowed\n"))
        app.backgroundTimePerHour = nil
        daemon.answer("Status", app)
        #expect(
            try daemon.run("status", "mail").output.contains(
                "Last hour: 4min 12s in the background on its own\n"))
    }

    @Test("status exits with 3 if one of the apps is not running")
    func statusExit() throws {
        let daemon = try FakeDaemon()
        daemon.on("Status") { call in
            let isPhotos = call.arguments.first?.stringValue == "photos"
            call.reply(isPhotos ? Records.photos : Records.mail)
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

    @Test("status of an unknown app fails with the daemon's sentence, and shows the other apps")
    func unknownApp() throws {
        let daemon = try FakeDaemon()
        daemon.on("Status") { call in
            if call.arguments.first?.stringValue == "photos" { return call.reply(Records.photos) }
            call.fail(ControlNames.Failure.unknownApp.error("There is no app 'phots'. Did you mean 'photos'?"))
        }
        let outcome = try daemon.run("status", "phots", "photos")
        #expect(outcome.status == 1)
        #expect(outcome.errors == "greenroomctl: There is no app 'phots'. Did you mean 'photos'?\n")
        #expect(outcome.output.hasPrefix("● photos"))
    }

    @Test("pressure shows the level, its reason and the available memory")
    func pressure() throws {
        let daemon = try FakeDaemon()
        daemon.answer("Pressure", Records.memory)
        #expect(
            try daemon.run("pressure").output == """
                     Memory: warning (pressure)
                  Available: 2.0G of 8.0G (25%)
                       Apps: 1.0G of a budget of 3.0G
                Containment: cgroup v2
                      Cause: tasks stall because memory is short

                """)
        #expect(
            try JSONValue.parse(try daemon.run("pressure", "--json").output)["availableBytes"]?.integerValue == 2 << 30)
    }

    @Test("pressure shows the source, the limit, swap, stalls, what is missing, and who is killed next")
    func pressureDetails() throws {
        let daemon = try FakeDaemon()
        daemon.answer("Pressure", Records.limitedMemory)
        #expect(
            try daemon.run("pressure").output == """
                       Memory: critical (available)
                    Available: 2.0G of 8.0G (25%)
                         Apps: 1.0G
                  Containment: cgroup v2
                        Cause: little memory is available
                       Source: memory.max of the cgroup /greenroom.slice
                        Limit: 16.0M of 512.0M (3%) available in /greenroom.slice
                    OOM kills: 2 in /greenroom.slice
                         Swap: 1.0G of 2.0G free
                    Refaulted: 3.0M since the start of the machine
                Per-CPU lists: 12.0M, part of what is available
                    Threshold: 64.0M; 48.0M missing
                       Stalls: some 12.34%, full 0.05% of the last 10s
                               /sys/fs/cgroup/greenroom.slice/memory.pressure
                  Killed next: photos (suspended): gives back 120.0M
                               org.example.Mail (background): gives back 60.0M

                """)
        let json = try JSONValue.parse(try daemon.run("pressure", "--json").output)
        #expect(json["limit"]?["group"]?.stringValue == "/greenroom.slice")
        #expect(json["stalls"]?["somePercent"]?.numberValue == 12.34)
        #expect(json["candidates"]?.arrayValue?.count == 2)
    }

    @Test("a simulated level names the app that was killed")
    func simulated() throws {
        let daemon = try FakeDaemon()
        daemon.answer("SimulatePressure", Records.simulated("critical", victim: "mail"))
        #expect(try daemon.run("pressure", "critical").output == "Memory level: critical (simulated); killed mail\n")
        #expect(daemon.calls.last?.arguments == [.string("critical")])
    }

    @Test("a simulated level without a victim reports that no app was killed")
    func noVictim() throws {
        let daemon = try FakeDaemon()
        daemon.answer("SimulatePressure", Records.simulated("critical"))
        #expect(
            try daemon.run("pressure", "critical").output == "Memory level: critical (simulated); no app was killed\n")
    }

    @Test("an answer of another type is an error that names the key")
    func wrongType() throws {
        let daemon = try FakeDaemon()
        daemon.on("List") { call in
            let entries = Records.mail.entries.map { $0.0 == "launches" ? ($0.0, Variant.int32(1)) : $0 }
            call.reply([.array("a{sv}", [.dictionary(entries)])])
        }
        let outcome = try daemon.run("list")
        #expect(outcome.status == 1)
        #expect(
            outcome.errors
                == "greenroomctl: Cannot read the answer to List: key '[0].launches': expected t, found i.\n")
    }
}
