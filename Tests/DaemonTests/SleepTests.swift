import Control
import Glibc
import JSON
import Linux
import Systemd
import Testing

/// L15 with real processes and a made-up logind.
@Suite("Sleep and the locked screen", .enabled(if: PrivateBus.isPossible && geteuid() == 0, PrivateBus.whyNot))
struct SleepTests {
    /// Waits until the app is in a state, while the stage is served.
    private func wait(_ stage: BusStage, _ app: String, _ state: String) throws {
        try stage.serve("\(app) \(state)") { try stage.daemon.state(app) == state }
    }

    @Test("L15: the machine sleeps only when the app in front has entered the background, which comes back after it")
    func sleep() throws {
        let stage = try BusStage(["photos": TestDaemon.manifest("", "[Lifecycle]\nSuspendDelaySec=1h")])
        let logind = try FakeLogind(stage)
        try logind.waitForInhibitor()
        #expect(logind.asked.first?[0] == .string("sleep:shutdown"))
        #expect(logind.asked.first?[3] == .string("delay"))
        try stage.daemon.launch("photos")
        try logind.tell("PrepareForSleep", true)
        try logind.waitForRelease()
        #expect(try stage.daemon.state("photos") == "background")
        #expect(try stage.daemon.status("photos")["foreground"]?.boolValue == false)
        try logind.tell("PrepareForSleep", false)
        try wait(stage, "photos", "active")
        // For the next time.
        try logind.waitForInhibitor()
        #expect(logind.asked.count == 2)
    }

    @Test("L15, L16: an app that does not answer is killed within its deadline, and then the machine sleeps")
    func deadline() throws {
        let stage = try BusStage([
            "slow": TestDaemon.manifest("background=ignore", "[Lifecycle]\nBackgroundDeadlineSec=200ms")
        ])
        let logind = try FakeLogind(stage)
        try logind.waitForInhibitor()
        try stage.daemon.launch("slow")
        try logind.tell("PrepareForSleep", true)
        try logind.waitForRelease()
        try stage.daemon.wait("slow", "ended")
        #expect(try stage.daemon.receipts("slow").last?["code"]?.stringValue == "0x8badf00d")
    }

    @Test(
        "L15: a daemon that is replaced on the machine's way to sleep holds it on, until every app is where it should be",
        arguments: ["PrepareForSleep", "PrepareForShutdown"])
    func replaced(preparation: String) throws {
        let stage = try BusStage([
            "slow": TestDaemon.manifest("background=ignore", "[Lifecycle]\nBackgroundDeadlineSec=3s"),
            "photos": TestDaemon.manifest(""),
        ])
        let logind = try FakeLogind(stage)
        try logind.waitForInhibitor()
        try stage.daemon.launch("slow")
        try logind.tell(preparation, true)
        try wait(stage, "slow", "background")
        _ = try stage.daemon.call("Reexec")
        try stage.daemon.reconnect()
        #expect(logind.inhibitors == 1)
        // What is asked for comes about after the sleep, as the new one knows of it.
        try stage.serve("the new one knows") { logind.looks == 2 }
        try logind.waitForRelease()
        try stage.daemon.waitUntil("slow", is: "notRunning")
        #expect(try stage.daemon.receipts("slow").last?["code"]?.stringValue == "0x8badf00d")
        #expect(logind.asked.count == 1)
        try logind.tell(preparation, false)
        try logind.waitForInhibitor()
    }

    @Test("L15: where logind waits no longer, that is said, and the inhibitor is given back")
    func delayIsOver() throws {
        let stage = try BusStage([
            "slow": TestDaemon.manifest("background=ignore", "[Lifecycle]\nBackgroundDeadlineSec=1h")
        ])
        let logind = try FakeLogind(stage, delay: .milliseconds(100))
        try logind.waitForInhibitor()
        try stage.daemon.launch("slow")
        try logind.tell("PrepareForSleep", true)
        try logind.waitForRelease()
        try stage.serve("the sentence") {
            TestDaemon.text(of: stage.root + "/log").contains("before every app has entered the background")
        }
        #expect(try stage.daemon.state("slow") == "background")
    }

    @Test("what is asked for on the way to sleep comes about after it")
    func askedMeanwhile() throws {
        let stage = try BusStage(["photos": TestDaemon.manifest("")])
        let logind = try FakeLogind(stage)
        try logind.waitForInhibitor()
        try logind.tell("PrepareForShutdown", true)
        try logind.waitForRelease()
        var answer: Variant?
        try stage.client.call(
            ControlNames.busName, path: BusStage.path("photos"), interface: ControlNames.appInterface,
            member: "Activate", timeout: .seconds(60)
        ) { answer = (try? $0.get())?.first }
        try wait(stage, "photos", "background")
        #expect(answer == nil)
        try logind.tell("PrepareForShutdown", false)
        try stage.serve("the answer") { answer != nil }
        #expect(answer?["state"] == .string("active"))
    }

    @Test("L15: while the screen is locked nobody is in front; only a locked session that is active counts")
    func locked() throws {
        let stage = try BusStage([
            "photos": TestDaemon.manifest("", "[Lifecycle]\nSuspendDelaySec=1h\nProtectedData=yes")
        ])
        let logind = try FakeLogind(stage)
        try logind.waitForInhibitor()
        try stage.daemon.launch("photos")
        try logind.setLocked(true)
        try wait(stage, "photos", "background")
        let inbox = stage.daemon.runtime + "/inbox/photos/protectedData"
        #expect(TestDaemon.text(of: inbox) == "unavailable\n")
        // Somebody else uses the machine now.
        try logind.setActive(false)
        try wait(stage, "photos", "active")
        try logind.setActive(true)
        try wait(stage, "photos", "background")
        try logind.setLocked(false)
        try wait(stage, "photos", "active")
        #expect(TestDaemon.text(of: inbox) == "available\n")
    }

    @Test("a screen that is locked already when logind comes counts; when logind goes, nobody is kept away")
    func lockedAtStart() throws {
        let stage = try BusStage(["photos": TestDaemon.manifest("", "[Lifecycle]\nSuspendDelaySec=1h")])
        try stage.daemon.launch("photos")
        let logind = try FakeLogind(stage, isLocked: true)
        try wait(stage, "photos", "background")
        logind.vanish()
        try wait(stage, "photos", "active")
    }

    @Test("a screen that is locked stays so for apps while logind is replaced")
    func lockedMeanwhile() throws {
        let stage = try BusStage(["photos": TestDaemon.manifest("", "[Lifecycle]\nSuspendDelaySec=1h")])
        let first = try FakeLogind(stage)
        try first.waitForInhibitor()
        try stage.daemon.launch("photos")
        try first.setLocked(true)
        try wait(stage, "photos", "background")
        first.vanish()
        let second = try FakeLogind(stage, isLocked: true, hidesSessions: true)
        // From here on the daemon knows that it is another.
        try second.waitForInhibitor()
        #expect(try stage.daemon.status("photos")["foreground"]?.boolValue == false)
        second.showSessions()
        try second.setLocked(false)
        try wait(stage, "photos", "active")
    }

    @Test("logind that ends while the machine is about to sleep leaves nobody in the background")
    func vanishes() throws {
        let stage = try BusStage(["photos": TestDaemon.manifest("", "[Lifecycle]\nSuspendDelaySec=1h")])
        let logind = try FakeLogind(stage)
        try logind.waitForInhibitor()
        try stage.daemon.launch("photos")
        try logind.tell("PrepareForSleep", true)
        try logind.waitForRelease()
        logind.vanish()
        try wait(stage, "photos", "active")
    }

    @Test(
        "a signal of that name from anybody else is no news",
        .enabled(if: isInstalled("dbus-send"), "dbus-send is not installed (Debian: dbus-bin)"))
    func spoofed() throws {
        let stage = try BusStage(["photos": TestDaemon.manifest("")])
        let logind = try FakeLogind(stage)
        try logind.waitForInhibitor()
        try stage.daemon.launch("photos")
        let sent = try stage.run(
            [
                "dbus-send", "--system", "--type=signal", "--dest=\(ControlNames.busName)", "/org/freedesktop/login1",
                "org.freedesktop.login1.Manager.PrepareForSleep", "boolean:true",
            ], asUnprivileged: true)
        #expect(sent.status == 0, "\(sent.text)")
        #expect(try stage.ask("Version").get().count == 1)
        #expect(try stage.daemon.state("photos") == "active")
        #expect(logind.inhibitors == 1)
    }
}
