import Control
import Glibc
import JSON
import Linux
import Posix
import Systemd
import TestKit
import Testing

/// Timers and fetch with real processes and the machine's clock (L30).
@Suite("Timers and fetch")
struct TimerTests {
    private static let root = "[Lifecycle]\nSuspendDelaySec=0\nBackgroundModes=fetch\n"

    /// An app that writes why it was launched into a file.
    private static func manifest(_ trace: String, _ wake: String) -> String {
        """
        [App]
        ExecStart=/bin/sh -c 'echo $$GREENROOM_LAUNCH_REASON >>\(trace); exec sleep 10000'
        \(root)[Wake]
        AccuracySec=1us
        \(wake)

        """
    }

    private func timers(_ daemon: TestDaemon, _ app: String = "feed") throws -> [JSONValue] {
        try daemon.status(app)["timers"]?.arrayValue ?? []
    }

    @Test("a timer launches an app once, whatever becomes of the daemon, and list-timers shows it (L30)")
    func launches() throws {
        let root = try TestDaemon.makeFolder()
        // Both times have passed since the boot of the machine.
        let first = try TestDaemon(
            ["feed": Self.manifest(root + "/trace", "OnBootSec=1ms\nOnBootSec=2ms\nOnCalendar=yearly")], root: root)
        try first.eventually("the launch") { first.trace() == ["timer"] }
        try first.waitUntil("feed", is: "background")
        let wakes = try first.status("feed")["wakes"]?.arrayValue
        #expect(wakes?.map { $0["reason"]?.stringValue } == ["timer"])
        try first.sendMessage("X_GREENROOM_WAKE_DONE=no-data")
        try first.waitUntil("feed", is: "suspended")
        let before = try timers(first)
        #expect(before.count == 1 && before.first?["kind"]?.stringValue == "timer")
        first.crash()
        let second = try first.successor()
        #expect(try timers(second) == before)
        _ = try second.call("Reload")
        #expect(try timers(second) == before)
        #expect(try second.state("feed") == "suspended" && second.trace() == ["timer"])
        let (_, output) = try TestDaemon.runToEnd(
            ["--runtime", second.runtime, "--json", "list-timers"], in: root,
            executable: TestDaemon.binaries + "/greenroomctl")
        let listed = try JSONValue.parse(output).arrayValue ?? []
        #expect(listed.map { $0["app"]?.stringValue } == ["feed"])
        #expect(listed.first?["kind"]?.stringValue == "timer" && listed.first?["next"] != nil)
    }

    @Test("fetches wake an app at intervals that double without data, and a fetch with data ends that (L30)")
    func fetches() throws {
        let root = try TestDaemon.makeFolder()
        let daemon = try TestDaemon(["feed": Self.manifest(root + "/trace", "FetchIntervalSec=1s")], root: root)
        /// How long after a fetch the next one comes.
        func interval(after result: String) throws -> Double {
            try daemon.waitForEvent("a fetch") {
                $0["kind"]?.stringValue == "deadlineStarted" && $0["deadline"]?["what"]?.stringValue == "wake"
            }
            try daemon.sendMessage("X_GREENROOM_WAKE_DONE=\(result)")
            try daemon.wait("feed", "wakeCompleted")
            let fetch = try timers(daemon).first
            guard let next = fetch?["next"]?.integerValue, let last = fetch?["last"]?.integerValue else { return 0 }
            return Double(next - last) / 1e6
        }
        func isClose(_ time: Double, _ expected: Double) -> Bool { abs(time - expected) < 0.001 }
        #expect(isClose(try interval(after: "no-data"), 2))
        #expect(isClose(try interval(after: "no-data"), 4))
        #expect(isClose(try interval(after: "new-data"), 1))
        #expect(daemon.trace() == ["fetch"])
    }

    @Test("with Persistent=yes a time that has passed without a daemon elapses once when it starts (L30)")
    func persistent() throws {
        let root = try TestDaemon.makeFolder()
        try createDirectories(at: root + "/state/timers")
        try replaceFile(at: root + "/state/timers/feed", with: Array("1000000\n".utf8))
        let manifest = Self.manifest(root + "/trace", "OnCalendar=yearly\nPersistent=yes")
        let daemon = try TestDaemon(["feed": manifest], root: root)
        try daemon.eventually("the launch") { daemon.trace() == ["timer"] }
        // The daemon is stopped, and not only killed: nothing but the state folder is left.
        daemon.stop()
        let next = try daemon.successor()
        let timer = try timers(next).first
        #expect(try next.state("feed") == "notRunning" && next.trace() == ["timer"])
        #expect((timer?["last"]?.integerValue ?? 0) > 1_000_000)
    }

    @Test("only while an app has a timer the daemon waits for one (L30)")
    func nothingWithoutTimers() throws {
        let daemon = try TestDaemon(["plain": Self.manifest("/dev/null", "")])
        /// Timers on CLOCK_REALTIME. The loop has others.
        func count() -> Int {
            let folder = "/proc/\(daemon.process.pid)/fdinfo"
            return entries(of: folder).count { TestDaemon.text(of: "\(folder)/\($0)").contains("clockid: 0\n") }
        }
        let before = count()
        let path = daemon.config + "/apps/feed.app"
        try replaceFile(at: path, with: Array(Self.manifest("/dev/null", "OnCalendar=yearly").utf8))
        _ = try daemon.call("Reload")
        try daemon.eventually("the timer") { count() == before + 1 }
        try removeFile(at: path)
        _ = try daemon.call("Reload")
        try daemon.eventually("no timer") { count() == before }
    }
}
