import Glibc
import JSON
import Linux
import Posix
import Systemd
import TestKit
import Testing

/// The senders of notify messages are checked (`NotifyAccess=`).
@Suite("Senders of notify messages", .enabled(if: geteuid() == 0, "only root may name another process as the sender"))
struct NotifyAccessTests {
    /// An app with a second process, and the pids of both.
    private func start(
        _ app: String, asUnprivilegedUser: Bool = false
    ) throws -> (TestDaemon, path: String, main: Int32, child: Int32) {
        let daemon = try TestDaemon(
            ["photos": "[App]\nExecStart=/bin/sh -c 'sleep 1000 & exec sleep 1000'\n\(app)\n"],
            asUnprivilegedUser: asUnprivilegedUser)
        try daemon.launch("photos")
        let main = try daemon.pid("photos")
        var child: Int32?
        try daemon.eventually("the second process runs") {
            child = try daemon.processes(of: "photos").first { $0 != main }
            return child != nil && TestDaemon.text(of: "/proc/\(main)/comm") == "sleep\n"
        }
        let path = daemon.runtime + "/notify/" + (entries(of: daemon.runtime + "/notify").first ?? "")
        return (daemon, path, main, try #require(child))
    }

    private func status(_ daemon: TestDaemon) throws -> String? {
        try daemon.status("photos")["statusText"]?.stringValue
    }

    /// Sends a status, and then another of the main process, so that the daemon has read the first.
    private func isRead(_ sender: Int32?, _ daemon: TestDaemon, _ path: String, _ main: Int32) throws -> Bool {
        let before = TestDaemon.text(of: daemon.root + "/log").ranges(of: "UMPH=").count
        try sendDatagram("STATUS=test\nERRNO=UMPH", to: path, from: sender)
        let last = "last after \(sender ?? 0)"
        try sendDatagram("STATUS=\(last)", to: path, from: main)
        try daemon.eventually("the next message is read") { try status(daemon) == last }
        return TestDaemon.text(of: daemon.root + "/log").ranges(of: "ERRNO=UMPH").count > before
    }

    @Test(
        "messages of a process of the app are read, and those of another process are ignored with one warning",
        arguments: [false, true])
    func all(asUnprivilegedUser: Bool) throws {
        let (daemon, path, main, child) = try start("", asUnprivilegedUser: asUnprivilegedUser)
        for _ in 0..<20 { try sendDatagram("STATUS=foreign\nMAINPID=\(child)", to: path, from: nil) }
        #expect(try !isRead(getpid(), daemon, path, main))
        #expect(try daemon.pid("photos") == main)
        let log = TestDaemon.text(of: daemon.root + "/log")
        #expect(log.ranges(of: "was ignored: it is not a process of this app").count == 1)
        #expect(log.contains("a notify message of process \(getpid()) was ignored"))
        #expect(try isRead(child, daemon, path, main))
    }

    @Test("the message of a process that has ended before the daemon reads it is read")
    func endedSender() throws {
        let (daemon, path, _, _) = try start("")
        try daemon.process.signal(SIGSTOP)
        var starting = try startProcess(
            SpawnRequest(executable: "/bin/sleep", arguments: ["1000"], environment: ["PATH=/bin"]))
        while try starting.outcome() == .pending { waitForReadable([starting.outcomeDescriptor]) }
        try sendDatagram("STATUS=short-lived", to: path, from: starting.pid)
        try starting.process.signal(SIGKILL)
        waitForReadable([starting.process.descriptor])
        _ = try starting.process.reap()
        try daemon.process.signal(SIGCONT)
        try daemon.eventually("the message is read") { try status(daemon) == "short-lived" }
    }

    @Test("with NotifyAccess=main only messages of the main process are read", arguments: ["main", "exec"])
    func main(access: String) throws {
        let (daemon, path, main, child) = try start("NotifyAccess=\(access)")
        #expect(try !isRead(child, daemon, path, main))
        #expect(TestDaemon.text(of: daemon.root + "/log").contains("it is not the main process (NotifyAccess=main)"))
        #expect(try isRead(main, daemon, path, main))
    }

    @Test("with NotifyAccess=none no message is read, and the app has no NOTIFY_SOCKET=")
    func none() throws {
        let (daemon, path, main, _) = try start("NotifyAccess=none")
        #expect(!TestDaemon.text(of: "/proc/\(main)/environ").contains("NOTIFY_SOCKET="))
        try sendDatagram("STATUS=test", to: path, from: main)
        try daemon.eventually("the message is ignored") {
            TestDaemon.text(of: daemon.root + "/log").contains("was ignored: NotifyAccess=none")
        }
        #expect(try status(daemon) == nil)
    }

    @Test("an app with Type=notify can send READY=1 although it has NotifyAccess=none, with a warning")
    func forced() throws {
        let daemon = try TestDaemon(["photos": TestDaemon.manifest("", app: "NotifyAccess=none")])
        #expect(try daemon.launch("photos")["state"]?.stringValue == "active")
        #expect(
            TestDaemon.text(of: daemon.root + "/log").contains("NotifyAccess=none has the effect of NotifyAccess=main"))
    }
}
