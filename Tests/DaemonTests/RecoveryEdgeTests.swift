import Glibc
import JSON
import LifecycleCore
import Linux
import Posix
import Systemd
import TestKit
import Testing

@testable import Daemon

/// A daemon dies between two steps, and the next one continues.
@Suite("Recovery between two steps of a daemon")
struct RecoveryEdgeTests {
    @Test("a status that arrives when the run is removed is not recorded")
    func lastStatus() throws {
        try inOwnProcess {
            let root = makeTemporaryFolder("greenroom-words")
            defer { removeTree(root) }
            let events = EventList()
            let context = try DaemonContext.bare(in: root, try EventLoop(), events)
            let run = try context.makeRun(RunID(1), of: "photos")
            run.persistRecord()
            #expect(context.logbook.hasRecord("run/1"))
            run.mainPID = getpid()
            try sendDatagram("STATUS=all is well", to: run.socket.path, from: nil)
            run.remove()
            #expect(run.reports.statusText == "all is well")
            #expect(!context.logbook.hasRecord("run/1"))
        }
    }

    @Test("an archive is restored if the daemon died during the stop, and newer states stay")
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

    @Test("a state that is kept as a file is restored by a daemon with a descriptor store")
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
        // The previous state was removed.
        #expect(entries(of: second.runtime + "/stored").isEmpty)
        #expect(try manager.names().count { $0.hasPrefix("stored-") } == 1)
    }

    @Test("a daemon unmaps the previous logbook when it creates a new one")
    func letGo() throws {
        let first = try TestDaemon(["photos": TestDaemon.manifest("")])
        try first.launch("photos")
        first.crash()
        let second = try first.successor()
        var (before, after) = (Glibc.stat(), Glibc.stat())
        let path = second.runtime + "/logbook"
        #expect(stat(path, &before) == 0)
        // The two files are exchanged each time: no more is written once the other one is in its position.
        var number = 0
        try second.eventually("a new logbook is created") {
            if stat(path, &after) == 0, after.st_ino != before.st_ino { return true }
            number += 1
            try second.sendMessage("STATUS=\(number) " + String(repeating: "x", count: 2000))
            return false
        }
        try second.eventually("only the new logbook is mapped") {
            let maps = TestDaemon.text(of: "/proc/\(second.process.pid)/maps").split(separator: "\n")
            let mapped = maps.filter { $0.contains("/logbook") }
            return mapped.allSatisfy { $0.hasSuffix("/logbook") } && !mapped.isEmpty
        }
    }

    @Test(
        "each orphaned app has its receipt when it has ended, even if the daemon dies before the others end"
    )
    func receiptsAtOnce() throws {
        let first = try TestDaemon([
            "photos": TestDaemon.manifest("term=exit:0"), "stubborn": TestDaemon.manifest("term=ignore"),
        ])
        try first.launch("photos")
        try first.launch("stubborn")
        let (pid, stubborn) = (try first.pid("photos"), try first.pid("stubborn"))
        first.crash()
        try removeFile(at: first.runtime + "/logbook")
        try first.successor { TestDaemon.text(of: first.state + "/receipts.jsonl").contains("\"photos\"") }
        // It is killed after 5 s.
        #expect(isAlive(stubborn), "the receipt came only with that of the other app")
        let second = try first.successor()
        for app in ["photos", "stubborn"] { #expect(try second.receipts(app).count == 1) }
        #expect(try second.receipts("photos").last?["pid"]?.integerValue == Int64(pid))
    }

    @Test("the number of waiting notices has a limit, so they fit into the run's record")
    func manyNotices() throws {
        let daemon = try TestDaemon([
            "photos": TestDaemon.manifest("")
        ])
        try daemon.launch("photos")
        guard let group = try daemon.groupPath("photos") else { return }
        // The app takes no signal.
        try writeControlFile(group + "/cgroup.freeze", "1")
        defer { try? writeControlFile(group + "/cgroup.freeze", "0") }
        for _ in 0..<60 {
            _ = try daemon.begin("Interrupt", "photos", [])
            _ = try daemon.begin("Resume", "photos", [])
        }
        _ = try daemon.status("photos")
        // One more is recorded before all are sent.
        try daemon.eventually("notices wait") {
            let count = try #require(try daemon.runRecord()).notices.waiting.count
            return count > 0 && count <= NoticeQueue.capacity
        }
    }

    @Test("a message that was being read when a daemon died may be lost only for the next daemon")
    func doubtedOnce() throws {
        let folder = makeTemporaryFolder("greenroom-doubt")
        defer { removeTree(folder) }
        let path = folder + "/logbook"
        let first = Logbook(path: path, journal: .quiet)
        first.create(LifecycleCore(firstRun: 1, firstReceipt: 1), records: [:])
        defer { MappedFile.stopCountingOwnEnd() }
        first.beginReading(of: RunID(7))
        let recovered = try #require(try Logbook.read(at: path))
        #expect(recovered.reading == RunID(7))
        let second = Logbook(path: path, journal: .quiet)
        second.resumeLog(recovered)
        second.endRecovery()
        #expect(try #require(try Logbook.read(at: path)).reading == nil)
    }

    @Test("a freeze whose end a dead daemon has recorded and not handled is watched by the next one (L50)")
    func recordedFreeze() throws {
        let root = try TestDaemon.makeFolder()
        // A worker is thawed in any case.
        let manifest =
            "[App]\nExecStart=\(TestDaemon.app) serve \(root)/port\n[Lifecycle]\nSuspendDelaySec=100ms\n[Wake]\nTraffic=yes\n"
        let first = try TestDaemon(["server": manifest], root: root)
        try first.launch("server", background: true)
        try first.eventually("the server listens") { TestDaemon.text(of: root + "/port") != "" }
        let client = try TrafficClient(port: try #require(UInt16(TestDaemon.text(of: root + "/port"))))
        try client.exchange([1, 2, 3])
        try first.waitUntil("server", is: "suspended")
        first.crash()
        let path = first.runtime + "/logbook"
        try replaceFile(at: path, with: endingWithLastFreeze(try readFile(at: path, limit: 1 << 28)), mode: 0o600)
        let second = try first.successor()
        #expect(try second.state("server") == "suspended")
        try client.exchange([4, 5, 6])
    }

    /// A logbook that ends with the last `frozen`, which is not handled.
    private func endingWithLastFreeze(_ logbook: [UInt8]) throws -> [UInt8] {
        var entries = LogbookEntries(
            logbook[Logbook.Word.entries...].prefix(Int(word(Logbook.Word.length, of: logbook))))
        var (events, last): (UInt64, (before: UInt64, end: Int)?) = (0, nil)
        while !entries.isAtEnd, let entry = entries.next() {
            guard entry.first == Logbook.Kind.event.rawValue else { continue }
            if case .run(_, .suspension(.frozen)) = try LoggedEvent(reading: entry.dropFirst()).event {
                last = (events, entries.offset)
            }
            events += 1
        }
        let found = try #require(last)
        var changed = logbook
        // All effects of the event before it were performed.
        let progress = found.before << Logbook.effectBits | 1000
        for (offset, value) in [
            (Logbook.Word.length, UInt64(found.end - Logbook.Word.entries)), (Logbook.Word.progress, progress),
        ] {
            changed.replaceSubrange(
                offset..<(offset + 8), with: (0..<8).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) })
        }
        return changed
    }

    private func word(_ offset: Int, of bytes: [UInt8]) -> UInt64 {
        bytes[offset..<(offset + 8)].reversed().reduce(0) { $0 << 8 | UInt64($1) }
    }

    @Test("the next daemon finds all records of a batch or none")
    func batch() throws {
        let folder = makeTemporaryFolder("greenroom-batch")
        defer { removeTree(folder) }
        defer { MappedFile.stopCountingOwnEnd() }
        let path = folder + "/logbook"
        let logbook = Logbook(path: path, journal: .quiet)
        logbook.create(LifecycleCore(), records: [:])
        func read() throws -> RecoveredState { try #require(try Logbook.read(at: path)) }
        var meanwhile: RecoveredState?
        logbook.batch {
            logbook.persist([1], as: "run/1")
            logbook.append(.absence(.locked), at: .origin)
            meanwhile = try? read()
        }
        #expect(meanwhile?.records == [:] && meanwhile?.events.isEmpty == true)
        let recovered = try read()
        #expect(recovered.records == ["run/1": [1]] && recovered.events.count == 1)
    }

    @Test("the numbers of effects continue after a new snapshot and in the next daemon")
    func effectNumbers() throws {
        let folder = makeTemporaryFolder("greenroom-numbers")
        defer { removeTree(folder) }
        defer { MappedFile.stopCountingOwnEnd() }
        let path = folder + "/logbook"
        let first = Logbook(path: path, journal: .quiet)
        first.create(LifecycleCore(), records: [:])
        func handle(_ logbook: Logbook) {
            logbook.append(.absence(.locked), at: .origin)
            logbook.beginEffects()
        }
        handle(first)
        handle(first)
        first.close(LifecycleCore())
        handle(first)
        #expect(first.eventNumber == 3)
        let recovered = try #require(try Logbook.read(at: path))
        #expect(recovered.eventNumber == 3)
        let second = Logbook(path: path, journal: .quiet)
        second.resumeLog(recovered)
        #expect(second.eventNumber == 3)
        handle(second)
        #expect(second.eventNumber == 4)
    }
}
