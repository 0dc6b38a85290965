import Glibc
import JSON
import Linux
import Posix
import Systemd
import TestKit
import Testing

@testable import Daemon

/// Apps that send descriptors whose close(2) blocks.
@Suite("Descriptors that take long to close")
struct BlockingDescriptorTests {
    private func log(_ daemon: TestDaemon) -> String { TestDaemon.text(of: daemon.root + "/log") }

    @Test(
        "a file of a FUSE server that does not answer is not stored; no launch waits for it, and a reexec is refused (L18)",
        .enabled(if: geteuid() == 0 && access("/dev/fuse", R_OK | W_OK) == 0, "only root can mount a FUSE file system"))
    func fuse() throws {
        let root = try TestDaemon.makeFolder()
        #expect(mkdir(root + "/mount", 0o755) == 0)
        let daemon = try TestDaemon(
            ["evil": TestDaemon.manifest("store-fuse \(root)/mount"), "good": TestDaemon.manifest("")], root: root)
        try daemon.launch("evil")
        try daemon.eventually("the refusal is logged") {
            log(daemon).contains("evil: FDNAME=trap was refused: a file of a mount that greenroomd does not see")
        }
        for _ in 0..<3 {
            #expect(try daemon.launch("good")["state"]?.stringValue == "active")
            try daemon.terminate("good")
        }
        let pid = daemon.process.pid
        _ = try daemon.call("Reexec")
        try daemon.eventually("the reexec is refused") {
            log(daemon).contains("Cannot reexecute: files that evil sent cannot be closed")
        }
        // Others were in the foreground meanwhile.
        #expect(["background", "suspended"].contains(try daemon.state("evil")))
        // With the app ends the server, and with it the close.
        try daemon.terminate("evil")
        try daemon.eventually("the file is closed") {
            !entries(of: "/proc/\(pid)/task").contains { thread in
                TestDaemon.text(of: "/proc/\(pid)/task/\(thread)/comm") == "closer-files\n"
            }
        }
        _ = try daemon.call("Reexec")
        try daemon.reconnect()
        #expect(try daemon.launch("good")["state"]?.stringValue == "active")
        #expect(daemon.stop() == .exited(0))
    }

    @Test("the next program closes what waits to be closed at a reexec; the reexec does not wait for it")
    func lingering() throws {
        let script = "store-lingering a store-lingering a say STATUS=stored"
        let daemon = try TestDaemon(["evil": TestDaemon.manifest(script), "good": TestDaemon.manifest("")])
        let before = try daemon.settledDescriptors()
        try daemon.launch("evil")
        try daemon.eventually("both are stored") {
            try daemon.status("evil")["statusText"]?.stringValue == "stored"
        }
        // The close of the first one blocks; the second one waits behind it.
        try sendDatagram("FDSTOREREMOVE=1\nFDNAME=a\nSTATUS=removed", to: daemon.notifySocket("evil"))
        try daemon.eventually("both are removed") {
            try daemon.status("evil")["statusText"]?.stringValue == "removed"
        }
        _ = try daemon.call("Reexec")
        try daemon.reconnect()
        #expect(try daemon.launch("good")["state"]?.stringValue == "active")
        // The app has the other ends of the connections.
        try daemon.terminate("good")
        try daemon.terminate("evil", remove: true)
        try daemon.eventually("all are closed") { daemon.openDescriptors().count <= before.count }
    }

    @Test("a stored file must be of a local file system, and the warning says what is accepted (L18)")
    func files() throws {
        let root = try TestDaemon.makeFolder()
        let script = "store-file kernel=/proc/self/status store-file terminals=/dev/ptmx say STATUS=said"
        let daemon = try TestDaemon(["photos": TestDaemon.manifest(script, trace: root + "/trace")], root: root)
        try daemon.launch("photos")
        try daemon.eventually("the messages are read") {
            try daemon.status("photos")["statusText"]?.stringValue == "said"
        }
        #expect(
            log(daemon).contains(
                "photos: FDNAME=kernel was refused: a file of the file system proc; accepted are sockets, pipes, memfds"
            ))
        #expect(!log(daemon).contains("FDNAME=terminals"))
    }

    @Test("the table of a reexec may name descriptors that are closed by then; those that wait are closed")
    func table() throws {
        try inOwnProcess {
            var ends: [Int32] = [-1, -1]
            #expect(pipe(&ends) == 0)
            let reader = Descriptor(adopting: ends[0])
            let kept = try MemoryFile.empty("kept").release()
            let name = RecoveredDescriptors.lock
            let lines = "\(name) \(kept)\n\(Reexecution.closing) \(ends[1])\n\(Reexecution.closing) 1000000\n"
            // The function takes all three over.
            let table = try MemoryFile.sealed("table", Array(lines.utf8)).release()
            setenv(Reexecution.variable, "\(table)", 1)
            let taken = try #require(try Reexecution.takeTable())
            #expect(taken.map(\.name) == [name])
            let untaken = try #require(taken.first).descriptor
            guard let descriptor = untaken.take() else {
                Issue.record("the descriptor is missing")
                return
            }
            #expect(descriptor.raw == kept)
            var byte: UInt8 = 0
            // The end of the file: the other end is closed.
            #expect(read(reader.raw, &byte, 1) == 0)
        }
    }
}
