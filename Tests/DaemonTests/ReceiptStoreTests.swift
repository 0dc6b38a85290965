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

/// A store on a folder of its own, which goes with it.
private final class Shelf {
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
        explanation: "exited by itself with status 0", exit: .exited(0), wall: .seconds(1), cpu: .zero, memory: 1)
}

@Suite("Receipts on disk")
struct ReceiptStoreTests {
    private let early = AppID("early")!
    private let busy = AppID("busy")!

    private func id(_ json: JSONValue?) -> Int64? { json?["id"]?.integerValue }
    private func id(_ record: [(String, Variant)]?) -> Int64? { id(record.map { JSONValue(.dictionary($0)) }) }

    private func write(_ store: ReceiptStore, _ ids: ClosedRange<UInt64>, of app: AppID) throws {
        for id in ids { try store.write(receipt(id, of: app)) }
    }

    @Test("L45: the last thousand receipts are kept, and the last of each app however long ago it was")
    func turnsOver() throws {
        let shelf = try Shelf()
        let store = try shelf.open()
        try write(store, 1...2, of: early)
        // Often enough that the file in which it was is gone, and one to which it was carried over too.
        try write(store, 3...4500, of: busy)
        for store in [store, try shelf.open()] {
            let all = try store.read(limit: .max)
            #expect(all.map(id) == (3501...4500).map { $0 })
            #expect(try store.read(limit: 2).map(id) == [4499, 4500])
            #expect(try store.read(app: early, limit: .max).map(id) == [2])
            #expect(id(store.last(of: early)) == 2)
            #expect(id(store.last(of: busy)) == 4500)
            #expect(id(try store.receipt(3600)) == 3600)
            #expect(try store.receipt(1) == nil)
            #expect(store.nextID == 4501)
        }
    }

    @Test("L45: a daemon that is killed while it turns over its receipts loses none and has none twice")
    func killedWhileTurningOver() throws {
        let shelf = try Shelf()
        let store = try shelf.open()
        try write(store, 1...1, of: early)
        try write(store, 2...1500, of: busy)
        // What it had done by then: the last of others was carried over, and the name not yet changed.
        let record = try #require(store.last(of: early))
        let line = JSONValue(.dictionary(record)).serialized(pretty: false) + "\n"
        try AppendFile(shelf.folders.receipts).append(Array(line.utf8))
        let next = try shelf.open()
        #expect(try next.read(limit: .max).map(id) == (501...1500).map { $0 })
        #expect(try next.read(app: early, limit: .max).map(id) == [1])
        try write(next, 1501...4000, of: busy)
        #expect(try next.read(app: early, limit: .max).map(id) == [1])
        #expect(id(try shelf.open().last(of: early)) == 1)
    }

    @Test("A line that a crash has torn is passed over, also where it begins well; and no number makes the daemon trap")
    func torn() throws {
        let shelf = try Shelf()
        try write(try shelf.open(), 1...2, of: busy)
        let lines = [
            #"{"id":18446744073709551615,"app":"busy"}"#, #"{"id":-1,"app":"busy"}"#, #"{"id":,"app":"busy"}"#,
            #"{"id":8,"app":"../busy"}"#, #"{"id":9,"app":"busy","pid"#,
        ]
        try AppendFile(shelf.folders.receipts).append(Array(lines.joined(separator: "\n").utf8))
        let store = try shelf.open()
        #expect(id(store.last(of: busy)) == 2)
        #expect(store.nextID == 3)
        try write(store, 3...3, of: busy)
        #expect(try store.read(limit: .max).map(id) == [1, 2, 3])
        try AppendFile(shelf.folders.receipts).append(Array((#"{"id":9223372036854775807,"app":"busy"}"# + "\n").utf8))
        #expect(try shelf.open().nextID == 1 << 63)
    }

    @Test("What every list asks for is read from no file")
    func inMemory() throws {
        let shelf = try Shelf()
        try write(try shelf.open(), 1...1, of: early)
        let store = try shelf.open()
        try write(store, 2...2, of: busy)
        try removeFile(at: shelf.folders.receipts)
        #expect(id(store.last(of: early)) == 1)
        #expect(id(store.last(of: busy)) == 2)
        #expect(store.last(of: AppID("never")!) == nil)
    }

    @Test("An app finds the receipt of its last end whole, in a file that is replaced and lies in memory")
    func handedOver() throws {
        let shelf = try Shelf()
        let store = try shelf.open()
        #expect(try store.handOver(to: busy) == nil)
        try write(store, 1...1, of: busy)
        let path = try #require(try store.handOver(to: busy))
        #expect(path == shelf.folders.runtime + "/last/busy.json")
        let kept = try Descriptor.open(path, O_RDONLY)
        #expect(id(try JSONValue.parse(try readFile(at: path, limit: 4096))) == 1)
        try write(store, 2...2, of: busy)
        #expect(try store.handOver(to: busy) == path)
        #expect(id(try JSONValue.parse(try readFile(at: path, limit: 4096))) == 2)
        // Who has the old one open reads the old one to its end.
        var about = stat()
        #expect(fstat(kept.raw, &about) == 0 && about.st_nlink == 0)
        // Another daemon, on a runtime folder that is empty after a boot.
        try removeFile(at: path)
        _ = try shelf.open().handOver(to: busy)
        #expect(id(try JSONValue.parse(try readFile(at: path, limit: 4096))) == 2)
    }
}
