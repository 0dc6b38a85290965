import Glibc
import JSON
import Linux
import Posix
import TestKit
import Testing

@Suite("Held sockets outlive the daemon")
struct SocketRecoveryTests {
    /// An app that is not running, with a client that waits for it: its launches fail (L11).
    private struct Waiting {
        let stage: SocketStage
        let client: SocketClient
        let path: String

        init(manager: FakeServiceManager? = nil, root: String? = nil, userRuntime: String? = nil) throws {
            stage = try SocketStage(
                ["web": ("exit 1", "ListenStream=ROOT/web.sock\nConnectionWaitSec=infinity")], manager: manager,
                root: root, userRuntime: userRuntime)
            path = stage.path("web.sock")
            client = try SocketClient(.path(path))
            try client.send("waited")
            try stage.daemon.eventually("the launch is held back") { [stage] in
                try stage.daemon.status("web")["launchPostponedSeconds"] != nil
            }
        }

        /// The client is answered when the app works again, and so is a new one.
        func checkAnswer() throws {
            // The new program answers before it has recovered all sockets.
            try stage.daemon.eventually("the socket is recovered") { try stage.problems("web") == [""] }
            try stage.rewrite("web", "", "ListenStream=ROOT/web.sock\nConnectionWaitSec=infinity")
            try stage.daemon.launch("web", background: true)
            #expect(try client.receive() == "waited")
            try SocketClient(.path(path)).exchange("new")
        }
    }

    private func inode(_ path: String) -> UInt64 {
        var about = Glibc.stat()
        return lstat(path, &about) == 0 ? UInt64(about.st_ino) : 0
    }

    @Test("a client that waits is answered after reexec (L29)")
    func reexec() throws {
        let waiting = try Waiting()
        for _ in 0..<2 {
            _ = try waiting.stage.daemon.call("Reexec")
            try waiting.stage.daemon.reconnect()
        }
        try waiting.checkAnswer()
    }

    @Test(
        "with a descriptor store a client that waits is answered by the next daemon, also one that comes between them")
    func store() throws {
        let root = try TestDaemon.makeFolder()
        let manager = try FakeServiceManager(in: root)
        let waiting = try Waiting(manager: manager, root: root)
        #expect(try manager.names().contains { $0.hasPrefix("socket-") })
        let before = inode(waiting.path)
        waiting.stage.daemon.crash()
        let between = try SocketClient(.path(waiting.path))
        try between.send("between")
        waiting.stage.daemon = try waiting.stage.daemon.successor()
        #expect(inode(waiting.path) == before)
        try waiting.checkAnswer()
        #expect(try between.receive() == "between")
        unlink("\(waiting.stage.daemon.config)/apps/web.app")
        _ = try waiting.stage.daemon.call("Reload")
        #expect(try !manager.names().contains { $0.hasPrefix("socket-") })
    }

    @Test("an orderly restart by systemd keeps the sockets and their files; a stop does not")
    func restart() throws {
        for job in ["restart", "stop"] {
            let root = try TestDaemon.makeFolder()
            let manager = try FakeServiceManager(in: root)
            let waiting = try Waiting(manager: manager, root: root, userRuntime: root + "/xdg")
            let systemd = try FakeSystemd(in: root + "/xdg", jobType: job)
            _ = try waiting.stage.daemon.process.signal(SIGTERM)
            try systemd.serve(until: waiting.stage.daemon)
            #expect(waiting.stage.daemon.waitForEnd() == .exited(0))
            #expect(exists(at: waiting.path) == (job == "restart"))
            #expect(try manager.names().contains { $0.hasPrefix("socket-") } == (job == "restart"))
            if job == "stop" {
                // No process has the socket any more.
                #expect(try waiting.client.receive() ?? "" == "")
                continue
            }
            waiting.stage.daemon = try waiting.stage.daemon.successor()
            try waiting.checkAnswer()
        }
    }

    @Test("without a store the sockets of a running app are taken back from its process, with the clients that wait")
    func takenBack() throws {
        let port = try freePort()
        let stage = try SocketStage([
            "web": ("", "ListenStream=127.0.0.1:\(port)\nListenDatagram=127.0.0.1:\(port)\nListenStream=ROOT/web.sock"),
            "idle": ("", "ListenStream=ROOT/idle.sock"),
        ])
        try SocketClient(.port(port)).exchange("one")
        try stage.daemon.waitUntil("web", is: "suspended")
        let (pid, before) = (try stage.daemon.pid("web"), inode(stage.path("web.sock")))
        stage.daemon.crash()
        let clients = [try SocketClient(.port(port)), try SocketClient(.path(stage.path("web.sock")))]
        for client in clients { try client.send("between") }
        #expect(throws: TestFailure.self) { try SocketClient(.path(stage.path("idle.sock"))) }
        stage.daemon = try stage.daemon.successor()
        for client in clients { #expect(try client.receive() == "between") }
        #expect(try stage.problems("web") == ["", "", ""])
        #expect(try stage.daemon.pid("web") == pid)
        #expect(inode(stage.path("web.sock")) == before)
        #expect(stage.log.contains("the socket 127.0.0.1:\(port) was taken back from its process"))
        // What the daemon has is the socket of the process: it outlives it.
        try stage.daemon.terminate("web")
        try SocketClient(.port(port)).exchange("two")
        try SocketClient(.port(port), SOCK_DGRAM).exchange("three")
        // The socket that no process had is bound again.
        try SocketClient(.path(stage.path("idle.sock"))).exchange("four")
    }

    @Test("a suspended app is woken by a connection after reexec, and after a restart")
    func suspended() throws {
        let root = try TestDaemon.makeFolder()
        let stage = try SocketStage(
            ["web": ("", "ListenStream=ROOT/web.sock\nTraffic=no\n\(SocketStage.longIdle)")],
            manager: try FakeServiceManager(in: root), root: root)
        try SocketClient(.path(stage.path("web.sock"))).exchange("one")
        let pid = try stage.daemon.pid("web")
        try stage.daemon.waitUntil("web", is: "suspended")
        _ = try stage.daemon.call("Reexec")
        try stage.daemon.reconnect()
        try SocketClient(.path(stage.path("web.sock"))).exchange("two")
        try stage.daemon.waitUntil("web", is: "suspended")
        stage.daemon.crash()
        let client = try SocketClient(.path(stage.path("web.sock")))
        try client.send("three")
        stage.daemon = try stage.daemon.successor()
        #expect(try client.receive() == "three")
        #expect(try stage.daemon.pid("web") == pid)
    }

    @Test("a socket that the store has lost is taken back from the running app, and stored again")
    func lost() throws {
        let root = try TestDaemon.makeFolder()
        let manager = try FakeServiceManager(in: root)
        let stage = try SocketStage(["web": ("", "ListenStream=ROOT/web.sock")], manager: manager, root: root)
        try SocketClient(.path(stage.path("web.sock"))).exchange("one")
        let name = try #require(try manager.names().first { $0.hasPrefix("socket-") })
        stage.daemon.crash()
        try manager.lose(name)
        stage.daemon = try stage.daemon.successor()
        // Taken back, and stored again.
        #expect(try stage.problems("web") == [""])
        #expect(try manager.names().contains(name))
        try SocketClient(.path(stage.path("web.sock"))).exchange("two")
    }

    @Test("without the logbook the sockets of the store are closed, and are bound and stored again")
    func noLogbook() throws {
        let root = try TestDaemon.makeFolder()
        let manager = try FakeServiceManager(in: root)
        let port = try freePort()
        let stage = try SocketStage(
            ["web": ("", "ListenStream=127.0.0.1:\(port)\nListenStream=ROOT/web.sock")], manager: manager, root: root)
        let names = try manager.names().filter { $0.hasPrefix("socket-") }
        stage.daemon.crash()
        unlink(stage.daemon.runtime + "/logbook")
        stage.daemon = try stage.daemon.successor()
        try stage.daemon.eventually("both are bound") { try stage.problems("web") == ["", ""] }
        #expect(try manager.names().filter { $0.hasPrefix("socket-") } == names)
        try SocketClient(.port(port)).exchange("one")
        try SocketClient(.path(stage.path("web.sock"))).exchange("two")
    }

    @Test("after a kill the file of a stopped app's socket is replaced, and status shows no problem")
    func stale() throws {
        let stage = try SocketStage(["web": ("", "ListenStream=ROOT/web.sock\nListenDatagram=ROOT/web.dgram")])
        stage.daemon.crash()
        stage.daemon = try stage.daemon.successor()
        #expect(try stage.problems("web") == ["", ""])
        try SocketClient(.path(stage.path("web.sock"))).exchange("one")
        try SocketClient(.path(stage.path("web.dgram")), SOCK_DGRAM).exchange("two")
    }
}
