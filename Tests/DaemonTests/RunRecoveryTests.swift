import Glibc
import JSON
import Linux
import Posix
import Systemd
import TestKit
import Testing

/// Commands of `greenroomctl run`, and daemons that end and begin.
@Suite("Recovery of commands of greenroomctl run", .enabled(if: geteuid() == 0, "needs control groups"))
struct RunRecoveryTests {
    private static func start(_ daemon: TestDaemon, _ name: String) throws -> RunClient {
        let client = try RunClient(daemon, ["cat"], options: RunClient.soon + ["--name", name])
        try client.exchange("ready")
        try daemon.waitUntil("run@\(name)", is: "suspended")
        return client
    }

    @Test(
        "a command stays awake until its relay has found the next daemon, so that it never stays frozen without one (L54)"
    )
    func awaitsRelay() throws {
        let first = try TestDaemon()
        let client = try Self.start(first, "kept")
        first.crash()
        try client.exchange("without a daemon")
        try client.process.signal(SIGSTOP)
        let second = try first.successor()
        try second.eventually("status says why it is awake") {
            let awake = try second.status("run@kept")["awake"]?.arrayValue?.first
            return awake?["detail"]?.stringValue?.contains("has not found this daemon yet") ?? false
        }
        try client.process.signal(SIGCONT)
        try second.waitUntil("run@kept", is: "suspended")
        client.closeInput()
        #expect(try client.end() == .exited(0))
    }

    @Test("a command that sleeps runs on when the daemon is killed, and the next daemon takes it over (L54, L51)")
    func killed() throws {
        let first = try TestDaemon()
        let (kept, orphan) = (try Self.start(first, "kept"), try Self.start(first, "orphan"))
        let pid = try first.pid("run@kept")
        first.crash()
        try kept.exchange("without a daemon")
        // Its caller ends while there is no daemon.
        try orphan.process.signal(SIGKILL)
        waitForReadable([orphan.process.descriptor])
        let second = try first.successor()
        try second.eventually("the orphan has ended") { try second.listed() == ["run@kept"] }
        #expect(!second.isPopulated(command: "run@orphan"))
        #expect(try second.pid("run@kept") == pid)
        #expect(try second.status("run@kept")["client"]?["pid"]?.integerValue == Int64(getpid()))
        try second.waitUntil("run@kept", is: "suspended")
        try kept.exchange("with the next daemon")
        // The relay has found it: once more it notices the end of the daemon.
        try second.waitUntil("run@kept", is: "suspended")
        second.crash()
        try kept.exchange("without the second one")
        let third = try second.successor()
        try third.waitUntil("run@kept", is: "suspended")
        kept.closeInput()
        #expect(try kept.end() == .exited(0))
        try third.eventually("it is gone") { try third.listed().isEmpty }
    }

    @Test("a reexec takes commands over, and they end with their callers (L54)")
    func reexec() throws {
        let daemon = try TestDaemon()
        let client = try Self.start(daemon, "kept")
        for _ in 0..<2 {
            _ = try daemon.call("Reexec")
            try daemon.reconnect()
            try client.exchange("again")
            try daemon.waitUntil("run@kept", is: "suspended")
        }
        try client.process.signal(SIGKILL)
        try daemon.eventually("nothing is left") { try daemon.listed().isEmpty }
    }

    @Test("the relay ends everything of its command when it ends without a daemon (L54)")
    func withoutDaemon() throws {
        let daemon = try TestDaemon()
        let program = "setsid sleep 1000 & echo $!; read line; exit 6"
        let client = try RunClient(daemon, ["sh", "-c", program], options: RunClient.soon + ["--name", "parent"])
        let child = try #require(Int32(try client.line()))
        try daemon.waitUntil("run@parent", is: "suspended")
        daemon.crash()
        try client.write("end\n")
        #expect(try client.end() == .exited(6))
        try daemon.eventually("the process that it left behind has ended") { !isAlive(child) }
    }

    @Test("a stop of the daemon terminates commands, their status is passed on, and no socket is left (L54, L46)")
    func stopped() throws {
        let daemon = try TestDaemon()
        let client = try Self.start(daemon, "kept")
        #expect(exists(at: daemon.runtime + "/relay"))
        #expect(daemon.stop() == .exited(0))
        #expect(try client.end() == .exited(128 + SIGTERM))
        #expect(!exists(at: daemon.runtime + "/relay") && !exists(at: daemon.runtime + "/bus"))
    }

    @Test("a client of the socket that is no relay harms neither the daemon nor other processes (L54)")
    func hostile() throws {
        let daemon = try TestDaemon()
        let victim = try Self.start(daemon, "victim")
        let other = try #require(try Linux.Process.open(getpid()))
        for (first, second) in [
            ("", ""), ("x\0", ""), ("run\0", ""), ("run\0\0\0", ""), ("again\0" + "1\0", ""), ("run\0\0\0cat\0", "P"),
            ("run\0\0\0cat\0", "X0"), ("run\0\0x\0cat\0IdleSec=1\nExecStart=/bin/sh\0", ""), ("P", "P"),
        ] {
            let socket = try UnixSocket.connect(to: daemon.runtime + "/relay", kind: .messages)
            _ = try socket.send(Array(first.utf8), [other.descriptor])
            if !second.isEmpty {
                do {
                    _ = try socket.send(Array(second.utf8), [other.descriptor])
                } catch {
                    // The daemon has closed the connection after the first.
                    #expect(error.errno == EPIPE, "\(error)")
                }
            }
            if second == "P" { #expect(isReadable(socket.raw, within: .seconds(60))) }
        }
        try daemon.eventually("nothing is left of them") { try daemon.listed() == ["run@victim"] }
        #expect(!TestDaemon.text(of: "/proc/self/cgroup").contains("run@"))
        try victim.exchange("still here")
    }
}
