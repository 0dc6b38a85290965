import Glibc
import JSON
import Linux
import TestKit
import Testing

/// `greenroomctl certify --client=`: a program of the caller makes the requests to an app that is suspended.
@Suite(
    "greenroomctl certify --client=",
    .enabled(if: geteuid() == 0 && TrafficStage.hasPython, "needs control groups, and python3"))
struct CertifyClientTests {
    /// Answers each line with the same line.
    private static let server = """
        import socket, socketserver, sys
        class Echo(socketserver.StreamRequestHandler):
            def handle(self):
                for line in self.rfile:
                    self.wfile.write(line)
        class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
            pass
        Server(sys.argv[1], Echo).serve_forever(poll_interval=1000)

        """
    /// Keeps one connection.
    private static let client = """
        import socket, sys
        server = socket.socket(socket.AF_UNIX)
        server.connect(sys.argv[1])
        server = server.makefile("rw")
        for line in sys.stdin:
            server.write(line)
            server.flush()
            answer = server.readline()
            print("ok kept " + answer.strip() if answer == line else "answered " + answer, flush=True)

        """

    private struct Report {
        let status: EndStatus?
        let outcome: String?
        let finding: String
        let requests: JSONValue?
    }

    /// The only step of the report.
    private func certify(
        _ client: String, _ options: [String] = [], _ command: [String] = ["/bin/sleep", "1000"], in root: String
    ) throws -> Report {
        let arguments = ["--json", "certify", "--only=load", "--client=\(client)"] + options + ["--"] + command
        let (status, output) = try TestDaemon.runToEnd(
            arguments, in: root, executable: TestDaemon.binaries + "/greenroomctl")
        let steps = try JSONValue.parse(output)["steps"]?.arrayValue ?? []
        #expect(steps.compactMap { $0["name"]?.stringValue } == ["load"], "\(output)")
        let step = steps.first
        return Report(
            status: status, outcome: step?["outcome"]?.stringValue, finding: step?["finding"]?.stringValue ?? output,
            requests: step?["requests"])
    }

    /// The command of a worker that is suspended soon, and where it listens.
    private func serverCommand(_ root: String) throws -> (options: [String], command: [String], path: String) {
        let settings = ["Role=worker", "Type=listening", "IdleSec=100ms"].flatMap { ["-p", $0] }
        try replaceFile(at: root + "/server.py", with: Array(Self.server.utf8))
        try replaceFile(at: root + "/client.py", with: Array(Self.client.utf8))
        return (settings, [TrafficStage.python, root + "/server.py", root + "/socket"], root + "/socket")
    }

    @Test(
        "a client that keeps a connection is asked before the first suspension and in each one, and wakes the app (L50)"
    )
    func rounds() throws {
        let root = try TestDaemon.makeFolder()
        defer { removeTree(root) }
        let (options, command, path) = try serverCommand(root)
        let report = try certify(
            "exec \(TrafficStage.python) \(root)/client.py \(path)", options + ["--rounds=2"], command, in: root)
        #expect(report.status == .exited(0) && report.outcome == "handled", "\(report.finding)")
        #expect(report.finding.contains("2 freezes, and of the last one “kept 2”"), "\(report.finding)")
        #expect(report.finding.hasSuffix("; woken by each request"), "\(report.finding)")
        let requests = report.requests
        #expect(requests?["rounds"]?.integerValue == 2 && requests?["awakeRounds"]?.integerValue == 0)
        let suspensions = requests?["suspensions"]?.integerValue ?? 0
        #expect(requests?["otherWakes"]?.integerValue == suspensions - 2)
        #expect(requests?["answerSeconds"]?.numberValue ?? 0 > 0)
        #expect(requests?["awake"]?.arrayValue == [] && requests?["notWatched"]?.arrayValue == [])
    }

    @Test("what the client finds wrong breaks the app, and so does a client that does not ask it")
    func wrong() throws {
        let root = try TestDaemon.makeFolder()
        defer { removeTree(root) }
        let (options, command, path) = try serverCommand(root)
        // The file keeps the rounds that it was asked for.
        let client =
            "tee \(root)/asked | \(TrafficStage.python) \(root)/client.py \(path) | sed -u 's/^ok kept 1$/lost 2 bytes/'"
        let report = try certify(client, options, command, in: root)
        #expect(report.status == .exited(1) && report.outcome == "broken")
        #expect(report.finding == "the client found in round 1: “lost 2 bytes”", "\(report.finding)")
        #expect(report.requests?["rounds"]?.integerValue == 0 && report.requests?["suspensions"]?.integerValue ?? 0 > 0)
        #expect(TestDaemon.text(of: root + "/asked") == "0\n1\n")
        unlink(path)
        let idle = try certify("while read n; do echo ok; done", options + ["--rounds=1"], command, in: root)
        #expect(
            idle.finding == "it stayed suspended in a round with a right answer: the requests did not reach it",
            "\(idle.finding)")
    }

    @Test(
        "a client that exits, is silent, writes without end or unasked is named, and is ended with what it has started")
    func hostileClients() throws {
        let root = try TestDaemon.makeFolder()
        defer { removeTree(root) }
        let findings = [
            ("exit 3", "the client exited with status 3 before the first round"),
            ("kill -9 $$", "the client was ended by SIGKILL before the first round"),
            ("exec >&-; cat >/dev/null", "the client closed its output before the first round"),
            ("cat >/dev/null", "the client did not answer within 3s before the first round"),
            (
                "read n; cat /dev/zero",
                "the client wrote more than 1024 bytes without the end of a line before the first round"
            ),
            ("read n; printf 'ok\nok\n'; cat", "the client wrote a line before it was asked: “ok”"),
            ("read n; echo; cat", "the client found before the first round: an empty line"),
            ("read n; echo okay; cat", "the client found before the first round: “okay”"),
            // It does not end with its input, and neither does its child.
            (
                "echo $$ >\(root)/pid; sleep 1000 & echo $! >>\(root)/pid; wait",
                "the client did not answer within 3s before the first round"
            ),
        ]
        for (client, finding) in findings {
            // The second line of one comes after a suspension.
            let settings = ["-p", "Role=worker", "-p", "IdleSec=100ms", "-p", "StartupSec=0"]
            let time = finding.contains("did not answer") ? "3s" : "50s"
            let report = try certify(client, ["--timeout=\(time)"] + settings, in: root)
            #expect(report.status == .exited(1) && report.outcome == "broken", "\(client)")
            #expect(report.finding == finding, "\(client)")
        }
        let pids = TestDaemon.text(of: root + "/pid").split(separator: "\n").compactMap { Int32($0) }
        #expect(pids.count == 2)
        for pid in pids {
            #expect(kill(pid, 0) != 0 || TestDaemon.text(of: "/proc/\(pid)/stat").contains(") Z"), "\(pid) runs")
        }
    }
}
