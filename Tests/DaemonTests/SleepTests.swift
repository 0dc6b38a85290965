import Control
import Glibc
import JSON
import Linux
import Systemd
import Testing

/// Real processes and a fake logind (L15).
@Suite("Sleep and the locked screen", .enabled(if: PrivateBus.isPossible && geteuid() == 0, PrivateBus.requirement))
struct SleepTests {
    /// Waits until the app is in a state, while the stage is served.
    private func wait(_ stage: BusStage, _ app: String, _ state: String) throws {
        try stage.serve("\(app) \(state)") { try stage.daemon.state(app) == state }
    }

    @Test("the machine sleeps when the foreground app has entered the background; it is active again afterwards (L15)")
    func sleep() throws {
        let stage = try BusStage(["photos": TestDaemon.manifest("", "[Lifecycle]\nSuspendDelaySec=1h")])
        let logind = try FakeLogind(stage)
        try logind.waitForInhibitor()
        #expect(logind.asked.first?[0] == .string("sleep:shutdown"))
        #expect(logind.asked.first?[3] == .string("delay"))
        try stage.daemon.launch("photos")
        try logind.emitPrepare("PrepareForSleep", true)
        try logind.waitForRelease()
        #expect(try stage.daemon.state("photos") == "background")
        #expect(try stage.daemon.status("photos")["foreground"]?.boolValue == false)
        try logind.emitPrepare("PrepareForSleep", false)
        try wait(stage, "photos", "active")
        // The daemon takes a new inhibitor for the next sleep.
        try logind.waitForInhibitor()
        #expect(logind.asked.count == 2)
    }

    @Test("the machine sleeps after an app that does not answer is killed at its deadline (L15, L16)")
    func deadline() throws {
        let stage = try BusStage([
            "slow": TestDaemon.manifest("background=ignore", "[Lifecycle]\nBackgroundDeadlineSec=200ms")
        ])
        let logind = try FakeLogind(stage)
        try logind.waitForInhibitor()
        try stage.daemon.launch("slow")
        try logind.emitPrepare("PrepareForSleep", true)
        try logind.waitForRelease()
        try stage.daemon.wait("slow", "ended")
        #expect(try stage.daemon.receipts("slow").last?["code"]?.stringValue == "0x8badf00d")
    }

    @Test(
        "a daemon that is replaced while the machine prepares to sleep keeps its inhibitor until all apps are in the background (L15)",
        arguments: ["PrepareForSleep", "PrepareForShutdown"])
    func replaced(preparation: String) throws {
        let stage = try BusStage([
            "slow": TestDaemon.manifest("background=ignore", "[Lifecycle]\nBackgroundDeadlineSec=10s"),
            "photos": TestDaemon.manifest(""),
        ])
        let logind = try FakeLogind(stage)
        try logind.waitForInhibitor()
        try stage.daemon.launch("slow")
        try logind.emitPrepare(preparation, true)
        try wait(stage, "slow", "background")
        _ = try stage.daemon.call("Reexec")
        try stage.daemon.reconnect()
        #expect(logind.inhibitors == 1)
        // The new daemon has the request and carries it out after the sleep.
        try stage.serve("the new daemon has the request") { logind.preparationReads == 2 }
        try logind.waitForRelease()
        try stage.daemon.waitUntil("slow", is: "notRunning")
        #expect(try stage.daemon.receipts("slow").last?["code"]?.stringValue == "0x8badf00d")
        #expect(logind.asked.count == 1)
        try logind.emitPrepare(preparation, false)
        try logind.waitForInhibitor()
    }

    @Test("when logind stops waiting, that is logged and the inhibitor is released (L15)")
    func delayIsOver() throws {
        let stage = try BusStage([
            "slow": TestDaemon.manifest("background=ignore", "[Lifecycle]\nBackgroundDeadlineSec=1h")
        ])
        let logind = try FakeLogind(stage, delay: .milliseconds(100))
        try logind.waitForInhibitor()
        try stage.daemon.launch("slow")
        try logind.emitPrepare("PrepareForSleep", true)
        try logind.waitForRelease()
        try stage.serve("the warning") {
            TestDaemon.text(of: stage.root + "/log").contains("before all apps have entered the background")
        }
        #expect(try stage.daemon.state("slow") == "background")
    }

    @Test("a request during the preparation for sleep is carried out afterwards")
    func askedMeanwhile() throws {
        let stage = try BusStage(["photos": TestDaemon.manifest("", "[Lifecycle]\nSuspendDelaySec=1h")])
        let logind = try FakeLogind(stage)
        try logind.waitForInhibitor()
        try logind.emitPrepare("PrepareForShutdown", true)
        try logind.waitForRelease()
        var answer: Variant?
        try stage.client.call(
            ControlNames.busName, path: BusStage.path("photos"), interface: ControlNames.appInterface,
            member: "Activate", timeout: .seconds(60)
        ) { answer = (try? $0.get())?.first }
        try wait(stage, "photos", "background")
        #expect(answer == nil)
        try logind.emitPrepare("PrepareForShutdown", false)
        try stage.serve("the answer") { answer != nil }
        #expect(answer?["state"] == .string("active"))
    }

    @Test("no app is in the foreground while an active session is locked (L15)")
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
        try stage.serve("the app is notified") { TestDaemon.text(of: inbox) == "unavailable\n" }
        // Another user uses the machine now.
        try logind.setActive(false)
        try wait(stage, "photos", "active")
        try logind.setActive(true)
        try wait(stage, "photos", "background")
        try logind.setLocked(false)
        try wait(stage, "photos", "active")
        try stage.serve("the app is notified again") { TestDaemon.text(of: inbox) == "available\n" }
    }

    @Test("a screen that is locked when logind starts counts as locked until logind ends")
    func lockedAtStart() throws {
        let stage = try BusStage(["photos": TestDaemon.manifest("", "[Lifecycle]\nSuspendDelaySec=1h")])
        try stage.daemon.launch("photos")
        let logind = try FakeLogind(stage, isLocked: true)
        try wait(stage, "photos", "background")
        logind.leaveBus()
        try wait(stage, "photos", "active")
    }

    @Test("a locked screen stays locked for apps while logind restarts")
    func lockedMeanwhile() throws {
        let stage = try BusStage(["photos": TestDaemon.manifest("", "[Lifecycle]\nSuspendDelaySec=1h")])
        let first = try FakeLogind(stage)
        try first.waitForInhibitor()
        try stage.daemon.launch("photos")
        try first.setLocked(true)
        try wait(stage, "photos", "background")
        first.leaveBus()
        let second = try FakeLogind(stage, isLocked: true, hidesSessions: true)
        // The daemon has detected that logind is another process.
        try second.waitForInhibitor()
        #expect(try stage.daemon.status("photos")["foreground"]?.boolValue == false)
        second.showSessions()
        try second.setLocked(false)
        try wait(stage, "photos", "active")
    }

    @Test("apps return to the foreground if logind ends while the machine prepares to sleep")
    func vanishes() throws {
        let stage = try BusStage(["photos": TestDaemon.manifest("", "[Lifecycle]\nSuspendDelaySec=1h")])
        let logind = try FakeLogind(stage)
        try logind.waitForInhibitor()
        try stage.daemon.launch("photos")
        try logind.emitPrepare("PrepareForSleep", true)
        try logind.waitForRelease()
        logind.leaveBus()
        try wait(stage, "photos", "active")
    }

    @Test(
        "signals of other clients with logind's names are ignored",
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
            ], asOtherUser: true)
        #expect(sent.status == 0, "\(sent.text)")
        #expect(try stage.ask("Version").get().count == 1)
        #expect(try stage.daemon.state("photos") == "active")
        #expect(logind.inhibitors == 1)
    }
}
