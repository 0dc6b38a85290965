import Control
import JSON
import Systemd
import Testing

@testable import greenroomctl

@Suite("The daemon as a whole")
struct OverviewTests {
    private static let apps = [
        Records.broken, Records.mail, Records.photos, Records.worker, Records.idleWorker, Records.unloadedWorker,
        Records.make(Records.mail) {
            $0.id = "crashed"
            $0.lastReceipt = Records.receipt
        },
    ]

    private static let fileProblem = "/etc/greenroom/apps/my app.app: ignored because of its \u{1B}name"

    private func daemon(
        _ apps: [AppStatus] = Self.apps, _ memory: MemoryStatus = Records.memory, fileProblems: [String] = []
    ) throws -> FakeDaemon {
        let daemon = try FakeDaemon(fileProblems: fileProblems)
        daemon.answer("List", apps)
        daemon.answer("Version", ControlNames.version)
        daemon.answer("Pressure", memory)
        return daemon
    }

    /// The lines without the one of the time since the start, which differs.
    private func lines(_ text: String) -> [String] {
        text.split(whereSeparator: \.isNewline).map(String.init).filter { !$0.contains("Uptime: ") }
    }

    private func expected(_ daemon: FakeDaemon) -> [String] {
        [
            "● greenroomd \(ControlNames.version)",
            "    Folders: \(daemon.runtime)/config (configuration)",
            "             \(daemon.runtime) (runtime)",
            "             /var/lib/greenroom (state)",
            "Containment: in cgroups below /sys/fs/cgroup/greenroom (cgroup v2)",
            "       Apps: 7: 2 background, 1 suspended, 4 not running",
            "     Memory: apps use 1.0G of a budget of 3.0G",
            "             2.0G of 8.0G (25%) is available",
            "   Problems: memory: warning (tasks stall because memory is short)",
            "             /etc/greenroom/apps/my app.app: ignored because of its \\x1bname",
            "             broken: broken.app:2:1: error: no such key",
            "             worker@42: 80 (stream): bind: Address already in use",
            "             worker@42: connections have waited for 12s",
            "             worker@42: launch postponed for 20s",
            "             crashed: Killed: exceeded its launch deadline (5s). (receipt 12)",
        ]
    }

    @Test(
        "greenroomctl alone and status without an app show the daemon, the apps by state, memory and problems",
        arguments: [[], ["status"]])
    func screen(verb: [String]) throws {
        let daemon = try daemon(fileProblems: [Self.fileProblem])
        let outcome = try RunningProgram(["--runtime", daemon.runtime] + verb, environment: [], terminal: false)
            .finish(in: daemon.loop)
        #expect(outcome.status == 0, "\(outcome.errors)")
        #expect(lines(outcome.output) == expected(daemon))
        #expect(
            outcome.output.contains("     Uptime: ") && outcome.output.contains("(since 2025-11-21T07:12:03.250000Z)"))
    }

    @Test("no line is wider than the terminal, and nothing is cut", arguments: [80, 140])
    func terminal(width: Int) throws {
        let daemon = try daemon(fileProblems: [Self.fileProblem])
        let outcome = try daemon.run(environment: ["COLUMNS=\(width)", "TERM=xterm", "NO_COLOR=1"], terminal: true)
        let found = lines(outcome.output)
        #expect(found.allSatisfy { displayWidth($0) <= width })
        #expect(!outcome.output.contains("…"))
        if width == 140 { #expect(found == expected(daemon)) }
    }

    @Test("--json is one object with all problems")
    func json() throws {
        let many = (1...20).map { number in Records.make(Records.broken) { $0.id = "broken\(number)" } }
        let daemon = try daemon(many, Records.make(Records.memory) { $0.level = "normal" })
        let object = try JSONValue.parse(try daemon.run("--json").output)
        #expect(
            object.objectValue?.map(\.0) == [
                "version", "since", "uptimeSeconds", "configFolder", "runtimeFolder", "stateFolder", "containment",
                "apps",
                "memory", "problems",
            ])
        #expect(object["since"]?.stringValue == "2025-11-21T07:12:03.250000Z")
        #expect(object["apps"]?["total"]?.integerValue == 20)
        #expect(object["apps"]?["notRunning"]?.integerValue == 20)
        #expect(object["apps"]?["suspended"]?.integerValue == 0)
        #expect(object["memory"]?["availableBytes"]?.integerValue == 2 << 30)
        #expect(object["problems"]?.arrayValue?.count == 20)
        #expect(object["problems"]?.arrayValue?.first?["app"]?.stringValue == "broken1")
        let text = try daemon.run("status").output
        #expect(
            text.hasSuffix("             10 more; 'greenroomctl --runtime \(daemon.runtime) status --json' has all\n"))
    }

    @Test("a daemon without apps and problems says so, and how to add an app; one of an older version has fewer lines")
    func quiet() throws {
        let memory = Records.make(Records.memory) { ($0.level, $0.budgetBytes) = ("normal", nil) }
        #expect(try daemon([], memory).run("status").output.hasSuffix("   Problems: none\n"))
        let old = try FakeDaemon(isOld: true)
        old.answer("List", [AppStatus]())
        old.answer("Version", "0.1.0")
        old.answer("Pressure", memory)
        #expect(
            try old.run("status").output == """
                ● greenroomd 0.1.0
                Containment: cgroup v2
                       Apps: none; to add one: greenroomctl --runtime \(old.runtime) init NAME -- COMMAND…
                     Memory: apps use 1.0G
                             2.0G of 8.0G (25%) is available
                   Problems: none

                """)
    }

    @Test("greenroomctl alone without a daemon says how to start one, and where help is")
    func noDaemon() throws {
        let folder = TemporaryFolder()
        func run(_ arguments: [String]) throws -> Outcome {
            try RunningProgram(["--runtime", folder.path] + arguments, environment: [], terminal: false)
                .finish(in: EventLoop())
        }
        let bare = try run([])
        #expect(bare.status == 1)
        #expect(
            bare.errors == """
                greenroomctl: no greenroomd listens at \(folder.path)/bus (No such file or directory)
                To start it: greenroomd --runtime \(folder.path)
                For help: greenroomctl help

                """)
        #expect(try !run(["status"]).errors.contains("For help"))
    }
}
