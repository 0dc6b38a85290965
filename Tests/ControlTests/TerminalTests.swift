import Control
import Systemd
import TestKit
import Testing
import greenroomctl

@Suite("On a terminal")
struct TerminalTests {
    private let smart = ["TERM=xterm"]

    @Test("list has a heading, colours and a summary")
    func list() throws {
        let daemon = try FakeDaemon()
        daemon.answer("List", [Records.mail, Records.photos])
        let outcome = try daemon.run("list", environment: smart, terminal: true)
        #expect(outcome.status == 0)
        #expect(outcome.output.hasPrefix("\u{1B}[4mID\u{1B}[0m"))
        #expect(outcome.output.contains("\u{1B}[36mbackground\u{1B}[0m"))
        #expect(outcome.output.contains("2 apps: 1 background, 1 not running."))
        #expect(outcome.output.contains(" days ago"))
        #expect(!outcome.output.contains("\u{1B}[2J"))
    }

    @Test(
        "with NO_COLOR and on a dumb terminal there is a heading without colour",
        arguments: [
            ["TERM=xterm", "NO_COLOR=1"], ["TERM=dumb"], [],
        ])
    func noColor(environment: [String]) throws {
        let daemon = try FakeDaemon()
        daemon.answer("List", [Records.photos])
        let outcome = try daemon.run("list", environment: environment, terminal: true)
        #expect(outcome.output.hasPrefix("ID "))
        #expect(!outcome.output.contains("\u{1B}"))
    }

    @Test("an empty NO_COLOR has no effect")
    func emptyNoColor() throws {
        let daemon = try FakeDaemon()
        daemon.answer("List", [Records.photos])
        #expect(
            try daemon.run("list", environment: smart + ["NO_COLOR="], terminal: true).output.contains("\u{1B}[36m"))
    }

    @Test("no line is wider than the terminal")
    func broken() throws {
        let daemon = try FakeDaemon()
        let explanation = String(repeating: "word ", count: 60)
        daemon.answer("Receipts", [Records.make(Records.receipt) { $0.explanation = explanation }])
        let outcome = try daemon.run("receipts", environment: ["TERM=dumb"], terminal: true)
        let lines = outcome.output.split(whereSeparator: \.isNewline)
        #expect(lines.count > 4)
        #expect(lines.allSatisfy { $0.count <= 80 })
    }

    private func widths(_ outcome: Outcome) -> [Int] {
        (outcome.output + outcome.errors).split(whereSeparator: \.isNewline).map { displayWidth(String($0)) }
    }

    @Test("COLUMNS is the width of help, tables and errors, also without a terminal", arguments: [60, 120])
    func columns(width: Int) throws {
        let daemon = try FakeDaemon()
        let text = String(repeating: "word ", count: 60)
        daemon.answer("List", [Records.mail, Records.photos])
        daemon.answer("Status", Records.make(Records.photos) { $0.statusText = text })
        daemon.answer("Receipts", [Records.make(Records.receipt) { $0.explanation = text }])
        daemon.on("Activate") { $0.fail(ControlNames.Failure.failed.error(text)) }
        let environment = ["COLUMNS=\(width)", "TERM=dumb"]
        let verbs: [[String]] = [
            ["list"], ["receipts"], ["activate", "photos"], ["status", "photos"], ["lsit"], ["help"],
        ]
        for line in verbs + Verb.allCases.map({ ["help", $0.rawValue] }) {
            for terminal in [true, false] where terminal || ["help", "activate", "lsit"].contains(line[0]) {
                let program = try RunningProgram(
                    ["--runtime", daemon.runtime] + line, environment: environment, terminal: terminal)
                let outcome = try program.finish(in: daemon.loop)
                #expect(widths(outcome).allSatisfy { $0 <= width }, "\(line): \(outcome.output)")
            }
        }
    }

    @Test("a wait shows the state and the time left, and clears the line")
    func waiting() throws {
        let daemon = try FakeDaemon()
        var updates = 0
        daemon.on("Launch") { [unowned daemon] in daemon.pending.append($0) }
        daemon.on("Status") { [unowned daemon] call in
            call.reply(Records.photos)
            updates += 1
            if updates == 2 { daemon.pending.removeFirst().reply(Records.done("active")) }
        }
        let outcome = try daemon.run("launch", "photos", environment: smart, terminal: true)
        #expect(outcome.status == 0)
        let line = "\r\u{1B}[Kphotos: background, 3.2s left to enter the background"
        #expect(outcome.output.hasPrefix(line))
        #expect(outcome.output.hasSuffix("\r\u{1B}[Kphotos: active\r\n"))
    }

    @Test("a fast answer leaves no progress line")
    func atOnce() throws {
        let daemon = try FakeDaemon()
        daemon.answer("Activate", Records.done("active"))
        // The line comes after 250 ms, within which a busy machine may not answer.
        let answers = try (1...5).lazy.map { _ in
            try daemon.run("activate", "photos", environment: smart, terminal: true).output
        }
        #expect(answers.contains("photos: active\r\n"))
    }

    @Test("without a terminal the status is not polled")
    func silent() throws {
        let daemon = try FakeDaemon()
        let timer = try daemon.loop.makeTimer { [unowned daemon] _ in
            daemon.pending.removeFirst().reply(Records.done("active"))
        }
        daemon.on("Launch") { [unowned daemon] call in
            daemon.pending.append(call)
            // Longer than the interval of the progress line.
            timer.arm(at: daemon.loop.now() + .milliseconds(700))
        }
        #expect(try daemon.run("launch", "photos", environment: smart).status == 0)
        #expect(daemon.calls.map(\.member) == ["Launch"])
    }

    @Test("Ctrl-C clears the line and says that the request is still carried out")
    func interrupted() throws {
        let daemon = try FakeDaemon()
        daemon.on("Launch") { [unowned daemon] in daemon.pending.append($0) }
        daemon.answer("Status", Records.photos)
        var hasTyped = false
        let outcome = try daemon.run("launch", "photos", environment: smart, terminal: true) { program in
            if !hasTyped, program.output.contains("left to") {
                hasTyped = true
                program.type("\u{3}")
            }
        }
        #expect(outcome.status == 130)
        #expect(
            outcome.output.hasSuffix(
                "\r\u{1B}[Kgreenroomctl: Stopped waiting; greenroomd still carries out the request for 'photos'.\r\n"))
    }
}
