import Glibc
import JSON
import LifecycleCore
import Linux
import Manifest

/// Receipts on disk: one JSON document a line, appended in one write, so that a crash in the middle loses at most that
/// one. The file is the truth: nothing of it is kept in memory.
final class ReceiptStore {
    /// How many are kept.
    static let kept = 1000
    /// The file is written anew once it holds this many: one rewrite in a thousand ends.
    private static let compactAt = 2 * kept
    /// A line that is longer was not written by us.
    private static let maximumLine = 64 << 10
    private static let maximumFile = compactAt * 4096 * 4

    private let path: String
    private let lastFolder: String
    private let clock: WallClock
    private var count = 0
    private(set) var nextID: UInt64 = 1
    /// What was wrong with the file at start, for the log.
    private(set) var problem: String?

    init(folders: Folders, clock: WallClock) throws {
        path = folders.receipts
        lastFolder = folders.lastReceipts
        self.clock = clock
        try createDirectories(at: lastFolder)
        setAsideIfUnreadable()
        let all = try read(limit: .max)
        count = all.count
        nextID = (all.last.flatMap { $0["id"]?.integerValue }.map { UInt64(max(0, $0)) } ?? 0) + 1
        try endTornLine()
    }

    /// Adds one. Called once an end.
    func write(_ receipt: Receipt) throws {
        // A daemon before this one has written it, and did not come as far as to say so.
        guard receipt.id >= nextID else { return }
        let json = JSONValue(receipt, time: clock.now())
        let line = Array((json.serialized(pretty: false) + "\n").utf8)
        nextID = max(nextID, receipt.id + 1)
        try AppendFile(path).append(line)
        count += 1
        // What the app is given at its next launch; readable for its user.
        try replaceFile(at: lastPath(receipt.app), with: line)
        if count >= Self.compactAt { try compact() }
    }

    /// A file that is no such file of ours (far too large, no regular one) must not keep the daemon from starting.
    private func setAsideIfUnreadable() {
        do {
            _ = try readFileIfPresent(at: path, limit: Self.maximumFile)
        } catch {
            problem = "\(error); it is now \(path).unreadable, and a new one is begun"
            rename(path, path + ".unreadable")
        }
    }

    private func endTornLine() throws {
        guard let bytes = try readFileIfPresent(at: path, limit: Self.maximumFile), let last = bytes.last,
            last != UInt8(ascii: "\n")
        else { return }
        try AppendFile(path).append([UInt8(ascii: "\n")])
    }

    private func compact() throws {
        let kept = try read(limit: Self.kept)
        let text = kept.map { $0.serialized(pretty: false) + "\n" }.joined()
        try replaceFile(at: path, with: Array(text.utf8), durable: true)
        count = kept.count
    }

    /// The last `limit` of an app, or of all, the oldest first. Lines that are no receipts (a torn one) are passed over.
    func read(app: AppID? = nil, limit: Int) throws -> [JSONValue] {
        guard let bytes = try readFileIfPresent(at: path, limit: Self.maximumFile) else { return [] }
        var found: [JSONValue] = []
        // From the end, as the last are wanted.
        for line in bytes.split(separator: UInt8(ascii: "\n")).reversed() {
            guard found.count < min(limit, Self.compactAt) else { break }
            guard line.count <= Self.maximumLine, let json = try? JSONValue.parse(Array(line)),
                json["id"]?.integerValue != nil
            else { continue }
            if let app, json["app"]?.stringValue != app.name { continue }
            found.append(json)
        }
        return found.reversed()
    }

    func receipt(_ id: UInt64) throws -> JSONValue? {
        try read(limit: .max).last { $0["id"]?.integerValue == Int64(exactly: id) }
    }

    /// The receipt of an app's last end.
    func last(of app: AppID) -> JSONValue? {
        guard let bytes = try? readFileIfPresent(at: lastPath(app), limit: Self.maximumLine) else { return nil }
        return try? JSONValue.parse(bytes)
    }

    func lastPath(of app: AppID) -> String? {
        exists(at: lastPath(app)) ? lastPath(app) : nil
    }

    private func lastPath(_ app: AppID) -> String { lastFolder + "/" + app.name + ".json" }
}

extension JSONValue {
    /// With the keys of the contract.
    init(_ receipt: Receipt, time: String) {
        var keys: [(String, JSONValue)] = [
            ("id", .integer(Int64(clamping: receipt.id))), ("app", .string(receipt.app.name)),
        ]
        if let pid = receipt.pid { keys.append(("pid", .integer(Int64(pid)))) }
        keys += [
            ("time", .string(time)), ("state", .string(receipt.state.rawValue)),
            ("namespace", .string(receipt.namespace.rawValue)), ("code", .string(receipt.codeText)),
            ("explanation", .string(receipt.explanation)),
        ]
        switch receipt.exit {
        case .exited(let status): keys.append(("exitStatus", .integer(Int64(status))))
        case .signaled(let signal, let coreDumped):
            keys += [("signal", .integer(Int64(signal))), ("coreDumped", .bool(coreDumped))]
        case .unknown, .lost: break
        }
        keys += [
            ("wallSeconds", .number(receipt.wall.seconds)), ("cpuSeconds", .number(receipt.cpu.seconds)),
            ("memoryBytes", .integer(Int64(clamping: receipt.memory))),
        ]
        if let use = receipt.deadline { keys.append(("deadline", JSONValue(use))) }
        if !receipt.candidates.isEmpty { keys.append(("candidates", .array(receipt.candidates.map(JSONValue.init)))) }
        self = .object(keys)
    }

    private init(_ use: Receipt.DeadlineUse) {
        var keys: [(String, JSONValue)] = [
            ("what", .string(use.what.rawValue)), ("allowedSeconds", .number(use.allowed.seconds)),
            ("wallSeconds", .number(use.wall.seconds)),
        ]
        if let cpu = use.cpu { keys.append(("cpuSeconds", .number(cpu.seconds))) }
        self = .object(keys)
    }

    private init(_ candidate: Receipt.Candidate) {
        self = .object([
            ("app", .string(candidate.app.name)), ("state", .string(candidate.state.rawValue)),
            ("memoryBytes", .integer(Int64(clamping: candidate.memory))),
        ])
    }
}
