import Glibc
import JSON
import Linux
import Systemd
import TestKit
import Testing

/// Apps of several processes, as shells and wrappers make them.
@Suite("Ends of apps with several processes")
struct KillModeTests {
    /// A server that writes a file when it receives SIGTERM, and that a wrapper started.
    private static let server =
        "trap 'echo saved > \"$DATA\"; exit 0' TERM; touch $DATA.ready; while :; do sleep 0.01; done"

    private func daemon(_ command: String, _ more: String = "", unprivileged: Bool = false) throws -> TestDaemon {
        let root = try TestDaemon.makeFolder()
        if unprivileged { chmod(root, 0o777) }
        try replaceFile(at: root + "/server", with: Array(("#!/bin/sh\n" + Self.server + "\n").utf8), mode: 0o755)
        try replaceFile(at: root + "/app", with: Array(("#!/bin/sh\n" + command + "\n").utf8), mode: 0o755)
        let text = """
            [App]
            StartupSec=0
            ExecStart=\(root)/app
            Environment=DATA=\(root)/data SERVER=\(root)/server
            \(more)

            """
        return try TestDaemon(["app": text], root: root, asUnprivilegedUser: unprivileged)
    }

    private func isReady(_ daemon: TestDaemon) -> Bool { exists(at: daemon.root + "/data.ready") }

    private func explanation(_ answer: JSONValue) -> String {
        answer["lastReceipt"]?["explanation"]?.stringValue ?? "\(answer)"
    }

    @Test(
        "a server behind a wrapper that does not exec it saves its data when it is terminated (L46)",
        arguments: ["$SERVER; echo wrapper ends", "$SERVER & wait", "trap : TERM; $SERVER", "unshare --fork $SERVER"])
    func wrapper(command: String) throws {
        let daemon = try daemon(command, "[Lifecycle]\nTerminateDeadlineSec=1min")
        try daemon.launch("app")
        try daemon.eventually("the server runs") { isReady(daemon) }
        let answer = try daemon.terminate("app")
        #expect(explanation(answer).hasPrefix("Terminated on request: "), "\(answer)")
        #expect(answer["lastReceipt"]?["remainingProcesses"] == nil)
        #expect(TestDaemon.text(of: daemon.root + "/data") == "saved\n")
    }

    @Test("with KillMode=mixed only the main process gets the signal, and the receipt names what was killed (L46)")
    func mixed() throws {
        let daemon = try daemon("$SERVER & wait", "KillMode=mixed")
        try daemon.launch("app")
        try daemon.eventually("the server runs") { isReady(daemon) }
        let processes = try daemon.processes(of: "app")
        let answer = try daemon.terminate("app")
        #expect(explanation(answer).hasPrefix("Terminated on request: ended by SIGTERM; "), "\(answer)")
        #expect(explanation(answer).contains("killed ("), "\(answer)")
        #expect(answer["lastReceipt"]?["remainingNames"]?.arrayValue?.contains(.string("server")) == true, "\(answer)")
        #expect(!exists(at: daemon.root + "/data"))
        #expect(processes.allSatisfy { !isAlive($0) })
    }

    @Test("a process that ignores SIGTERM is killed at the deadline, and the receipt names it (L45, L46, L47)")
    func ignores() throws {
        let daemon = try daemon(
            "sh -c 'trap \"\" TERM; touch $DATA.ready; exec sleep 1000' & wait",
            "[Lifecycle]\nTerminateDeadlineSec=4s")
        try daemon.launch("app")
        try daemon.eventually("the process ignores SIGTERM") { isReady(daemon) }
        try daemon.eventually("the process is executed") {
            try daemon.processes(of: "app").contains { try ProcFS().stat(of: $0)?.comm == "sleep" }
        }
        let processes = try daemon.processes(of: "app")
        let answer = try daemon.terminate("app")
        #expect(
            explanation(answer) == "Terminated on request: ended by SIGTERM; 1 remaining process was killed (sleep).")
        #expect(answer["lastReceipt"]?["deadline"]?["what"]?.stringValue == "terminate")
        #expect(processes.allSatisfy { !isAlive($0) })
    }

    @Test("the next daemon gives processes that are left the rest of their deadline, and writes the receipt (L46)")
    func recovered() throws {
        let daemon = try daemon(
            "sh -c 'trap \"\" TERM; touch $DATA.ready; exec sleep 1000' & wait",
            "[Lifecycle]\nTerminateDeadlineSec=8s")
        try daemon.launch("app")
        try daemon.eventually("the process ignores SIGTERM") { isReady(daemon) }
        let pid = try daemon.pid("app")
        _ = try daemon.begin("Terminate", "app", [.bool(false)])
        try daemon.eventually("the main process has ended") { try ProcFS().stat(of: pid) == nil }
        daemon.crash()
        let next = try daemon.successor()
        try next.eventually("the run is over") { try next.state("app") == "notRunning" }
        let receipt = try #require(try next.receipts("app").last)
        #expect(receipt["remainingProcesses"]?.integerValue == 1, "\(receipt)")
    }

    @Test(
        "without cgroups all processes get the signal as well (L46)",
        .enabled(if: geteuid() == 0, "needs root to become another user"))
    func processGroup() throws {
        let daemon = try daemon("setsid $SERVER & wait", unprivileged: true)
        try daemon.launch("app")
        try daemon.eventually("the server runs") { isReady(daemon) }
        let answer = try daemon.terminate("app")
        #expect(explanation(answer) == "Terminated on request: ended by SIGTERM.")
        #expect(TestDaemon.text(of: daemon.root + "/data") == "saved\n")
    }
}
