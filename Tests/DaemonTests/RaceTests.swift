import Control
import Glibc
import JSON
import Linux
import Systemd
import TestKit
import Testing

@Suite("Races, and launches that fail")
struct RaceTests {
    @Test("an app that ends at the moment of its deadline has a receipt and is not running (L7, L45)")
    func endAtDeadline() throws {
        let manifest = TestDaemon.manifest("", "[Lifecycle]\nLaunchDeadlineSec=10s", hangs: true)
        let daemon = try TestDaemon(["late": manifest])
        let pending = try daemon.begin("Launch", "late")
        try daemon.wait("late", "stateChanged", state: "launching")
        let app = try daemon.pid("late")
        try #require(app > 0)
        // Both events are pending at once: the timer has the higher priority.
        try daemon.process.signal(SIGSTOP)
        kill(app, SIGKILL)
        try daemon.eventually("the app is a zombie") { !isAlive(app) }
        let due = EventLoop.now() + .milliseconds(10100)
        try daemon.eventually("the deadline has passed") { EventLoop.now() > due }
        try daemon.process.signal(SIGCONT)
        let end = try daemon.finish(pending)
        #expect(end["outcome"]?.stringValue == "ended")
        try daemon.waitUntil("late", is: "notRunning")
    }
}

extension RaceTests {
    /// Stops the daemon until the deadline has passed, and lets the app answer meanwhile.
    private func answerWithoutDaemon(_ daemon: TestDaemon, _ app: String, _ deadline: Duration) throws {
        let due = EventLoop.now() + deadline
        let pid = try daemon.pid(app)
        try #require(pid > 0)
        try daemon.process.signal(SIGSTOP)
        kill(pid, SIGHUP)
        try daemon.eventually("the app has answered") { daemon.trace().contains("hangup") }
        try daemon.eventually("the deadline has passed") { EventLoop.now() > due }
        try daemon.process.signal(SIGCONT)
    }

    @Test("an answer that an app gave in time counts, however late the daemon reads it (L48)")
    func answersWithoutDaemon() throws {
        let root = try TestDaemon.makeFolder()
        let sections = "[Lifecycle]\nLaunchDeadlineSec=10s\nBackgroundDeadlineSec=10s"
        let ready = TestDaemon.manifest("hangup=READY=1", sections, trace: root + "/trace", hangs: true)
        let daemon = try TestDaemon(["late": ready], root: root)
        let launch = try daemon.begin("Launch", "late")
        try daemon.eventually("the app runs") { daemon.trace().contains("willFinishLaunching") }
        try daemon.settle("late", catches: SIGHUP)
        try answerWithoutDaemon(daemon, "late", .seconds(10))
        #expect(try daemon.finish(launch)["state"]?.stringValue == "active")
        #expect(try daemon.receipts("late").isEmpty)

        let other = try TestDaemon.makeFolder()
        let script = "background=ignore hangup=X_GREENROOM_BACKGROUND=1"
        let second = try TestDaemon(
            ["late": TestDaemon.manifest(script, sections, trace: other + "/trace")], root: other)
        try second.launch("late")
        let background = try second.begin("Background", "late", [])
        try second.eventually("the app is notified") { second.trace().contains("didEnterBackground") }
        try answerWithoutDaemon(second, "late", .seconds(10))
        #expect(try second.finish(background)["state"]?.stringValue == "background")
        #expect(try second.receipts("late").isEmpty)
    }

    @Test("a launch that fails leaves no group behind")
    func failedLaunches() throws {
        let daemon = try TestDaemon([
            "text": "[App]\nExecStart=/etc/passwd\n", "right": TestDaemon.manifest(""),
        ])
        try daemon.launch("right")
        // The groups of all apps are created beside this one; without cgroups there are no groups.
        guard let group = try daemon.groupPath("right"), let slash = group.lastIndex(of: "/") else { return }
        let root = String(group[..<slash])
        func groups(of app: String) -> [String] { entries(of: root).filter { $0.hasPrefix(app + ".run") } }
        for _ in 0..<50 { try daemon.launch("text") }
        try daemon.eventually("its groups are gone") { groups(of: "text").isEmpty }

        try daemon.terminate("right", remove: true)
        let (notify, away) = (daemon.runtime + "/notify", daemon.runtime + "/away")
        try daemon.process.signal(SIGSTOP)
        #expect(rename(notify, away) == 0)
        // A folder that is missing is made again.
        try daemon.writeFile(notify, "")
        try daemon.process.signal(SIGCONT)
        let end = try daemon.launch("right")
        #expect(end["lastReceipt"]?["exitStatus"]?.integerValue == 207, "\(end)")
        try daemon.eventually("its group is gone") { groups(of: "right").isEmpty }
        try daemon.process.signal(SIGSTOP)
        try removeFile(at: notify)
        #expect(rename(away, notify) == 0)
        try daemon.process.signal(SIGCONT)
        #expect(try daemon.launch("right")["state"]?.stringValue == "active")
    }
}
