import Glibc
import JSON
import Linux
import Testing

@Suite("Deadlines and tasks of real processes")
struct DeadlineTests {
    @Test("an app that misses its launch deadline is killed with 0x8badf00d, and the error names the cause (L7)")
    func launchDeadline() throws {
        let daemon = try TestDaemon([
            "hang": TestDaemon.manifest("", "[Lifecycle]\nLaunchDeadlineSec=200ms", hangs: true)
        ])
        let end = try daemon.launch("hang")
        #expect(end["outcome"]?.stringValue == "ended")
        let receipt = try #require(end["lastReceipt"])
        #expect(receipt["code"]?.stringValue == "0x8badf00d")
        #expect(receipt["state"]?.stringValue == "launching")
        #expect(receipt["deadline"]?["what"]?.stringValue == "launch")
        #expect(receipt["deadline"]?["allowedSeconds"]?.numberValue == 0.2)
    }

    @Test("an app that misses its background deadline is killed (L16)")
    func backgroundDeadline() throws {
        let daemon = try TestDaemon([
            "slow": TestDaemon.manifest("background=ignore", "[Lifecycle]\nBackgroundDeadlineSec=200ms")
        ])
        try daemon.launch("slow")
        let end = try daemon.ask("Background", "slow")
        #expect(end["lastReceipt"]?["code"]?.stringValue == "0x8badf00d")
        #expect(end["lastReceipt"]?["deadline"]?["what"]?.stringValue == "background")
    }

    @Test("an app that leaks a task is notified, then killed, and the receipt names the task (L22, L23)")
    func leakedTask() throws {
        let root = try TestDaemon.makeFolder()
        let times = "[Lifecycle]\nBackgroundTimeSec=11s\nExpirationNoticeSec=10s"
        let text = TestDaemon.manifest("background=task:upload", times, trace: root + "/trace")
        let daemon = try TestDaemon(["leaky": text], root: root)
        try daemon.launch("leaky")
        try daemon.ask("Background", "leaky")
        try daemon.wait("leaky", "tasksExpiring")
        try daemon.wait("leaky", "ended")
        let receipt = try #require(try daemon.receipts("leaky").last)
        #expect(receipt["code"]?.stringValue == "0x2182bad2")
        #expect(receipt["explanation"]?.stringValue?.contains("'upload'") == true)
        #expect(daemon.trace().contains("tasksExpiring"))
    }

    @Test("an app is not suspended before its last task has ended (L21)")
    func taskHolds() throws {
        let times = "[Lifecycle]\nBackgroundTimeSec=1min\nSuspendDelaySec=0"
        let script = "background=task:save hangup=X_GREENROOM_END_TASK=save"
        let daemon = try TestDaemon(["polite": TestDaemon.manifest(script, times)])
        try daemon.launch("polite")
        try daemon.ask("Background", "polite")
        #expect(try daemon.status("polite")["tasks"]?.arrayValue?.first?["name"]?.stringValue == "save")
        try #require(kill(daemon.pid("polite"), SIGHUP) == 0)
        try daemon.wait("polite", "taskEnded")
        try daemon.wait("polite", "stateChanged", state: "suspended")
    }

    @Test("an app with more than 1,000 tasks is killed (L27)")
    func tooManyTasks() throws {
        let daemon = try TestDaemon(["eager": TestDaemon.manifest("tasks 1100")])
        try daemon.launch("eager")
        try daemon.wait("eager", "ended")
        #expect(try daemon.receipts("eager").last?["code"]?.stringValue == "0xbada5e47")
    }

    @Test("an app that ignores SIGTERM is killed at its terminate deadline (L46)")
    func terminateDeadline() throws {
        let daemon = try TestDaemon([
            "stubborn": TestDaemon.manifest("term=ignore", "[Lifecycle]\nTerminateDeadlineSec=200ms")
        ])
        try daemon.launch("stubborn")
        try daemon.settle("stubborn", catches: 15)
        let end = try daemon.terminate("stubborn")
        #expect(end["lastReceipt"]?["code"]?.stringValue == "0x8badf00d")
        #expect(end["lastReceipt"]?["deadline"]?["what"]?.stringValue == "terminate")
    }

    @Test("an app that the user removes is killed at once (L42)")
    func removed() throws {
        let daemon = try TestDaemon(["app": TestDaemon.manifest("term=ignore")])
        try daemon.launch("app")
        let end = try daemon.terminate("app", remove: true)
        #expect(end["lastReceipt"]?["code"]?.stringValue == "0xdeadfa11")
        #expect(end["lastReceipt"]?["namespace"]?.stringValue == "user")
    }

    @Test("EXTEND_TIMEOUT_USEC= extends the launch deadline (L25)")
    func extended() throws {
        let script = "say EXTEND_TIMEOUT_USEC=20000000"
        let daemon = try TestDaemon([
            "late": TestDaemon.manifest(script, "[Lifecycle]\nLaunchDeadlineSec=15s", hangs: true)
        ])
        let request = try daemon.begin("Launch", "late")
        try daemon.wait("late", "deadlineExtended")
        let left = try #require(try daemon.status("late")["deadline"]?["remainingSeconds"]?.numberValue)
        #expect(left > 10)
        try daemon.terminate("late", remove: true)
        #expect(try daemon.finish(request)["outcome"]?.stringValue == "superseded")
    }

    @Test(
        "an app that traces itself misses its deadline (L48)", .enabled(if: geteuid() == 0, "Yama may forbid tracing"))
    func tracesItself() throws {
        let manifest = TestDaemon.manifest("trace-self", "[Lifecycle]\nLaunchDeadlineSec=500ms", hangs: true)
        let daemon = try TestDaemon(["evader": manifest])
        #expect(try daemon.launch("evader")["lastReceipt"]?["code"]?.stringValue == "0x8badf00d")
    }

    @Test("a deadline is restarted while a debugger is attached (L48)", .enabled(if: exists(at: "/usr/bin/gdb")))
    func debugger() throws {
        let daemon = try TestDaemon([
            "hang": TestDaemon.manifest("", "[Lifecycle]\nLaunchDeadlineSec=15s", hangs: true)
        ])
        let request = try daemon.begin("Launch", "hang")
        try daemon.wait("hang", "stateChanged", state: "launching")
        let debugger = try daemon.runDebugger(on: try daemon.pid("hang"))
        try daemon.wait("hang", "deadlineDeferred")
        _ = try debugger.signal(9)
        #expect(try daemon.finish(request)["lastReceipt"]?["code"]?.stringValue == "0x8badf00d")
    }
}
