import Glibc
import JSON
import Linux
import Posix
import Testing

@Suite("Text that people read")
struct TextTests {
    /// Text that would reset and clear the terminal, reverse the line and begin a new one. It has no characters of patterns.
    private static let hostile = "a\u{1b}cb\u{9b}2Jd\u{202e}e\u{2028}f\u{2066}g\u{200f}h\u{61c}i\u{7f}"

    /// Runs a program of the build until it exits.
    /// - Returns: its standard output and standard error.
    private func output(of program: String, _ arguments: [String], in folder: String) throws -> String {
        let path = folder + "/output"
        _ = try removeFile(at: path)
        let output = SharedDescriptor(try Descriptor.open(path, O_WRONLY | O_CREAT | O_TRUNC, mode: 0o600))
        var starting = try startProcess(
            SpawnRequest(
                executable: TestDaemon.binaries + "/" + program, arguments: arguments,
                environment: ["HOME=/", "PATH=/bin"], standardOutput: output, standardError: output))
        while try starting.outcome() == .pending { waitForReadable([starting.outcomeDescriptor]) }
        waitForReadable([starting.process.descriptor])
        _ = try starting.process.reap()
        return TestDaemon.text(of: path)
    }

    /// The control characters of a text in hexadecimal, except for the ends of its lines.
    private func controls(_ text: String) -> [String] {
        text.unicodeScalars.filter { $0.isControl && $0 != "\n" }.map { String($0.value, radix: 16) }
    }

    @Test("no control character of an app, a manifest or an argument reaches the output of a program or the log")
    func hostileText() throws {
        let daemon = try TestDaemon(["web": TestDaemon.manifest("")])
        try daemon.launch("web")
        try daemon.sendMessage("STATUS=" + Self.hostile)
        try daemon.sendMessage("X_GREENROOM_BEGIN_TASK=" + Self.hostile)
        try daemon.sendMessage(Self.hostile)
        try daemon.eventually("the status is read") {
            try daemon.status("web")["statusText"]?.stringValue?.contains("2Jd") == true
        }
        let bad = "[App]\nExecStart=/bin/true\n\(Self.hostile)=1\nName=\(Self.hostile)\n[\(Self.hostile)]\n"
        try replaceFile(at: "\(daemon.config)/apps/bad.app", with: Array(bad.utf8))
        let calls = [
            ["reload"], ["list"], ["status"], ["status", "web"], ["status", "bad"], ["status", Self.hostile],
            ["launch", Self.hostile], ["send", "web", Self.hostile], [Self.hostile], ["list", "--" + Self.hostile],
            ["show", "web"], ["is-active", Self.hostile], ["verify", "\(daemon.config)/apps/bad.app"],
            ["verify", Self.hostile], ["terminate", "web"], ["receipts"], ["receipt", "1"],
        ]
        for call in calls + calls.map({ ["--json"] + $0 }) {
            let text = try output(of: "greenroomctl", ["--runtime", daemon.runtime] + call, in: daemon.root)
            #expect(!text.isEmpty, "\(call)")
            #expect(controls(text) == [], "\(call): \(text)")
        }
        for arguments in [["--" + Self.hostile], ["--log-level", Self.hostile]] {
            let text = try output(of: "greenroomd", arguments, in: daemon.root)
            #expect(text.hasPrefix("greenroomd: "))
            #expect(controls(text) == [], "\(text)")
        }
        #expect(controls(TestDaemon.text(of: daemon.root + "/log")) == [])
    }

    @Test("a crash, a status other than 0 and a program that does not exist are shown as what they are (L45)")
    func ends() throws {
        let daemon = try TestDaemon([
            "crashes": TestDaemon.manifest("crash"),
            "fails": "[App]\nExecStart=/bin/sh -c 'exit 3'\n",
            "missing": "[App]\nExecStart=/nonexistent/program\n",
            "works": "[App]\nExecStart=/bin/true\n",
        ])
        let expected: [(app: String, priority: Int64, result: String)] = [
            ("crashes", 3, "killed, signal SEGV"), ("fails", 4, "exited, status 3"),
            ("missing", 3, "exited, status 203"), ("works", 5, "exited, status 0"),
        ]
        for (app, priority, result) in expected {
            try daemon.launch(app)
            #expect(try daemon.wait(app, "ended")["priority"]?.integerValue == priority, "\(app)")
            let text = try output(of: "greenroomctl", ["--runtime", daemon.runtime, "receipts", app], in: daemon.root)
            #expect(text.contains("  \(result)"), "\(text)")
        }
    }

    @Test("an app that is ended by the signal that Terminate= names has ended as it was asked to (L45)")
    func terminateSignal() throws {
        let daemon = try TestDaemon(["sleeps": "[App]\nExecStart=/bin/sleep infinity\n[Signals]\nTerminate=SIGINT\n"])
        try daemon.launch("sleeps")
        let answer = try daemon.terminate("sleeps")
        #expect(answer["explanation"]?.stringValue == "Terminated on request: ended by SIGINT.", "\(answer)")
        #expect(try daemon.wait("sleeps", "ended")["priority"]?.integerValue == 5)
    }
}
