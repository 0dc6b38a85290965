import LifecycleCore

/// Files of an inbox that could not be written, in the order in which they came: each event, and of anything else the last one
/// of its kind. They are written in this order when there is space again. The logbook has them too, so that they survive the
/// daemon. While there is one, further pushes and notifications of clients are refused; so there are as many as the core had
/// kept for the app (`NotificationQueue`), and those that came in the same turn.
struct PendingFiles: Defaulted, Hashable {
    struct File: Hashable {
        var name: String
        var payload: String
    }

    private static let prefix = "inbox/"

    private(set) var files: [File] = []
    /// Why the first one could not be written, as the end of a sentence.
    var problem = ""

    var isEmpty: Bool { files.isEmpty }

    /// Adds a file. One of the same name before it was not written, and is not any more.
    mutating func add(_ name: String, _ payload: String) {
        files.removeAll { $0.name == name }
        files.append(File(name: name, payload: payload))
    }

    mutating func removeFirst() {
        files.removeFirst()
        if files.isEmpty { problem = "" }
    }
    mutating func removeAll() { self = PendingFiles() }

    // MARK: Records

    static func recordName(_ run: RunID, _ file: String) -> String { "\(prefix)\(run)/\(file)" }

    /// The run that a record of this name belongs to; `nil`: it is a record of another kind.
    static func run(named name: String) -> RunID? { parts(name)?.run }

    private static func parts(_ name: String) -> (run: RunID, file: String)? {
        guard name.hasPrefix(prefix) else { return nil }
        let parts = name.dropFirst(prefix.count).split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 2, let number = UInt64(parts[0]) else { return nil }
        return (RunID(number), String(parts[1]))
    }

    /// What the previous daemon could not write. States come first, and events in the order of their numbers.
    static func all(in records: [String: [UInt8]]) -> [RunID: PendingFiles] {
        var found: [RunID: [(number: UInt64, file: File)]] = [:]
        for (name, payload) in records {
            guard let (run, file) = parts(name), payload.count <= Notification.maximumPush else { continue }
            let number = Inbox.eventNumber(ofFile: file)
            guard number != nil || file == Notification.push || Notification(kind: file, payload: "") != nil else {
                continue
            }
            let text = String(decoding: payload, as: UTF8.self)
            found[run, default: []].append((number ?? 0, File(name: file, payload: text)))
        }
        return found.mapValues { all in
            var pending = PendingFiles()
            pending.files = all.sorted { ($0.number, $0.file.name) < ($1.number, $1.file.name) }.map(\.file)
            return pending
        }
    }
}
