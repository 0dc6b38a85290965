import Control
import Glibc
import Systemd
import Testing
import greenroomctl

@Suite("top")
struct TopTests {
    private let xterm = ["TERM=xterm", "LC_ALL=C.UTF-8"]
    /// Draws the whole screen again (Ctrl-L): otherwise only what changed is sent, which may be single letters.
    private static let redraw = "\u{0C}"

    /// A daemon with two apps.
    private func daemon() throws -> FakeDaemon {
        let daemon = try FakeDaemon()
        daemon.answer("Version", "7.8.9")
        daemon.answer("Pressure", Records.make(MemoryStatus()) { $0.level = "normal" })
        daemon.answer("List", [Records.mail, Records.photos])
        daemon.answer("Status", Records.photos)
        return daemon
    }

    /// What the program does after a step: it types when the screen shows a text, step by step.
    private func script(_ steps: [(shown: String, keys: String)]) -> (RunningProgram) -> Void {
        var rest = steps[...]
        var seen = 0
        return { program in
            guard let step = rest.first else { return }
            let output = String(decoding: program.texts[0].dropFirst(seen), as: UTF8.self)
            if output.contains(step.shown) {
                rest.removeFirst()
                seen = program.texts[0].count
                program.type(step.keys + Self.redraw)
            } else if output.hasSuffix("\u{1B}[0m") || output.contains("\u{1B}(B\u{1B}[m") {
                program.type(Self.redraw)
            }
        }
    }

    @Test("keys act on the selected app; refusals are shown; only y terminates")
    func keys() throws {
        let daemon = try daemon()
        daemon.on("Background") { $0.fail(ControlNames.Failure.failed.error("It cannot: \u{1B}[2Jno.")) }
        daemon.answer("Terminate", RequestResult(.done, state: "notRunning"))
        let outcome = try daemon.run(
            "top", environment: xterm, terminal: true,
            during: script([
                ("photos", "b"), ("It cannot: \\x1b[2Jno.", "tn"), ("photos", "ty"), ("photos: not running", "q"),
            ]))
        #expect(outcome.status == 0)
        let requests = daemon.calls.filter { ["Background", "Terminate"].contains($0.member) }
        #expect(requests.map(\.member) == ["Background", "Terminate"])
        #expect(requests.allSatisfy { $0.arguments.first?.stringValue == "photos" })
        // It has given the terminal back.
        #expect(outcome.output.contains("\u{1B}[?1049l"))
    }

    @Test("the page of an app shows what status and receipts print, and q goes back")
    func page() throws {
        let daemon = try daemon()
        daemon.answer("Receipts", [Records.receipt])
        daemon.answer("Receipt", Records.receipt)
        let outcome = try daemon.run(
            "top", environment: xterm, terminal: true,
            during: script([
                ("photos", "\r"), ("exceeded its launch deadline", "q"), ("STATE^", "q"),
            ]))
        #expect(outcome.status == 0)
        #expect(daemon.count(of: "Receipts") > 0)
    }

    @Test("after a restart of the daemon it connects again, and says so")
    func reconnect() throws {
        let daemon = try daemon()
        var hasHungUp = false
        let outcome = try daemon.run("top", environment: xterm, terminal: true) { program in
            if !hasHungUp, daemon.count(of: "List") > 0, program.output.contains("photos") {
                hasHungUp = true
                daemon.hangUp()
            }
            // The list is asked for again, too.
            let isShown = program.output.contains("Connected to greenroomd again") && daemon.count(of: "List") >= 2
            if hasHungUp { program.type(isShown ? "q" : Self.redraw) }
        }
        #expect(outcome.status == 0)
        #expect(daemon.count(of: "List") >= 2)
    }

    @Test("states have colours, with NO_COLOR nothing has", arguments: [false, true])
    func colors(isOff: Bool) throws {
        // The line of the selected app has none.
        let outcome = try daemon().run(
            "top", environment: xterm + (isOff ? ["NO_COLOR=1"] : []), terminal: true,
            during: script([("photos", "j"), (isOff ? "photos" : "[36m", "q")]))
        #expect(outcome.status == 0)
        #expect(outcome.output.contains("[36m") != isOff)
        let codes = [31, 32, 33, 35, 36].filter { outcome.output.contains("[\($0)m") }
        #expect(codes.isEmpty == isOff)
    }

    @Test("signals end it, after the terminal is given back", arguments: [SIGTERM, SIGINT, SIGHUP])
    func signals(number: Int32) throws {
        let outcome = try daemon().run("top", environment: xterm, terminal: true) { program in
            if program.output.contains("photos") { kill(program.pid, number) }
        }
        #expect(outcome.status == -number)
        #expect(outcome.output.contains("\u{1B}[?1049l"))
    }

    @Test("without a terminal, or on one that cannot move its cursor, a sentence says what to use instead")
    func noTerminal() throws {
        let piped = try daemon().run("top")
        #expect(piped.status == 2)
        #expect(piped.errors == "greenroomctl: top needs a terminal for its keys and its screen; use --batch\n")
        for term in ["dumb", "nonsense"] {
            let outcome = try daemon().run("top", environment: ["TERM=\(term)"], terminal: true)
            #expect(outcome.status == 2)
            #expect(
                outcome.output.contains("greenroomctl: top: the terminal '\(term)' cannot move its cursor; use --batch")
            )
        }
        #expect(try daemon().run("--json", "top").status == 2)
    }

    @Test("--batch prints tables for a pipe")
    func batch() throws {
        let daemon = try daemon()
        let outcome = try daemon.run(
            "top", "--batch", "--count", "2", "--interval", "200ms", "--sort", "name",
            environment: ["COLUMNS=170", "LC_ALL=C.UTF-8"])
        #expect(outcome.status == 0)
        #expect(daemon.count(of: "List") == 2)
        let tables = outcome.output.split(separator: "\n\n")
        #expect(tables.count == 2)
        #expect(outcome.output.hasPrefix("greenroomd 7.8.9  2 apps: 1 background, 1 not running\n"))
        #expect(outcome.output.contains("photos           background     4711   13.7M"))
        #expect(outcome.output.contains("task up\\x1b[2Jload 29s"))
        #expect(!outcome.output.contains("\u{1B}"))
    }

    @Test(
        "options are checked",
        arguments: [
            (["--sort", "size"], "--sort: invalid key 'size'"),
            (["--interval", "1ms"], "--interval: invalid time '1ms'"),
            (["--interval", "infinity"], "--interval: invalid time"), (["--count", "2"], "--count is for --batch"),
            (["--batch", "--count", "0"], "--count: invalid number '0'"), (["web"], "top: unexpected argument 'web'"),
        ])
    func options(words: [String], sentence: String) {
        guard case .wrong(let text) = Invocation.parse(["top"] + words) else {
            Issue.record("accepted: \(words)")
            return
        }
        #expect(text.hasPrefix(sentence))
    }
}
