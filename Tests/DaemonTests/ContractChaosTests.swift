import Control
import Glibc
import JSON
import Linux
import Systemd
import TestKit
import Testing

/// The daemon is killed at random moments while an app that uses a library goes through its lifecycle. `CHAOS_LOG` names the file to
/// which the app writes what it has handled: `launch`, `active CAUSE`, `inactive CAUSE`, `foreground`, `background`, `push PAYLOAD`
/// and `url URL`, a line each; it begins and ends tasks meanwhile. GREENROOM_CHAOS_KILLS= and GREENROOM_CHAOS_SEED= choose others
/// (`make chaos`), GREENROOM_CHAOS_APP= another program.
@Suite("Chaos of connections")
struct ContractChaosTests {
    struct Program: CustomStringConvertible {
        let description: String
        /// As `ExecStart=` has it.
        let command: String
    }

    private static let contract = "\(#filePath)".replacing("DaemonTests/ContractChaosTests.swift", with: "contract")

    static let programs: [Program] = {
        if let given = variable("APP") { return [Program(description: given, command: given)] }
        let built = [
            Program(description: "C", command: "\(programFolder())/greenroom-chaos"),
            Program(description: "Swift", command: "\(programFolder())/greenroom-contract chaos"),
            Program(
                description: "shell", command: "/bin/sh \(contract)/chaos_app.sh \(programFolder())/greenroomctl"),
        ]
        guard isInstalled("python3") else { return built }
        return built + [Program(description: "Python", command: "/usr/bin/python3 -B \(contract)/chaos_app.py")]
    }()

    private static func variable(_ name: String) -> String? {
        getenv("GREENROOM_CHAOS_\(name)").map { String(cString: $0) }
    }

    @Test(
        "SIGKILL of the daemon at any moment: an app with a library handles each push and URL once, and each transition in order",
        arguments: programs)
    func chaos(_ program: Program) throws {
        let seed = Self.variable("SEED").flatMap { UInt64($0) } ?? 1
        let kills = Self.variable("KILLS").flatMap { Int($0) } ?? 10
        var chaos = try ContractChaos(seed: seed, program.command)
        do {
            for _ in 0..<kills { try chaos.play() }
            try chaos.end()
        } catch {
            throw TestFailure("\(program), seed \(seed), \(kills) kills: \(error)\n\(chaos.description)")
        }
        print("chaos of \(program): \(kills) kills, \(chaos.summary)")
    }
}

private struct ContractChaos {
    private var daemon: TestDaemon
    private var random: Dice
    private let pid: Int32
    /// Requests whose answers may come, and what they bring to the app.
    private var pending: [(what: String, request: BusConnection.Pending)] = []
    /// What the app must handle, and what it must not.
    private var accepted: [String] = []
    private var refused: [String] = []
    private var lastNumber = 0

    init(seed: UInt64, _ command: String) throws {
        random = Dice(seed)
        let root = try TestDaemon.makeFolder()
        let manifest = """
            [App]
            Type=notify
            ExecStart=\(command)
            Environment=CHAOS_LOG=\(root)/handled
            [Lifecycle]
            BackgroundModes=push
            SuspendDelaySec=20ms
            BackgroundDeadlineSec=20s
            LaunchDeadlineSec=20s

            """
        daemon = try TestDaemon(["app": manifest], root: root)
        try daemon.launch("app")
        pid = try daemon.pid("app")
    }

    private var lines: [String] { daemon.trace("handled") }

    var summary: String {
        "\(accepted.count) pushes and URLs were accepted, the app wrote \(lines.count) lines"
    }

    var description: String {
        "accepted: \(accepted)\nrefused: \(refused)\nhandled: \(lines)\n"
            + TestDaemon.text(of: daemon.root + "/log").suffix(4000)
    }

    /// Some requests, then a kill. Two times of three the app has a connection, and what was asked for before is done.
    mutating func play() throws {
        if random.below(3) > 0 {
            for _ in 0...random.below(4) { try ask() }
            try takeAnswers(waiting: .seconds(60))
        }
        for _ in 0...random.below(4) { try ask() }
        pause(milliseconds: random.below(random.below(4) == 0 ? 1500 : 40))
        try takeAnswers()
        daemon.crash()
        pending = []
        daemon = try daemon.successor()
    }

    private func pause(milliseconds: Int) { usleep(UInt32(1000 * milliseconds)) }

    private mutating func ask() throws {
        switch random.below(9) {
        case 0, 1: try send("Activate")
        case 2, 3: try send("Background")
        case 4, 5:
            lastNumber += 1
            try send("Push", [.string("\(lastNumber)")], brings: "push \(lastNumber)")
        case 6:
            lastNumber += 1
            try send("Open", [.string("app:\(lastNumber)"), .dictionary([])], brings: "url app:\(lastNumber)")
        case 7: try send("Interrupt")
        default: try send("Resume")
        }
    }

    private mutating func send(_ member: String, _ more: [Variant] = [], brings what: String? = nil) throws {
        let request = try daemon.bus.callAsync(
            path: ControlNames.managerPath, interface: ControlNames.managerInterface, member: member,
            [.string("app")] + more, timeout: .seconds(60))
        if let what { pending.append((what, request)) }
    }

    private mutating func takeAnswers(waiting time: Duration = .zero) throws {
        let until = EventLoop.now() + time
        for (what, request) in pending {
            guard try daemon.bus.wait(for: request, until: until), let result = request.result else { continue }
            if case .success = result { accepted.append(what) } else { refused.append(what) }
        }
        pending.removeAll { $0.request.result != nil }
    }

    // MARK: Checks

    mutating func end() throws {
        while daemon.failure("Resume", [.string("app")]) == nil {}
        try daemon.ask("Activate", "app")
        try takeAnswers(waiting: .seconds(60))
        try expect(pending.isEmpty, "not answered: \(pending.map(\.what))")
        try daemon.eventually("all is handled") { [accepted] in Set(self.lines).isSuperset(of: accepted) }
        try daemon.ask("Background", "app")
        try daemon.waitUntil("app", is: "suspended")
        let lines = self.lines
        for line in Set(lines) where line.hasPrefix("push") || line.hasPrefix("url") {
            try expect(lines.count { $0 == line } == 1, "handled twice: \(line)")
            try expect(!refused.contains(line), "refused, but handled: \(line)")
        }
        let urls = lines.compactMap { $0.hasPrefix("url app:") ? Int($0.dropFirst("url app:".count)) : nil }
        try expect(urls == urls.sorted(), "URLs are out of order: \(urls)")
        try checkOrder(lines)
        let status = try daemon.status("app")
        try expect(status["tasks"]?.arrayValue?.isEmpty ?? true, "open tasks: \(status)")
        try expect(try daemon.receipts("app").isEmpty, "ended: \(try daemon.receipts("app"))")
        try expect(try daemon.pid("app") == pid, "launched again")
    }

    private func expect(_ condition: Bool, _ sentence: @autoclosure () throws -> String) throws {
        if !condition { throw TestFailure(try sentence()) }
    }

    /// What may follow a transition. An app that is interrupted while it returns becomes active when the interruption ends.
    private static let successors = [
        "launch": ["active"], "active": ["inactive"], "inactive": ["active", "background"],
        "background": ["foreground"],
        "foreground": ["active", "background"],
    ]

    private func checkOrder(_ lines: [String]) throws {
        var last = ""
        for (position, line) in lines.enumerated() {
            let kind = line.prefix { $0 != " " }
            if kind == "push" { continue }
            if kind == "url" {
                // L8: when the app is in the foreground, or on its way there.
                try expect(last != "background", "\(line) in the background")
                continue
            }
            try expect(
                last.isEmpty ? kind == "launch" : Self.successors[last]?.contains(String(kind)) ?? false,
                "event \(position): \(kind) after \(last): \(lines)")
            last = String(kind)
        }
        try expect(last == "background", "the last transition is \(last)")
    }
}
