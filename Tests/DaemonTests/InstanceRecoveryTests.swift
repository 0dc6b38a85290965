import Control
import Glibc
import JSON
import Linux
import Posix
import Systemd
import TestKit
import Testing

/// Instances without a file, and daemons that end and begin.
@Suite("Recovery of instances")
struct InstanceRecoveryTests {
    private static let template = TestDaemon.manifest("", app: "Name=Worker %i\nEnvironment=INSTANCE=%i")

    private static func start(_ sections: String = "", root: String? = nil) throws -> TestDaemon {
        try TestDaemon(["worker@": template + sections], root: root)
    }

    @Test("instances exist after SIGKILL of the daemon, with their processes, and end to be listed as before")
    func killed() throws {
        let first = try Self.start()
        for number in 1...3 { try first.launch("worker@\(number)") }
        try first.waitUntil("worker@1", is: "suspended")
        let pids = try (1...3).map { try first.pid("worker@\($0)") }
        first.crash()
        // One ends while there is no daemon.
        kill(pids[2], SIGKILL)
        try first.eventually("it has ended") { !isAlive(pids[2]) }
        let second = try first.successor()
        try second.eventually("the one that has ended is gone") { try second.listed() == ["worker@1", "worker@2"] }
        #expect(try (1...2).map { try second.pid("worker@\($0)") } == pids.dropLast())
        #expect(try second.status("worker@1")["name"]?.stringValue == "Worker 1")
        #expect(try second.state("worker@1") == "suspended")
        #expect(try second.ask("Activate", "worker@1")["state"]?.stringValue == "active")
        try second.launch("worker@4")
        try second.terminate("worker@1")
        second.crash()
        let third = try second.successor()
        #expect(try third.listed() == ["worker@2", "worker@4"])
        // A stop ends them all.
        #expect(third.stop() == .exited(0))
        #expect(try third.successor().listed().isEmpty)
    }

    @Test(
        "instances exist after a reexec, and clients that stay connected do not get signals about objects that they know"
    )
    func reexec() throws {
        let daemon = try Self.start()
        for number in 1...2 { try daemon.launch("worker@\(number)") }
        let pid = try daemon.pid("worker@1")
        for _ in 0..<2 {
            _ = try daemon.call("Reexec")
            try daemon.reconnect()
            #expect(try daemon.listed() == ["worker@1", "worker@2"])
            #expect(try daemon.pid("worker@1") == pid)
        }
        try daemon.launch("worker@3")
        try daemon.terminate("worker@1")
        try daemon.terminate("worker@3")
        #expect(try daemon.listed() == ["worker@2"])
    }

    @Test("instances exist after a restart by systemd")
    func restart() throws {
        let root = try TestDaemon.makeFolder()
        let manager = try FakeServiceManager(in: root)
        let first = try TestDaemon(["worker@": Self.template], root: root, manager: manager, userRuntime: root + "/xdg")
        try first.launch("worker@1")
        let pid = try first.pid("worker@1")
        let systemd = try FakeSystemd(in: root + "/xdg", jobType: "restart")
        try first.process.signal(SIGTERM)
        try systemd.serve(until: first)
        #expect(first.waitForEnd() == .exited(0))
        let second = try first.successor()
        #expect(try second.listed() == ["worker@1"])
        #expect(try second.pid("worker@1") == pid)
    }

    @Test(
        "an instance whose name contains colons and escapes is found again, with cgroups and without",
        arguments: [false, true])
    func punctuation(withoutCgroups: Bool) throws {
        let app = "worker@a:b:7:c\\x2d.run1"
        let first = try TestDaemon(["worker@": Self.template], asUnprivilegedUser: withoutCgroups)
        try first.launch(app)
        let pid = try first.pid(app)
        first.crash()
        let second = try first.successor()
        #expect(try second.pid(app) == pid)
        #expect(try second.variable("INSTANCE", of: app) == "a:b:7:c\\x2d.run1")
        #expect(try second.terminate(app)["outcome"]?.stringValue == "ended")
        #expect(try second.listed().isEmpty && !isAlive(pid))
    }

    @Test(
        "a daemon that is killed while instances are created: the next one has them with their launches, or not at all")
    func killedWhileCreating() throws {
        // They are launched once they are executed. The READY=1 of others could be lost, and is then waited for.
        var daemon = try TestDaemon(["worker@": "[App]\nExecStart=/bin/sleep 1000\n"])
        for round in 0..<6 {
            var pending: [BusConnection.Pending] = []
            for number in 0..<10 { pending.append(try daemon.begin("Launch", "worker@\(round).\(number)")) }
            for _ in 0..<round { _ = try daemon.call("Version") }
            daemon.crash()
            let next = try daemon.successor()
            for app in try next.listed() { #expect(try next.state(app) != "notRunning" && next.pid(app) > 0) }
            daemon = next
        }
        // Nothing is left behind, and each can be created again.
        let ends = try daemon.listed().map { try daemon.begin("Terminate", $0, [.bool(false)]) }
        for end in ends { _ = try daemon.finish(end) }
        #expect(try daemon.listed().isEmpty)
        try daemon.eventually("their files are removed") { entries(of: daemon.state + "/launches").isEmpty }
        #expect(try daemon.launch("worker@0.0")["state"]?.stringValue == "active")
    }

    @Test("whenever the daemon is killed while instances end, none is left by the next one")
    func killedWhileEnding() throws {
        var daemon = try Self.start()
        for round in 0..<6 {
            for number in 0..<6 { try daemon.launch("worker@\(number)") }
            let pids = try (0..<6).map { try daemon.pid("worker@\($0)") }
            for pid in pids { kill(pid, SIGKILL) }
            for _ in 0..<round { _ = try daemon.call("Version") }
            daemon.crash()
            let next = try daemon.successor()
            // Their files are removed after the core knows them no more.
            try next.eventually("all are gone, and their files") {
                try next.listed().isEmpty && entries(of: next.state + "/launches").isEmpty
            }
            daemon = next
        }
    }

    @Test("a template and a manifest that were removed while no daemon ran are gone; what runs is an app until it ends")
    func removedMeanwhile() throws {
        let first = try Self.start()
        try first.write("photos.app", TestDaemon.manifest(""))
        try first.write("mail.app", TestDaemon.manifest(""))
        try first.reload()
        for app in ["worker@1", "mail"] { try first.launch(app) }
        first.crash()
        for name in ["worker@", "photos", "mail"] { unlink("\(first.config)/apps/\(name).app") }
        let second = try first.successor()
        #expect(try second.listed() == ["mail", "worker@1"])
        for app in ["worker@1", "mail"] {
            #expect(try second.state(app) != "notRunning")
            try second.terminate(app)
        }
        #expect(try second.listed().isEmpty)
        second.crash()
        #expect(try second.successor().listed().isEmpty)
    }

    @Test("an instance that holds sockets is an app until it is removed, over SIGKILL, reexec and errors")
    func sockets() throws {
        let root = try TestDaemon.makeFolder()
        let sections = "[Wake]\nListenStream=\(root)/%i.socket\n"
        var daemon = try Self.start(sections, root: root)
        let socket = root + "/1.socket"
        try daemon.launch("worker@1")
        try daemon.terminate("worker@1")
        func check(_ daemon: TestDaemon) throws {
            let status = try daemon.status("worker@1")
            #expect(status["state"]?.stringValue == "notRunning" && status["transient"]?.boolValue == true)
            #expect(status["template"]?.stringValue == "worker@")
            #expect(exists(at: socket))
        }
        try check(daemon)
        _ = try daemon.call("Reexec")
        try daemon.reconnect()
        try check(daemon)
        try daemon.write("worker@.app", "[App]\nType=notfy\n")
        try daemon.reload()
        #expect(try daemon.status("worker@1")["error"] != nil)
        for _ in 0..<2 {
            daemon.crash()
            daemon = try daemon.successor()
        }
        #expect(try daemon.status("worker@1")["error"] != nil)
        try daemon.write("worker@.app", Self.template + sections)
        try daemon.reload()
        try check(daemon)
        // A client launches it.
        let client = try UnixSocket.connect(to: socket)
        try daemon.waitUntil("worker@1", is: "background")
        try daemon.terminate("worker@1", remove: true)
        #expect(try daemon.listed().isEmpty)
        try daemon.eventually("the socket is removed") { !exists(at: socket) }
        withExtendedLifetime(client) {}
    }

    @Test("an instance that an error in its template disables is there after SIGKILL of the daemon")
    func broken() throws {
        let first = try Self.start()
        try first.launch("worker@1")
        try first.write("worker@.app", "[App]\nType=notfy\n")
        try first.reload()
        first.crash()
        let second = try first.successor()
        #expect(try second.status("worker@1")["error"]?.stringValue?.contains("worker@.app") == true)
        try second.write("worker@.app", Self.template)
        try second.reload()
        #expect(try second.status("worker@1")["error"] == nil)
        try second.terminate("worker@1")
        #expect(try second.listed().isEmpty)
    }
}
