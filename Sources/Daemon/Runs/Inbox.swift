import LifecycleCore
import Linux
import Posix
import Systemd

/// Empties the inboxes of runs that are over.
final class InboxRemover {
    /// The most entries that are removed at once: unlink(2) takes some microseconds, and rmdir(2) more.
    private static let entriesAtOnce = 64

    private let folders: Folders
    private let loop: EventLoop
    private let journal: Journal
    private var removal: FolderRemoval

    init(folders: Folders, loop: EventLoop, journal: Journal) {
        self.folders = folders
        self.loop = loop
        self.journal = journal
        removal = FolderRemoval(in: folders.inboxes)
        if !removal.isEmpty { removeRest() }
    }

    /// Removes all notifications: they were meant for the process that is over. If there are too many files for one turn, the
    /// folder is renamed, and removed in later turns.
    func empty(_ inbox: Inbox) throws {
        if try removeFiles(in: inbox.path, limit: Self.entriesAtOnce) { return }
        let isRemoving = !removal.isEmpty
        try removal.add(inbox.name)
        if !isRemoving { removeRest() }
    }

    /// Creates an empty inbox.
    func create(_ inbox: Inbox) throws {
        try empty(inbox)
        try inbox.create()
    }

    /// Behind the sources of apps, and in turn with clients: an app may leave any number of files.
    private func removeRest() {
        loop.work.add { [weak self] in
            guard let self else { return false }
            do { try self.removal.step(limit: Self.entriesAtOnce) } catch { self.journal.logWarning("\(error)") }
            return !self.removal.isEmpty
        }
    }
}

/// An app's inbox: a folder with one file for each event, and one for each other kind of notification (L31, L32). The file is
/// there before the app is thawed or notified. Shell scripts can read it, and programs can watch the folder with inotify(7).
struct Inbox {
    /// The most files of events that an app leaves in its inbox. The oldest one is removed before one more is written.
    static let maximumEvents = 256
    /// The most names that are read at the start of the daemon. The app may have added files of its own. Files that are not
    /// read do not count as events.
    private static let maximumListed = 1024
    /// Digits of an event's number in the name of its file, so that names sort as the events came. JSON's exact numbers have no
    /// more.
    private static let digits = 16

    let path: String
    let name: String
    private let owner: Owner?

    init(of app: AppID, _ folders: Folders, owner: Owner?) {
        name = app.name
        path = folders.inboxes + "/" + app.name
        self.owner = owner
    }

    /// Creates the folder, if it does not exist.
    func create() throws { try createDirectories(at: path, mode: 0o700, owner: owner) }

    /// The name of the file of a notification: its kind, and of an event `KIND.NUMBER`. Kinds contain no dot.
    static func fileName(_ notification: Notification) -> String {
        guard notification.id > 0 else { return notification.kind }
        let number = String(notification.id)
        let zeros = String(repeating: "0", count: max(0, digits - number.utf8.count))
        return "\(notification.kind).\(zeros)\(number)"
    }

    /// Writes a file in place of the previous one of this name. The app owns the folder and may have put
    /// anything there: the file is replaced by rename(2), and no symbolic link is followed.
    func write(_ name: String, _ payload: String) throws {
        try replaceFile(at: path + "/" + name, with: Array((payload + "\n").utf8), mode: 0o600, owner: owner)
    }

    /// Removes the file of an event, unless the app has done so.
    /// - Returns: whether it was there.
    func remove(_ name: String) throws -> Bool { try removeFile(at: path + "/" + name) }

    /// Whether a file of this name exists. No symbolic link is followed.
    func contains(_ name: String) -> Bool { exists(at: path + "/" + name) }

    /// Lists the files of events.
    func eventFiles() throws(SystemError) -> EventFiles {
        do {
            return EventFiles(among: try FolderReader(path).next(Self.maximumListed))
        } catch {
            if error.meansGone { return EventFiles() }
            throw error
        }
    }

    /// The number of the event whose file has this name; `nil`: the daemon gives no event's file such a name.
    static func eventNumber(ofFile name: String) -> UInt64? {
        // By bytes: the app chooses the names of its own files.
        let parts = name.utf8.split(separator: UInt8(ascii: "."), maxSplits: 1, omittingEmptySubsequences: false)
        let decimal = UInt8(ascii: "0")...UInt8(ascii: "9")
        guard parts.count == 2, parts[1].count == digits, parts[1].allSatisfy({ decimal.contains($0) }) else {
            return nil
        }
        let kind = String(Substring(parts[0]))
        guard kind == Notification.push || Notification(kind: kind, payload: "")?.isEvent == true else { return nil }
        return UInt64(Substring(parts[1]))
    }
}

/// The files of events in an inbox. The app may have removed some of them.
struct EventFiles {
    /// Oldest first.
    private var names: [String] = []

    init() {}

    /// - Parameter found: names of files, also of other ones.
    init(among found: [String]) {
        let events = found.compactMap { name in Inbox.eventNumber(ofFile: name).map { (number: $0, name: name) } }
        // The app can give two files the same number.
        names = events.sorted { ($0.number, $0.name) < ($1.number, $1.name) }.map(\.name)
    }

    /// Adds files that are about to be written.
    /// - Returns: the oldest files, which are too many then, and no longer counted.
    mutating func add(_ added: [String], in inbox: Inbox) -> [String] {
        // After a crash of the daemon an event may be delivered again.
        let known = names
        names += added.filter { !known.contains($0) }
        guard names.count > Inbox.maximumEvents else { return [] }
        // Most apps remove the files, so few remain and the next search is 256 events later.
        names.removeAll { !added.contains($0) && !inbox.contains($0) }
        let surplus = Array(names.prefix(max(0, names.count - Inbox.maximumEvents)))
        names.removeFirst(surplus.count)
        return surplus
    }
}
