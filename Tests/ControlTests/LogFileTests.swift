import Control
import Glibc
import JSON
import Posix
import Systemd
import Testing

@testable import greenroomctl

@Suite(
    "log without a journal",
    .enabled(if: access("/run/systemd/journal/socket", F_OK) != 0, "this machine has a journal"))
struct LogFileTests {
    private let daemon: FakeDaemon
    private let files = TemporaryFolder()

    init() throws {
        daemon = try FakeDaemon()
        let folder = files.path
        daemon.on("Status") { call in
            let id = call.arguments[0].stringValue ?? ""
            call.reply(
                Records.make(Records.mail) {
                    $0.id = id
                    $0.outputFile = id == "mute" ? nil : "\(folder)/\(id)"
                })
        }
    }

    @Test("shows all lines of the file and of the one before, or the last ones")
    func lines() throws {
        try files.write("a~1", "1\n2\n3\n")
        try files.write("a", "4\n5\n6 without an end")
        #expect(try daemon.run("log", "a").output == "1\n2\n3\n4\n5\n6 without an end\n")
        #expect(try daemon.run("log", "none", terminal: true).output == "Nothing has been written.\r\n")
        #expect(try daemon.run("log", "none").errors == "")
        for (count, output) in [(0, ""), (1, "6 without an end\n"), (3, "4\n5\n6 without an end\n")] {
            #expect(try daemon.run("log", "a", "-n", "\(count)").output == output)
        }
        #expect(try daemon.run("log", "a", "-n", "4").output.hasPrefix("3\n4\n"))
        #expect(try daemon.run("log", "a", "-n", "99").output.hasPrefix("1\n2\n"))
        // Longer than what is read at a time.
        let long = (1...30_000).map { "line \($0)\n" }
        try files.write("long", long.joined())
        #expect(try daemon.run("log", "long").output == long.joined())
        #expect(try daemon.run("log", "long", "-n", "20000").output == long.suffix(20_000).joined())
    }

    @Test("begins with the first complete line after the space that the daemon has freed")
    func freed() throws {
        let path = try files.write("a", String(repeating: "0123456\n", count: 100_000))
        let thread = try HelperThread(name: "test", .reports)
        // Within a line.
        _ = try thread.freeStart(of: Descriptor.open(path, O_RDWR), upTo: 600_004)
        try #require(isReadable(try #require(thread.completions).raw, within: timeout))
        #expect(try thread.collect().map(\.errno) == [0])
        #expect(try daemon.run("log", "a").output == String(repeating: "0123456\n", count: 24_999))
    }

    @Test("what is printed to a terminal has no control characters but tabs, and a pipe gets the bytes as they are")
    func terminal() throws {
        let path = try files.write("a", "")
        let bytes: [UInt8] = Array("red\u{1b}[31m\ttab\r\n".utf8) + [0xff, 0x00, 0x0a]
        let file = fopen(path, "w")
        fwrite(bytes, 1, bytes.count, file)
        fclose(file)
        let shown = try daemon.run("log", "a", terminal: true).output
        #expect(shown.hasPrefix("red\\x1b[31m"))
        #expect(shown.hasSuffix("tab\r\n\u{fffd}\\x00\r\n"))
        let raw = try RunningProgram(["--runtime", daemon.runtime, "log", "a"], environment: [], terminal: false)
        _ = try raw.finish(in: daemon.loop)
        #expect(raw.texts[0] == bytes)
        let json = try daemon.run("log", "a", "--json").output.split(separator: "\n")
        #expect(
            try JSONValue.parse(String(json[0]))
                == .object([("SYSLOG_IDENTIFIER", .string("a")), ("MESSAGE", .string("red\u{1b}[31m\ttab\r"))]))
    }

    @Test(
        "lines of several apps begin with the app; an app without a file, and one without output, are no other's problem"
    )
    func several() throws {
        try files.write("a", "one\ntwo\n")
        try files.write("b", "three\n")
        let outcome = try daemon.run("log", "a", "mute", "none", "b")
        #expect(outcome.output == "a: one\na: two\nb: three\n")
        #expect(outcome.status == 1)
        #expect(
            outcome.errors
                == "greenroomctl: The output of 'mute' goes to no file: 'greenroomctl --runtime \(daemon.runtime) cat mute' shows StandardOutput=.\n"
        )
    }

    @Test("follows a file from its last lines on, over a new file in its position and a truncation")
    func follow() throws {
        let path = try files.write("a", (1...12).map { "\($0)\n" }.joined())
        func add(_ text: String) {
            let file = fopen(path, "a")
            fputs(text, file)
            fclose(file)
        }
        var steps: [(after: String, action: () -> Void)] = [
            ("12\n", { add("13\n14") }),
            ("13\n", { add("!\n") }),
            (
                "14!\n",
                {
                    add("15")
                    rename(path, path + "~1")
                    add("16\n")
                }
            ),
            (
                "15\n16\n",
                {
                    // Shorter than before, as after "> file" in a shell.
                    truncate(path, 0)
                    add("7\n")
                }
            ),
        ]
        let outcome = try daemon.run("log", "a", "-f") { program in
            if program.output.hasSuffix("16\n7\n") { kill(program.pid, SIGINT) }
            guard let next = steps.first, program.output.hasSuffix(next.after) else { return }
            steps.removeFirst()
            next.action()
        }
        #expect(outcome.output == (3...13).map { "\($0)\n" }.joined() + "14!\n15\n16\n7\n")
        #expect(outcome.status == -SIGINT)
    }

    @Test("follows an app that has no output yet")
    func followNew() throws {
        let path = files.path + "/new"
        daemon.on("Status") { [daemon] call in
            call.reply(Records.make(Records.mail) { $0.outputFile = path })
            _ = daemon
        }
        let program = try RunningProgram(
            ["--runtime", daemon.runtime, "log", "new", "-f"], environment: [], terminal: false)
        // Its watch of the folder is its last step.
        while daemon.count(of: "Status") == 0 { _ = try daemon.loop.runOnce(timeout: .milliseconds(10)) }
        try files.write("new", "first\n")
        let outcome = try program.finish(in: daemon.loop) { kill($0.pid, SIGINT) }
        #expect(outcome.output == "first\n")
    }

    @Test("what is no regular file, or cannot be read, is an error with the reason")
    func refused() throws {
        mkfifo(files.path + "/fifo", 0o600)
        let outcome = try daemon.run("log", "fifo")
        #expect(outcome.status == 1)
        #expect(outcome.errors.contains("Cannot read \(files.path)/fifo: Invalid argument"), "\(outcome.errors)")
        let since = try daemon.run("log", "a", "--since", "today")
        #expect(since.errors.contains("--since needs the journal: the lines in the file of an app have no time."))
    }
}
