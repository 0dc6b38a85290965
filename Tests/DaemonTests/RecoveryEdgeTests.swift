import Glibc
import JSON
import LifecycleCore
import Linux
import Posix
import Systemd
import TestKit
import Testing

@testable import Daemon

/// What lies between two steps of a daemon, and what is left of one by the next.
@Suite("Recovery at its edges")
struct RecoveryEdgeTests {
    /// The notes that the next daemon would find.
    private func notes(_ daemon: TestDaemon) throws -> [String: [UInt8]] {
        let copy = daemon.root + "/logbook"
        try replaceFile(at: copy, with: readFile(at: daemon.runtime + "/logbook", limit: 1 << 28))
        defer { MappedFile.stopCountingOwnEnd() }
        return try #require(try Logbook.read(at: copy)).notes
    }

    @Test("what an app says at its very end is noted no more: nobody would take the note out again")
    func lastWords() throws {
        try inOwnProcess {
            let root = makeTemporaryFolder("greenroom-words")
            defer { removeTree(root) }
            let performer = try EffectPerformer.bare(in: root, try EventLoop()) { _ in }
            let run = try performer.makeRun(RunID(1), of: "photos")
            performer.listen(to: run)
            performer.keepNote(of: run)
            #expect(performer.logbook.isNoted("run/1"))
            try sendDatagram("STATUS=all is well", to: run.channel.path)
            performer.forget(run)
            #expect(run.statusText == "all is well")
            #expect(!performer.logbook.isNoted("run/1"))
        }
    }

    @Test("what a stop in order kept is handed on where the daemon died before it was over, and what is newer is kept")
    func stoppedHalf() throws {
        let root = try TestDaemon.makeFolder()
        let first = try TestDaemon(
            [
                "photos": TestDaemon.manifest("contents store state=kept", trace: root + "/trace"),
                "mail": TestDaemon.manifest("contents", trace: root + "/mail"),
            ], root: root)
        try first.launch("photos")
        try first.terminate("photos")
        first.crash()
        let archive = first.state + "/restoration"
        try createDirectories(at: archive, mode: 0o700)
        try replaceFile(at: archive + "/mail.state", with: Array("archived".utf8))
        try replaceFile(at: archive + "/photos.state", with: Array("older".utf8))
        let second = try first.successor()
        #expect(!exists(at: archive))
        try second.launch("mail")
        try second.launch("photos")
        #expect(second.trace("mail").filter { $0.contains("=") } == ["state=archived"])
        #expect(second.trace().filter { $0.contains("=") } == ["state=kept"])
    }

    @Test("what was kept as a file is handed back also by a daemon that has a store of descriptors")
    func filesThenStore() throws {
        let root = try TestDaemon.makeFolder()
        let first = try TestDaemon(
            ["photos": TestDaemon.manifest("contents store state=kept", trace: root + "/trace")], root: root)
        try first.launch("photos")
        first.crash()
        let manager = try FakeServiceManager(in: root)
        let second = try first.successor(of: manager)
        try second.terminate("photos")
        try second.launch("photos")
        #expect(second.trace().filter { $0.contains("=") } == ["state=kept"])
        // The one before it went.
        #expect(entries(of: second.runtime + "/stored").isEmpty)
        #expect(try manager.names().count { $0.hasPrefix("stored-") } == 1)
    }

    @Test("a daemon lets go of the logbook that it has found, once it writes another")
    func letGo() throws {
        let first = try TestDaemon(["photos": TestDaemon.manifest("")])
        try first.launch("photos")
        first.crash()
        let second = try first.successor()
        var (before, after) = (Glibc.stat(), Glibc.stat())
        let path = second.runtime + "/logbook"
        #expect(stat(path, &before) == 0)
        for number in 0..<200 {
            try second.say("STATUS=\(number) " + String(repeating: "x", count: 2000))
        }
        try second.eventually("there is another") {
            stat(path, &after) == 0 && after.st_ino != before.st_ino
        }
        let maps = TestDaemon.text(of: "/proc/\(second.process.pid)/maps").split(separator: "\n")
        #expect(maps.contains { $0.hasSuffix("/logbook") } && !maps.contains { $0.hasSuffix("/logbook (deleted)") })
    }

    @Test(
        "apps of which nothing is known have their receipts once each has ended, though the daemon dies before the others"
    )
    func receiptsAtOnce() throws {
        let first = try TestDaemon([
            "photos": TestDaemon.manifest("term=exit:0"), "stubborn": TestDaemon.manifest("term=ignore"),
        ])
        try first.launch("photos")
        try first.launch("stubborn")
        let pid = try first.pid("photos")
        first.crash()
        try removeFile(at: first.runtime + "/logbook")
        // `stubborn` has five seconds.
        try first.successor(killedAfter: .seconds(2))
        let second = try first.successor()
        for app in ["photos", "stubborn"] { #expect(try second.receipts(app).count == 1) }
        #expect(try second.receipts("photos").last?["pid"]?.integerValue == Int64(pid))
    }

    @Test("notices that wait are bounded, so that what waits can be noted for the next daemon")
    func manyNotices() throws {
        let daemon = try TestDaemon([
            "photos": TestDaemon.manifest("")
        ])
        try daemon.launch("photos")
        guard let group = try daemon.groupPath("photos") else { return }
        // It takes nothing.
        try writeControlFile(group + "/cgroup.freeze", "1")
        defer { try? writeControlFile(group + "/cgroup.freeze", "0") }
        for _ in 0..<60 {
            _ = try daemon.begin("Interrupt", "photos", [])
            _ = try daemon.begin("Resume", "photos", [])
        }
        _ = try daemon.status("photos")
        let note = try #require(try notes(daemon).first { $0.key.hasPrefix("run/") }).value
        let count = try RunNote(reading: note).notices.count
        #expect(count > 0 && count <= EffectPerformer.mostWaiting)
    }

    @Test("what was being read when a daemon died is in doubt once, and not after each end of those that follow")
    func doubtedOnce() throws {
        let folder = makeTemporaryFolder("greenroom-doubt")
        defer { removeTree(folder) }
        let path = folder + "/logbook"
        let first = Logbook(path: path)
        first.begin(LifecycleCore(firstRun: 1, firstReceipt: 1), notes: [:])
        defer { MappedFile.stopCountingOwnEnd() }
        try first.read(from: RunID(7)) {
            let legacy = try #require(try Logbook.read(at: path))
            #expect(legacy.reading == RunID(7))
            let second = Logbook(path: path)
            second.goOn(legacy)
            second.noteRecovered()
            #expect(try #require(try Logbook.read(at: path)).reading == nil)
        }
    }
}

extension Logbook {
    /// What happens while a message is being read.
    fileprivate func read(from run: RunID, _ body: () throws -> Void) throws {
        var failure: (any Error)?
        _ = read(from: run) {
            do { try body() } catch { failure = error }
            return true
        }
        if let failure { throw failure }
    }
}
