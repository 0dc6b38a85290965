import Control
import Glibc
import JSON
import LifecycleCore
import Linux
import Manifest
import Posix
import Systemd

/// Receipts on disk: one JSON document a line, appended in one write, so that a crash in the middle loses at most that
/// one. Nothing is ever written over. A file that is full becomes the older of two, in place of the one before, by its name
/// alone: so no end waits for the disk (`fsync` may take seconds where it is busy).
///
/// The last of each app is kept in memory too, as every `List` asks for it.
final class ReceiptStore {
    /// How many are there at least, once there were so many; a file is full when it holds as many.
    static let kept = 1000
    /// A line that is longer was not written by us.
    private static let maximumLine = 64 << 10
    /// `kept` and the last of as many apps as there may be, at 3 KiB; most are half of one.
    private static let maximumFile = 32 << 20
    /// Of more apps than this the last receipt is not remembered: apps that are gone count too.
    private static let maximumApps = ManifestLibrary.maximumApps

    /// The last receipt of an app.
    private struct Last {
        var id: UInt64
        /// As the bus shows it: of two thousand apps, to read as many lines anew would take half of what a list takes.
        var record: [(String, Variant)]
        /// Otherwise it goes with the older file, and has to be written again before.
        var isInNewerFile: Bool
        var isHandedOver = false

        /// As it is on disk, with its newline.
        var line: [UInt8] { Array((JSONValue(.dictionary(record)).serialized(pretty: false) + "\n").utf8) }
    }

    private let path: String
    private let older: String
    private let lastFolder: String
    private let clock: WallClock
    /// Lines of the newer file.
    private var count = 0
    private var last: [AppID: Last] = [:]
    private(set) var nextID: UInt64 = 1
    /// What was wrong with the files at start, for the log.
    private(set) var problem: String?

    init(folders: Folders, clock: WallClock) throws {
        path = folders.receipts
        older = folders.olderReceipts
        lastFolder = folders.lastReceipts
        self.clock = clock
        try createDirectories(at: folders.state)
        for path in [older, path] {
            guard let bytes = readOrSetAside(path) else { continue }
            learn(bytes, isNewerFile: path == self.path)
            // A crash in the middle: what comes next begins a line of its own.
            if path == self.path, bytes.last != UInt8(ascii: "\n") {
                try AppendFile(path).append([UInt8(ascii: "\n")])
            }
        }
    }

    /// Adds one. Called once an end.
    func write(_ receipt: Receipt) throws {
        // A daemon before this one has written it, and did not come as far as to say so.
        guard receipt.id >= nextID else { return }
        let json = JSONValue(receipt, time: clock.now())
        let last = Last(id: receipt.id, record: json.record, isInNewerFile: false)
        nextID = receipt.id + 1
        // Also where the disk refuses it.
        remember(receipt.app, last)
        try AppendFile(path).append(last.line)
        self.last[receipt.app]?.isInNewerFile = true
        count += 1
        if count >= Self.kept { try turnOver() }
    }

    /// The last `limit` of an app, or of all, the oldest first; at most `kept`. Lines that are no receipts (a torn one) are
    /// passed over.
    func read(app: AppID? = nil, limit: Int) throws -> [JSONValue] {
        try read(limit: limit) { app == nil || $0.app == app }
    }

    func receipt(_ id: UInt64) throws -> JSONValue? { try read(limit: 1) { $0.id == id }.first }

    /// The receipt of an app's last end.
    func last(of app: AppID) -> [(String, Variant)]? { last[app]?.record }

    /// Puts the receipt of an app's last end where the app finds it, readable for its user; the path, or `nil` before its
    /// first. Below the runtime folder, as that is in memory: on a disk, a new file at each end costs more than all else of
    /// it (ext4 passes over inodes that were deleted in the last minutes one by one).
    func handOver(to app: AppID) throws -> String? {
        guard let known = last[app] else { return nil }
        let path = "\(lastFolder)/\(app.name).json"
        if !known.isHandedOver {
            try replaceFile(at: path, with: known.line)
            last[app]?.isHandedOver = true
        }
        return path
    }

    /// Nobody is there to be handed anything.
    func removeHandedOver() throws {
        try removeFiles(in: lastFolder)
        try removeFile(at: lastFolder, folder: true)
    }

    // MARK: The two files

    /// A file that is no such file of ours (far too large, no regular one) must not keep the daemon from starting.
    private func readOrSetAside(_ path: String) -> [UInt8]? {
        do {
            return try readFileIfPresent(at: path, limit: Self.maximumFile)
        } catch {
            problem = "\(error); it is now \(path).unreadable, and a new one is begun"
            rename(path, path + ".unreadable")
            return nil
        }
    }

    private func learn(_ bytes: [UInt8], isNewerFile: Bool) {
        for line in bytes.split(separator: UInt8(ascii: "\n")) {
            guard let head = Head(line), let json = parse(line) else { continue }
            nextID = max(nextID, head.id + 1)
            if isNewerFile { count += 1 }
            if let known = last[head.app], known.id > head.id { continue }
            remember(head.app, Last(id: head.id, record: json.record, isInNewerFile: isNewerFile))
        }
    }

    private func remember(_ app: AppID, _ receipt: Last) {
        if last[app] == nil, last.count >= Self.maximumApps, let oldest = last.min(by: { $0.value.id < $1.value.id }) {
            last[oldest.key] = nil
        }
        last[app] = receipt
    }

    /// The newer file becomes the older one. Whatever happens in the middle, nothing is lost by it: at worst a line is there
    /// twice.
    private func turnOver() throws {
        // Where that fails, not at each end again.
        count = 0
        let lines = last.values.filter { !$0.isInNewerFile }.sorted { $0.id < $1.id }.flatMap(\.line)
        if !lines.isEmpty { try AppendFile(path).append(lines) }
        guard rename(path, older) == 0 else { throw SystemError(call: "rename", errno: errno, path: path) }
        for app in last.keys { last[app]?.isInNewerFile = false }
    }

    private func read(limit: Int, where isWanted: (Head) -> Bool) throws -> [JSONValue] {
        var lines: [(id: UInt64, text: ArraySlice<UInt8>)] = []
        for path in [path, older] {
            guard let bytes = try readFileIfPresent(at: path, limit: Self.maximumFile) else { continue }
            for line in bytes.split(separator: UInt8(ascii: "\n")) {
                if let head = Head(line), isWanted(head) { lines.append((head.id, line)) }
            }
        }
        // From the end, as the last are wanted; the older file ends with some that are much older.
        lines.sort { $0.id > $1.id }
        var found: [JSONValue] = []
        var previous: UInt64?
        for (id, text) in lines where id != previous && found.count < min(limit, Self.kept) {
            guard let json = parse(text) else { continue }
            found.append(json)
            previous = id
        }
        return found.reversed()
    }

    private func parse(_ line: ArraySlice<UInt8>) -> JSONValue? {
        line.count <= Self.maximumLine ? try? JSONValue.parse(Array(line)) : nil
    }
}

/// How each line of ours begins: `{"id":7,"app":"photos"`. Tells whose it is without reading all of it.
private struct Head {
    let id: UInt64
    let app: AppID

    init?(_ line: ArraySlice<UInt8>) {
        var rest = line
        guard rest.skip(#"{"id":"#) else { return nil }
        let digits = rest.prefix { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
        rest = rest.dropFirst(digits.count)
        guard rest.skip(#","app":""#) else { return nil }
        let name = rest.prefix(AppID.maximumLength + 1).prefix { $0 != UInt8(ascii: "\"") }
        // As JSON's and D-Bus's readers have it, whole numbers are signed.
        guard let id = Int64(String(decoding: digits, as: UTF8.self)),
            let app = AppID(String(decoding: name, as: UTF8.self)),
            rest.dropFirst(name.count).first == UInt8(ascii: "\"")
        else { return nil }
        self.id = UInt64(id)
        self.app = app
    }
}

extension ArraySlice<UInt8> {
    fileprivate mutating func skip(_ text: StaticString) -> Bool {
        let isThere = text.withUTF8Buffer { starts(with: $0) }
        if isThere { removeFirst(text.utf8CodeUnitCount) }
        return isThere
    }
}
