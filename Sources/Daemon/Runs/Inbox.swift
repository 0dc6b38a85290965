import LifecycleCore
import Linux
import Posix
import Systemd

/// Empties the inboxes of runs that are over.
final class InboxRemover {
    /// The most entries that are removed in a turn of the loop: unlink(2) takes some microseconds.
    private static let entriesPerTurn = 256

    private let folders: Folders
    private let loop: EventLoop
    private let journal: Journal
    private var removal: FolderRemoval

    init(folders: Folders, loop: EventLoop, journal: Journal) {
        self.folders = folders
        self.loop = loop
        self.journal = journal
        removal = FolderRemoval(in: folders.inboxes)
        if !removal.isEmpty { loop.callLater { [weak self] in self?.step() } }
    }

    /// Removes all notifications: they were meant for the process that is over. If there are too many files for one turn, the
    /// folder is renamed, and removed in later turns.
    func empty(_ inbox: Inbox) throws {
        if try removeFiles(in: inbox.path, limit: Self.entriesPerTurn) { return }
        let isRemoving = !removal.isEmpty
        try removal.add(inbox.name)
        if !isRemoving { loop.callLater { [weak self] in self?.step() } }
    }

    /// Creates an empty inbox.
    func create(_ inbox: Inbox) throws {
        try empty(inbox)
        try inbox.create()
    }

    private func step() {
        do { try removal.step(limit: Self.entriesPerTurn) } catch { journal.logWarning("\(error)") }
        if !removal.isEmpty { loop.callLater { [weak self] in self?.step() } }
    }
}

/// An app's inbox: a folder with one file for each event, and one for each other kind of notification (L31, L32). The file is
/// there before the app is thawed or notified. Shell scripts can read it, and programs can watch the folder with inotify(7).
struct Inbox {
    /// The most files of events that an app leaves in its inbox. The oldest one is removed before one more is written.
    static let maximumEvents = 256
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
}
