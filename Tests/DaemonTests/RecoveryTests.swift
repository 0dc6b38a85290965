import Control
import Glibc
import JSON
import Linux
import Systemd
import Testing

/// The daemon is killed and started again, with real processes.
@Suite("Recovery")
struct RecoveryTests {
    /// The properties of an app that a recovery must not change.
    private struct Facts: Equatable {
        var state: String
        var pid: Int32
        var since: Int64
        var launches: Int64
        var isFrozen: Bool
    }

    private static func facts(_ daemon: TestDaemon, _ app: String) throws -> Facts {
        let status = try daemon.status(app)
        let pid = try daemon.pid(app)
        return Facts(
            state: status["state"]?.stringValue ?? "", pid: pid, since: status["since"]?.integerValue ?? 0,
            launches: status["launches"]?.integerValue ?? -1, isFrozen: try daemon.frozen(app))
    }

    @Test("active and suspended apps survive SIGKILL of the daemon in their states, and are not launched again")
    func killed() throws {
        let root = try TestDaemon.makeFolder()
        let first = try TestDaemon(
            ["front": TestDaemon.manifest("", trace: root + "/trace"), "back": TestDaemon.manifest("fork 2")],
            root: root)
        try first.launch("back")
        try first.launch("front")
        try first.waitUntil("back", is: "suspended")
        let before = try (Self.facts(first, "front"), Self.facts(first, "back"))
        first.crash()
        #expect(isAlive(before.0.pid) && isAlive(before.1.pid))
        let second = try first.successor()
        let after = try (Self.facts(second, "front"), Self.facts(second, "back"))
        #expect(after.0.state == "active" && after.1.state == "suspended")
        #expect((after.0.pid, after.1.pid) == (before.0.pid, before.1.pid))
        #expect((after.0.launches, after.1.launches) == (1, 1))
        #expect(after.1.isFrozen && !after.0.isFrozen)
        #expect(try second.ask("Background", "front")["state"]?.stringValue == "background")
        #expect(try second.ask("Activate", "back")["state"]?.stringValue == "active")
        try second.waitUntil("front", is: "suspended")
        #expect(try !second.frozen("back"))
        #expect(try second.terminate("back")["outcome"]?.stringValue == "ended")
        #expect(try second.processes(of: "front").count == 1)
        // Each notice is delivered once.
        #expect(
            second.trace() == ["willFinishLaunching", "didBecomeActive", "willResignActive", "didEnterBackground"])
        #expect(second.stop() == .exited(0))
        #expect(!isAlive(before.0.pid))
    }

    @Test("an app that ended while no daemon ran has a receipt and is not launched again")
    func endedMeanwhile() throws {
        let first = try TestDaemon(["photos": TestDaemon.manifest("fork 2"), "mail": TestDaemon.manifest("")])
        try first.launch("photos")
        let processes = try first.processes(of: "photos")
        first.crash()
        for pid in processes { kill(pid, SIGKILL) }
        try first.eventually("all processes have ended") { !processes.contains(where: isAlive) }
        let second = try first.successor()
        try second.waitUntil("photos", is: "notRunning")
        let receipt = try #require(try second.receipts("photos").last)
        // No daemon had its pidfd when it ended, so its exit status is known only if it is still a zombie.
        let words = receipt["explanation"]?.stringValue ?? ""
        let signal = receipt["signal"]?.integerValue
        #expect(receipt["exitStatus"] == nil && (signal == nil || signal == 9))
        #expect(words.contains(signal == nil ? "unknown status" : "SIGKILL"), "\(words)")
        #expect(try second.receipts("photos").count == 1)
        #expect(try second.launch("photos")["state"]?.stringValue == "active")
        #expect(try second.status("photos")["launches"]?.integerValue == 2)
    }

    @Test("the kernel may report the exit status of a process that the previous daemon started")
    func exitStatusFromKernel() throws {
        let first = try TestDaemon(["photos": TestDaemon.manifest("term=exit:7")])
        try first.launch("photos")
        first.crash()
        let second = try first.successor()
        let receipt = try second.terminate("photos")["lastReceipt"]
        // Since Linux 6.15, if its parent has reaped it.
        let status = receipt?["exitStatus"]?.integerValue
        #expect(status == 7 || status == nil)
        let words = receipt?["explanation"]?.stringValue ?? ""
        #expect(words.contains(status == nil ? "unknown status" : "exited with status 7"), "\(words)")
    }

    @Test(
        "a deadline continues while no daemon runs, and an app is not killed for an answer that may be lost")
    func deadlines() throws {
        let first = try TestDaemon([
            "ignores": TestDaemon.manifest("background=ignore", "[Lifecycle]\nBackgroundDeadlineSec=15s"),
            "tasks": TestDaemon.manifest("begin upload", "[Lifecycle]\nBackgroundTimeSec=1min"),
        ])
        try first.launch("tasks")
        try first.launch("ignores")
        _ = try first.bus.callAsync(
            path: ControlNames.managerPath, interface: ControlNames.managerInterface, member: "Background",
            [.string("ignores")], timeout: .seconds(60))
        try first.waitUntil("ignores", is: "background")
        try first.waitUntil("tasks", is: "background")
        let left = try first.status("tasks")["backgroundTimeRemainingSeconds"]?.numberValue ?? 0
        first.crash()
        let second = try first.successor()
        // The app may have answered while no daemon ran.
        try second.waitUntil("ignores", is: "suspended")
        #expect(try second.receipts("ignores").isEmpty)
        let status = try second.status("tasks")
        #expect(status["tasks"]?.arrayValue?.first?["name"]?.stringValue == "upload")
        #expect((status["backgroundTimeRemainingSeconds"]?.numberValue ?? 100) < left)
    }

    @Test("an app that was terminating when the daemon was killed is killed at its deadline")
    func terminating() throws {
        let first = try TestDaemon([
            "stubborn": TestDaemon.manifest("term=ignore", "[Lifecycle]\nTerminateDeadlineSec=8s")
        ])
        try first.launch("stubborn")
        let pid = try first.pid("stubborn")
        _ = try first.bus.callAsync(
            path: ControlNames.managerPath, interface: ControlNames.managerInterface, member: "Terminate",
            [.string("stubborn"), .bool(false)], timeout: .seconds(60))
        try first.wait("stubborn", "stateChanged", state: "terminating")
        first.crash()
        #expect(isAlive(pid))
        let second = try first.successor()
        try second.waitUntil("stubborn", is: "notRunning")
        #expect(!isAlive(pid))
        #expect(try second.receipts("stubborn").last?["code"]?.stringValue == "0x8badf00d")
    }

    @Test("a launch that was in progress when the daemon was killed completes, once")
    func launching() throws {
        let root = try TestDaemon.makeFolder()
        let first = try TestDaemon(
            [
                "slow": TestDaemon.manifest(
                    "", "[Lifecycle]\nLaunchDeadlineSec=15s", trace: root + "/trace", hangs: true)
            ], root: root)
        _ = try first.begin("Launch", "slow")
        try first.eventually("the app runs") { try first.pid("slow") > 0 && first.trace().count == 1 }
        let pid = try first.pid("slow")
        first.crash()
        let second = try first.successor()
        #expect(try second.pid("slow") == pid)
        #expect(try second.state("slow") == "launching")
        // READY=1 may be lost, so the app counts as ready at its launch deadline.
        try second.waitUntil("slow", is: "active")
        try second.eventually("the notices are delivered") {
            second.trace() == ["willFinishLaunching", "didBecomeActive"]
        }
        #expect(try second.status("slow")["launches"]?.integerValue == 1)
    }

    @Test("reexec replaces the program; no app is lost, and exit statuses are known")
    func reexec() throws {
        let daemon = try TestDaemon([
            // A suspended app would be killed without a notice.
            "front": TestDaemon.manifest("term=exit:7", "[Lifecycle]\nSuspendDelaySec=infinity"),
            "back": TestDaemon.manifest(""),
            "slow": TestDaemon.manifest(
                "background=ignore", "[Lifecycle]\nBackgroundDeadlineSec=1min\nTerminateDeadlineSec=1s"),
        ])
        try daemon.launch("back")
        try daemon.launch("slow")
        try daemon.launch("front")
        try daemon.waitUntil("back", is: "suspended")
        let before = try Self.facts(daemon, "front")
        let open = try daemon.settledDescriptors().count
        _ = try daemon.call("Reexec")
        try daemon.reconnect()
        #expect(try Self.facts(daemon, "front").pid == before.pid)
        #expect(try daemon.state("front") == "active")
        #expect(try daemon.frozen("back"))
        try daemon.eventually("no more descriptors are open than before") { daemon.openDescriptors().count <= open }
        // No message is lost, so the app has not answered yet.
        #expect(try daemon.state("slow") == "background")
        #expect(try daemon.ask("Activate", "back")["state"]?.stringValue == "active")
        #expect(try daemon.terminate("front")["lastReceipt"]?["exitStatus"]?.integerValue == 7)
        #expect(daemon.stop() == .exited(0))
    }
}
