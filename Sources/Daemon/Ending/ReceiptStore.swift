import Control
import Glibc
import JSON
import LifecycleCore
import Linux
import Manifest
import Posix
import Systemd

/// The receipts on disk: one JSON document a line, each appended with one write, so that a crash during the write loses at
/// most that line. No line is ever changed. A full file is renamed and so replaces the older of two files; no end of an
/// app waits for `fsync`, which takes seconds on a busy disk.
///
/// The last receipt of each app is in memory too, because every `List` shows it.
final class ReceiptStore {
    /// The minimum number of receipts that are kept. A file with this many lines is full.
    static let kept = 1000
    /// The longest line in bytes.
    private static let maximumLine = 64 << 10
    /// The largest file in bytes: `kept` receipts at 5 KiB, 2 of them of output, and the last ones of `maximumApps` apps, at 3 KiB each.
    /// Most have half a KiB.
    private static let maximumFile = 40 << 20
    /// Of the files: the last lines of an app's output are for the user of the daemon alone.
    private static let mode: UInt32 = 0o600
    /// How many apps' last receipts are in memory; apps that no longer exist count too.
    private static let maximumApps = ManifestLibrary.maximumApps
    /// The most lines of a file that are read at the start, the last ones: twice what the daemon writes to one.
    private static let maximumLines = 2 * (kept + maximumApps)
    /// The largest ID of a line that is read. IDs go up by one, and the core saves them up to 2^53: a larger one in the file
    /// is damage, and would leave no IDs for new receipts.
    static let maximumID: UInt64 = 1 << 52
    /// The most receipts that wait in memory until the file can be written.
    static let maximumPending = kept

    /// The last receipt of an app, without its output, which is in the file alone: every user may read what is in memory.
    private struct Last {
        var record: ReceiptRecord
        /// A receipt that is only in the older file is written again before that file is replaced.
        var isInNewerFile: Bool
        var isWrittenForApp = false

        /// The line of the file, with its newline.
        var line: [UInt8] { Array((record.json.serialized(pretty: false) + "\n").utf8) }
    }

    private let path: String
    private let older: String
    private let lastFolder: String
    private let clock: WallClock
    /// The number of lines in the newer file.
    private var count = 0
    private var last: [AppID: Last] = [:]
    private(set) var nextID: UInt64 = 1
    /// Lines that the disk has refused, the oldest first. They are written with the next receipt, or by `PendingReceipts`.
    private(set) var pending: [[UInt8]] = []
    /// The file ends with an incomplete line: the next receipt starts on a line of its own.
    private var endsWithinLine = false
    /// What was wrong with the files at the start, for the log.
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
            chmod(path, Self.mode)
            if path == self.path { endsWithinLine = !bytes.isEmpty && bytes.last != UInt8(ascii: "\n") }
        }
    }

    /// Adds a receipt, once for each end of an app. If the disk refuses it, it is kept in memory and written with a later one.
    /// - Parameter output: the last lines of the app; called for a failure.
    /// - Throws: if the disk refuses it, and did not refuse the one before.
    func write(_ receipt: Receipt, output: () -> [String] = { [] }) throws {
        if isKnown(receipt) { return }
        var last = Last(record: ReceiptRecord(receipt, time: clock.now()), isInNewerFile: false)
        nextID = max(nextID, receipt.id + 1)
        // Before the write, so that it is known even if the disk refuses it.
        recordLast(receipt.app, last)
        let isFirst = pending.isEmpty
        if last.record.isFailure { last.record.output = output() }
        pending.append(last.line)
        if pending.count > Self.maximumPending { pending.removeFirst() }
        do { try writePending() } catch {
            if isFirst {
                throw Problem(
                    "\(error); receipts are kept in memory, the last \(Self.maximumPending), and written with a later one"
                )
            }
        }
    }

    /// Writes the receipts that the disk has refused before.
    func writePending() throws {
        if pending.isEmpty { return }
        try AppendFile(path, mode: Self.mode).append((endsWithinLine ? [UInt8(ascii: "\n")] : []) + pending.joined())
        endsWithinLine = false
        for line in pending {
            guard let head = Head(line[...]), last[head.app]?.record.id == head.id else { continue }
            last[head.app]?.isInNewerFile = true
        }
        count += pending.count
        pending = []
        if count >= Self.kept { try rotate() }
    }

    /// Takes over lines that the disk has refused to the previous daemon. Lines of receipts that are on disk are ignored.
    func adoptPending(_ lines: [[UInt8]]) {
        for line in lines {
            guard let head = Head(line[...]), line.last == UInt8(ascii: "\n"), let json = parse(line.dropLast()),
                let record = try? ReceiptRecord(json: json), pending.count < Self.maximumPending
            else { continue }
            if head.id < nextID, let known = try? receipt(head.id), known.app == head.app.name { continue }
            pending.append(line)
            nextID = max(nextID, head.id + 1)
            if let known = last[head.app], known.record.id > head.id { continue }
            recordLast(head.app, Last(record: record, isInNewerFile: false))
        }
    }

    /// The number of the receipt of a line.
    static func id(ofLine line: [UInt8]) -> UInt64? { Head(line[...])?.id }

    /// Whether the previous daemon wrote a receipt of the same end: it died before it recorded that, or the record is lost.
    private func isKnown(_ receipt: Receipt) -> Bool {
        func isSame(_ known: ReceiptRecord) -> Bool { known.app == receipt.app.name && known.pid == receipt.pid }
        if receipt.exit == .unknown, receipt.pid != nil, let known = last(of: receipt.app), isSame(known) {
            return true
        }
        guard receipt.id < nextID, let known = try? self.receipt(receipt.id) else { return false }
        return isSame(known)
    }

    /// The last `limit` receipts of an app or of all apps, the oldest first; at most `kept`. Lines that hold no receipt are
    /// ignored.
    func read(app: AppID? = nil, limit: Int) throws -> [ReceiptRecord] {
        try read(limit: limit) { app == nil || $0.app == app }
    }

    func receipt(_ id: UInt64) throws -> ReceiptRecord? { try read(limit: 1) { $0.id == id }.first }

    /// The receipt of an app's last end.
    func last(of app: AppID) -> ReceiptRecord? { last[app]?.record }

    /// The record of a receipt of the core: the stored one if there is one, so that its time is the same everywhere.
    func record(of receipt: Receipt) -> ReceiptRecord {
        if let known = last[receipt.app]?.record, known.id == receipt.id { return known }
        return ReceiptRecord(receipt, time: clock.now())
    }

    /// Writes the receipt of an app's last end to the file of `GREENROOM_LAST_RECEIPT`, readable for the app's user. The
    /// file is below the runtime folder, in memory: on a disk, a new file at each end costs more than the rest of the end
    /// (ext4 skips recently deleted inodes one by one).
    ///
    /// - Returns: the path; `nil` before the first end.
    func writeLastReceipt(for app: AppID) throws -> String? {
        guard let known = last[app] else { return nil }
        let path = "\(lastFolder)/\(app.name).json"
        if !known.isWrittenForApp {
            try replaceFile(at: path, with: known.line)
            last[app]?.isWrittenForApp = true
        }
        return path
    }

    /// The files of `writeLastReceipt(for:)` were removed by another process: they are written again when they are needed.
    func rewriteLastReceiptFiles() {
        for app in last.keys { last[app]?.isWrittenForApp = false }
    }

    /// Removes the file of `writeLastReceipt(for:)`. It is written again if the app is launched again.
    func removeLastReceiptFile(of app: AppID) throws {
        try removeFile(at: "\(lastFolder)/\(app.name).json")
        last[app]?.isWrittenForApp = false
    }

    /// Removes the files of `writeLastReceipt(for:)`, when the daemon ends and no app is left.
    func removeLastReceiptFiles() throws {
        try removeFiles(in: lastFolder)
        try removeFile(at: lastFolder, folder: true)
    }

    // MARK: The two files

    /// A file that cannot be read (too large, not a regular file) is renamed, so that the daemon starts without it.
    private func readOrSetAside(_ path: String) -> [UInt8]? {
        do {
            return try readFileIfPresent(at: path, limit: Self.maximumFile)
        } catch {
            problem = "\(error); renamed to \(path).unreadable, starting with an empty file"
            rename(path, path + ".unreadable")
            return nil
        }
    }

    /// Reads the IDs and the last receipts of all apps.
    private func index(_ bytes: [UInt8], isNewerFile: Bool) {
        for line in bytes.split(separator: UInt8(ascii: "\n")).suffix(Self.maximumLines) {
            guard let head = Head(line), let json = parse(line) else { continue }
            nextID = max(nextID, head.id + 1)
            if isNewerFile { count += 1 }
            if let known = last[head.app], known.record.id > head.id { continue }
            guard let record = try? ReceiptRecord(json: json) else { continue }
            recordLast(head.app, Last(record: record, isInNewerFile: isNewerFile))
        }
    }

    private func recordLast(_ app: AppID, _ receipt: Last) {
        if last[app] == nil, last.count >= Self.maximumApps,
            let oldest = last.min(by: { $0.value.record.id < $1.value.record.id })
        {
            last[oldest.key] = nil
        }
        last[app] = receipt
        last[app]?.record.output = []
    }

    /// Makes the newer file the older one. A crash at any point loses no receipt; at worst a line exists twice.
    private func rotate() throws {
        // First, so that a failure is not repeated at each end.
        count = 0
        let lines = last.values.filter { !$0.isInNewerFile }.sorted { $0.record.id < $1.record.id }.flatMap(\.line)
        if !lines.isEmpty { try AppendFile(path, mode: Self.mode).append(lines) }
        guard rename(path, older) == 0 else { throw SystemError(call: "rename", errno: errno, path: path) }
        for app in last.keys { last[app]?.isInNewerFile = false }
    }

    private func read(limit: Int, where isWanted: (Head) -> Bool) throws -> [ReceiptRecord] {
        var lines: [(id: UInt64, text: ArraySlice<UInt8>)] = []
        for path in [path, older] {
            guard let bytes = try readFileIfPresent(at: path, limit: Self.maximumFile) else { continue }
            for line in bytes.split(separator: UInt8(ascii: "\n")) {
                if let head = Head(line), isWanted(head) { lines.append((head.id, line)) }
            }
        }
        for line in pending {
            if let head = Head(line[...]), isWanted(head) { lines.append((head.id, line.dropLast())) }
        }
        // The newest first. The files are not in order: a file ends with older receipts that were written again.
        lines.sort { $0.id > $1.id }
        var found: [ReceiptRecord] = []
        var previous: UInt64?
        for (id, text) in lines where id != previous && found.count < min(limit, Self.kept) {
            guard let json = parse(text), let record = try? ReceiptRecord(json: json) else { continue }
            found.append(record)
            previous = id
        }
        return found.reversed()
    }

    private func parse(_ line: ArraySlice<UInt8>) -> JSONValue? {
        line.count <= Self.maximumLine ? try? JSONValue.parse(Array(line)) : nil
    }
}

/// The start of a line: `{"id":7,"app":"photos"`. It identifies the receipt without a parse of the whole line.
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
        guard let id = UInt64(String(decoding: digits, as: UTF8.self)), id <= ReceiptStore.maximumID,
            let app = AppID(String(decoding: name, as: UTF8.self)),
            rest.dropFirst(name.count).first == UInt8(ascii: "\"")
        else { return nil }
        self.id = id
        self.app = app
    }
}

extension ArraySlice<UInt8> {
    /// Removes a prefix; `false` if the bytes do not start with it.
    fileprivate mutating func skip(_ text: StaticString) -> Bool {
        let hasPrefix = text.withUTF8Buffer { starts(with: $0) }
        if hasPrefix { removeFirst(text.utf8CodeUnitCount) }
        return hasPrefix
    }
}
