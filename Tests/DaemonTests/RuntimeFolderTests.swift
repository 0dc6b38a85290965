import Glibc
import JSON
import Linux
import Posix
import Systemd
import TestKit
import Testing

/// The runtime folder is removed while the daemon runs.
@Suite("A runtime folder that is removed")
struct RuntimeFolderTests {
    @Test("the lock and all sockets are made again, apps keep running, and the next daemon finds them")
    func removed() throws {
        let first = try TestDaemon([
            "photos": TestDaemon.manifest("contents store state=kept"), "mail": TestDaemon.manifest(""),
        ])
        try first.launch("mail")
        try first.waitUntil("mail", is: "active")
        try first.launch("photos")
        let pids = try ["photos", "mail"].map(first.pid)
        let path = try first.notifySocket("photos")
        removeTree(first.runtime)
        try first.reconnect()
        #expect(TestDaemon.text(of: first.root + "/log").contains("was removed, in whole or in part"))
        #expect(try ["photos", "mail"].map(first.pid) == pids)
        // The bus may be made again before the removal is complete; then the rest follows.
        try first.eventually("its message is read") {
            try? sendDatagram("STATUS=sent", to: path)
            return try first.status("photos")["statusText"]?.stringValue == "sent"
        }
        try first.eventually("all is made again") {
            exists(at: first.runtime + "/inbox/photos") && !entries(of: first.runtime + "/stored").isEmpty
        }
        let (status, output) = try TestDaemon.runToEnd(TestDaemon.daemonArguments(first.root), in: first.root)
        #expect(status == .exited(1) && output.contains("pid \(first.process.pid)"))
        first.crash()
        let second = try first.successor()
        #expect(try ["photos", "mail"].map(second.pid) == pids)
        #expect(try second.status("photos")["statusText"]?.stringValue == "sent")
        for app in ["photos", "mail"] { try second.terminate(app) }
    }

    @Test(
        "a file of the runtime folder that is removed alone is made again",
        arguments: ["bus", "lock", "logbook", "notify"])
    func removedInPart(name: String) throws {
        let first = try TestDaemon(["photos": TestDaemon.manifest("")])
        try first.launch("photos")
        let pid = try first.pid("photos")
        let path = first.runtime + "/" + name
        if name == "notify" { removeTree(path) } else { try removeFile(at: path) }
        try first.eventually("it is made again") { exists(at: path) }
        if name == "bus" { try first.reconnect() }
        #expect(try first.pid("photos") == pid)
        first.crash()
        #expect(try first.successor().pid("photos") == pid)
    }

    @Test(
        "a second daemon does not end the apps of the first one, also if its runtime folder is gone and it does not run"
    )
    func secondDaemon() throws {
        let first = try TestDaemon(["photos": TestDaemon.manifest("")])
        guard first.groupRoot != nil else { return }
        try first.launch("photos")
        let pid = try first.pid("photos")
        try first.process.signal(SIGSTOP)
        removeTree(first.runtime)
        let (status, output) = try TestDaemon.runToEnd(TestDaemon.daemonArguments(first.root), in: first.root)
        #expect(status == .exited(1))
        #expect(output.contains("another greenroomd (pid \(first.process.pid)) contains its apps in"), "\(output)")
        #expect(isAlive(pid))
        try first.process.signal(SIGCONT)
        try first.reconnect()
        #expect(try first.pid("photos") == pid && first.state("photos") == "active")
    }

    @Test("the lock of the groups is passed on by reexec")
    func reexec() throws {
        let first = try TestDaemon(["photos": TestDaemon.manifest("")])
        guard let groups = first.groupRoot else { return }
        _ = try first.call("Reexec")
        try first.reconnect()
        let folder = try Descriptor.open(groups, O_RDONLY | O_DIRECTORY)
        #expect(flock(folder.raw, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    }
}
