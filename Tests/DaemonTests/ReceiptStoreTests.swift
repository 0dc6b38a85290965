import Control
import Glibc
import JSON
import LifecycleCore
import Linux
import Posix
import Systemd
import TestKit
import Testing

@testable import Daemon

/// Folders for one test, removed with this value.
private final class TestFolders {
    let root: String
    let folders: Folders

    init() throws {
        root = try TestDaemon.makeFolder()
        var folders = try #require(Folders(mode: .system) { _ in nil })
        folders.moveRuntime(to: root + "/run")
        folders.moveState(to: root + "/state")
        try createDirectories(at: folders.lastReceipts)
        self.folders = folders
    }

    deinit { removeTree(root) }

    func open() throws -> ReceiptStore { try ReceiptStore(folders: folders, clock: WallClock()) }
}

private func receipt(_ id: UInt64, of app: AppID) -> Receipt {
    Receipt(
        id: id, app: app, run: RunID(id), pid: 7, state: .active, namespace: .exit, code: 0,
        explanation: "Exited with status 0.", exit: .exited(0), wall: .seconds(1), cpu: .zero, memory: 1)
}

@Suite("Receipts on disk")
struct ReceiptStoreTests {
    private let early = AppID("early")!
    private let busy = AppID("busy")!

    private func handedOverID(_ path: String) throws -> UInt64 {
        try ReceiptRecord(json: try JSONValue.parse(try readFile(at: path, limit: 4096))).id
    }

    private func write(_ store: ReceiptStore, _ ids: ClosedRange<UInt64>, of app: AppID) throws {
        for id in ids { try store.write(receipt(id, of: app)) }
    }

    @Test("the last 1,000 receipts are kept, and the last receipt of each app, however old (L45)")
    func turnsOver() throws {
        let test = try TestFolders()
        let store = try test.open()
        try write(store, 1...2, of: early)
        // So many that the file of the first receipts, and the file to which they were copied, have been replaced.
        try write(store, 3...4500, of: busy)
        for store in [store, try test.open()] {
            let all = try store.read(limit: .max)
            #expect(all.map(\.id) == (3501...4500).map { $0 })
            #expect(try store.read(limit: 2).map(\.id) == [4499, 4500])
            #expect(try store.read(app: early, limit: .max).map(\.id) == [2])
            #expect(store.last(of: early)?.id == 2)
            #expect(store.last(of: busy)?.id == 4500)
            #expect(try store.receipt(3600)?.id == 3600)
            #expect(try store.receipt(1) == nil)
            #expect(store.nextID == 4501)
        }
    }

    @Test("a daemon that is killed while it replaces the older file loses no receipt and repeats none (L45)")
    func killedWhileTurningOver() throws {
        let test = try TestFolders()
        let store = try test.open()
        try write(store, 1...1, of: early)
        try write(store, 2...1500, of: busy)
        // The daemon died after it had copied the last receipts of other apps, and before it renamed the file.
        let record = try #require(store.last(of: early))
        let line = record.json.serialized(pretty: false) + "\n"
        try AppendFile(test.folders.receipts).append(Array(line.utf8))
        let next = try test.open()
        #expect(try next.read(limit: .max).map(\.id) == (501...1500).map { $0 })
        #expect(try next.read(app: early, limit: .max).map(\.id) == [1])
        try write(next, 1501...4000, of: busy)
        #expect(try next.read(app: early, limit: .max).map(\.id) == [1])
        #expect(try test.open().last(of: early)?.id == 1)
    }

    @Test("an incomplete line is ignored, also if its start is valid, and no number makes the daemon trap")
    func torn() throws {
        let test = try TestFolders()
        try write(try test.open(), 1...2, of: busy)
        let lines = [
            #"{"id":18446744073709551615,"app":"busy"}"#, #"{"id":-1,"app":"busy"}"#, #"{"id":,"app":"busy"}"#,
            #"{"id":8,"app":"../busy"}"#, #"{"id":9,"app":"busy","pid"#,
        ]
        try AppendFile(test.folders.receipts).append(Array(lines.joined(separator: "\n").utf8))
        let store = try test.open()
        #expect(store.last(of: busy)?.id == 2)
        #expect(store.nextID == 3)
        try write(store, 3...3, of: busy)
        #expect(try store.read(limit: .max).map(\.id) == [1, 2, 3])
    }

    private static let hugeIDs: [UInt64] = [
        ReceiptStore.maximumID + 1, 9_007_199_254_740_993, 9_223_372_036_854_775_807, 9_223_372_036_854_775_808, .max,
    ]

    @Test(
        "an ID that the core could not save is ignored, so that it leaves IDs for new receipts",
        arguments: hugeIDs)
    func hugeID(id: UInt64) throws {
        let test = try TestFolders()
        try write(try test.open(), 1...2, of: busy)
        var record = try #require(try test.open().last(of: busy))
        record.id = id > UInt64(Int64.max) ? 7 : id
        let line = record.json.serialized(pretty: false).replacing(#""id":7,"#, with: #""id":\#(id),"#)
        try AppendFile(test.folders.receipts).append(Array((line + "\n").utf8))
        let store = try test.open()
        #expect(store.nextID == 3 && store.last(of: busy)?.id == 2)
        try write(store, 3...3, of: busy)
        #expect(try test.open().read(limit: .max).map(\.id) == [1, 2, 3])
    }

    @Test("a receipt is written although the file has a larger ID, and is written once")
    func smallerID() throws {
        let test = try TestFolders()
        try write(try test.open(), 9000...9000, of: busy)
        let store = try test.open()
        try write(store, 5...6, of: early)
        try write(store, 6...6, of: early)
        #expect(store.nextID == 9001)
        #expect(try test.open().read(limit: .max).map(\.id) == [5, 6, 9000])
        // The next daemon does not know whether the previous one wrote it.
        try write(try test.open(), 6...6, of: early)
        #expect(try test.open().read(limit: .max).map(\.id) == [5, 6, 9000])
    }

    @Test("receipts that the disk refuses are kept in memory, and written with a later one (L45)")
    func refused() throws {
        let test = try TestFolders()
        let store = try test.open()
        try write(store, 1...1, of: early)
        // A folder in place of the file cannot be written by any user.
        let path = test.folders.receipts
        #expect(rename(path, path + ".1") == 0)
        try createDirectories(at: path)
        #expect(throws: Problem.self) { try write(store, 2...2, of: busy) }
        // Only the first failure is reported.
        try write(store, 3...3, of: early)
        #expect(store.nextID == 4 && store.last(of: busy)?.id == 2)
        try removeFile(at: path, folder: true)
        #expect(try store.read(limit: .max).map(\.id) == [1, 2, 3])
        #expect(try store.read(app: busy, limit: .max).map(\.id) == [2])
        try write(store, 4...4, of: busy)
        #expect(try store.read(limit: .max).map(\.id) == [1, 2, 3, 4])
        #expect(try test.open().read(limit: .max).map(\.id) == [1, 2, 3, 4])
    }

    @Test("an incomplete last line of a file that cannot be written does not keep the daemon from starting")
    func incompleteLine() throws {
        let test = try TestFolders()
        try write(try test.open(), 1...1, of: early)
        try AppendFile(test.folders.receipts).append(Array(#"{"id":2,"app":"#.utf8))
        let before = try readFile(at: test.folders.receipts, limit: 4096)
        let store = try test.open()
        #expect(try readFile(at: test.folders.receipts, limit: 4096) == before)
        try write(store, 2...2, of: early)
        #expect(try test.open().read(limit: .max).map(\.id) == [1, 2])
    }

    @Test("the last receipt of an app is read from memory, not from a file")
    func inMemory() throws {
        let test = try TestFolders()
        try write(try test.open(), 1...1, of: early)
        let store = try test.open()
        try write(store, 2...2, of: busy)
        try removeFile(at: test.folders.receipts)
        #expect(store.last(of: early)?.id == 1)
        #expect(store.last(of: busy)?.id == 2)
        #expect(store.last(of: AppID("never")!) == nil)
    }

    @Test("the receipt for an app is a complete file, which is replaced, not overwritten")
    func handedOver() throws {
        let test = try TestFolders()
        let store = try test.open()
        #expect(try store.writeLastReceipt(for: busy) == nil)
        try write(store, 1...1, of: busy)
        let path = try #require(try store.writeLastReceipt(for: busy))
        #expect(path == test.folders.runtime + "/last/busy.json")
        let kept = try Descriptor.open(path, O_RDONLY)
        #expect(try handedOverID(path) == 1)
        try write(store, 2...2, of: busy)
        #expect(try store.writeLastReceipt(for: busy) == path)
        #expect(try handedOverID(path) == 2)
        // An app that has the old file open still reads the old receipt.
        var about = stat()
        #expect(fstat(kept.raw, &about) == 0 && about.st_nlink == 0)
        // The next daemon, after a reboot that emptied the runtime folder.
        try removeFile(at: path)
        _ = try test.open().writeLastReceipt(for: busy)
        #expect(try handedOverID(path) == 2)
    }

    @Test("a receipt keeps all of its values on disk, and its time is that of the first write")
    func roundTrip() throws {
        let test = try TestFolders()
        let store = try test.open()
        var full = receipt(1, of: busy)
        full.exit = .signaled(11, coreDumped: true)
        full.deadline = Receipt.DeadlineUse(
            what: .background, allowed: .seconds(5), wall: .milliseconds(5021), cpu: .milliseconds(310))
        full.candidates = [Receipt.Candidate(app: early, state: .suspended, memory: 1 << 30)]
        try store.write(full)
        let written = try #require(store.last(of: busy))
        #expect(try test.open().receipt(1) == written)
        #expect(store.record(of: full) == written)
        #expect(written == ReceiptRecord(full, time: written.time))
        #expect((written.signal, written.coreDumped, written.exitStatus) == (11, true, nil))
        #expect(written.deadline?.cpu == .milliseconds(310))
    }
}
