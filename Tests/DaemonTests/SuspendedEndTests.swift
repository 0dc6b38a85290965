import Glibc
import JSON
import Linux
import Systemd
import TestKit
import Testing

/// A server that knows nothing of Greenroom and keeps its data in memory until SIGTERM, as redis-server does without its
/// append-only file.
@Suite("Ends of real suspended apps")
struct SuspendedEndTests {
    private func daemon(_ more: String = "", trap: String = "") throws -> TestDaemon {
        let root = try TestDaemon.makeFolder()
        let script = """
            #!/bin/sh
            trap 'echo saved > $ROOT/data; exit 0' TERM
            \(trap)
            touch $ROOT/ready
            while :; do sleep 0.01; done

            """
        try replaceFile(at: root + "/server", with: Array(script.utf8), mode: 0o755)
        let text = """
            [App]
            StartupSec=0
            ExecStart=\(root)/server
            Environment=ROOT=\(root)
            [Lifecycle]
            SuspendDelaySec=0
            TerminateDeadlineSec=1min
            \(more)

            """
        let daemon = try TestDaemon(["server": text], root: root)
        try daemon.launch("server")
        try daemon.eventually("the server runs") { exists(at: root + "/ready") }
        try daemon.ask("Background", "server")
        try daemon.waitUntil("server", is: "suspended")
        return daemon
    }

    private func data(_ daemon: TestDaemon) -> String { TestDaemon.text(of: daemon.root + "/data") }

    @Test("a suspended server that knows nothing of Greenroom saves its data when it is terminated (L46)")
    func terminated() throws {
        let daemon = try daemon()
        let answer = try daemon.terminate("server")
        #expect(data(daemon) == "saved\n")
        #expect(
            answer["lastReceipt"]?["explanation"]?.stringValue == "Terminated on request: exited with status 0.",
            "\(answer)")
    }

    @Test("a suspended server that knows nothing of Greenroom saves its data when the daemon stops (L46)")
    func stopped() throws {
        let daemon = try daemon()
        #expect(daemon.stop() == .exited(0))
        #expect(data(daemon) == "saved\n")
    }

    @Test("jetsam, a removal and TerminateSuspended=kill end a suspended server without notice (L40, L42, L46)")
    func withoutNotice() throws {
        let victim = try daemon()
        #expect(JSONText.of(try victim.call("SimulatePressure", [.string("critical")]), "victim") == "server")
        try victim.waitUntil("server", is: "notRunning")
        #expect(data(victim) == "")
        let removed = try daemon()
        try removed.terminate("server", remove: true)
        #expect(data(removed) == "")
        let chosen = try daemon("TerminateSuspended=kill")
        try chosen.terminate("server")
        #expect(data(chosen) == "")
    }

    @Test("a suspended app with a signal for entering the background has saved what it has, and is not thawed (L46)")
    func takesPart() throws {
        let daemon = try daemon(
            "[Signals]\nEnterBackground=SIGUSR1",
            trap: "trap 'systemd-notify X_GREENROOM_BACKGROUND=1 || kill -STOP $$' USR1")
        let answer = try daemon.terminate("server")
        #expect(data(daemon) == "")
        #expect(
            answer["lastReceipt"]?["explanation"]?.stringValue == "Killed while suspended: terminated on request.",
            "\(TestDaemon.text(of: daemon.root + "/log"))")
    }
}
