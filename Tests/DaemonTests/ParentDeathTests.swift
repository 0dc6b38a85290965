import Glibc
import JSON
import Linux
import Testing

/// Apps that the kernel signals when their parent ends (PR_SET_PDEATHSIG(2const)), as `bwrap --die-with-parent` and the sandboxes of
/// browsers ask for. The parent is the thread that has created the process.
@Suite(
    "Apps that end with their parent", .enabled(if: access("/usr/bin/setpriv", X_OK) == 0, "setpriv is not installed"))
struct ParentDeathTests {
    private static func manifest(_ more: String = "") -> String {
        """
        [App]
        ExecStart=/usr/bin/setpriv --pdeathsig TERM /bin/sleep 1000
        \(more)

        """
    }

    /// Launches an app and waits until it has asked for the signal.
    private static func launch(_ app: String, _ daemon: TestDaemon) throws -> Int32 {
        try daemon.launch(app)
        let pid = try daemon.pid(app)
        try daemon.eventually("\(app) has executed sleep") { try ProcFS().stat(of: pid)?.comm == "sleep" }
        return pid
    }

    /// The children of the daemon that create processes, those that have ended included.
    private static func launchers(of daemon: TestDaemon) throws -> Int {
        try ProcFS().pids().compactMap { try ProcFS().stat(of: $0) }
            .count { $0.parent == daemon.process.pid && $0.comm == "launcher" }
    }

    @Test("apps that end with their parent live on through ten reexecs")
    func reexec() throws {
        // Until it executes its program, one shares the daemon's memory, and the other has a copy.
        let daemon = try TestDaemon(
            ["sharing": Self.manifest(), "copying": Self.manifest("OOMScoreAdjust=300")],
            configuration: "[Manager]\nForegroundLimit=2\n")
        let apps = ["sharing", "copying"]
        let before = try apps.map { try Self.launch($0, daemon) }
        for _ in 0..<10 {
            _ = try daemon.call("Reexec")
            try daemon.reconnect()
        }
        #expect(try apps.map(daemon.pid) == before)
        #expect(try apps.allSatisfy { try daemon.state($0) == "active" && daemon.receipts($0).isEmpty })
        try daemon.eventually("the launchers of the previous programs were reaped") {
            try Self.launchers(of: daemon) == 1
        }
        #expect(daemon.stop() == .exited(0))
        #expect(!before.contains(where: isAlive))
    }

    @Test("a crash of the daemon ends an app that ends with its parent, and its receipt says so; other apps live on")
    func crash() throws {
        let first = try TestDaemon(
            ["tied": Self.manifest(), "free": "[App]\nExecStart=/bin/sleep 1000\n"],
            configuration: "[Manager]\nForegroundLimit=2\n")
        try first.launch("free")
        let (tied, free) = try (Self.launch("tied", first), first.pid("free"))
        first.crash()
        try first.eventually("the kernel has ended the app") { !isAlive(tied) }
        let second = try first.successor()
        try second.waitUntil("tied", is: "notRunning")
        // No daemon was its parent when it ended, so the kernel may not know how.
        let words = try second.receipts("tied").last?["explanation"]?.stringValue ?? ""
        #expect(words.contains("SIGTERM") || words.contains("unknown status"), "\(words)")
        #expect(try second.pid("free") == free && second.state("free") == "active")
    }
}
