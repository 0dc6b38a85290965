import Control
import Glibc
import JSON
import Linux
import Systemd
import Testing

@Suite("Transitions of real processes")
struct TransitionTests {
    @Test("an activation while the app enters the background waits for the answer and supersedes the request (L5)")
    func activationWhileEntering() throws {
        let daemon = try TestDaemon([
            "slow": TestDaemon.manifest("background=ignore", "[Lifecycle]\nBackgroundDeadlineSec=1min")
        ])
        try daemon.launch("slow")
        let background = try daemon.begin("Background", "slow", [])
        try daemon.wait("slow", "stateChanged", state: "background")
        let activation = try daemon.begin("Activate", "slow", [])
        // The app has its foreground slot again, and has yet to answer.
        try daemon.eventually("the foreground is requested") {
            try daemon.status("slow")["foreground"]?.boolValue == true
        }
        #expect(try daemon.state("slow") == "background")
        #expect(activation.result == nil)
        try daemon.sendMessage("X_GREENROOM_BACKGROUND=1")
        #expect(try daemon.finish(activation)["state"]?.stringValue == "active")
        #expect(try daemon.finish(background)["outcome"]?.stringValue == "superseded")
    }

    @Test("a launch that another launch displaces is answered with the state that the app has then (L12)")
    func displacedWhileLaunching() throws {
        let daemon = try TestDaemon([
            "slow": TestDaemon.manifest("", "[Lifecycle]\nLaunchDeadlineSec=1min", hangs: true),
            "next": TestDaemon.manifest(""),
        ])
        let launch = try daemon.begin("Launch", "slow")
        try daemon.waitUntil("slow", is: "launching")
        try daemon.launch("next")
        let answer = try daemon.finish(launch)
        #expect(answer["outcome"]?.stringValue == "superseded")
        #expect(answer["explanation"]?.stringValue == "A later request asked for the background.")
        #expect(answer["state"]?.stringValue == "launching")
        #expect(try daemon.state("slow") == "launching")
    }

    @Test("an app is ended on request while 64 requests to terminate it wait (L42, L46)")
    func endIsNotRefused() throws {
        let daemon = try TestDaemon([
            "slow": TestDaemon.manifest("term=ignore", "[Lifecycle]\nTerminateDeadlineSec=1min")
        ])
        try daemon.launch("slow")
        let waiting = try (0..<64).map { _ in try daemon.begin("Terminate", "slow", [.bool(false)]) }
        // Carried out, but answered before the end.
        let more = try daemon.terminate("slow")
        #expect(more["outcome"]?.stringValue == "done" && more["state"]?.stringValue == "terminating")
        let removal = try daemon.terminate("slow", remove: true)
        #expect(removal["outcome"]?.stringValue == "done")
        for pending in waiting {
            #expect(try daemon.finish(pending)["lastReceipt"]?["code"]?.stringValue == "0xdeadfa11")
        }
    }

    @Test(
        "if an app dies while launching, no wake launches it for 10s; a launch by a user is carried out and resets the delay (L11)"
    )
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
        // A user's request launches it at once and resets the delay.
        for _ in 0..<2 {
            #expect(try daemon.launch("frail")["lastReceipt"]?["exitStatus"]?.integerValue == 3)
            try daemon.waitUntil("frail", is: "notRunning")
            #expect(daemon.failure("Launch", wake) == "LaunchPostponed")
            #expect(try #require(try daemon.status("frail")["launchPostponedSeconds"]?.numberValue) <= 10)
        }
        #expect(try daemon.receipts("frail").count == 3)
    }

    @Test(
        "an app is throttled in the background, and not in the foreground (L19)",
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
        "processes that were forked in the background have their timer slack reset in the foreground (L19)",
        .enabled(if: geteuid() == 0, "needs root, to set other processes' timer slack"))
    func throttledChild() throws {
        let root = try TestDaemon.makeFolder()
        let script = "until test -e \(root)/go; do sleep 0.02; done; sleep 1000 & echo $$! > \(root)/child; wait"
        let text = "[App]\nExecStart=/bin/sh -c '\(script)'\n[Lifecycle]\nSuspendDelaySec=1min\n"
        let daemon = try TestDaemon(["app": text], root: root)
        try daemon.launch("app", background: true)
        try replaceFile(at: root + "/go", with: [])
        try daemon.eventually("the app forked") { TestDaemon.text(of: root + "/child").hasSuffix("\n") }
        let child = TestDaemon.text(of: root + "/child").filter { $0 != "\n" }
        func slack() -> String { TestDaemon.text(of: "/proc/\(child)/timerslack_ns") }
        #expect(slack() == "40000000\n")
        try daemon.ask("Activate", "app")
        #expect(slack() == "50000\n")
    }
}
