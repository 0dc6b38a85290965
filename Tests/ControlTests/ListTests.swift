import Control
import JSON
import Systemd
import Testing

@testable import greenroomctl

@Suite("list: selection, order and width")
struct ListTests {
    private static let long = "site-of-customer@north-west-region-18"

    private static let instance = Records.make(Records.idleWorker) {
        $0.id = long
        $0.memoryBytes = 9 << 20
    }

    private func daemon(_ apps: [AppStatus]) throws -> FakeDaemon {
        let daemon = try FakeDaemon()
        daemon.answer("List", apps)
        return daemon
    }

    /// The lines on a terminal, without the summary, the ages, which grow, and the spaces that align columns.
    private func screen(_ daemon: FakeDaemon, _ width: Int, _ options: String...) throws -> [String] {
        let program = try RunningProgram(
            ["--runtime", daemon.runtime, "list"] + options,
            environment: ["COLUMNS=\(width)", "TERM=xterm", "NO_COLOR=1"], terminal: true)
        let lines = try program.finish(in: daemon.loop).output.split(whereSeparator: \.isNewline).map(String.init)
        return lines.dropLast().map { line in
            line.replacing(#/\d+ days ago/#, with: "N days ago").replacing(#/ {3,}/#, with: "  ")
        }
    }

    @Test("an instance is never cut: the last column goes below the others, then columns go from the right")
    func narrow() throws {
        let daemon = try daemon([Records.photos, Self.instance])
        let pending = "3.2s left to enter the background, task 'up\\x1b[2Jload' (28s left)"
        #expect(
            try screen(daemon, 140) == [
                "ID  STATE  PID  MEMORY  SINCE  TASKS/DEADLINE",
                "photos  background  4711  13.7M  N days ago  3.2s left to enter the background, task 'up\\x1b[2Jload' (28s",
                "  left)", "\(Self.long)  suspended  4711  9.0M  N days ago",
            ])
        #expect(
            try screen(daemon, 80) == [
                "ID  STATE  PID  MEMORY  SINCE", "photos  background  4711  13.7M  N days ago", "  \(pending)",
                "\(Self.long)  suspended  4711  9.0M  N days ago",
            ])
        #expect(
            try screen(daemon, 60) == [
                "ID  STATE  PID", "photos  background  4711",
                "  3.2s left to enter the background, task 'up\\x1b[2Jload'",
                "  (28s left)", "\(Self.long)  suspended  4711",
            ])
        let tiny = try screen(daemon, 20)
        #expect(tiny.first == "ID  STATE")
        #expect(tiny.contains("\(Self.long)  suspended"))
        #expect(try screen(daemon, 20, "--full").contains { $0.hasSuffix("N days ago  \(pending)") })
    }

    @Test(
        "on a terminal, columns that are empty for all apps are left out; into a pipe they stay, so that they can be counted"
    )
    func empty() throws {
        let daemon = try daemon([Records.mail])
        #expect(
            try screen(daemon, 80) == [
                "ID  STATE  SINCE", "org.example.Mail  notRunning  N days ago",
            ])
        #expect(try daemon.run("list").output == "org.example.Mail  notRunning  -  -  2025-11-21T07:00:00.000000Z  -\n")
    }

    @Test("--state shows only apps in these states, in upper or lower case, also with --json")
    func states() throws {
        let daemon = try daemon([Records.mail, Records.photos, Self.instance])
        func ids(_ arguments: String...) throws -> [String?] {
            let program = try RunningProgram(
                ["--runtime", daemon.runtime, "list", "--json"] + arguments, environment: [], terminal: false)
            let text = try program.finish(in: daemon.loop).output
            return try JSONValue.parse(text).arrayValue?.map { $0["id"]?.stringValue } ?? []
        }
        #expect(try ids("--state=suspended") == [Self.long])
        #expect(try ids("--state", "notrunning,Background") == ["org.example.Mail", "photos"])
        #expect(try ids("--state", "active") == [])
        #expect(try ids("--state", "suspended", "photos") == [])
        #expect(try daemon.run("list", "--state", "active").output == "")
        let none = try daemon.run("list", "--state", "active", environment: ["TERM=dumb"], terminal: true)
        #expect(none.output == "No app is in this state: active.\r\n")
    }

    @Test("--sort: by name, by state, the largest first, the latest first; apps without a value are last")
    func sorting() throws {
        let disabled = Records.make(Records.broken) { $0.id = "a" }
        let large = Records.make(Self.instance) {
            $0.id = "z"
            $0.memoryBytes = 1 << 30
            $0.since = Timestamp(rfc3339: "2025-11-22T07:00:00Z")
        }
        let daemon = try daemon([disabled, Records.mail, Records.photos, Self.instance, large])
        func order(_ key: String) throws -> [String] {
            try daemon.run("list", "--sort", key).output.split(separator: "\n").map { String($0.prefix { $0 != " " }) }
        }
        #expect(try order("name") == ["a", "org.example.Mail", "photos", Self.long, "z"])
        #expect(try order("state") == ["photos", Self.long, "z", "a", "org.example.Mail"])
        #expect(try order("memory") == ["z", "photos", Self.long, "a", "org.example.Mail"])
        #expect(try order("since") == ["z", "photos", Self.long, "org.example.Mail", "a"])
    }

    private static func command(
        _ id: String, of client: ClientStatus, _ state: String, _ sizes: (UInt64, UInt64, UInt64)?
    ) -> AppStatus {
        Records.make(AppStatus()) {
            ($0.id, $0.name, $0.state, $0.client) = ("run@" + id, id, state, client)
            $0.memoryBytes = sizes.map { $0.0 << 20 } ?? 1 << 20
            ($0.residentBytes, $0.swappedBytes) = (sizes.map { $0.1 << 20 }, sizes.map { $0.2 << 20 })
        }
    }

    @Test("--clients: a line for each process that has started commands, the one with the most memory first (L54)")
    func clients() throws {
        let claude = ClientStatus(pid: 41, name: "claude", program: "node")
        let other = ClientStatus(pid: 42, name: "claude", program: "node")
        let python = ClientStatus(pid: 43, name: "python3", program: "python3.11")
        let hostile = ClientStatus(pid: 44, name: "a\u{1B}[2J", program: nil)
        let daemon = try daemon([
            Self.command("a", of: claude, "suspended", (30, 10, 20)),
            Self.command("b", of: python, "background", (50, 50, 0)),
            Self.command("c", of: claude, "background", (40, 39, 1)), Self.command("d", of: other, "suspended", nil),
            Self.command("e", of: hostile, "background", (2, 2, 0)), Records.photos,
        ])
        #expect(
            try daemon.run("list", "--clients").output.split(separator: "\n").map {
                $0.split(separator: " ").joined(separator: " ")
            } == [
                "claude (node) 41 2 1 70.0M 49.0M 21.0M", "python3.11 43 1 0 50.0M 50.0M 0B",
                "a\\x1b[2J 44 1 0 2.0M 2.0M 0B", "claude (node) 42 1 1 1.0M - -",
            ])
        let screen = try daemon.run("list", "--clients", environment: ["TERM=dumb", "COLUMNS=80"], terminal: true)
        let lines = screen.output.split(whereSeparator: \.isNewline)
        #expect(lines.first == "CLIENT         PID  COMMANDS  SUSPENDED  MEMORY  RESIDENT  SWAPPED")
        #expect(lines.last == "5 commands of 4 clients, 2 suspended.")
        let json = try JSONValue.parse(daemon.run("list", "--clients", "--json", "--state=suspended").output).arrayValue
        #expect(json?.count == 2)
        let first = try #require(json?.first)
        #expect(try ClientStatus(json: first["client"] ?? .null) == claude)
        #expect(first["apps"]?.arrayValue?.map(\.stringValue) == ["run@a"])
        #expect(first["memoryBytes"]?.integerValue == 30 << 20 && first["swappedBytes"]?.integerValue == 20 << 20)
        #expect(try daemon.run("list", "--clients", "photos").output == "")
        daemon.answer(
            "Status",
            Records.make(Self.command("a", of: claude, "suspended", (30, 10, 20))) { $0.savedBytes = 20 << 20 })
        let status = try daemon.run("status", "run@a").output
        #expect(status.contains("\n     Memory: 30.0M (resident 10.0M, 20.0M in swap)\n"))
        #expect(status.contains("\n      Saved: 20.0M, in swap while it is suspended\n"))
        #expect(status.contains("\n     Client: claude (node) (41)\n"))
        let wrong = [
            ("--scenes", "--scenes and --clients are mutually exclusive"),
            ("--sort=name", "--clients cannot be sorted"),
        ]
        for (option, sentence) in wrong {
            guard case .wrong(let found) = Invocation.parse(["list", "--clients", option]) else {
                Issue.record("\(option) was accepted")
                continue
            }
            #expect(found.hasPrefix(sentence), "\(found)")
        }
    }

    @Test(
        "an unknown state or key is a usage error that names the known ones",
        arguments: [
            (
                ["--state", "suspend"],
                "--state: invalid state 'suspend'; did you mean 'suspended'?; expected active, inactive,"
            ),
            (["--state", "active,"], "--state: invalid state ''; expected active"),
            (
                ["--sort", "memroy"],
                "--sort: invalid key 'memroy'; did you mean 'memory'?; expected name, state, memory, since"
            ),
        ])
    func wrong(options: [String], sentence: String) {
        guard case .wrong(let found) = Invocation.parse(["list"] + options) else {
            Issue.record("\(options) was accepted")
            return
        }
        #expect(found.hasPrefix(sentence), "\(found)")
    }
}
