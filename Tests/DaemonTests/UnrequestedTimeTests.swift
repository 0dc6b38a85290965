import Glibc
import JSON
import Linux
import Posix
import Systemd
import TestKit
import Testing

/// Background time that no user asked for (L53).
@Suite("Background time that no user asked for")
struct UnrequestedTimeTests {
    @Test(
        "an app that asks for itself is refused when its background time is used up, and users still wake it (L53)",
        arguments: geteuid() == 0 ? [false, true] : [false])
    func asksForItself(withoutCgroups: Bool) throws {
        let root = try TestDaemon.makeFolder()
        // Other users may not be able to read the build folder.
        try replaceFile(
            at: root + "/greenroomctl", with: readFile(at: TestDaemon.binaries + "/greenroomctl", limit: 1 << 28),
            mode: 0o755)
        let control = "\(root)/greenroomctl --runtime \(root)/run"
        let script = """
            #!/bin/sh
            while :; do
                \(control) activate asker >>\(root)/activate 2>&1
                \(control) launch asker --background --reason timer >>\(root)/wake 2>&1 || break
            done
            exec sleep 1000

            """
        try replaceFile(at: root + "/script", with: Array(script.utf8), mode: 0o755)
        let text = """
            [App]
            ExecStart=\(root)/script
            [Lifecycle]
            SuspendDelaySec=30s
            BackgroundTimePerHourSec=300ms

            """
        let daemon = try TestDaemon(["asker": text], root: root, asUnprivilegedUser: withoutCgroups)
        try daemon.launch("asker", background: true)
        try daemon.wait("asker", "backgroundTimeUsedUp")
        try daemon.eventually("the app is refused") {
            TestDaemon.text(of: root + "/wake").contains("its background time for this hour is used up")
        }
        let activation = TestDaemon.text(of: root + "/activate")
        #expect(activation.contains("comes from an app that is not in the foreground"), "\(activation)")
        let status = try daemon.status("asker")
        #expect(try #require(status["backgroundTimeLastHourSeconds"]?.numberValue) >= 0.3, "\(status)")
        #expect(status["backgroundTimePerHourSeconds"]?.numberValue == 0.3, "\(status)")
        #expect(TestDaemon.text(of: root + "/log").contains("asker: used up its background time (300ms in an hour)"))
        // The test is a user.
        let launch = try daemon.ask(
            "Launch", "asker", [.dictionary([("background", .bool(true)), ("reason", .string("timer"))])])
        #expect(launch["outcome"]?.stringValue == "done", "\(launch)")
        #expect(try daemon.ask("Activate", "asker")["state"]?.stringValue == "active")
    }

    @Test("an app that leaks a task is not relaunched when its background time is used up (L53)")
    func leaks() throws {
        let text = TestDaemon.manifest(
            "'begin' leak", app: "Relaunch=always",
            """
            [Lifecycle]
            BackgroundTimeSec=300ms
            ExpirationNoticeSec=0
            BackgroundTimePerHourSec=200ms
            """)
        let daemon = try TestDaemon(["leak": text])
        try daemon.launch("leak", background: true)
        let relaunch = try daemon.wait("leak", "relaunchScheduled")
        // L11 alone would postpone it by 10s, and by 5min at most.
        let time = try #require(relaunch["relaunchSeconds"]?.numberValue)
        #expect(time > 3000 && time <= 3660, "\(relaunch)")
        #expect(try daemon.state("leak") == "notRunning")
        // A user can launch it. Its tasks are refused, so it is suspended.
        try daemon.launch("leak", background: true)
        try daemon.waitUntil("leak", is: "suspended")
        #expect(try daemon.status("leak")["tasks"]?.arrayValue?.isEmpty == true)
    }
}
