import Glibc
import JSON
import LifecycleCore
import Linux
import Posix
import Systemd
import TestKit
import Testing

@testable import Daemon

/// The logbook is damaged, or what it contains cannot be read.
@Suite("Recovery from a damaged logbook")
struct RecoveryDamageTests {
    private func log(_ daemon: TestDaemon) -> String { TestDaemon.text(of: daemon.root + "/log") }

    /// Changes the records of runs in the logbook of a daemon that was killed.
    private func changeRunRecords(_ daemon: TestDaemon, _ change: (Logbook, String) -> Void) throws {
        let path = daemon.runtime + "/logbook"
        let recovered = try #require(try Logbook.read(at: path))
        let logbook = Logbook(path: path, journal: .quiet)
        logbook.resumeLog(recovered)
        for name in recovered.records.keys where RunRecord.run(named: name) != nil { change(logbook, name) }
        logbook.endRecovery()
    }

    @Test(
        "an app whose record is missing or cannot be read is found by its group, and only its status text is lost",
        arguments: [nil, [0xff], [1 << 1 | 1, 3, 0x2f, 0x2f, 0x2f]] as [[UInt8]?], [false, true])
    func unreadableRecord(bytes: [UInt8]?, asUnprivilegedUser: Bool) throws {
        if asUnprivilegedUser, geteuid() != 0 { return }
        let sleep = "[App]\nStartupSec=0\nExecStart=/bin/sleep 1000\n[Lifecycle]\nSuspendDelaySec=0\n"
        let first = try TestDaemon(["front": sleep, "back": sleep], asUnprivilegedUser: asUnprivilegedUser)
        try first.launch("back", background: true)
        try first.waitUntil("back", is: "suspended")
        try first.launch("front")
        let pids = try ["front", "back"].map(first.pid)
        try sendDatagram("STATUS=fine", to: try first.notifySocket("front"))
        try first.eventually("the status arrives") { try first.status("front")["statusText"] != nil }
        first.crash()
        try changeRunRecords(first) { logbook, name in
            if let bytes { logbook.persist(bytes, as: name) } else { logbook.removeRecord(name) }
        }
        let second = try first.successor()
        #expect(try ["front", "back"].map(second.pid) == pids)
        #expect(try second.state("front") == "active" && second.state("back") == "suspended")
        #expect(try second.status("front")["statusText"] == nil)
        #expect(try second.receipts("front").isEmpty && second.receipts("back").isEmpty)
        #expect(try second.ask("Activate", "back")["state"]?.stringValue == "active")
        for app in ["front", "back"] { try second.terminate(app) }
        #expect(!pids.contains(where: isAlive))
    }

    @Test(
        "with one flipped bit in the logbook each app is kept, or is terminated in order and has one receipt (L45, L46)",
        arguments: 0..<8)
    func flippedBit(part: Int) throws {
        let root = try TestDaemon.makeFolder()
        let apps = ["back", "front", "late"]
        let first = try TestDaemon(
            Dictionary(
                uniqueKeysWithValues: apps.map {
                    ($0, TestDaemon.manifest("term=exit:3", "[Lifecycle]\nSuspendDelaySec=0", trace: "\(root)/\($0)"))
                }), root: root)
        for app in apps {
            try first.launch(app)
            try sendDatagram("STATUS=\(app) is running", to: try first.notifySocket(app))
            try first.eventually("the status arrives") { try first.status(app)["statusText"] != nil }
        }
        for app in ["back", "front"] { try first.waitUntil(app, is: "suspended") }
        let pids = try apps.map(first.pid)
        first.crash()
        let path = first.runtime + "/logbook"
        var bytes = try readFile(at: path, limit: 1 << 28)
        let length = bytes[Logbook.Word.length..<(Logbook.Word.length + 8)].reversed().reduce(0) { $0 << 8 | Int($1) }
        bytes[Logbook.Word.entries + length * part / 8 + 12] ^= 1 << (part & 7)
        try replaceFile(at: path, with: bytes, mode: 0o600)
        let second = try first.successor()
        #expect(log(second).contains("damaged"))
        #expect(!log(second).contains("whose run had ended"))
        for (app, pid) in zip(apps, pids) {
            let receipts = try second.receipts(app)
            if isAlive(pid) {
                #expect(try second.pid(app) == pid && receipts.isEmpty)
            } else {
                #expect(second.trace(app).last == "willTerminate", "\(log(second))")
                #expect(receipts.count == 1 && receipts.last?["pid"]?.integerValue == Int64(pid))
                #expect(receipts.last?["explanation"]?.stringValue?.contains("its state is unknown") == true)
                try second.launch(app)
            }
            #expect(try second.ask("Activate", app)["state"]?.stringValue == "active")
        }
        for app in apps { #expect(try second.terminate(app)["outcome"]?.stringValue == "ended") }
    }

    @Test("an app whose end is recorded behind the damage has one receipt, not two (L45)")
    func endedBehindDamage() throws {
        let first = try TestDaemon([
            // A suspended app would be killed without a notice.
            "photos": TestDaemon.manifest("term=exit:3", "[Lifecycle]\nSuspendDelaySec=infinity"),
            "mail": TestDaemon.manifest(""),
        ])
        try first.launch("photos")
        try first.launch("mail")
        let length = try logbookLength(first)
        try first.terminate("photos")
        first.crash()
        let path = first.runtime + "/logbook"
        var bytes = try readFile(at: path, limit: 1 << 28)
        // The first entry of the termination.
        bytes[Logbook.Word.entries + length + 8] ^= 0x40
        try replaceFile(at: path, with: bytes, mode: 0o600)
        let second = try first.successor()
        #expect(log(second).contains("the entry is damaged"))
        #expect(try second.state("photos") == "notRunning" && second.state("mail") == "active")
        let receipts = try second.receipts("photos")
        #expect(receipts.count == 1 && receipts.last?["exitStatus"]?.integerValue == 3)
    }

    private func logbookLength(_ daemon: TestDaemon) throws -> Int {
        let bytes = try readFile(at: daemon.runtime + "/logbook", limit: 1 << 28)
        return bytes[Logbook.Word.length..<(Logbook.Word.length + 8)].reversed().reduce(0) { $0 << 8 | Int($1) }
    }

    @Test(
        "a damaged boot ID is not taken for a reboot: no running app gets the receipt of one that ended with the machine"
    )
    func damagedBoot() throws {
        let root = try TestDaemon.makeFolder()
        let first = try TestDaemon(["photos": TestDaemon.manifest("term=exit:0", trace: root + "/trace")], root: root)
        try first.launch("photos")
        first.crash()
        let path = first.runtime + "/logbook"
        var bytes = try readFile(at: path, limit: 1 << 28)
        bytes[Logbook.Word.boot] ^= 1
        try replaceFile(at: path, with: bytes, mode: 0o600)
        let second = try first.successor()
        #expect(log(second).contains("the boot ID is damaged"))
        #expect(second.trace().last == "willTerminate")
        let receipts = try second.receipts("photos")
        #expect(receipts.count == 1)
        #expect(receipts.last?["explanation"]?.stringValue?.contains("terminated: its state is unknown") == true)
    }

    @Test("records behind a damaged entry are read, and events are not")
    func recordsBehindDamage() throws {
        let folder = makeTemporaryFolder("greenroom-damage")
        defer { removeTree(folder) }
        defer { MappedFile.stopCountingOwnEnd() }
        let path = folder + "/logbook"
        let logbook = Logbook(path: path, journal: .quiet)
        let core = LifecycleCore(firstRun: 7, firstReceipt: 3)
        logbook.create(core, records: ["run/6": [1]])
        let start = try readFile(at: path, limit: 1 << 28)
        logbook.append(.absence(.locked), at: .origin)
        logbook.beginEffects()
        logbook.append(.absence(.unlocked), at: .origin)
        logbook.beginEffects()
        logbook.persist([9], as: "run/7")
        logbook.removeRecord("run/6")
        var bytes = try readFile(at: path, limit: 1 << 28)
        let first = try #require(
            zip(start, bytes).enumerated().first { $0.offset >= 128 && $0.element.0 != $0.element.1 })
        bytes[first.offset + 9] ^= 0x10
        try replaceFile(at: path, with: bytes)
        let recovered = try #require(try Logbook.read(at: path))
        #expect(recovered.core == core && recovered.events.isEmpty && recovered.effects.isEmpty)
        #expect(recovered.lacksEvents && recovered.position == nil && recovered.warnings.count == 1)
        #expect(recovered.records == ["run/7": [9]])
    }
}
