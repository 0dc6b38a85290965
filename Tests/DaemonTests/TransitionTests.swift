import Control
import Glibc
import JSON
import Linux
import Systemd
import Testing

@Suite("Transitions of real processes")
struct TransitionTests {
    @Test("L5: an activation in the middle of entering the background waits for the answer, and overtakes that wish")
    func wish() throws {
        let daemon = try TestDaemon([
            "slow": TestDaemon.manifest("background=ignore", "[Lifecycle]\nBackgroundDeadlineSec=1min")
        ])
        try daemon.launch("slow")
        let background = try daemon.begin("Background", "slow", [])
        try daemon.wait("slow", "stateChanged", state: "background")
        let activation = try daemon.begin("Activate", "slow", [])
        // It has its place in the foreground again, and has still to answer.
        try daemon.eventually("it is asked for") { try daemon.status("slow")["foreground"]?.boolValue == true }
        #expect(try daemon.state("slow") == "background")
        #expect(activation.result == nil)
        try daemon.say("X_GREENROOM_BACKGROUND=1")
        #expect(try daemon.finish(activation)["state"]?.stringValue == "active")
        #expect(try daemon.finish(background)["outcome"]?.stringValue == "superseded")
    }

    @Test("L11: who dies in its launch is not woken for 10 s; what somebody asks for is carried out, and counts anew")
    func heldBack() throws {
        let daemon = try TestDaemon(["frail": TestDaemon.manifest("exit 3", hangs: true)])
        let wake: [Variant] = [
            .string("frail"), .dictionary([("background", .bool(true)), ("reason", .string("timer"))]),
        ]
        #expect(try JSONValue(daemon.call("Launch", wake)[0])["lastReceipt"]?["exitStatus"]?.integerValue == 3)
        try daemon.waitUntil("frail", is: "notRunning")
        #expect(daemon.failure("Launch", wake) == "LaunchPostponed")
        let first = try #require(try daemon.status("frail")["launchPostponedSeconds"]?.numberValue)
        #expect(first <= 10)
        // Asked for by somebody it is launched at once, and counts anew.
        for _ in 0..<2 {
            #expect(try daemon.launch("frail")["lastReceipt"]?["exitStatus"]?.integerValue == 3)
            try daemon.waitUntil("frail", is: "notRunning")
            #expect(daemon.failure("Launch", wake) == "LaunchPostponed")
            #expect(try #require(try daemon.status("frail")["launchPostponedSeconds"]?.numberValue) <= 10)
        }
        #expect(try daemon.receipts("frail").count == 3)
    }

    @Test(
        "L19: an app in the background gets less, and has all of it back in the foreground",
        .enabled(if: geteuid() == 0, "needs root, to set other processes' timer slack"))
    func throttled() throws {
        let daemon = try TestDaemon(["app": TestDaemon.manifest("", "[Lifecycle]\nSuspendDelaySec=1min")])
        try daemon.launch("app")
        let pid = try daemon.pid("app")
        let group = try daemon.groupPath("app")
        func slack() -> String { TestDaemon.text(of: "/proc/\(pid)/timerslack_ns") }
        func isIdle() -> Bool {
            sched_getscheduler(pid) == 5  // SCHED_IDLE, sched(7)
                || group.map { TestDaemon.text(of: $0 + "/cpu.idle") == "1\n" } ?? false
        }
        #expect(slack() == "50000\n")
        #expect(!isIdle())
        try daemon.ask("Background", "app")
        #expect(slack() == "40000000\n")
        #expect(isIdle())
        try daemon.ask("Activate", "app")
        #expect(slack() == "50000\n")
        #expect(!isIdle())
    }

    @Test(
        "L19: what was forked in the background has its timers back too in the foreground",
        .enabled(if: geteuid() == 0, "needs root, to set other processes' timer slack"))
    func throttledChild() throws {
        let root = try TestDaemon.makeFolder()
        let script = "until test -e \(root)/go; do sleep 0.02; done; sleep 1000 & echo $$! > \(root)/child; wait"
        let text = "[App]\nExecStart=/bin/sh -c '\(script)'\n[Lifecycle]\nSuspendDelaySec=1min\n"
        let daemon = try TestDaemon(["app": text], root: root)
        try daemon.launch("app", background: true)
        try replaceFile(at: root + "/go", with: [])
        try daemon.eventually("it forked") { TestDaemon.text(of: root + "/child").hasSuffix("\n") }
        let child = TestDaemon.text(of: root + "/child").filter { $0 != "\n" }
        func slack() -> String { TestDaemon.text(of: "/proc/\(child)/timerslack_ns") }
        #expect(slack() == "40000000\n")
        try daemon.ask("Activate", "app")
        #expect(slack() == "50000\n")
    }
}
