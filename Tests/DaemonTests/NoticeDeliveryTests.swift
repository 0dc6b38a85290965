import Glibc
import Linux
import Systemd
import TestKit
import Testing

/// The daemon is killed at the system call that sends a notice: before the kernel carries it out, and after.
@Suite("Delivery of notices when the daemon dies")
struct NoticeDeliveryTests {
    /// pidfd_send_signal(2), the same number on every architecture.
    private static let sendSignal = 424

    /// An app that is active, frozen so that it takes no signal, and the cgroup's freeze file; `nil` without cgroups.
    private func frozenApp() throws -> (TestDaemon, freezer: String)? {
        let root = try TestDaemon.makeFolder()
        let manager = try FakeServiceManager(in: root)
        let text = TestDaemon.manifest("", "[Lifecycle]\nBackgroundDeadlineSec=10min", trace: root + "/trace")
        let daemon = try TestDaemon(["photos": text], root: root, manager: manager)
        try daemon.launch("photos")
        try daemon.eventually("the app is active") { daemon.trace().last == "didBecomeActive" }
        guard let group = try daemon.groupPath("photos") else { return nil }
        try writeControlFile(group + "/cgroup.freeze", "1")
        return (daemon, group + "/cgroup.freeze")
    }

    /// Requests the background. The daemon is killed when it sends the first notice, `willResignActive`.
    private func killWhileSending(_ daemon: TestDaemon, at when: String) throws {
        let killer = try daemon.killAtSystemCall(Self.sendSignal, when)
        _ = try daemon.begin("Background", "photos", [])
        waitForReadable([killer.descriptor])
        #expect(try killer.reap()?.status == .exited(0))
        daemon.crash()
    }

    private static let delivered = ["didBecomeActive", "willResignActive", "didEnterBackground"]

    @Test(
        "a notice is delivered once if the daemon is killed just before or just after it sends the signal (L3)",
        arguments: ["entry", "exit"])
    func once(when: String) throws {
        guard let (first, freezer) = try frozenApp() else { return }
        try killWhileSending(first, at: when)
        let second = try first.successor()
        try writeControlFile(freezer, "0")
        try second.waitUntil("photos", is: "suspended")
        #expect(second.trace().suffix(3) == Self.delivered)
    }
    @Test(
        "a notice whose signal the app took before it was recorded as sent is delivered again, and this is logged (L3)")
    func inDoubt() throws {
        guard let (first, freezer) = try frozenApp() else { return }
        try killWhileSending(first, at: "exit")
        try writeControlFile(freezer, "0")
        try first.eventually("the app takes the signal") { first.trace().last == "willResignActive" }
        let second = try first.successor()
        try second.waitUntil("photos", is: "suspended")
        #expect(
            second.trace().suffix(4) == [
                "didBecomeActive", "willResignActive", "willResignActive", "didEnterBackground",
            ])
        let line = "photos: the previous greenroomd ended while it sent willResignActive: it is sent again"
        #expect(TestDaemon.text(of: second.root + "/log").contains(line))
    }
}
