import Control
import Glibc
import JSON
import LifecycleCore
import Linux
import Manifest
import Systemd

/// Receipts on disk: one JSON document in each line, appended with one write(2), so that a crash loses at most the
/// receipt that is being written. There are two files. A full file is renamed and replaces the older one. No receipt
/// waits for fsync(2), which may take seconds on a busy disk.
///
/// The last receipt of each app is also in memory, because each call of `List` returns it.
final class ReceiptStore {
    /// The number of receipts that are kept at least. A file with as many is full.
    static let kept = 1000
    /// The longest line in bytes. greenroomd writes none that is longer.
    private static let maximumLine = 64 << 10
    /// The largest file in bytes: `kept` receipts and one for each possible app, of 3 KiB. Most have 0.5 KiB.
    private static let maximumFile = 32 << 20
    /// The most apps whose last receipt is in memory. Apps whose manifest was removed count, too.
    private static let maximumApps = ManifestLibrary.maximumApps

    /// The last receipt of an app.
    private struct Last {
        var id: UInt64
        /// As D-Bus returns it. To parse the lines of 2,000 apps would double the time of `List`.
        var record: [(String, Variant)]
        /// Otherwise it is only in the older file, and is copied before that is replaced.
        var isInNewerFile: Bool
        var isHandedOver = false

        /// The line on disk, with its newline.
        var line: [UInt8] { Array((JSONValue(.dictionary(record)).serialized(pretty: false) + "\n").utf8) }
    }

    private let path: String
    private let older: String
    private let lastFolder: String
    private let clock: WallClock
    /// The number of lines in the newer file.
    private var count = 0
    private var last: [AppID: Last] = [:]
    private(set) var nextID: UInt64 = 1
    /// Why a file could not be read at startup, for the log.
    private(set) var problem: String?

    init(folders: Folders, clock: WallClock) throws {
        path = folders.receipts
        older = folders.olderReceipts
        lastFolder = folders.lastReceipts
        self.clock = clock
        try createDirectories(at: folders.state)
        for path in [older, path] {
            guard let bytes = readOrSetAside(path) else { continue }
            index(bytes, isNewerFile: path == self.path)
            // After a crash the last line may be incomplete. The next receipt starts a new line.
            if path == self.path, bytes.last != UInt8(ascii: "\n") {
                try AppendFile(path).append([UInt8(ascii: "\n")])
            }
        }
    }

    /// Appends a receipt. One that the previous daemon has written already is ignored.
    func write(_ receipt: Receipt) throws {
        guard receipt.id >= nextID else { return }
        let json = JSONValue(receipt, time: clock.now())
        let last = Last(id: receipt.id, record: json.record, isInNewerFile: false)
        nextID = receipt.id + 1
        // Also if it cannot be written.
        remember(receipt.app, last)
        try AppendFile(path).append(last.line)
        self.last[receipt.app]?.isInNewerFile = true
        count += 1
        if count >= Self.kept { try rotate() }
    }

    /// The last receipts of an app, or of all apps, the oldest first.
    /// - Parameter limit: the most receipts that are returned; at most `kept`. Incomplete lines are ignored.
    func read(app: AppID? = nil, limit: Int) throws -> [JSONValue] {
        try read(limit: limit) { app == nil || $0.app == app }
    }

    func receipt(_ id: UInt64) throws -> JSONValue? { try read(limit: 1) { $0.id == id }.first }

    /// The last receipt of an app.
    func last(of app: AppID) -> [(String, Variant)]? { last[app]?.record }

    /// Writes the last receipt of an app to a file that the app can read. The file is in the runtime folder, which is
    /// in memory: on a disk, to create it would take longer than the rest of a launch (ext4 searches inodes that were
    /// deleted in the last minutes one by one).
    /// - Returns: the path; `nil` if the app has no receipt.
    func handOver(to app: AppID) throws -> String? {
        guard let known = last[app] else { return nil }
        let path = "\(lastFolder)/\(app.name).json"
        if !known.isHandedOver {
            try replaceFile(at: path, with: known.line)
            last[app]?.isHandedOver = true
        }
        return path
    }

    /// Removes all files of `handOver`: no app is running.
    func removeHandedOver() throws {
        try removeFiles(in: lastFolder)
        try removeFile(at: lastFolder, folder: true)
    }

    // MARK: The two files

    /// Reads a file. One that is too large or not a regular file is renamed, so that the daemon can start.
    /// - Returns: `nil` if it does not exist or was renamed.
    private func readOrSetAside(_ path: String) -> [UInt8]? {
        do {
            return try readFileIfPresent(at: path, limit: Self.maximumFile)
        } catch {
            problem = "\(error); it was renamed to \(path).unreadable"
            rename(path, path + ".unreadable")
            return nil
        }
    }

    /// Reads the IDs and the last receipts of all apps.
    private func index(_ bytes: [UInt8], isNewerFile: Bool) {
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

    /// Makes the newer file the older one. A crash meanwhile loses no receipt; a line may be written twice.
    private func rotate() throws {
        // If this fails, it is not tried again at each receipt.
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
        // By ID: the older file ends with receipts that are much older.
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

/// The start of a line, `{"id":7,"app":"photos"`: identifies a receipt without parsing all of it.
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
        // Integers in JSON are signed for most readers.
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
        let isPrefix = text.withUTF8Buffer { starts(with: $0) }
        if isPrefix { removeFirst(text.utf8CodeUnitCount) }
        return isPrefix
    }
}
