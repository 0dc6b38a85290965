import Glibc
import JSON
import Linux
import Posix
import TestKit
import Testing

/// What the daemon does with the output of an app where no journal is.
@Suite("Output without a journal", .enabled(if: !hasJournald, "this machine has a journal"))
struct OutputFileTests {
    /// An app that runs a shell script.
    private func app(_ script: String, _ more: String = "") -> String {
        "[App]\nExecStart=/bin/sh -c '\(script)'\n\(more)\n"
    }

    private func about(_ path: String) -> stat {
        var about = stat()
        _ = lstat(path, &about)
        return about
    }

    private func text(_ daemon: TestDaemon, _ name: String) -> String {
        TestDaemon.text(of: "\(daemon.state)/output/\(name)")
    }

    @Test(
        "output goes to a file of the app, which its user can open again, and not to the daemon's standard error (L56)")
    func file() throws {
        let script = "echo one; echo two >&2; echo three >>/dev/stdout; exec sleep 1000"
        let user = geteuid() == 0 ? "User=nobody" : ""
        let daemon = try TestDaemon(["a": app(script, user), "b": app("echo other; exec sleep 1000")])
        _ = try daemon.launch("a", background: true)
        _ = try daemon.launch("b")
        try daemon.eventually("the lines are there") {
            text(daemon, "a") == "one\ntwo\nthree\n" && text(daemon, "b") == "other\n"
        }
        let file = about(daemon.state + "/output/a")
        #expect(file.st_mode == S_IFREG | 0o600 && file.st_uid == (geteuid() == 0 ? 65_534 : geteuid()))
        #expect(about(daemon.state + "/output").st_mode == S_IFDIR | 0o700)
        #expect(!TestDaemon.text(of: daemon.root + "/log").contains("two"))
        // The next run adds to it, after a line that says when and why it was launched, and how the one before ended.
        _ = try daemon.terminate("b")
        _ = try daemon.launch("b", background: true)
        try daemon.eventually("both lines are there") { text(daemon, "b").hasSuffix("--\nother\n") }
        let lines = text(daemon, "b").split(separator: "\n", omittingEmptySubsequences: false)
        #expect(lines.count == 5 && lines[0] == "other" && lines[1] == "", "\(lines)")
        #expect(lines[2].hasPrefix("-- 20"))
        #expect(lines[2].contains(": launched (user). Last end: Terminated on request: "))
        #expect(lines[2].hasSuffix(" (receipt 1) --"))
    }

    @Test(
        "a daemon in a terminal shows in columns what happens and what apps write, with control characters escaped (L56)"
    )
    func terminal() throws {
        let (number, path) = try openTerminal()
        let master = Descriptor(adopting: number)
        let flags = fcntl(master.raw, F_GETFL)
        try #require(fcntl(master.raw, F_SETFL, flags | O_NONBLOCK) == 0)
        let script = "printf \"one\\ntwo\\033[2J\\nhalf\"; read x <$$0; seq 100000; printf last"
        let root = try TestDaemon.makeFolder()
        mkfifo(root + "/go", 0o600)
        let text = "[App]\nExecStart=/bin/sh -c '\(script)' \(root)/go\n"
        // Standard error only: the test waits for what the daemon says of its start elsewhere.
        let wrapper = ["/bin/sh", "-c", "NO_COLOR=1 exec \"$@\" --log-level info 2>\(path)", "sh"]
        let daemon = try TestDaemon(["a": text], root: root, wrapper: wrapper)
        _ = try daemon.launch("a")
        var shown = ""
        func read() {
            var buffer = [UInt8](repeating: 0, count: 1 << 16)
            while true {
                let count = Glibc.read(master.raw, &buffer, buffer.count)
                guard count > 0 else { return }
                shown += String(decoding: buffer[..<count], as: UTF8.self)
            }
        }
        /// The lines of the app without the time of day.
        func lines() -> [String] {
            shown.split(whereSeparator: \.isNewline).map { String($0.dropFirst(14)) }.filter { $0.hasPrefix("a  ") }
        }
        try daemon.eventually("whole lines are shown") {
            read()
            return lines().contains("a             │ one") && lines().contains("a             │ two\\x1b[2J")
        }
        #expect(lines().contains("a             active       ready"))
        #expect(!lines().contains { $0.contains("half") })
        try writeAll([10], to: try Descriptor.open(root + "/go", O_WRONLY))
        try daemon.eventually("the last line has no end, and the one before it had none") {
            read()
            return lines().contains("a             │ last")
        }
        // A flood is cut.
        #expect(lines().contains { $0.hasSuffix("bytes are not shown)") })
        #expect(lines().contains("a             │ 100000"))
    }

    @Test("the file of an app that writes without end keeps its last lines, also after a crash of the daemon (L56)")
    func bound() throws {
        // The second run writes nothing: it would be freed while it is compared.
        let script = "[ -e $$0 ] || seq 500000; touch $$0; read x <$$1; echo last; exec sleep 1000"
        let root = try TestDaemon.makeFolder()
        mkfifo(root + "/go", 0o600)
        let text = "[App]\nExecStart=/bin/sh -c '\(script)' \(root)/done \(root)/go\n"
        let daemon = try TestDaemon(["a": text], root: root)
        _ = try daemon.launch("a")
        try daemon.eventually("it has written") { access(root + "/done", F_OK) == 0 }
        daemon.crash()
        let next = try daemon.successor()
        let path = next.state + "/output/a"
        #expect(about(path).st_size == 3_388_895)
        // The daemon looks at it when it is suspended.
        try next.ask("Background", "a")
        try next.waitUntil("a", is: "suspended")
        try next.eventually("the space is freed") { about(path).st_blocks <= 1 << 20 / 512 }
        try next.ask("Activate", "a")
        let go = try Descriptor.open(root + "/go", O_WRONLY)
        try writeAll(Array("\n".utf8), to: go)
        try next.eventually("it has written again") {
            TestDaemon.text(of: path).hasSuffix("499999\n500000\nlast\n")
        }
        #expect(about(path).st_blocks >= 1 << 18 / 512)
        // A file that has got so much is replaced at the next launch.
        _ = try next.terminate("a")
        _ = try next.launch("a")
        let lines = TestDaemon.text(of: path).split(separator: "\n")
        #expect(lines.count == 1 && lines[0].hasPrefix("-- "), "it begins with the line about the run before")
        #expect(about(path + "~1").st_size == 3_388_900)
    }

    @Test(
        "what another user has put in the position of the file is not written to (L56)",
        arguments: ["link", "hard", "fifo"])
    func hostile(_ kind: String) throws {
        let root = try TestDaemon.makeFolder()
        let (folder, victim) = (root + "/state/output", root + "/victim")
        try createDirectories(at: folder, mode: 0o777)
        try replaceFile(at: victim, with: Array("precious".utf8))
        switch kind {
        case "link": symlink(victim, folder + "/a")
        case "hard": link(victim, folder + "/a")
        default: mkfifo(folder + "/a", 0o666)
        }
        if geteuid() == 0 { chown(folder, 65_534, 65_534) }
        let daemon = try TestDaemon(["a": app("echo mine; exec sleep 1000")], root: root)
        _ = try daemon.launch("a")
        try daemon.eventually("it has written") { text(daemon, "a").hasSuffix("mine\n") }
        #expect(TestDaemon.text(of: victim) == "precious")
        #expect(about(folder + "/a").st_mode == S_IFREG | 0o600 && about(folder + "/a").st_nlink == 1)
        #expect(about(folder).st_uid == geteuid() && about(folder).st_mode == S_IFDIR | 0o700)
    }

    @Test(
        "the receipt of a failure has the last lines of this run, cleaned; other ends and the file for the next launch have none (L56)"
    )
    func receipts() throws {
        let fail =
            #"for i in 1 2 3 4 5 6 7 8 9 10 11; do echo line $$i; done; printf "\\\\033[2Jred\\\\377\\\\n" >&2; exit 3"#
        let daemon = try TestDaemon([
            "early": app(fail), "fine": app("echo done; exit 0"),
        ])
        let lines = (3...11).map { "line \($0)" } + ["\u{fffd}[2Jred\u{fffd}"]
        func output(_ name: String) throws -> [String]? {
            try daemon.receipts(name).last?["output"]?.arrayValue?.compactMap(\.stringValue)
        }
        _ = try daemon.launch("early")
        try daemon.eventually("it has failed") { try !daemon.receipts("early").isEmpty }
        #expect(try output("early") == lines)
        #expect(try daemon.status("early")["lastReceipt"]?["exitStatus"]?.integerValue == 3)
        #expect(try daemon.status("early")["lastReceipt"]?["output"] == nil)
        _ = try daemon.launch("fine")
        try daemon.eventually("it has ended") { try !daemon.receipts("fine").isEmpty }
        #expect(try output("fine") == nil)
        // The receipts on disk are for the user of the daemon alone.
        #expect(about(daemon.state + "/receipts.jsonl").st_mode == S_IFREG | 0o600)
        // Recovered with the run.
        let next: TestDaemon
        do {
            daemon.crash()
            next = try daemon.successor()
        }
        #expect(try next.receipts("early").last?["output"]?.arrayValue?.count == 10)
        _ = try next.launch("early")
        try next.eventually("it has failed again") { try next.receipts("early").count == 2 }
        #expect(!TestDaemon.text(of: next.runtime + "/last/early.json").contains("line 11"))
    }

    @Test("an app that ends while no daemon runs has its last lines in the receipt, and none of an earlier run (L56)")
    func recovered() throws {
        let root = try TestDaemon.makeFolder()
        mkfifo(root + "/go", 0o600)
        let text = "[App]\nExecStart=/bin/sh -c 'read x <$$0; [ $$x = quiet ] || echo last words; exit 3' \(root)/go\n"
        let daemon = try TestDaemon(["a": text], root: root)
        func go(_ word: String) throws {
            try writeAll(Array("\(word)\n".utf8), to: Descriptor.open(root + "/go", O_WRONLY))
        }
        _ = try daemon.launch("a")
        daemon.crash()
        try go("speak")
        let next = try daemon.successor()
        try next.eventually("it has ended") { try !next.receipts("a").isEmpty }
        #expect(try next.receipts("a").last?["output"]?.arrayValue == [.string("last words")])
        _ = try next.launch("a")
        try go("quiet")
        try next.eventually("it has ended again") { try next.receipts("a").count == 2 }
        #expect(try next.receipts("a").last?["output"] == nil)
    }

    @Test("an app whose file cannot be created runs without it, and the log says so (L56)")
    func impossible() throws {
        let root = try TestDaemon.makeFolder()
        try createDirectories(at: root + "/state")
        symlink(root, root + "/state/output")
        let daemon = try TestDaemon(["a": app("echo mine; exec sleep 1000")], root: root)
        #expect(try daemon.launch("a")["state"]?.stringValue == "active")
        #expect(TestDaemon.text(of: root + "/log").contains("a: its output is dropped: open folder"))
        #expect(access(root + "/a", F_OK) != 0)
        // The folder is there later.
        unlink(root + "/state/output")
        _ = try daemon.terminate("a")
        _ = try daemon.launch("a")
        try daemon.eventually("it has written") { text(daemon, "a") == "mine\n" }
    }
}

/// Whether the daemon of a test writes to the journal of this machine.
let hasJournald = access("/run/systemd/journal/socket", W_OK) == 0
