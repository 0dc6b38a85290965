import Control
import Glibc
import JSON
import LifecycleCore
import Linux
import Systemd
import TestKit
import Testing

@testable import Daemon

/// A daemon whose service manager has a file descriptor store is killed and started again.
@Suite("Recovery with a descriptor store")
struct KeptDescriptorTests {
    private func start(_ apps: (String) -> [String: String]) throws -> (TestDaemon, FakeServiceManager) {
        let root = try TestDaemon.makeFolder()
        let manager = try FakeServiceManager(in: root)
        return (try TestDaemon(apps(root), root: root, manager: manager), manager)
    }

    /// A new socket at the same path has another inode.
    private func inode(_ path: String) -> UInt64 {
        var about = Glibc.stat()
        return stat(path, &about) == 0 ? UInt64(about.st_ino) : 0
    }

    /// No deadline expires within the test, so only the messages can have an effect.
    @Test("notify messages that are sent while no daemon runs are read by the next one before it checks deadlines")
    func saidMeanwhile() throws {
        let (first, _) = try start { _ in
            [
                "launching": TestDaemon.manifest("", "[Lifecycle]\nLaunchDeadlineSec=10min", hangs: true),
                "entering": TestDaemon.manifest("background=ignore", "[Lifecycle]\nBackgroundDeadlineSec=10min"),
                "tasks": TestDaemon.manifest("begin upload", "[Lifecycle]\nBackgroundTimeSec=10min"),
            ]
        }
        try first.launch("tasks", background: true)
        try first.launch("entering")
        _ = try first.begin("Background", "entering", [])
        try first.waitUntil("entering", is: "background")
        _ = try first.begin("Launch", "launching", [.dictionary([("background", .bool(true))])])
        try first.eventually("the app runs") { try first.pid("launching") > 0 }
        let names = ["launching", "entering", "tasks"]
        let sockets = try names.map(first.notifySocket)
        let before = sockets.map(inode)
        first.crash()
        try sendDatagram("READY=1", to: sockets[0])
        try sendDatagram("X_GREENROOM_BACKGROUND=1", to: sockets[1])
        try sendDatagram("X_GREENROOM_END_TASK=upload", to: sockets[2])
        let second = try first.successor()
        #expect(sockets.map(inode) == before && !before.contains(0))
        for name in names { try second.waitUntil(name, is: "suspended") }
        #expect(try names.allSatisfy { try second.receipts($0).isEmpty })
    }

    @Test("notices that wait for the previous signal are sent by the next daemon, in order (L3)")
    func waitingNotices() throws {
        let (first, _) = try start { root in
            ["photos": TestDaemon.manifest("", "[Lifecycle]\nBackgroundDeadlineSec=10min", trace: root + "/trace")]
        }
        try first.launch("photos")
        try first.eventually("the app is active") { first.trace().last == "didBecomeActive" }
        let pid = try first.pid("photos")
        guard let group = try first.groupPath("photos") else { return }
        // The app takes no signal for a while.
        try writeControlFile(group + "/cgroup.freeze", "1")
        _ = try first.begin("Background", "photos", [])
        let resign = __libc_current_sigrtmin() + 3
        try first.eventually("the first notice is sent, and recorded as sent") {
            guard let status = try ProcFS().status(of: pid), status.hasPending(resign) else { return false }
            let queue = try first.runRecord()?.notices
            // After 1s the second one is sent, too: of both the handler of the first runs first.
            return queue?.isSending == false
                && (queue?.waiting == [.didEnterBackground] || status.hasPending(SIGUSR1))
        }
        first.crash()
        try writeControlFile(group + "/cgroup.freeze", "0")
        let second = try first.successor()
        try second.waitUntil("photos", is: "suspended")
        #expect(second.trace().suffix(3) == ["didBecomeActive", "willResignActive", "didEnterBackground"])
    }

    /// A daemon waits a second for a signal that is pending. On a busy machine that may be over before the app takes it.
    private static let longestWait = Duration.milliseconds(900)

    @Test("a notice waits for a signal that the previous daemon has sent (L3)")
    func sentBefore() throws {
        let (first, _) = try start { root in ["photos": TestDaemon.manifest("", trace: root + "/trace")] }
        try first.launch("photos")
        try first.eventually("the app is active") { first.trace().last == "didBecomeActive" }
        try first.ask("Interrupt", "photos")
        try first.eventually("the app is inactive") { first.trace().last == "willResignActive" }
        let pid = try first.pid("photos")
        guard let group = try first.groupPath("photos") else { return }
        // The app takes no signal for a while.
        try writeControlFile(group + "/cgroup.freeze", "1")
        try first.ask("Resume", "photos")
        try first.eventually("the notice is sent") { try ProcFS().status(of: pid)?.hasPending(SIGUSR2) ?? false }
        let asked = EventLoop.now()
        try first.ask("Interrupt", "photos")
        first.crash()
        var isInTime = EventLoop.now() - asked < Self.longestWait
        let began = EventLoop.now()
        let second = try first.successor()
        // Of two pending signals the handler of the one with the higher number runs first.
        try writeControlFile(group + "/cgroup.freeze", "0")
        isInTime = isInTime && EventLoop.now() - began < Self.longestWait
        #expect(try second.state("photos") == "inactive")
        try second.eventually("both notices are delivered") { second.trace().count { $0 == "willResignActive" } == 2 }
        if isInTime { #expect(second.trace().suffix(2) == ["didBecomeActive", "willResignActive"]) }
    }

    @Test("a daemon that is started manually replaces the control socket that is still in the descriptor store")
    func byHand() throws {
        let (first, manager) = try start { _ in ["photos": TestDaemon.manifest("")] }
        try first.launch("photos")
        let pid = try first.pid("photos")
        first.crash()
        #expect(try manager.allNames().contains("control"))
        let second = try first.successor(of: nil)
        #expect(try second.pid("photos") == pid && second.state("photos") == "active")
    }

    @Test("the next daemon passes stored descriptors to the app's next launch")
    func stored() throws {
        let (first, manager) = try start { root in
            ["photos": TestDaemon.manifest("contents store x=one store state=two", trace: root + "/trace")]
        }
        try first.launch("photos")
        #expect(try manager.names().count { $0.hasPrefix("stored-") } == 2)
        first.crash()
        let second = try first.successor()
        try second.terminate("photos")
        try second.launch("photos")
        #expect(second.trace().filter { $0.contains("=") } == ["x=one", "state=two"])
    }

    @Test("an app that ended while no daemon ran has a receipt, with the exit status if the kernel reports it")
    func endedMeanwhile() throws {
        // Orphans become children of this process, which reaps them as systemd does.
        try inOwnProcess {
            _ = try Containment(mode: .processGroup(reason: "a test"), name: "nobody")
            let (first, _) = try start { _ in ["photos": TestDaemon.manifest("term=exit:7")] }
            try first.launch("photos")
            let pid = try first.pid("photos")
            let process = try #require(try Linux.Process.open(pid))
            first.crash()
            kill(pid, SIGTERM)
            waitForReadable([process.descriptor])
            #expect(try process.reap()?.status == .exited(7))
            let isReported = try process.exitStatus() != nil
            let second = try first.successor()
            try second.waitUntil("photos", is: "notRunning")
            let receipts = try second.receipts("photos")
            #expect(receipts.count == 1)
            #expect(receipts.last?["pid"]?.integerValue == Int64(pid))
            // Since Linux 6.15.
            #expect(receipts.last?["exitStatus"]?.integerValue == (isReported ? 7 : nil))
            #expect(try second.launch("photos")["state"]?.stringValue == "active")
        }
    }

    @Test(
        "the descriptors of a run are removed from the store when it ends")
    func bounded() throws {
        let (daemon, manager) = try start { _ in
            ["photos": TestDaemon.manifest("store state"), "mail": TestDaemon.manifest("")]
        }
        try daemon.launch("mail", background: true)
        let before = try manager.names()
        #expect(before.count == 3)
        for _ in 1...20 {
            try daemon.launch("photos")
            try daemon.terminate("photos")
        }
        // Only the last restoration state, and no descriptor of a run.
        try daemon.eventually("the store is as it was") {
            try manager.names().filter { !$0.hasPrefix("stored-") } == before
        }
        #expect(try manager.names().count { $0.hasPrefix("stored-") } == 1)
        try daemon.terminate("photos", remove: true)
        try daemon.terminate("mail")
        try daemon.eventually("nothing is left") { try manager.names().isEmpty }
    }

    @Test("the next daemon removes descriptors of runs that have ended from the store")
    func orphaned() throws {
        let (first, manager) = try start { _ in ["photos": TestDaemon.manifest("")] }
        try first.launch("photos")
        let process = try #require(try Linux.Process.open(try first.pid("photos")))
        let group = try first.groupPath("photos")
        first.crash()
        #expect(try manager.names().count == 3)
        kill(process.pid, SIGKILL)
        waitForReadable([process.descriptor])
        if let group {
            try first.eventually("its group is gone") { rmdir(group) == 0 || errno == ENOENT }
        }
        let second = try first.successor()
        try second.waitUntil("photos", is: "notRunning")
        #expect(try second.receipts("photos").count == 1)
        try second.eventually("the store is empty") { try manager.names().isEmpty }
        withExtendedLifetime(second) {}
    }

    @Test("the next daemon watches the main process that MAINPID= named")
    func anotherMainProcess() throws {
        let (first, manager) = try start { _ in ["photos": TestDaemon.manifest("orphan")] }
        try first.launch("photos")
        let pid = try first.pid("photos")
        #expect(try manager.names().count == 3)
        first.crash()
        let second = try first.successor()
        #expect(try second.pid("photos") == pid)
        #expect(try second.state("photos") == "active")
        #expect(try second.ask("Background", "photos")["state"]?.stringValue == "background")
        try second.waitUntil("photos", is: "suspended")
        #expect(try second.receipts("photos").isEmpty)
        #expect(isAlive(pid))
    }
}
